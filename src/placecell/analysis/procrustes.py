"""Orthogonal Procrustes: the distance of a learned table from a reference after rotation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import (
    Alignment,
    IntArray,
    Symmetries,
    distinct,
    first_best,
    group_for,
    shuffles,
)
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Procrustes:
    """Result of `procrustes`.

    Attributes
    ----------
    distance : float
        From 0 (equal up to rotation, scale, offset and symmetry) to 1.
    rotation : array of shape (w, w)
        Orthogonal matrix that maps the table onto the reference; w is the larger of their widths.
    alignment : Alignment
        The relabelling of the reference that was used.
    null : array of shape (permutations,)
        Distances for shuffled tables; empty if no generator was given.
    p : float
        Permutation p-value; NaN if no generator was given.
    """

    distance: float
    rotation: Array  # (w, w)
    alignment: Alignment
    null: Array  # (permutations,)
    p: float


def procrustes(
    table: ArrayLike,  # (n, d)
    reference: ArrayLike,  # (n, d'), another width is fine
    *,
    symmetries: Symmetries | None = None,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Procrustes:
    """Compute the distance of two tables after the best offset, rotation, scale and relabelling.

    Rotations include reflections. Let A and B be the table and the reference, both centred, divided
    by their Frobenius norm, and the narrower one padded with columns of zeros. With P over the
    symmetries, Q over the orthogonal matrices and c over the scales,

        distance = min ‖c A Q − P B‖_F = sqrt(1 − s²),   s = max over P of ‖Aᵀ P B‖_*,

    where ‖·‖_* is the sum of the singular values, the best scale is c = s, and P B is
    `reference[permutation]`. The "disparity" of scipy.spatial is distance².

    The null is the distance of the table with shuffled rows, with the same choice of symmetries. p
    is the fraction of distances at most as large as the observed one, which is counted too.

    Parameters
    ----------
    table : array of shape (n, d)
        The learned table.
    reference : array of shape (n, d')
        What to compare with; its width may differ.
    symmetries : Symmetries, optional
        Relabellings of the reference's tokens, all of which are tried.
    permutations : int
        Number of draws of the null. On a 4 × 4 grid, 1000 draws take 1 to 2 seconds with the 2D
        sinusoidal table, but half a minute with a reference that has no symmetry of its own.
    rng : numpy.random.Generator, optional
        Source of the shuffles; without it there is no null.

    Returns
    -------
    Procrustes
    """
    a, b = standardized("table", table), standardized("reference", reference)
    n = len(a)
    if len(b) != n:
        raise InputError(f"reference: expected {n} rows as in the table, found {len(b)}")
    group = group_for(n, symmetries)
    orders = shuffles(n, permutations, rng)
    short_a, short_b = _shortened(a), _shortened(b)
    members = distinct((b @ b.T)[None], group)
    candidates = short_b[group.permutations[members]]  # (g, n, r')

    def similarities(order: IntArray) -> Array:  # s for every candidate: (g,)
        s: Array = np.linalg.svd(short_a[order].T @ candidates, compute_uv=False).sum(axis=-1)
        return s

    observed = similarities(np.arange(n))
    chosen = first_best(observed)
    member = members[chosen]
    s_null = np.array([similarities(order).max() for order in orders])

    alignment = Alignment(group.permutations[member], group.words[member])
    width = max(a.shape[1], b.shape[1])
    a, b = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (a, b))
    rotation, scale = scipy.linalg.orthogonal_procrustes(a, b[alignment.permutation])
    distance = float(np.linalg.norm(scale * a @ rotation - b[alignment.permutation]))
    null = np.sqrt(np.clip(1 - s_null**2, 0, 1))
    p = float(permutation_p(observed[chosen], s_null))
    return Procrustes(distance, rotation, alignment, null, p)


def standardized(name: str, table: ArrayLike) -> Array:
    """Centre a table and divide it by its Frobenius norm.

    Parameters
    ----------
    name : str
        What error messages call the table.
    table : array of shape (n, d)

    Returns
    -------
    array of shape (n, d)
        The table with mean row 0 and Frobenius norm 1.
    """
    values = finite(name, table, 2)
    centred: Array = values - values.mean(axis=0)
    norm = np.linalg.norm(centred)
    if norm <= 1e-12 * np.linalg.norm(values):
        raise InputError(f"{name}: expected rows that differ, found {len(values)} equal rows")
    return centred / norm


def _shortened(table: Array) -> Array:
    """Rotate a table into as few columns as its rank: same distances, less arithmetic."""
    u, s, _ = np.linalg.svd(table, full_matrices=False)
    kept = s > 1e-12
    short: Array = u[:, kept] * s[kept]
    return short
