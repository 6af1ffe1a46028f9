"""The learnable table of the paper, and the same table kept fixed."""

from __future__ import annotations

import math
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
from placecell.encodings.share import mean_square, sigma_for_share
from placecell.errors import InputError

AUTO_SHARE = 0.4  # of the input, for positions: docs/which_sigma.md


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
        positions make up the share `AUTO_SHARE` of what enters the network. It is kept with the
        weights, so that a checkpoint is not calibrated again; over all processes of a distributed
        training it is one number. `placecell.calibrate_` does the same for another share.
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
        super().__init__(n, d, 1.0 if sigma == "auto" else sigma)
        self.auto = sigma == "auto"
        self.weight = nn.Parameter(torch.empty(self.n, self.d, device=device, dtype=dtype))
        self.initial_gain = None if gain is None else check_value(gain, float, "gain")
        if self.initial_gain == 0:
            raise InputError("gain must not be 0: no gradient would reach the table.")
        self.gain = None if gain is None else nn.Parameter(self.weight.new_empty(()))
        if self.auto:  # NaN until the first batch; a buffer, so that checkpoints have it
            self.register_buffer("auto_sigma", torch.empty((), device=device))
        self.calibrated = False
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table again from N(0, σ²); with "auto", the next batch decides σ anew."""
        if self.auto:
            self.sigma = 1.0
            self.auto_sigma.fill_(math.nan)
        self.calibrated = False
        super().reset_parameters(generator)
        if self.gain is not None:
            nn.init.constant_(self.gain, self.initial_gain or 1.0)

    def embed(self, x: Tensor, pos: Positions | Tensor) -> Tensor:
        """Return x (b n d) plus the table's row for each token."""
        if self.auto and not self.calibrated:
            torch.compiler.disable(self._calibrate)(x)
        return super().embed(x, pos)

    def table(self, pos: Positions | Tensor) -> Tensor:
        """Return the table's row for each token (... n d), zero for a token without a place."""
        rows = super().table(pos)
        return rows if self.gain is None else self.gain * rows

    @torch.no_grad()
    def set_sigma(self, sigma: float) -> None:
        """Scale the table so that σ of what enters the network is `sigma`; once, before training.

        Parameters
        ----------
        sigma : float
            The new standard deviation, above 0.
        """
        if self.calibrated:
            raise InputError(
                f"this table is calibrated already (σ = {self.sigma:.3g}); call reset_parameters() "
                "to draw it anew first."
            )
        if self.sigma == 0:
            raise InputError("a table of σ = 0 has no rows to scale: make it with another σ.")
        own = sigma / abs(self.initial_gain or 1.0)
        self.weight.mul_(own / self.sigma)
        self.sigma, self.calibrated = own, True
        if self.auto:
            self.auto_sigma.fill_(own)

    @torch.no_grad()
    def _calibrate(self, x: Tensor) -> None:
        """Set σ from the first batch (b n d), the same in all processes of a distributed run."""
        square = torch.tensor(mean_square(x), device=x.device)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(square)
            square /= torch.distributed.get_world_size()
        self.set_sigma(sigma_for_share(AUTO_SHARE, float(square)))

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        if self.auto and not self.auto_sigma.is_meta:
            saved = float(self.auto_sigma)
            self.calibrated = math.isfinite(saved)
            self.sigma = saved if self.calibrated else 1.0

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
