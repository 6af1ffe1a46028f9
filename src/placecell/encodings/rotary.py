"""Rotary encoding over any number of coordinate axes."""

from __future__ import annotations

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, check_shape, check_size, head_width, register
from placecell.encodings.positions import Positions
from placecell.encodings.sinusoidal import angles, check_base
from placecell.errors import InputError


@register("rotary")
class RotaryPE(Encoding):
    """Rotate queries and keys by position: each pair (x_2i, x_2i+1) by the angle p · base^(−2i/m).

    The score of two tokens then depends only on the difference of their positions. The axes share
    the head width evenly, m = e / c channels each. Source: Su et al., arXiv 2104.09864 (one axis).

    Parameters
    ----------
    d : int
        Width.
    heads : int
        Number of heads h. The head width e = d / h must be divisible by 2c.
    axes : int
        Number of coordinate axes c.
    base : float
        Base of the frequencies, above 1.
    device, dtype : optional
        Ignored, because nothing is stored; accepted so that all encodings are built alike.
    """

    adds_table = True  # `embed` adds nothing

    def __init__(
        self,
        d: int,
        heads: int = 1,
        axes: int = 1,
        base: float = 10000.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.e, self.axes, self.base = (
            head_width(d, heads),
            check_size("axes", axes),
            check_base(base),
        )
        if self.e % (2 * self.axes):
            raise InputError(
                f"rotary needs a head width divisible by 2 for each axis ({2 * self.axes}): "
                f"width {d} / heads {heads} = {self.e}."
            )

    def rotate(self, x: Tensor, pos: Positions | Tensor) -> Tensor:
        """Return queries or keys rotated by their positions.

        Parameters
        ----------
        x : Tensor
            Queries or keys (b h n e).
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor
            Rotated queries or keys (b h n e); those of a token without a place are unchanged.
        """
        pos = Positions.of(pos)
        samples, n = pos.sizes
        check_shape("queries or keys (b h n e)", x, samples, None, n, self.e)
        turns = angles(pos.along(self.axes), self.e // self.axes, self.base, x.dtype)  # ... n c m/2
        turns = turns.flatten(-2).unsqueeze(-3)  # ... 1 n e/2
        cos, sin = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)  # b h n e/2, twice
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)

    def extra_repr(self) -> str:
        return f"e={self.e}, axes={self.axes}, base={self.base:g}"
