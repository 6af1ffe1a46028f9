"""The relative encoding of Shaw et al., with its key and value terms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from placecell.encodings.base import (
    Encoding,
    check_shape,
    check_sigma,
    check_size,
    fill_normal,
    head_width,
    register,
)
from placecell.encodings.positions import Positions, both_placed


@register("relative")
class RelativePE(Encoding):
    """Learned vectors for differences of positions, in the logits and in the attention output.

    Logits are q_i·(k_j + K_ij)/√e and outputs Σ_j a_ij (v_j + V_ij). K_ij and V_ij are each the sum
    of one row per axis; the difference of the coordinates, rounded and clipped to ±max_distance,
    selects the row. The rows are drawn from N(0, σ²) and shared by heads and layers.
    Source: Shaw et al., arXiv 1803.02155 (one axis).

    Parameters
    ----------
    d : int
        Width.
    heads : int
        Number of heads h.
    axes : int
        Number of coordinate axes c.
    max_distance : int
        Largest difference that has a row of its own.
    sigma : float
        Initial standard deviation σ of the rows.
    device, dtype : optional
        Of the parameters.
    """

    adds_table = True  # `embed` adds nothing

    def __init__(
        self,
        d: int,
        heads: int = 1,
        axes: int = 1,
        max_distance: int = 16,
        sigma: float = 0.1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.e, self.axes, self.sigma = (
            head_width(d, heads),
            check_size("axes", axes),
            check_sigma(sigma),
        )
        self.max_distance = check_size("max_distance", max_distance)
        # c r e, r the number of distinct differences
        shape = (self.axes, 2 * self.max_distance + 1, self.e)
        self.key = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.value = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the rows of K and then those of V again from N(0, σ²).

        Parameters
        ----------
        generator : torch.Generator, optional
            Source of the random numbers. Default: torch's global generator.
        """
        fill_normal(self.key, self.sigma, generator)
        fill_normal(self.value, self.sigma, generator)

    def _differences(self, q_pos: Positions, k_pos: Positions) -> Tensor:
        """Return the row of each difference of query and key, per axis: (c, b or 1, 1, q, k)."""
        q, k = q_pos.along(self.axes), k_pos.along(self.axes)
        difference = (k.unsqueeze(-3) - q.unsqueeze(-2)).round()  # ... q k c
        rows = difference.clamp(-self.max_distance, self.max_distance).long() + self.max_distance
        return rows.movedim(-1, 0).reshape(self.axes, -1, 1, *rows.shape[-3:-1])

    def bias(self, q: Tensor, q_pos: Positions | Tensor, k_pos: Positions | Tensor) -> Tensor:
        """Return the key term q_i·K_ij/√e.

        Parameters
        ----------
        q : Tensor
            Queries (b h q e).
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor
            Bias (b h q k), 0 where one of the two tokens has no place.
        """
        q_pos, k_pos = Positions.of(q_pos), Positions.of(k_pos)
        samples, n = q_pos.sizes
        check_shape("queries (b h q e)", q, samples, None, n, self.e)
        scores = torch.einsum("bhqe,cre->cbhqr", q, self.key.to(q.dtype))
        rows = self._differences(q_pos, k_pos).expand(-1, *q.shape[:3], -1)  # c b h q k
        bias = scores.gather(-1, rows).sum(0) / self.e**0.5
        placed = both_placed(q_pos, k_pos)
        return bias if placed is None else bias.masked_fill(~placed, 0)

    def add_values(
        self, weights: Tensor, q_pos: Positions | Tensor, k_pos: Positions | Tensor
    ) -> Tensor:
        """Return the value term Σ_j a_ij V_ij.

        Parameters
        ----------
        weights : Tensor
            Attention weights a (b h q k).
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor
            Term for the attention output (b h q e).
        """
        q_pos, k_pos = Positions.of(q_pos), Positions.of(k_pos)
        rows = self._differences(q_pos, k_pos).expand(-1, *weights.shape)  # c b h q k
        placed = both_placed(q_pos, k_pos)
        if placed is not None:
            weights = weights.masked_fill(~placed, 0)
        empty = weights.new_zeros(self.axes, *weights.shape[:-1], self.value.shape[1])
        # c b h q r: attention paid to each difference
        shares = empty.scatter_add(-1, rows, weights.expand_as(rows))
        return torch.einsum("cbhqr,cre->bhqe", shares, self.value.to(weights.dtype))

    def extra_repr(self) -> str:
        return (
            f"e={self.e}, axes={self.axes}, max_distance={self.max_distance}, sigma={self.sigma:g}"
        )
