"""Sinusoidal encoding over any number of coordinate axes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, Positions, check_shape, check_size, register
from placecell.errors import InputError
from placecell.values import held


def angles(coords: Tensor, m: int, base: float, dtype: torch.dtype) -> Tensor:
    """The angles p · base^(−2i/m) for i = 0 … m/2−1 of coordinates p (...): shape (... m/2). In double precision where
    the coordinates or what they turn (`dtype`) are: far from 0 the sine of a single one is right to few digits."""
    coords = coords.double() if torch.float64 in (coords.dtype, dtype) else coords.float()
    exponent = torch.arange(0, m, 2, device=coords.device, dtype=coords.dtype) / m
    return coords[..., None] * base**-exponent


def check_base(base: float) -> float:
    found: float = held(base, float, "base", above=1)
    return found


@register("sinusoidal")
class SinusoidalPE(Encoding):
    """x + S(p), fixed. For each axis, S = [sin(p ω_0), cos(p ω_0), sin(p ω_1), …], ω_i = base^(−2i/m).

    The width is shared evenly by the axes: m = 2⌈d / 2c⌉ channels each, and the last axis is cut where d
    does not divide. With 2 axes on a grid this is the Latin Square Task's ground truth.
    Source: Vaswani et al., arXiv 1706.03762 (one axis); the axes side by side as in Ito et al., arXiv 2406.08272.
    """

    def __init__(
        self,
        d: int,
        axes: int = 1,
        base: float = 10000.0,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,  # nothing is stored: taken so that every encoding is built alike
    ) -> None:
        super().__init__()
        self.d, self.axes, self.base, self.dtype = check_size("d", d), check_size("axes", axes), check_base(base), dtype
        self.m = 2 * math.ceil(self.d / (2 * self.axes))  # channels of an axis
        if self.d <= self.m * (self.axes - 1):
            raise InputError(f"sinusoidal has no channels left for the last axis: width {d}, axes {axes}.")

    def _waves(self, pos: Positions, dtype: torch.dtype) -> Tensor:
        turns = angles(pos.along(self.axes), self.m, self.base, dtype)  # ... n c m/2
        waves = torch.stack((turns.sin(), turns.cos()), dim=-1)  # ... n c m/2 2
        return waves.flatten(-3)[..., : self.d].to(dtype)

    def table(self, pos: Positions) -> Tensor:
        return self._waves(pos, self.dtype or torch.get_default_dtype())

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        exact = self.dtype or torch.promote_types(torch.get_default_dtype(), x.dtype)
        waves = self._waves(pos, exact)
        return x + (waves.to(x.dtype) if x.is_floating_point() else waves)

    def extra_repr(self) -> str:
        return f"{self.d}, axes={self.axes}, base={self.base:g}"
