"""Principal components of a table, to draw it with one point per token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from placecell.analysis.statistics import Array, finite
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Picture:
    """Points to draw for a table.

    Attributes
    ----------
    coordinates : array of shape (n, dims)
        One point per token.
    explained : array of shape (dims,)
        Fraction of the table's variance along each principal axis, before any rotation to a layout.
    """

    coordinates: Array  # (n, dims)
    explained: Array  # (dims,)


def picture(table: ArrayLike, dims: int = 2, *, align_to: ArrayLike | None = None) -> Picture:
    """Project a table on its first principal components.

    With U S Vᵀ the singular value decomposition of the centred table, the points are the first
    columns of U S. The sign of each column is chosen so that its coordinate of largest absolute
    value is positive.

    Parameters
    ----------
    table : array of shape (n, d)
    dims : int
        Number of components.
    align_to : array of shape (n, dims), optional
        A layout to rotate or mirror the points to, as closely as possible and without stretching.
        Without it, two axes of equal variance, like the rows and columns of a grid, are drawn at an
        arbitrary angle.

    Returns
    -------
    Picture
    """
    values = finite("table", table, 2)
    if not 1 <= dims <= min(values.shape):
        raise InputError(
            f"dims: expected 1 to {min(values.shape)} for a table {values.shape}, found {dims}"
        )
    u, s, _ = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    points: Array = (u * s)[:, :dims]
    # The first of those within rounding of the largest, so that every machine picks the same sign.
    size = np.abs(points)
    largest = (size >= size.max(axis=0) * (1 - 1e-6)).argmax(axis=0)
    points = points * np.where(points[largest, np.arange(dims)] < 0, -1.0, 1.0)
    explained: Array = s[:dims] ** 2 / (np.sum(s**2) or 1.0)
    if align_to is not None:
        layout = finite("align_to", align_to, 2)
        if layout.shape != points.shape:
            raise InputError(f"align_to: expected shape {points.shape}, found {layout.shape}")
        rotation, _ = scipy.linalg.orthogonal_procrustes(points, layout - layout.mean(axis=0))
        points = points @ rotation
    return Picture(points, explained)
