"""ALiBi: attention that falls off with distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, Positions, check_shape, check_size, register


def slopes(heads: int) -> list[float]:
    """One slope a head: 2^(−8/h), 2^(−16/h), …; between powers of two, those of the power below and every
    other one of the power above."""
    below = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    return first + [2 ** (-4 * (2 * i + 1) / below) for i in range(heads - below)]


@register("alibi")
class AlibiPE(Encoding):
    """Logits minus slope_h · distance(i, j), with the Euclidean distance of the coordinates; nothing is learned.

    The distance counts alike in both directions, since an encoder looks both ways. Source: Press et al.,
    arXiv 2108.12409 (one axis, causal).
    """

    def __init__(
        self,
        heads: int = 1,
        axes: int = 1,
        *,
        device: torch.device | str | None = None,  # nothing is stored: taken so that every encoding is built alike
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.axes = check_size("heads", heads), check_size("axes", axes)

    def bias(self, q: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor:
        samples, n = q_pos.sizes
        check_shape("queries (b h q e)", q, samples, self.heads, n, None)
        difference = q_pos.along(self.axes).unsqueeze(-2) - k_pos.along(self.axes).unsqueeze(-3)  # ... q k c
        distance = difference.square().sum(-1).sqrt().unsqueeze(-3)  # ... 1 q k
        return -torch.tensor(slopes(self.heads), device=q.device, dtype=q.dtype)[:, None, None] * distance.to(q.dtype)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, axes={self.axes}"
