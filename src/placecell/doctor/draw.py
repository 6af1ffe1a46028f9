"""Draw position tables anew, at a given σ or share of positions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from placecell.config.values import check_value
from placecell.doctor.find import Table, Tables, find_tables, stored_tensors
from placecell.doctor.guard import put_back_on_error, unwrap
from placecell.doctor.measure import AsBuilt, as_built
from placecell.encodings.learnable import AUTO_SHARE
from placecell.encodings.share import RecordsSigma
from placecell.errors import InputError, unknown
from placecell.seeds import torch_stream

NEAR = 0.05  # a share that is further from the one asked for is told


@dataclass(frozen=True)
class Change:
    """What `init_` did to one table.

    Attributes
    ----------
    name : str
    sigma : float
        Standard deviation of what is joined with the tokens now.
    before : float
        The same before.
    rho : float
        The share of positions now.
    """

    name: str
    sigma: float
    before: float
    rho: float

    def __str__(self) -> str:
        return f"{self.name}: σ {self.before:.4g} → {self.sigma:.4g}, share ρ {self.rho:.3g}"


def init_(
    model: nn.Module,
    example: Any,
    *,
    sigma: float | None = None,
    rho: float | None = None,
    names: str | Iterable[str] | None = None,
    seed: int = 0,
) -> list[Change]:
    """Draw a model's absolute position tables anew, in place, at a given scale.

    Each table becomes σ·z with z from a stream of its own: the same seed with another σ has the
    same z, and no other random number of the program moves. σ is the standard deviation of what is
    joined with the tokens: where the model multiplies the table on the way, that is made up for. A
    `LearnablePE` keeps the σ that its table gets; what is refused leaves the model as it was.

    Parameters
    ----------
    model : torch.nn.Module
    example
        What the model takes: a tensor, a tuple of arguments or a dict of keywords.
    sigma : float, optional
        The standard deviation.
    rho : float, optional
        Instead of σ: the share of positions to reach, between 0 and 1 (see `share_of_position`).
        Without either it is 0.4, the rule of docs/which_sigma.md.
    names : str or iterable of str, optional
        The tables to set; None takes every absolute table. A fixed or relative one is refused.
    seed : int

    Returns
    -------
    list of Change
        What was done; print it.

    Warns
    -----
    UserWarning
        If the share is another than was asked for, since another table or a norm has a part in it.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=1.0))
    >>> (change,) = placecell.init_(model, torch.randn(64, 16, 3), sigma=0.02)
    >>> round(change.sigma, 3)
    0.02
    """
    if sigma is not None and rho is not None:
        raise InputError("init_: expected sigma or rho, found both.")
    sigma = check_value(sigma, float | None, "sigma", at_least=0)
    rho = check_value(rho, float | None, "rho", above=0, below=1)
    if sigma is None and rho is None:
        rho = AUTO_SHARE
    tables = find_tables(model, example)
    chosen = _chosen(tables, names)
    before = as_built(model, example, tables)
    own = stored_tensors(unwrap(model))
    tensors = {table.name: own[table.name] for table in chosen}
    keepers = _keepers(model, tensors.values())
    with put_back_on_error(keepers, tensors.values()):
        for name, tensor in tensors.items():
            z = torch.randn(tensor.shape, generator=torch_stream(seed, f"doctor/init/{name}"))
            _write(tensor, z)
        if keepers:
            _record(keepers)  # from now on no batch scales them, so the model takes other steps
            tables = find_tables(model, example)
        drawn = as_built(model, example, tables)
        for name, tensor in tensors.items():
            _write(tensor, tensor * _factor(name, drawn[name], sigma, rho))
        _record(keepers)
        after = as_built(model, example, tables)
    for name in tensors:
        _tell(name, rho, after[name].rho)
    return [Change(n, after[n].sigma, before[n].sigma, after[n].rho) for n in tensors]


def _keepers(model: nn.Module, tensors: Iterable[Tensor]) -> list[RecordsSigma]:
    """Return the modules that keep the σ of one of these tables."""
    drawn = {id(tensor) for tensor in tensors}
    return [
        module
        for module in unwrap(model).modules()
        if isinstance(module, RecordsSigma) and drawn & {id(p) for p in module.parameters(False)}
    ]


def _record(keepers: list[RecordsSigma]) -> None:
    for keeper in keepers:
        keeper.record_sigma()


def _factor(name: str, now: AsBuilt, sigma: float | None, rho: float | None) -> float:
    """Return what a table has to be multiplied with; a measurement says what it does now."""
    if sigma == 0:
        return 0.0
    if not now.sigma > 0:
        raise InputError(
            f"init_: {name} does not reach the tokens (what it is multiplied with is 0), so no "
            "scale of it makes a difference."
        )
    return (_sigma_for(float(rho or 0), now) if sigma is None else sigma) / now.sigma


def _sigma_for(rho: float, now: AsBuilt) -> float:
    """Return the σ that has a share, from a measurement at another σ: both are variances."""
    if not 0 < now.rho < 1:
        raise InputError("rho: the example does not vary where the table is added; give sigma.")
    content = now.sigma**2 * (1 - now.rho) / now.rho
    return float((content * rho / (1 - rho)) ** 0.5)


def _tell(name: str, wanted: float | None, found: float) -> None:
    if wanted is not None and not abs(found - wanted) <= NEAR:
        warnings.warn(
            f"init_: with {name} drawn anew the share of positions is {found:.2f}, not the "
            f"{wanted:.2f} asked for: another table, or a norm, has a part in what is joined with "
            "the tokens.",
            stacklevel=3,
        )


def _chosen(tables: Tables, names: str | Iterable[str] | None) -> list[Table]:
    if names is None:
        absolute = [t for t in tables if t.kind == "absolute"]
        chosen = [t for t in absolute if t.trainable]
        if absolute and not chosen:
            listed = ", ".join(t.name for t in absolute)
            raise InputError(f"init_: {listed} is fixed, not trained; expected a trainable table.")
        if not chosen:
            found = str(tables).splitlines()[0]
            raise InputError(f"init_: expected an absolute table, found none ({found}).")
        return chosen
    several = isinstance(names, Iterable) and not isinstance(names, str)
    chosen = []
    for name in dict.fromkeys(map(str, names if several else [names])):
        if name not in tables.names:
            raise unknown("table", name, tables.names or ["none"])
        table = tables[name]
        if not table.trainable:
            raise InputError(f"init_: {name} is fixed, not trained; its numbers are left alone.")
        if table.kind in ("relative", "unknown") or table.how == "product":
            raise InputError(
                f"init_: {name} is {table.kind}; only tables that are joined with tokens have a σ "
                "beside them."
            )
        chosen.append(table)
    return chosen


def _write(tensor: Tensor, values: Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values.to(tensor.device, tensor.dtype))
