"""The learnable table of the paper, and the same table kept fixed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from placecell.encodings.base import (
    Encoding,
    check_shape,
    check_sigma,
    check_size,
    fill_normal,
    register,
)
from placecell.encodings.positions import Positions, rows_at


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
    sigma : float
        Initial standard deviation σ.
    device, dtype : optional
        Of the table.

    Examples
    --------
    >>> pe = LearnablePE(16, 64, sigma=0.1)
    >>> pe(torch.zeros(8, 16, 64)).shape
    torch.Size([8, 16, 64])
    """

    def __init__(
        self,
        n: int,
        d: int,
        sigma: float = 0.1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(n, d, sigma)
        self.weight = nn.Parameter(torch.empty(self.n, self.d, device=device, dtype=dtype))
        self.reset_parameters()


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
