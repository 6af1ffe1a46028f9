"""The learnable table of the paper, and the same table kept fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from placecell.config.values import check_value
from placecell.encodings.base import (
    Encoding,
    check_shape,
    check_sigma,
    check_size,
    fill_normal,
    register,
)
from placecell.encodings.positions import Positions, rows_at
from placecell.encodings.share import mean_square, scale_to_, sigma_for_share
from placecell.errors import InputError

AUTO_SHARE = 0.4  # of the input, for positions: docs/which_sigma.md
_exporting = getattr(torch.compiler, "is_exporting", bool)  # not in the oldest torch allowed


class _Table(Encoding):
    """Adds P[index] to x, with P an n × d table drawn from N(0, σ²)."""

    weight: Tensor

    def __init__(self, n: int, d: int, sigma: float) -> None:
        super().__init__()
        self.n, self.d, self.sigma = check_size("n", n), check_size("d", d), check_sigma(sigma)

    def embed(self, x: Tensor, pos: Positions | Tensor) -> Tensor:
        """Return x (b n d) plus the table's row for each token."""
        pos = Positions.of(pos)
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        return x + self.table(pos)

    def table(self, pos: Positions | Tensor) -> Tensor:
        """Return the table's row for each token (... n d), zero for a token without a place."""
        pos = Positions.of(pos)
        rows = rows_at(self.weight, pos)
        return rows if pos.placed is None else rows.masked_fill(~pos.placed[..., None], 0)

    def check_positions(self, pos: Positions) -> None:
        """Raise `InputError` if a token's index is not a row of the table."""
        pos.check_index(self.n)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table again from N(0, σ²)."""
        fill_normal(self.weight, self.sigma, generator)

    def extra_repr(self) -> str:
        return f"{self.n}, {self.d}, sigma={self.sigma:g}"


@register("learnable")
class LearnablePE(_Table):
    """Learned table: x_i + P_i, initially P_ij ~ N(0, σ²).

    σ is the standard deviation of what enters the network; `forward` hides no factor. With a small
    σ (0.1) the table can become a map of where tokens are. PyTorch's default for an embedding is
    σ = 1.
    Source: Ito et al., arXiv 2406.08272; Gehring et al., arXiv 1705.03122, for learned positions in
    general.

    Parameters
    ----------
    n : int
        Number of places (rows of the table).
    d : int
        Width.
    sigma : float or "auto"
        Initial standard deviation σ. With "auto" the first batch decides, once: σ is then such that
        positions make up the share `AUTO_SHARE` of what enters the network, whatever scale the
        table had until then. It is kept with the weights, as a buffer, so that a checkpoint is not
        calibrated again, nor a copy that is averaged, as long as its buffers are copied too
        (`AveragedModel` does). Over all processes of a distributed training it is one number.
        `placecell.calibrate_` does the same for another share.
    gain : float, optional
        Initial value of a learnable factor on the whole table; gain · σ then enters the network.
        None: there is no such factor.
    device, dtype : optional
        Of the table.

    Examples
    --------
    >>> pe = LearnablePE(16, 64, sigma=0.1)
    >>> pe(torch.zeros(8, 16, 64)).shape
    torch.Size([8, 16, 64])
    >>> pe = LearnablePE(16, 64, sigma="auto")
    >>> _ = pe(0.25 * torch.randn(8, 16, 64))
    >>> round(pe.sigma, 1), pe.calibrated
    (0.2, True)
    """

    auto_sigma: Tensor
    adds_table = True

    def __init__(
        self,
        n: int,
        d: int,
        sigma: float | Literal["auto"] = 0.1,
        *,
        gain: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if isinstance(sigma, str) and sigma != "auto":
            raise InputError(f'sigma must be a number from 0 on, or "auto", not {sigma!r}.')
        super().__init__(n, d, 1.0 if isinstance(sigma, str) else sigma)
        self.auto = isinstance(sigma, str)
        self.weight = nn.Parameter(torch.empty(self.n, self.d, device=device, dtype=dtype))
        self.initial_gain = None if gain is None else check_value(gain, float, "gain")
        if self.initial_gain == 0:
            raise InputError("gain must not be 0: no gradient would reach the table.")
        self.gain = None if gain is None else nn.Parameter(self.weight.new_empty(()))
        if self.auto:  # NaN until the first batch; a buffer, so that checkpoints have it
            self.register_buffer("auto_sigma", torch.empty((), device=device))
        self.reset_parameters()

    @property
    def sigma(self) -> float:
        """The initial standard deviation of the table; with "auto", 1 until the first batch."""
        return float(self.auto_sigma) if self.auto and self.calibrated else self._sigma

    @sigma.setter
    def sigma(self, sigma: float) -> None:
        self._sigma = sigma

    @property
    def calibrated(self) -> bool:
        """Whether the first batch of "auto", or `calibrate_`, has scaled the table."""
        if self._settled or not self.auto:
            return self._settled
        return not self.auto_sigma.is_meta and math.isfinite(self.auto_sigma)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table again from N(0, σ²); with "auto", the next batch decides σ anew."""
        if self.auto:
            self.sigma = 1.0
            self.auto_sigma.fill_(math.nan)
        self._settled = False  # for "auto" what the buffer says, once it has been looked at
        super().reset_parameters(generator)
        if self.gain is not None:
            nn.init.constant_(self.gain, self.initial_gain or 1.0)

    def embed(self, x: Tensor, pos: Positions | Tensor) -> Tensor:
        """Return x (b n d) plus the table's row for each token."""
        if self.auto and not self._settled:
            if _exporting():
                raise InputError(
                    'LearnablePE with sigma="auto" takes its σ from the first batch: run one batch '
                    "through the model before it is exported."
                )
            torch.compiler.disable(self._settle)(x)
        return super().embed(x, pos)

    def table(self, pos: Positions | Tensor) -> Tensor:
        """Return the table's row for each token (... n d), zero for a token without a place."""
        rows = super().table(pos)
        return rows if self.gain is None else self.gain * rows

    @torch.no_grad()
    def set_sigma(self, sigma: float) -> float:
        """Scale the table so that σ of what enters the network is `sigma`; once, before training.

        Parameters
        ----------
        sigma : float
            The new standard deviation, above 0.

        Returns
        -------
        float
            The table's own, without the gain.
        """
        if self.calibrated:
            raise InputError(
                f"this table is calibrated already (σ = {self.sigma:.3g}); call reset_parameters() "
                "to draw it anew first."
            )
        if not isinstance(self._parameters.get("weight"), nn.Parameter):
            raise InputError(
                "the table cannot be scaled while another stands in its place (a parametrization, "
                "functional_call): run one batch through the model, or calibrate_ it, before that."
            )
        gain = 1.0 if self.gain is None else abs(float(self.gain))
        if gain == 0:
            raise InputError("the table's gain is 0, so no σ gives it a share.")
        scale_to_(self.weight, sigma / gain)
        self._note(sigma / gain)
        self._settled = True
        return self.sigma

    def record_sigma(self) -> None:
        """Take the table as someone drew it: σ is what it has, and no batch scales it."""
        self._note(float(self.weight.detach().double().std()))

    def _note(self, sigma: float) -> None:
        self._settled = self.auto
        if self.auto:
            self.auto_sigma.fill_(sigma)
        else:
            self.sigma = sigma

    @torch.no_grad()
    def _settle(self, x: Tensor) -> None:
        """Set σ from the first batch (b n d), the same in all processes of a distributed run.

        Not if it is known from the buffer: copied from another model, or sent by another process.
        """
        if not self.calibrated:
            try:
                self._calibrate(x)
            except InputError as error:
                raise InputError(
                    'LearnablePE with sigma="auto" takes its σ from the first batch, and '
                    f"{str(error).removesuffix('.')}, or give sigma a number."
                ) from None
        self._settled = True

    def _calibrate(self, x: Tensor) -> None:
        square = torch.tensor(mean_square(x), device=x.device)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(square)
            square /= torch.distributed.get_world_size()
        self.set_sigma(sigma_for_share(AUTO_SHARE, float(square)))

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if self.auto:
            self._settled = False
            given = [f"{prefix}{name}" in state_dict for name in ("weight", "auto_sigma")]
            if given == [True, False]:  # a table that began with a number as σ
                self.record_sigma()

    def extra_repr(self) -> str:
        sigma = '"auto"' if self.auto and not self.calibrated else f"{self.sigma:g}"
        gain = "" if self.initial_gain is None else f", gain={self.initial_gain:g}"
        return f"{self.n}, {self.d}, sigma={sigma}{gain}"


@register("random")
class RandomPE(_Table):
    """Fixed random table: x_i + P_i, P_ij ~ N(0, σ²), never trained. The control for learning.

    Source: Ito et al., arXiv 2406.08272 (as a baseline).

    Parameters
    ----------
    n : int
        Number of places (rows of the table).
    d : int
        Width.
    sigma : float
        Standard deviation σ.
    device, dtype : optional
        Of the table.
    """

    adds_table = True

    def __init__(
        self,
        n: int,
        d: int,
        sigma: float = 1.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n, d, sigma)
        self.register_buffer("weight", torch.empty(self.n, self.d, device=device, dtype=dtype))
        self.reset_parameters()
