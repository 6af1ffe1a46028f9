"""A picture of a table: one point for each token, in the plane where the table varies most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes

from placecell.analysis.statistics import Array, finite
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Picture:
    """Points to draw, and how much of the table's variance each principal axis holds."""

    coordinates: Array  # (n, dims)
    explained: Array  # (dims,) shares of the variance, of the principal axes before any turning


def picture(table: ArrayLike, dims: int = 2, *, align_to: ArrayLike | None = None) -> Picture:
    """Principal components of the table (n, d): with U S Vᵀ the centred table, the first columns of U S.

    The sign of each is such that its largest coordinate in absolute value is positive. With `align_to` (n,
    dims) the points are then turned or mirrored, never stretched, to lie as near as they can to that
    layout: two axes with the same variance, like the rows and columns of a grid, are otherwise drawn at an
    arbitrary angle.
    """
    given = finite("table", table, 2)
    if not 1 <= dims <= min(given.shape):
        raise InputError(f"dims: expected 1 to {min(given.shape)} for a table {given.shape}, found {dims}")
    u, s, _ = np.linalg.svd(given - given.mean(axis=0), full_matrices=False)
    points: Array = (u * s)[:, :dims]
    # the first of those within rounding of the largest: a symmetric layout gets one sign on every machine
    size = np.abs(points)
    largest = (size >= size.max(axis=0) * (1 - 1e-6)).argmax(axis=0)
    points = points * np.where(points[largest, np.arange(dims)] < 0, -1.0, 1.0)
    explained: Array = s[:dims] ** 2 / (np.sum(s**2) or 1.0)
    if align_to is not None:
        layout = finite("align_to", align_to, 2)
        if layout.shape != points.shape:
            raise InputError(f"align_to: expected shape {points.shape}, found {layout.shape}")
        turn, _ = orthogonal_procrustes(points, layout - layout.mean(axis=0))
        points = points @ turn
    return Picture(points, explained)
