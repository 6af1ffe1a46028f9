"""An encoding of your own in one file: a learned mixture of waves over the tokens' coordinates."""

import math

import torch
from torch import Tensor, nn

from placecell import Positions, register_encoding
from placecell.encodings import Encoding
from placecell.encodings.base import check_shape, check_sigma, check_size, fill_normal

WAVES = 8  # of each axis, with periods of 2 to 16 tokens


@register_encoding("fourier")
class FourierPE(Encoding):
    """x + F(p) W: fixed sines and cosines F of the coordinates p, and a learned vector for each, W.

    W is drawn from N(0, σ²), and F scaled so that every entry of F(p) W is N(0, σ²) as well. Unlike
    a learnable table it has rows for coordinates that it was never trained at.
    Source: Tancik et al., arXiv 2006.10739, for sines and cosines of coordinates as features.
    """

    def __init__(
        self,
        d: int,
        axes: int = 1,
        sigma: float = 0.1,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d, self.axes = check_size("d", d), check_size("axes", axes)
        self.sigma = check_sigma(sigma)
        self.weight = nn.Parameter(torch.empty(2 * WAVES * axes, d, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        fill_normal(self.weight, self.sigma, generator)

    def table(self, pos: Positions) -> Tensor:
        """What is added to the token at each position (... n d); nothing to one without a place."""
        frequency = torch.arange(1, WAVES + 1, device=self.weight.device) * (math.pi / WAVES)
        angles = (pos.along(self.axes)[..., None] * frequency).flatten(-2)  # ... n axes·WAVES
        waves = torch.cat((angles.sin(), angles.cos()), -1).to(self.weight.dtype)
        rows = waves / math.sqrt(WAVES * self.axes) @ self.weight  # sin² + cos² = 1 for each wave
        return rows if pos.placed is None else rows.masked_fill(~pos.placed[..., None], 0)

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        return x + self.table(pos)

    def extra_repr(self) -> str:
        return f"{self.d}, axes={self.axes}, sigma={self.sigma:g}"
