"""Agreement of attention maps with another model's maps and with the row-and-column relation, by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import Alignment, Symmetries, group_for, match, shuffles
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement by layer, the relabelling it was found at, and the cosines for shuffled tokens.

    Read `cosine` (the paper's measure) against its baseline `null.mean(axis=0)`: attention weights are
    never negative, so unrelated maps agree too; two uniform ones have cosine 1. `correlation`, the cosine
    of the centred maps, has its floor at 0. `null` is empty and `p` NaN if no generator was given.
    """

    cosine: Array  # (layers,)
    correlation: Array  # (layers,)
    alignment: Alignment
    null: Array  # (permutations, layers)
    p: Array  # (layers,)


def agreement(
    maps: ArrayLike,  # (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n)
    reference: ArrayLike,  # (n, n), or as maps
    *,
    symmetries: Symmetries | None = None,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Agreement:
    """cos(M, R) = ⟨M, R⟩ / (‖M‖ ‖R‖) over all n² entries, with M and R averaged over puzzles and heads.

    With `symmetries` the reference's tokens are relabelled, queries and keys alike and every layer alike,
    so that the mean cosine over layers is largest. The null shuffles the tokens of the maps, with the same
    freedom. A map without variation has correlation 0, one without weight cosine 0.
    """
    learned = _by_layer("maps", maps)
    target = _by_layer("reference", reference)
    _check_match("reference", target, learned)
    everywhere = np.ones(learned.shape[1:], dtype=bool)
    return _agreement(learned, target, everywhere, symmetries, permutations, rng)


def relation_agreement(
    maps: ArrayLike,  # (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n)
    relation: ArrayLike,  # (n, n)
    *,
    symmetries: Symmetries | None = None,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Agreement:
    """`agreement` with ideal attention: each token attends equally to those it is related to, to no other.

    The ideal is the relation with every row divided by its sum. What a token gives itself is left out on
    both sides. The row-and-column relation is the same for all symmetries of the grid; other relations may
    need `symmetries`.
    """
    learned = _by_layer("maps", maps)
    related = _by_layer("relation", finite("relation", relation, 2))
    _check_match("relation", related, learned)
    if related.min() < 0:
        raise InputError(f"relation: expected no negative entries, found {related.min():g}")
    apart = ~np.eye(learned.shape[-1], dtype=bool)
    related = np.where(apart, related, 0.0)
    total = related.sum(axis=-1, keepdims=True)
    ideal = related / np.where(total > 0, total, 1.0)
    return _agreement(learned, ideal, apart, symmetries, permutations, rng)


def _agreement(
    learned: Array,  # (layers, n, n)
    target: Array,  # (1 or layers, n, n)
    counted: NDArray[np.bool_],  # (n, n)
    symmetries: Symmetries | None,
    permutations: int,
    rng: np.random.Generator | None,
) -> Agreement:
    target = np.broadcast_to(target, learned.shape)
    n = learned.shape[-1]
    group, orders = group_for(n, symmetries), shuffles(n, permutations, rng)
    cosine, alignment, null = match(_unit(learned, counted), _unit(target, counted), group, orders)
    order = alignment.permutation
    x = _unit(learned, counted, centre=True)
    y = _unit(target[:, order[:, None], order[None, :]], counted, centre=True)
    correlation: Array = (x * y).sum(axis=(1, 2))
    return Agreement(cosine, correlation, alignment, null, permutation_p(cosine, null))


def _check_match(name: str, target: Array, learned: Array) -> None:
    n = learned.shape[-1]
    if target.shape not in {(1, n, n), learned.shape}:
        raise InputError(
            f"{name}: expected {(n, n)} or {learned.shape} after averaging puzzles and heads, found {target.shape}"
        )


def _by_layer(name: str, maps: ArrayLike) -> Array:
    """Maps averaged over puzzles and heads: (layers, n, n), with one layer if a single map was given."""
    given = np.asarray(maps)
    if given.ndim not in {2, 3, 4, 5} or given.shape[-1] != given.shape[-2]:
        raise InputError(
            f"{name}: expected (n, n), (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n), found {given.shape}"
        )
    checked = finite(name, given, given.ndim)
    if given.ndim == 2:
        return checked[None]
    mean: Array = checked.mean(axis=tuple(range(1, given.ndim - 2)))
    return mean


def _unit(maps: Array, counted: NDArray[np.bool_], centre: bool = False) -> Array:
    """Each map (layers, n, n) scaled to length 1 over the counted entries, centred first if asked; else 0."""
    kept = np.where(counted, maps, 0.0)
    size = np.linalg.norm(kept, axis=(1, 2), keepdims=True)
    if centre:
        kept = np.where(counted, kept - kept.sum(axis=(1, 2), keepdims=True) / counted.sum(), 0.0)
    norm = np.linalg.norm(kept, axis=(1, 2), keepdims=True)
    usable = norm > 1e-12 * size
    unit: Array = np.where(usable, kept, 0.0) / np.where(usable, norm, 1.0)
    return unit
