"""The share of the input's variance that positions carry, ρ, and the σ that gives a wanted share.

ρ = v / (v + t), measured where the table is added to the tokens: v is the variance of the table
over positions (mean over its columns), t the mean square of the embedded tokens. σ alone says
little: 0.1 is large beside tokens of 0.02 and small beside tokens of 1. The doctor's
`share_of_position` measures the same in a whole model.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from placecell.config.values import check_value
from placecell.encodings.base import Encoding
from placecell.errors import InputError

LEFT_AT = "_calibrated_variance"  # attribute of a parameter: the one `calibrate_` left it with


@runtime_checkable
class RecordsSigma(Protocol):
    """An encoding that keeps the σ it was given: `LearnablePE`."""

    def set_sigma(self, sigma: float) -> float:
        """Scale the table so that σ of what enters the network is `sigma`; return its own."""

    def record_sigma(self) -> None:
        """Take the table as someone drew it: σ is what it has, and no batch scales it."""


def position_share(table: Tensor, tokens: Tensor | float, present: Tensor | None = None) -> float:
    """Return ρ, the share of the variance of `tokens + table` that the table makes.

    Parameters
    ----------
    table : Tensor
        What is added for each position (n d).
    tokens : Tensor or float
        Embedded tokens, before anything is added (b n d); or their mean square, if it is known.
    present : Tensor, optional
        Boolean (b n), False for padding. None: all tokens count.

    Returns
    -------
    float
        Between 0 (a constant table) and 1.

    Examples
    --------
    >>> tokens, table = torch.randn(1000, 16, 32), 0.5 * torch.randn(16, 32)
    >>> round(position_share(table, tokens), 1)
    0.2
    """
    variance = _variance_over_positions(table)
    beside = tokens if isinstance(tokens, int | float) else mean_square(tokens, present)
    if not beside >= 0:
        raise InputError(f"a mean square must be at least 0, not {beside}.")
    return variance / (variance + beside)


def sigma_for_share(rho: float, mean_square: float) -> float:
    """Return the σ of a table that makes up the share ρ beside tokens of this mean square.

    Parameters
    ----------
    rho : float
        The wanted share, above 0 and below 1.
    mean_square : float
        Mean square of the embedded tokens.

    Returns
    -------
    float
        σ = √(mean_square · ρ / (1 − ρ)).

    Examples
    --------
    >>> sigma_for_share(0.2, 0.25**2)  # tokens of N(0, 0.25²)
    0.125
    """
    rho = check_value(rho, float, "rho, a share,", above=0, below=1)
    if not (math.isfinite(mean_square) and mean_square > 0):
        raise InputError(
            f"the tokens' mean square must be above 0 to take a share beside it, not {mean_square}."
        )
    return math.sqrt(mean_square * rho / (1 - rho))


def mean_square(tokens: Tensor, present: Tensor | None = None) -> float:
    """Return the mean square of embedded tokens; refuse a batch that cannot be measured.

    Parameters
    ----------
    tokens : Tensor
        Embedded tokens (b n d).
    present : Tensor, optional
        Boolean (b n), False for padding. None: all tokens count.

    Returns
    -------
    float
        The mean square over all entries that count.
    """
    if not isinstance(tokens, Tensor):
        raise InputError(f"tokens must be a tensor (b n d), not {type(tokens).__name__}.")
    rows = tokens.detach().double()
    if not torch.is_floating_point(tokens) or tokens.ndim < 2:
        raise InputError(
            "tokens must be embedded (b n d), as they are where the table is added, not "
            f"{tuple(tokens.shape)} of {tokens.dtype}."
        )
    if present is not None:
        if present.shape != tokens.shape[:-1] or present.dtype != torch.bool:
            raise InputError(
                f"present must be boolean, {tuple(tokens.shape[:-1])}, not {present.dtype}, "
                f"{tuple(present.shape)}."
            )
        rows = rows[present]
    rows = rows.flatten(0, -2)
    if not len(rows):
        raise InputError("no token of the batch is present.")
    if float((rows - rows[:1]).abs().max()) == 0:
        raise InputError("all tokens of the batch are the same: pass a batch that varies.")
    return float(rows.square().mean())


@torch.no_grad()
def calibrate_(
    pe: nn.Module | nn.Parameter, tokens: Tensor, rho: float = 0.4, present: Tensor | None = None
) -> float:
    """Scale a table in place, so that positions make up the share ρ of what enters the network.

    Do it before training: the table keeps its rows' directions, only its scale changes, whatever
    it was. A second time is refused, unless the table has been drawn anew.

    Parameters
    ----------
    pe : nn.Module or nn.Parameter
        `LearnablePE`, an `nn.Embedding` of positions, or a table (... n d) that is a parameter.
    tokens : Tensor
        A batch of embedded tokens (b n d), as they are where the table is added.
    rho : float
        The wanted share, above 0 and below 1; docs/which_sigma.md says why 0.4.
    present : Tensor, optional
        Boolean (b n), False for padding. None: all tokens count.

    Returns
    -------
    float
        The table's standard deviation now: its σ. (Of a `LearnablePE` with a gain it is the
        table's own; gain · σ enters the network.)

    Examples
    --------
    >>> positions = nn.Embedding(128, 64)
    >>> sigma = calibrate_(positions, torch.randn(8, 128, 64), rho=0.2)
    >>> round(sigma, 1), round(float(positions.weight.std()), 1)
    (0.5, 0.5)
    """
    sigma = sigma_for_share(rho, mean_square(tokens, present))
    weight = _weight_of(pe)
    if weight.shape[-1] != tokens.shape[-1]:
        raise InputError(
            f"a table of width {weight.shape[-1]} cannot be added to tokens of width "
            f"{tokens.shape[-1]}."
        )
    if isinstance(pe, RecordsSigma):
        return pe.set_sigma(sigma)
    if math.isclose(getattr(weight, LEFT_AT, math.nan), _variance_over_positions(weight)):
        raise InputError("this table is calibrated already; draw it anew to do it again.")
    scale_to_(weight, sigma)
    setattr(weight, LEFT_AT, _variance_over_positions(weight))  # so that a second call is noticed
    return sigma


def scale_to_(table: Tensor, sigma: float) -> None:
    """Scale a table (... n d) in place to a standard deviation over positions, from what it has.

    Parameters
    ----------
    table : Tensor
    sigma : float
    """
    now = _variance_over_positions(table)
    if now == 0:
        raise InputError(
            "the table is constant (all zero, of σ = 0?), so no factor gives it a share: draw it "
            "from a normal distribution first."
        )
    if not math.isfinite(now):
        raise InputError("the table has numbers that are not finite: draw it anew first.")
    table.mul_(sigma / math.sqrt(now))


def _weight_of(pe: nn.Module | nn.Parameter) -> Tensor:
    weight: Any = getattr(pe, "weight", None) if isinstance(pe, nn.Module) else pe
    learned = isinstance(weight, nn.Parameter) or isinstance(pe, RecordsSigma)
    if not learned or weight.ndim < 2 or isinstance(pe, nn.Linear):
        what = type(pe).__name__
        hint = " (it has no table that is learned)" if isinstance(pe, Encoding) else ""
        raise InputError(
            f"{what} has no table to calibrate{hint}: pass a LearnablePE, an nn.Embedding of "
            "positions, or the parameter itself."
        )
    return cast(Tensor, weight)


def _variance_over_positions(table: Tensor) -> float:
    if not isinstance(table, Tensor):
        raise InputError(f"a table must be a tensor (n d), not {type(table).__name__}.")
    rows = table.detach().double().flatten(0, -2)  # n d
    if len(rows) < 2:
        raise InputError("a table of one row has no variance over positions.")
    return float(rows.var(0).mean())
