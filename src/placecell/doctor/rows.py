"""A stored table as rows: one row a place, in the order of the places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from placecell.analysis.statistics import Array
from placecell.analysis.structure import guess_grid, looks_like_grid
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as an array.

    Attributes
    ----------
    values : array of shape (n, d)
        One row a place.
    before : int
        Rows that come before the grid (class token and the like); 0 for a sequence.
    grid : (h, w) or None
        The grid of the others; None for a sequence.
    """

    values: Array
    before: int
    grid: tuple[int, int] | None


def as_rows(
    tensor: Tensor,
    *,
    channels_first: bool = False,
    relative: bool = False,
    image: bool | None = None,
) -> Rows:
    """Return a stored table as rows.

    Parameters
    ----------
    tensor : Tensor
        (n, d), (1, n, d), (1, h, w, d), or features first.
    channels_first : bool
        The features are the first axis of those longer than one.
    relative : bool
        A table of distances: its longest axis are the rows.
    image : bool, optional
        Whether the places are patches: then a square number of rows is a grid, with or without a
        class token. None: they are, if the rows look like it.
    """
    values = tensor.detach().to("cpu", torch.float64)
    values = values.reshape([size for size in values.shape if size > 1] or [1])
    if values.ndim < 2:
        raise InputError(
            f"table: expected at least two axes longer than one, found shape {tuple(tensor.shape)}."
        )
    if relative and values.ndim == 2 and values.shape[0] < values.shape[1]:
        values = values.T
    elif channels_first:
        values = values.movedim(0, -1)
    width = values.shape[-1]
    places = values.shape[:-1]
    rows = np.ascontiguousarray(values.reshape(-1, width).numpy())
    if not np.isfinite(rows).all():
        raise InputError("table: expected finite numbers, found NaN or infinite ones.")
    if len(places) == 2 and min(places) >= 2:
        return Rows(rows, 0, (int(places[0]), int(places[1])))
    square = guess_grid(len(rows)) if len(places) == 1 and image is not False else None
    if square is not None:
        before, grid = square
        if looks_like_grid(rows[before:], grid) or (image and before <= 2):
            return Rows(rows, before, grid)
    return Rows(rows, 0, None)
