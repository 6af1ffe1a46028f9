"""Compare attention maps, layer by layer, with another model's maps or with a known relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import Alignment, Symmetries, group_for, match, shuffles
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of attention maps with a reference, per layer.

    Compare `cosine` (the paper's measure) with its baseline `null.mean(axis=0)`, not with 0:
    attention weights are never negative, so even unrelated maps have a positive cosine, and two
    uniform maps have cosine 1. `correlation` is the cosine of the centred maps; unrelated maps
    score about 0.

    Attributes
    ----------
    cosine : array of shape (layers,)
        Cosine of the maps and the reference.
    correlation : array of shape (layers,)
        The same after subtracting each map's mean.
    alignment : Alignment
        The relabelling of the reference at which both were computed.
    null : array of shape (permutations, layers)
        Cosines for shuffled tokens; empty if no generator was given.
    p : array of shape (layers,)
        Permutation p-values of `cosine`; NaN if no generator was given.
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
    """Compare attention maps with reference maps by their cosine.

    cos(M, R) = ⟨M, R⟩ / (‖M‖ ‖R‖) over all n² entries, where M and R are averaged over samples and
    heads. A constant map has correlation 0 and an all-zero map has cosine 0.

    Parameters
    ----------
    maps : array of shape (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n)
        The attention maps.
    reference : array of shape (n, n), or like `maps`
        What to compare with; a single map is compared with every layer.
    symmetries : Symmetries, optional
        Relabellings of the reference's tokens to choose from. The one with the largest mean cosine
        over layers is used, for queries and keys and for all layers alike.
    permutations : int
        Number of draws of the null, which shuffles the tokens of the maps and chooses among the
        same symmetries.
    rng : numpy.random.Generator, optional
        Source of the shuffles; without it there is no null.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import numpy as np
    >>> uniform = np.full((1, 3, 3), 1 / 3)
    >>> agreement(uniform, np.eye(3)).cosine.round(3)
    array([0.577])
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
    """Compare attention maps with the ideal attention for a known relation.

    In the ideal map each token attends equally to the tokens it is related to and to no others: it
    is the relation with every row divided by its sum. The diagonal (a token's attention to itself)
    is ignored on both sides.

    Parameters
    ----------
    maps : array of shape (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n)
        The attention maps.
    relation : array of shape (n, n)
        Non-negative weights of the relation between tokens.
    symmetries : Symmetries, optional
        Relabellings to choose from. The row-and-column relation is the same under all symmetries of
        the grid and needs none; other relations may.
    permutations : int
        Number of draws of the null.
    rng : numpy.random.Generator, optional
        Source of the shuffles; without it there is no null.

    Returns
    -------
    Agreement
        As returned by `agreement`.
    """
    learned = _by_layer("maps", maps)
    related = _by_layer("relation", finite("relation", relation, 2))
    _check_match("relation", related, learned)
    if related.min() < 0:
        raise InputError(f"relation: expected no negative entries, found {related.min():g}")
    off_diagonal = ~np.eye(learned.shape[-1], dtype=bool)
    related = np.where(off_diagonal, related, 0.0)
    total = related.sum(axis=-1, keepdims=True)
    ideal = related / np.where(total > 0, total, 1.0)
    return _agreement(learned, ideal, off_diagonal, symmetries, permutations, rng)


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
            f"{name}: expected {(n, n)} or {learned.shape} after averaging puzzles and heads, "
            f"found {target.shape}"
        )


def _by_layer(name: str, maps: ArrayLike) -> Array:
    """Average maps over samples and heads to (layers, n, n); a single map becomes one layer."""
    given = np.asarray(maps)
    if given.ndim not in {2, 3, 4, 5} or given.shape[-1] != given.shape[-2]:
        raise InputError(
            f"{name}: expected (n, n), (layers, n, n), (layers, h, n, n) or (layers, b, h, n, n), "
            f"found {given.shape}"
        )
    checked = finite(name, given, given.ndim)
    if given.ndim == 2:
        return checked[None]
    mean: Array = checked.mean(axis=tuple(range(1, given.ndim - 2)))
    return mean


def _unit(maps: Array, counted: NDArray[np.bool_], centre: bool = False) -> Array:
    """Scale each map (layers, n, n) to norm 1 over the counted entries.

    With `centre` the mean is subtracted first. A map that is then zero up to rounding stays zero.
    """
    kept = np.where(counted, maps, 0.0)
    size = np.linalg.norm(kept, axis=(1, 2), keepdims=True)
    if centre:
        kept = np.where(counted, kept - kept.sum(axis=(1, 2), keepdims=True) / counted.sum(), 0.0)
    norm = np.linalg.norm(kept, axis=(1, 2), keepdims=True)
    usable = norm > 1e-12 * size
    unit: Array = np.where(usable, kept, 0.0) / np.where(usable, norm, 1.0)
    return unit
