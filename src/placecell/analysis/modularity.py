"""Modules of a table: how well its row similarity follows known networks, and blind clustering."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import IntArray
from placecell.errors import InputError

Labels = NDArray[np.int64]
MOST_CLUSTERS = 30  # that `kmeans` tries; it also never tries more than half the number of rows
KMEANS_STARTS = 4
LOUVAIN_STARTS = 10  # of which the best is kept: the order in which nodes are visited matters


@dataclass(frozen=True)
class Modules:
    """How modular a similarity matrix is for given labels.

    Attributes
    ----------
    modularity : float
        Newman's modularity of the positive part.
    signed : float
        Signed modularity: rewards the positive part and punishes the negative part.
    segregation : float
        (within − between) / within, of the positive part.
    within, between : float
        Mean similarity of pairs with the same label and of pairs with different labels.
    """

    modularity: float
    signed: float
    segregation: float
    within: float
    between: float


@dataclass(frozen=True)
class Match:
    """Agreement of clusters, found without the labels, with known labels.

    Attributes
    ----------
    clusters : int
        Number of clusters.
    ari : float
        Adjusted Rand index: 1 for the same partition, 0 on average by chance.
    nmi : float
        Normalised mutual information: 1 for the same partition.
    """

    clusters: int
    ari: float
    nmi: float


def row_similarity(table: ArrayLike) -> Array:
    """Compute the cosine similarity of the centred rows of a table.

    The similarity is cos(tᵢ − t̄, tⱼ − t̄), with t̄ the mean row. The mean row is subtracted
    because it is the same for every token and so carries no information about any of them.

    Parameters
    ----------
    table : array of shape (n, d)

    Returns
    -------
    array of shape (n, n)
        Similarities, with 0 on the diagonal. A row equal to the mean row has similarity 0 to all
        others.

    Examples
    --------
    >>> row_similarity([[1, 0], [-1, 0]]).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """
    rows = finite("table", table, 2)
    rows = rows - rows.mean(axis=0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 1e-12 * max(1.0, float(length.max())), length, np.inf)
    similarity: Array = unit @ unit.T
    np.fill_diagonal(similarity, 0.0)
    return similarity


def modules(similarity: ArrayLike, labels: ArrayLike) -> Modules:
    """Compute all modularity measures of a similarity matrix for given labels.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric similarity of the rows; the diagonal is ignored.
    labels : array of shape (n,)
        The label of each row; at least two different ones.

    Returns
    -------
    Modules
    """
    s, names = _checked(similarity, labels)
    same = names[:, None] == names
    off_diagonal = ~np.eye(len(s), dtype=bool)
    positive = np.clip(s, 0.0, None)
    inside, outside = positive[same & off_diagonal].mean(), positive[~same].mean()
    return Modules(
        modularity=modularity(s, names),
        signed=signed_modularity(s, names),
        segregation=float((inside - outside) / inside) if inside > 0 else 0.0,
        within=float(s[same & off_diagonal].mean()),
        between=float(s[~same].mean()),
    )


def modularity(similarity: ArrayLike, labels: ArrayLike) -> float:
    """Compute Newman's modularity Q of the positive part of a similarity matrix.

    With A the positive part, k its row sums (strengths) and 2m = Σ A, Q is the sum of
    (A_ij − k_i k_j / 2m) / 2m over pairs with the same label.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric similarity of the rows; the diagonal is ignored.
    labels : array of shape (n,)
        The label of each row; at least two different ones.

    Returns
    -------
    float
        Q; 0 if the similarity is what the strengths alone predict, and 0 if no entry is positive.
    """
    s, names = _checked(similarity, labels)
    return float(_quality(np.clip(s, 0.0, None), names[None])[0])


def signed_modularity(similarity: ArrayLike, labels: ArrayLike) -> float:
    """Compute the modularity of a similarity matrix with its negative part taken into account.

    Q* = Q⁺ − s⁻ / (s⁺ + s⁻) · Q⁻, where Q⁺ and Q⁻ are the modularities and s⁺ and s⁻ the sums of
    the positive and the negative part. A smaller negative part weighs less. This is the asymmetric
    measure of Rubinov and Sporns (2011).

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric similarity of the rows; the diagonal is ignored.
    labels : array of shape (n,)
        The label of each row; at least two different ones.

    Returns
    -------
    float
    """
    s, names = _checked(similarity, labels)
    return float(_signed_quality(s, names[None])[0])


def label_test(
    similarity: ArrayLike,  # (n, n)
    labels: ArrayLike,  # (n,)
    orders: IntArray,  # (m, n)
) -> tuple[float, Array]:
    """Test the modularity of labels against reordered labels.

    With random `orders` the null is any assignment of the labels. With spins (`spin_orders`) or
    distance-preserving orders it is an assignment that is as smooth over space as the true one.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric similarity of the rows; the diagonal is ignored.
    labels : array of shape (n,)
        The label of each row; at least two different ones.
    orders : int array of shape (m, n)
        Reorderings of the labels.

    Returns
    -------
    p : float
        Permutation p-value of the modularity.
    null : array of shape (m,)
        Modularity of each reordering.
    """
    s, names = _checked(similarity, labels)
    null = _quality(np.clip(s, 0.0, None), names[orders])
    return float(permutation_p(modularity(s, names), null)), null


def spin_orders(
    sphere: ArrayLike, hemisphere: ArrayLike, count: int, rng: np.random.Generator
) -> IntArray:
    """Reorder brain regions by random rotations of their spherical surfaces (spins).

    Each random rotation is applied to the left sphere and its mirror image to the right sphere.
    Regions are then assigned to places of their own hemisphere, one region per place, so that the
    total distance between rotated and true places is smallest (Hungarian method). Neighbours stay
    neighbours, and the number of regions per label stays the same. A rotation too small to move any
    region is drawn again: it would repeat the observed arrangement, which the p-value already
    counts.

    Parameters
    ----------
    sphere : array of shape (n, 3)
        Points of the regions on the sphere of their hemisphere.
    hemisphere : array of shape (n,)
        The hemisphere of each region.
    count : int
        Number of reorderings.
    rng : numpy.random.Generator
        Source of the rotations.

    Returns
    -------
    int array of shape (count, n)
    """
    points, side = finite("sphere", sphere, 2), np.asarray(hemisphere)
    if points.shape[1] != 3 or side.shape != (len(points),):
        raise InputError(
            f"sphere: expected (n, 3) and n hemispheres, found {points.shape} and {side.shape}"
        )
    mirror = np.diag([-1.0, 1.0, 1.0])
    identity = np.arange(len(points), dtype=np.intp)
    orders: list[IntArray] = []
    while len(orders) < count:
        order, turn = identity.copy(), scipy.spatial.transform.Rotation.random(rng=rng).as_matrix()
        for number, value in enumerate(np.unique(side)):
            members = np.flatnonzero(side == value)
            turned = points[members] @ (turn if number == 0 else mirror @ turn @ mirror).T
            places, taken = scipy.optimize.linear_sum_assignment(-points[members] @ turned.T)
            order[members[places]] = members[taken]
        if not np.array_equal(order, identity):
            orders.append(order)
    return np.array(orders, dtype=np.intp).reshape(count, len(points))


def louvain(similarity: ArrayLike, rng: np.random.Generator) -> Labels:
    """Find communities in the positive part of a similarity matrix by Louvain's method.

    The best of several runs is returned. Negative weights are set to 0, because networkx accepts
    them and then returns wrong communities.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric similarity; the diagonal is ignored.
    rng : numpy.random.Generator
        Source of the seeds of the runs.

    Returns
    -------
    int array of shape (n,)
        The community of each row, numbered from the largest.
    """
    import networkx as nx  # here, as scikit-learn below, since they take long to import

    s = np.clip(finite("similarity", similarity, 2), 0.0, None)
    np.fill_diagonal(s, 0.0)
    graph = nx.from_numpy_array(s)
    best, quality = np.zeros(len(s), dtype=np.int64), -np.inf
    for _ in range(LOUVAIN_STARTS):
        labels = np.empty(len(s), dtype=np.int64)
        communities = nx.community.louvain_communities(graph, seed=int(rng.integers(2**31)))
        for number, members in enumerate(communities):
            labels[list(members)] = number
        value = float(_quality(s, labels[None])[0])
        if value > quality:
            best, quality = labels, value
    return _by_size(best)


def kmeans(table: ArrayLike, rng: np.random.Generator, most: int = MOST_CLUSTERS) -> Labels:
    """Cluster the rows of a table, centred and scaled to length 1, by k-means.

    Parameters
    ----------
    table : array of shape (n, d)
    rng : numpy.random.Generator
        Source of the seeds.
    most : int
        Largest number of clusters to try; at most half the number of rows is tried.

    Returns
    -------
    int array of shape (n,)
        The cluster of each row, numbered from the largest. The number of clusters is the one with
        the best silhouette.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import silhouette_score

    rows = finite("table", table, 2)
    rows = rows - rows.mean(axis=0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    best, score = np.zeros(len(rows), dtype=np.int64), -np.inf
    different = len(np.unique(np.round(unit, 9), axis=0))  # of a table of one column, two
    for k in range(2, max(2, min(most, len(rows) // 2, different)) + 1):
        seed = int(rng.integers(2**31))
        with warnings.catch_warnings():
            # fewer different rows than clusters: the silhouette then prefers a smaller k
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = KMeans(k, n_init=KMEANS_STARTS, random_state=seed).fit_predict(unit)
        if len(np.unique(labels)) < 2:
            continue
        value = float(silhouette_score(unit, labels))
        if value > score:
            best, score = labels.astype(np.int64), value
    return _by_size(best)


def match_labels(clusters: ArrayLike, known: ArrayLike) -> Match:
    """Compare clusters with known labels.

    Parameters
    ----------
    clusters, known : array of shape (n,)
        The cluster and the known label of each row.

    Returns
    -------
    Match
        Number of clusters, adjusted Rand index and normalised mutual information.

    Examples
    --------
    >>> match_labels([0, 0, 1, 1], ["b", "b", "a", "a"])
    Match(clusters=2, ari=1.0, nmi=1.0)
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    predicted, truth = np.asarray(clusters), np.asarray(known)
    ari = adjusted_rand_score(truth, predicted)
    nmi = normalized_mutual_info_score(truth, predicted)
    return Match(len(np.unique(predicted)), float(ari), float(nmi))


def matrix_correlation(one: ArrayLike, two: ArrayLike) -> float:
    """Correlate the upper triangles of two symmetric matrices.

    Parameters
    ----------
    one, two : array of shape (n, n)

    Returns
    -------
    float
        Pearson's r over pairs i < j; 0 if one of the matrices is constant there.
    """
    x, y = finite("one", one, 2), finite("two", two, 2)
    if x.shape != y.shape or x.shape[0] != x.shape[1]:
        raise InputError(f"two: expected a square matrix {x.shape} like the first, found {y.shape}")
    pairs = np.triu_indices(len(x), 1)
    if np.ptp(x[pairs]) == 0 or np.ptp(y[pairs]) == 0:
        return 0.0
    return float(np.corrcoef(x[pairs], y[pairs])[0, 1])


def block_means(matrix: ArrayLike, labels: ArrayLike) -> Array:
    """Average a matrix over each pair of labels.

    Parameters
    ----------
    matrix : array of shape (n, n)
        The diagonal is ignored.
    labels : array of shape (n,)
        k different labels.

    Returns
    -------
    array of shape (k, k)
        Means by sorted labels; NaN on the diagonal for a label that occurs once.
    """
    values, names = finite("matrix", matrix, 2), np.asarray(labels)
    kinds = np.unique(names)
    off_diagonal = ~np.eye(len(values), dtype=bool)

    def mean(row: int, column: int) -> float:
        chosen = np.outer(names == row, names == column) & off_diagonal
        return float(values[chosen].mean()) if chosen.any() else float("nan")

    return np.array([[mean(row, column) for column in kinds] for row in kinds])


def _quality(a: Array, labelings: NDArray[np.int64]) -> Array:
    """Q (m,) of a non-negative matrix (n, n) with zero diagonal, for several labelings (m, n)."""
    total = a.sum()
    if total <= 0:
        return np.zeros(len(labelings))
    strength = a.sum(axis=1)
    b = (a - np.outer(strength, strength) / total) / total
    quality = np.zeros(len(labelings))
    for kind in np.unique(labelings):
        member = (labelings == kind).astype(float)  # (m, n)
        quality += ((member @ b) * member).sum(axis=1)
    return quality


def _signed_quality(s: Array, labelings: NDArray[np.int64]) -> Array:
    positive, negative = np.clip(s, 0.0, None), np.clip(-s, 0.0, None)
    total = positive.sum() + negative.sum()
    weight = negative.sum() / total if total > 0 else 0.0
    quality: Array = _quality(positive, labelings) - weight * _quality(negative, labelings)
    return quality


def _checked(similarity: ArrayLike, labels: ArrayLike) -> tuple[Array, Labels]:
    s = finite("similarity", similarity, 2).copy()
    if s.shape[0] != s.shape[1] or not np.allclose(s, s.T):
        raise InputError(f"similarity: expected a symmetric matrix, found {s.shape}")
    given = np.asarray(labels)
    if given.shape != (len(s),):
        raise InputError(
            f"labels: expected one for each of {len(s)} rows, found shape {given.shape}"
        )
    np.fill_diagonal(s, 0.0)
    kinds, names = np.unique(given, return_inverse=True)
    if len(kinds) < 2:
        raise InputError("labels: expected at least two different ones")
    return s, names.astype(np.int64)


def _by_size(labels: Labels) -> Labels:
    """Renumber the parts of a partition by size, largest first; ties by their first member."""
    kinds, first, counts = np.unique(labels, return_index=True, return_counts=True)
    order: list[int] = sorted(range(len(kinds)), key=lambda i: (-counts[i], first[i]))
    new = np.empty(len(kinds), dtype=np.int64)
    new[order] = np.arange(len(kinds))
    renumbered: Labels = new[np.searchsorted(kinds, labels)]
    return renumbered
