"""Modules of a table: how far the similarity of its rows follows known networks, and the ones found without knowing."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import IntArray
from placecell.errors import InputError

Labels = NDArray[np.int64]
MOST_CLUSTERS = 30  # tried by `kmeans`, and never more than half of the rows
KMEANS_STARTS = 4
LOUVAIN_STARTS = 10  # the best of so many: Louvain depends on the order in which it takes the nodes


@dataclass(frozen=True)
class Modules:
    """How modular a similarity matrix is by given labels."""

    modularity: float  # Newman's, of the positive part
    signed: float  # positive part rewarded, negative part punished
    segregation: float  # (within − between) / within, of the positive part
    within: float  # mean similarity
    between: float


@dataclass(frozen=True)
class Match:
    """Clusters found blindly beside known labels: 1 is the same partition, 0 what chance gives (ARI)."""

    clusters: int
    ari: float
    nmi: float


def row_similarity(table: ArrayLike) -> Array:
    """cos(tᵢ − t̄, tⱼ − t̄) of the rows of a table (n, d), t̄ being the mean row; 0 on the diagonal.

    The mean row is the same for every token and so says nothing of any. A row equal to it has similarity 0 to all.
    """
    rows = finite("table", table, 2)
    rows = rows - rows.mean(axis=0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 1e-12 * max(1.0, float(length.max())), length, np.inf)
    found: Array = unit @ unit.T
    np.fill_diagonal(found, 0.0)
    return found


def modules(similarity: ArrayLike, labels: ArrayLike) -> Modules:
    """All measures of a symmetric similarity matrix (n, n) by labels (n,); the diagonal is left out."""
    s, names = _checked(similarity, labels)
    same = names[:, None] == names
    apart = ~np.eye(len(s), dtype=bool)
    positive = np.clip(s, 0.0, None)
    inside, outside = positive[same & apart].mean(), positive[~same].mean()
    return Modules(
        modularity=modularity(s, names),
        signed=signed_modularity(s, names),
        segregation=float((inside - outside) / inside) if inside > 0 else 0.0,
        within=float(s[same & apart].mean()),
        between=float(s[~same].mean()),
    )


def modularity(similarity: ArrayLike, labels: ArrayLike) -> float:
    """Newman's Q of the positive part A: Σ over pairs of one label of (A_ij − k_i k_j / 2m) / 2m, 2m = Σ A.

    0 for what the strengths k alone would give; 0, too, where nothing is positive.
    """
    s, names = _checked(similarity, labels)
    return float(_quality(np.clip(s, 0.0, None), names[None])[0])


def signed_modularity(similarity: ArrayLike, labels: ArrayLike) -> float:
    """Q* = Q⁺ − s⁻ / (s⁺ + s⁻) · Q⁻, with Q± and the sums s± those of the positive and the negative part.

    The negative part counts the less the smaller it is (Rubinov and Sporns 2011, the asymmetric measure).
    """
    s, names = _checked(similarity, labels)
    return float(_signed_quality(s, names[None])[0])


def label_test(
    similarity: ArrayLike,  # (n, n)
    labels: ArrayLike,  # (n,)
    orders: IntArray,  # (m, n)
) -> tuple[float, Array]:
    """p-value of the modularity against the labels taken in other orders, and those modularities (m,).

    With `orders` random the null is any assignment of labels; with spins (`spin_orders`) or distance-preserving ones
    it is an assignment that is as smooth over space as the true one.
    """
    s, names = _checked(similarity, labels)
    null = _quality(np.clip(s, 0.0, None), names[orders])
    return float(permutation_p(modularity(s, names), null)), null


def spin_orders(sphere: ArrayLike, hemisphere: ArrayLike, count: int, rng: np.random.Generator) -> IntArray:
    """`count` reorderings (count, n) of regions by random rotations of their spheres (points (n, 3)).

    Each rotation turns the left sphere, and its mirror image the right one. Every region then takes the place of
    one of its own hemisphere, each place once, so that the summed distance between rotated and true places is smallest
    (the Hungarian method): neighbours stay neighbours, and how often each label occurs stays the same. A rotation too
    small to move any region is the observed arrangement, which a p-value counts already, and is drawn again.
    """
    points, side = finite("sphere", sphere, 2), np.asarray(hemisphere)
    if points.shape[1] != 3 or side.shape != (len(points),):
        raise InputError(f"sphere: expected (n, 3) and n hemispheres, found {points.shape} and {side.shape}")
    mirror = np.diag([-1.0, 1.0, 1.0])
    still = np.arange(len(points), dtype=np.intp)
    found: list[IntArray] = []
    while len(found) < count:
        order, turn = still.copy(), Rotation.random(rng=rng).as_matrix()
        for number, value in enumerate(np.unique(side)):
            members = np.flatnonzero(side == value)
            turned = points[members] @ (turn if number == 0 else mirror @ turn @ mirror).T
            places, taken = linear_sum_assignment(-points[members] @ turned.T)
            order[members[places]] = members[taken]
        if not np.array_equal(order, still):
            found.append(order)
    return np.array(found, dtype=np.intp).reshape(count, len(points))


def louvain(similarity: ArrayLike, rng: np.random.Generator) -> Labels:
    """Communities (n,) of the positive part, numbered from the largest: the best of several Louvain runs.

    The positive part alone: on negative weights networkx's Louvain runs and is wrong.
    """
    s = np.clip(finite("similarity", similarity, 2), 0.0, None)
    np.fill_diagonal(s, 0.0)
    graph = nx.from_numpy_array(s)
    best, quality = np.zeros(len(s), dtype=np.int64), -np.inf
    for _ in range(LOUVAIN_STARTS):
        found = np.empty(len(s), dtype=np.int64)
        for number, members in enumerate(nx.community.louvain_communities(graph, seed=int(rng.integers(2**31)))):
            found[list(members)] = number
        value = float(_quality(s, found[None])[0])
        if value > quality:
            best, quality = found, value
    return _by_size(best)


def kmeans(table: ArrayLike, rng: np.random.Generator, most: int = MOST_CLUSTERS) -> Labels:
    """Clusters (n,) of the centred rows, scaled to length 1; the number of clusters is that of the best silhouette."""
    rows = finite("table", table, 2)
    rows = rows - rows.mean(axis=0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    best, score = np.zeros(len(rows), dtype=np.int64), -np.inf
    for k in range(2, max(2, min(most, len(rows) // 2)) + 1):
        found = KMeans(k, n_init=KMEANS_STARTS, random_state=int(rng.integers(2**31))).fit_predict(unit)
        if len(np.unique(found)) < 2:
            continue
        value = float(silhouette_score(unit, found))
        if value > score:
            best, score = found.astype(np.int64), value
    return _by_size(best)


def match_labels(found: ArrayLike, known: ArrayLike) -> Match:
    """Agreement of two partitions: adjusted Rand index and normalised mutual information."""
    one, two = np.asarray(found), np.asarray(known)
    ari, nmi = adjusted_rand_score(two, one), normalized_mutual_info_score(two, one)
    return Match(len(np.unique(one)), float(ari), float(nmi))


def matrix_correlation(one: ArrayLike, two: ArrayLike) -> float:
    """Pearson's r of two symmetric matrices over pairs i < j; 0 if one of them is constant."""
    x, y = finite("one", one, 2), finite("two", two, 2)
    if x.shape != y.shape or x.shape[0] != x.shape[1]:
        raise InputError(f"two: expected a square matrix {x.shape} like the first, found {y.shape}")
    pairs = np.triu_indices(len(x), 1)
    if np.ptp(x[pairs]) == 0 or np.ptp(y[pairs]) == 0:
        return 0.0
    return float(np.corrcoef(x[pairs], y[pairs])[0, 1])


def block_means(matrix: ArrayLike, labels: ArrayLike) -> Array:
    """Means of an (n, n) matrix by pairs of labels (k, k), the diagonal left out; NaN for a label that stands alone."""
    given, names = finite("matrix", matrix, 2), np.asarray(labels)
    kinds = np.unique(names)
    apart = ~np.eye(len(given), dtype=bool)

    def mean(one: int, two: int) -> float:
        chosen = np.outer(names == one, names == two) & apart
        return float(given[chosen].mean()) if chosen.any() else float("nan")

    return np.array([[mean(one, two) for two in kinds] for one in kinds])


def _quality(a: Array, labelings: NDArray[np.int64]) -> Array:
    """Q of a non-negative matrix (n, n) with zero diagonal, for each of several labelings (m, n)."""
    total = a.sum()
    if total <= 0:
        return np.zeros(len(labelings))
    strength = a.sum(axis=1)
    b = (a - np.outer(strength, strength) / total) / total
    found = np.zeros(len(labelings))
    for kind in np.unique(labelings):
        member = (labelings == kind).astype(float)  # (m, n)
        found += ((member @ b) * member).sum(axis=1)
    return found


def _signed_quality(s: Array, labelings: NDArray[np.int64]) -> Array:
    positive, negative = np.clip(s, 0.0, None), np.clip(-s, 0.0, None)
    total = positive.sum() + negative.sum()
    share = negative.sum() / total if total > 0 else 0.0
    found: Array = _quality(positive, labelings) - share * _quality(negative, labelings)
    return found


def _checked(similarity: ArrayLike, labels: ArrayLike) -> tuple[Array, Labels]:
    s = finite("similarity", similarity, 2).copy()
    if s.shape[0] != s.shape[1] or not np.allclose(s, s.T):
        raise InputError(f"similarity: expected a symmetric matrix, found {s.shape}")
    given = np.asarray(labels)
    if given.shape != (len(s),):
        raise InputError(f"labels: expected one for each of {len(s)} rows, found shape {given.shape}")
    np.fill_diagonal(s, 0.0)
    kinds, names = np.unique(given, return_inverse=True)
    if len(kinds) < 2:
        raise InputError("labels: expected at least two different ones")
    return s, names.astype(np.int64)


def _by_size(labels: Labels) -> Labels:
    """The same partition with its parts numbered from the largest (ties: from the first member)."""
    kinds, first, counts = np.unique(labels, return_index=True, return_counts=True)
    order: list[int] = sorted(range(len(kinds)), key=lambda i: (-counts[i], first[i]))
    new = np.empty(len(kinds), dtype=np.int64)
    new[order] = np.arange(len(kinds))
    found: Labels = new[np.searchsorted(kinds, labels)]
    return found
