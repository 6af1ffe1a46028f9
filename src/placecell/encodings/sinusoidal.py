"""Sinusoidal encoding over any number of coordinate axes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from placecell.config.values import check_value
from placecell.encodings.base import Encoding, check_shape, check_size, register
from placecell.encodings.positions import Positions
from placecell.errors import InputError


def angles(coords: Tensor, m: int, base: float, dtype: torch.dtype) -> Tensor:
    """Return the angles p · base^(−2i/m) of coordinates p, for i = 0 … m/2−1.

    The angles are computed in double precision if the coordinates or `dtype` are double: far from
    0, a sine computed in single precision is accurate to few digits only.

    Parameters
    ----------
    coords : Tensor
        Coordinates p, of any shape (...).
    m : int
        Number of channels.
    base : float
        Base of the frequencies.
    dtype : torch.dtype
        Type of the tensor that the angles will be applied to.

    Returns
    -------
    Tensor
        Angles (... m/2).
    """
    coords = coords.double() if torch.float64 in (coords.dtype, dtype) else coords.float()
    exponent = torch.arange(0, m, 2, device=coords.device, dtype=coords.dtype) / m
    return coords[..., None] * base**-exponent


def check_base(base: float) -> float:
    """Return the base of the frequencies; raise `InputError` unless it is finite and above 1.

    Parameters
    ----------
    base : float
        Value to check.

    Returns
    -------
    float
        The same value.
    """
    checked: float = check_value(base, float, "base", above=1)
    return checked


@register("sinusoidal")
class SinusoidalPE(Encoding):
    """Fixed sines and cosines of the position, x + S(p).

    For each axis, S = [sin(p ω_0), cos(p ω_0), sin(p ω_1), …] with ω_i = base^(−2i/m). The axes
    share the width evenly, m = 2⌈d / 2c⌉ channels each; if d does not divide, the last axis is cut
    short. With 2 axes on a grid this is the ground truth of the Latin Square Task.
    Source: Vaswani et al., arXiv 1706.03762 (one axis); the axes side by side as in Ito et al.,
    arXiv 2406.08272.

    Parameters
    ----------
    d : int
        Width.
    axes : int
        Number of coordinate axes c.
    base : float
        Base of the frequencies, above 1.
    dtype : torch.dtype, optional
        Type of the table. Default: torch's default type.
    device : optional
        Ignored, because nothing is stored; accepted so that all encodings are built alike.
    """

    adds_table = True

    def __init__(
        self,
        d: int,
        axes: int = 1,
        base: float = 10000.0,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.d, self.axes, self.base, self.dtype = (
            check_size("d", d),
            check_size("axes", axes),
            check_base(base),
            dtype,
        )
        self.m = 2 * math.ceil(self.d / (2 * self.axes))  # channels of an axis
        if self.d <= self.m * (self.axes - 1):
            raise InputError(
                f"sinusoidal has no channels left for the last axis: width {d}, axes {axes}."
            )

    def _waves(self, pos: Positions, dtype: torch.dtype) -> Tensor:
        turns = angles(pos.along(self.axes), self.m, self.base, dtype)  # ... n c m/2
        waves = torch.stack((turns.sin(), turns.cos()), dim=-1)  # ... n c m/2 2
        waves = waves.flatten(-3)[..., : self.d].to(dtype)
        return waves if pos.placed is None else waves.masked_fill(~pos.placed[..., None], 0)

    def table(self, pos: Positions | Tensor) -> Tensor:
        """Return S(p) for each token.

        Parameters
        ----------
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor
            Table (... n d), zero for a token without a place.
        """
        return self._waves(Positions.of(pos), self.dtype or torch.get_default_dtype())

    def embed(self, x: Tensor, pos: Positions | Tensor) -> Tensor:
        """Return the token embeddings plus S(p) of each token.

        Parameters
        ----------
        x : Tensor
            Token embeddings (b n d).
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor
            Embeddings with positions (b n d).
        """
        pos = Positions.of(pos)
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        exact = self.dtype or torch.promote_types(torch.get_default_dtype(), x.dtype)
        waves = self._waves(pos, exact)
        return x + (waves.to(x.dtype) if x.is_floating_point() else waves)

    def extra_repr(self) -> str:
        return f"{self.d}, axes={self.axes}, base={self.base:g}"
