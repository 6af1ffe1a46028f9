"""ALiBi: attention that decreases with distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, check_shape, check_size, register
from placecell.encodings.positions import Positions, both_placed


def slopes(heads: int) -> list[float]:
    """Return one slope per head: 2^(−8/h), 2^(−16/h), …

    If h is not a power of two, the slopes are those of the largest power of two below h, followed
    by every other slope of the power of two above.

    Parameters
    ----------
    heads : int
        Number of heads h.

    Returns
    -------
    list of float
        Slopes, h of them.

    Examples
    --------
    >>> slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    below = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    return first + [2 ** (-4 * (2 * i + 1) / below) for i in range(heads - below)]


@register("alibi")
class AlibiPE(Encoding):
    """Subtract slope_h · distance(i, j) from the logits. Nothing is learned.

    The distance is the Euclidean distance between the coordinates. It counts alike in both
    directions, because an encoder attends in both. Source: Press et al., arXiv 2108.12409 (one
    axis, causal).

    Parameters
    ----------
    heads : int
        Number of heads h.
    axes : int
        Number of coordinate axes c to measure the distance in.
    device, dtype : optional
        Ignored, because nothing is stored; accepted so that all encodings are built alike.
    """

    adds_table = True  # `embed` adds nothing

    def __init__(
        self,
        heads: int = 1,
        axes: int = 1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.axes = check_size("heads", heads), check_size("axes", axes)

    def bias(self, q: Tensor, q_pos: Positions | Tensor, k_pos: Positions | Tensor) -> Tensor:
        """Return −slope_h · distance(i, j).

        Parameters
        ----------
        q : Tensor
            Queries (b h q e).
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor
            Bias (... h q k), 0 where one of the two tokens has no place.
        """
        q_pos, k_pos = Positions.of(q_pos), Positions.of(k_pos)
        samples, n = q_pos.sizes
        check_shape("queries (b h q e)", q, samples, self.heads, n, None)
        # ... q k c
        difference = q_pos.along(self.axes).unsqueeze(-2) - k_pos.along(self.axes).unsqueeze(-3)
        distance = difference.square().sum(-1).sqrt().unsqueeze(-3)  # ... 1 q k
        placed = both_placed(q_pos, k_pos)
        if placed is not None:
            distance = distance.masked_fill(~placed, 0)
        return -torch.tensor(slopes(self.heads), device=q.device, dtype=q.dtype)[
            :, None, None
        ] * distance.to(q.dtype)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, axes={self.axes}"
