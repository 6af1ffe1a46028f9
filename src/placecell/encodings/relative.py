"""Shaw's relative encoding, with its key and value terms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from placecell.encodings.base import (
    Encoding,
    Positions,
    check_shape,
    check_sigma,
    check_size,
    fill_normal,
    head_width,
    register,
)


@register("relative")
class RelativePE(Encoding):
    """Learned vectors for differences of positions: logits q_i·(k_j + K_ij)/√e and outputs Σ_j a_ij (v_j + V_ij).

    K_ij and V_ij are sums over the axes of one row each, chosen by the (rounded) difference of the coordinates
    clipped to ±max_distance. The rows are drawn from N(0, σ²) and shared by heads and layers.
    Source: Shaw et al., arXiv 1803.02155 (one axis).
    """

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
        self.e, self.axes, self.sigma = head_width(d, heads), check_size("axes", axes), check_sigma(sigma)
        self.max_distance = check_size("max_distance", max_distance)
        shape = (self.axes, 2 * self.max_distance + 1, self.e)  # c r e, r the differences told apart
        self.key = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.value = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        fill_normal(self.key, self.sigma, generator)
        fill_normal(self.value, self.sigma, generator)

    def _differences(self, q_pos: Positions, k_pos: Positions) -> Tensor:
        """For each axis, the row that stands for the difference of a query and a key: (c, b or 1, 1, q, k)."""
        q, k = q_pos.along(self.axes), k_pos.along(self.axes)
        difference = (k.unsqueeze(-3) - q.unsqueeze(-2)).round()  # ... q k c
        rows = difference.clamp(-self.max_distance, self.max_distance).long() + self.max_distance
        return rows.movedim(-1, 0).reshape(self.axes, -1, 1, *rows.shape[-3:-1])

    def bias(self, q: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor:
        samples, n = q_pos.sizes
        check_shape("queries (b h q e)", q, samples, None, n, self.e)
        scores = torch.einsum("bhqe,cre->cbhqr", q, self.key)
        rows = self._differences(q_pos, k_pos).expand(-1, *q.shape[:3], -1)  # c b h q k
        return scores.gather(-1, rows).sum(0) / self.e**0.5

    def mix(self, weights: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor:
        rows = self._differences(q_pos, k_pos).expand(-1, *weights.shape)  # c b h q k
        empty = weights.new_zeros(self.axes, *weights.shape[:-1], self.value.shape[1])
        shares = empty.scatter_add(-1, rows, weights.expand_as(rows))  # c b h q r: attention paid to each difference
        return torch.einsum("cbhqr,cre->bhqe", shares, self.value)

    def extra_repr(self) -> str:
        return f"e={self.e}, axes={self.axes}, max_distance={self.max_distance}, sigma={self.sigma:g}"
