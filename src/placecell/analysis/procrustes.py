"""Orthogonal Procrustes: how far a learned table is from a reference once rotated onto it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes

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
    """What `procrustes` found; `null` is empty and `p` NaN if no generator was given."""

    distance: float  # 0 (same up to rotation, scale, offset and symmetry) to 1
    rotation: Array  # (w, w) orthogonal, takes the table onto the reference; w is the wider of their widths
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
    """Distance left over after the best offset, rotation or reflection, scale, and relabelling of the grid.

    Both tables are centred and divided by their Frobenius norm, the narrower padded with columns of zeros:
    A and B. With P over the symmetries, Q over the orthogonal matrices and c over the scales,

        distance = min ‖c A Q − P B‖_F = sqrt(1 − s²),   s = max over P of ‖Aᵀ P B‖_*,

    where ‖·‖_* is the sum of the singular values and the best scale is c = s. All of `symmetries` are
    searched; P B is `reference[permutation]`. The "disparity" of scipy.spatial is distance².

    The null is the same distance, with the same choice of symmetries, for the table with its rows shuffled;
    p is the share of distances as small as the observed one, counting the observed. On a 4 × 4 grid 1000
    draws take 1 to 2 seconds with the 2D sinusoidal table, but half a minute with a reference that has no
    symmetry of its own.
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
    rotation, scale = orthogonal_procrustes(a, b[alignment.permutation])
    distance = float(np.linalg.norm(scale * a @ rotation - b[alignment.permutation]))
    null = np.sqrt(np.clip(1 - s_null**2, 0, 1))
    return Procrustes(distance, rotation, alignment, null, float(permutation_p(observed[chosen], s_null)))


def standardized(name: str, table: ArrayLike) -> Array:
    """The table (n, d) centred, so that its mean row is zero, and divided by its Frobenius norm."""
    given = finite(name, table, 2)
    centred: Array = given - given.mean(axis=0)
    norm = np.linalg.norm(centred)
    if norm <= 1e-12 * np.linalg.norm(given):
        raise InputError(f"{name}: expected rows that differ, found {len(given)} equal rows")
    return centred / norm


def _shortened(table: Array) -> Array:
    """The table rotated into as few columns as its rank: the distances stay, the arithmetic shrinks."""
    u, s, _ = np.linalg.svd(table, full_matrices=False)
    kept = s > 1e-12
    short: Array = u[:, kept] * s[kept]
    return short
