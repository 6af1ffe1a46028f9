"""A learned table for each coordinate axis."""

from __future__ import annotations

import math

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
from placecell.encodings.positions import Positions
from placecell.errors import InputError


def places_or_grid(n: int, axes: int, places: Positions | None) -> Positions:
    """Return the places; if none are given, a grid with sides of equal length and n cells or more.

    Parameters
    ----------
    n : int
        Number of places.
    axes : int
        Number of coordinate axes.
    places : Positions, optional
        All places.

    Returns
    -------
    Positions
    """
    if places is not None:
        return places
    side = math.ceil(round(check_size("n", n) ** (1 / axes), 9))
    return Positions.grid(*[side] * axes, device="cpu")


@register("factored")
class FactoredPE(Encoding):
    """One small learned table for each axis, added: x_i + Σ_a T_a[p_ia], initially of std σ.

    A grid of R rows and C columns has R + C learned vectors instead of R · C, so a cell is known
    once its row and its column are. Coordinates are whole numbers from 0.
    Source: Ho et al., arXiv 1912.12180 (Axial Transformers).

    Parameters
    ----------
    n : int
        Number of places.
    d : int
        Width.
    axes : int
        Number of coordinate axes c.
    sigma : float
        Initial standard deviation σ of the sum.
    places : Positions, optional
        All places, which say how many rows each table has.
    device, dtype : optional
        Of the tables.
    """

    adds_table = True

    def __init__(
        self,
        n: int,
        d: int,
        axes: int = 1,
        sigma: float = 0.1,
        places: Positions | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d, self.axes = check_size("d", d), check_size("axes", axes)
        self.sigma = check_sigma(sigma)
        coords = places_or_grid(n, self.axes, places).along(self.axes)  # p c
        if not torch.equal(coords, coords.round()) or coords.min() < 0:
            raise InputError(
                "factored needs coordinates that are whole numbers from 0, such as those of a "
                f"grid, found {coords.min():g} to {coords.max():g}."
            )
        rows = [int(most) + 1 for most in coords.amax(0)]
        self.tables = nn.ParameterList(
            nn.Parameter(torch.empty(size, self.d, device=device, dtype=dtype)) for size in rows
        )
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the tables again, each from N(0, σ²/c)."""
        for part in self.tables:
            fill_normal(part, self.sigma / self.axes**0.5, generator)

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        """Return x (b n d) plus the sum of the tables' rows for each token."""
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        return x + self.table(pos)

    def table(self, pos: Positions) -> Tensor:
        """Return the sum of rows for each token (... n d), zero for a token without a place."""
        rows = pos.along(self.axes).round().long()  # ... n c
        parts = [part[rows[..., axis]] for axis, part in enumerate(self.tables)]
        total = torch.stack(parts).sum(0)
        return total if pos.placed is None else total.masked_fill(~pos.placed[..., None], 0)

    def extra_repr(self) -> str:
        sizes = "+".join(str(len(part)) for part in self.tables)
        return f"{sizes} rows, {self.d}, axes={self.axes}, sigma={self.sigma:g}"
