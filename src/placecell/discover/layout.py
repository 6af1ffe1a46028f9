"""From similarities to a map: lengths, shortest paths, coordinates, dimensions, order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import pdist, squareform

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
LEAST = 0.2  # of the largest similarity: parts that hardly touch are not drawn further apart
BALANCE_ROUNDS = 20
QUIETEST = 0.5  # of the median scale: a quieter column is not made as loud as the others
JOINED = 4  # nearest columns that a column is joined to
MOST_DIMENSIONS = 5
ROUNDS = 300  # of stress majorisation, at most


def balanced(similarity: Array) -> Array:
    """Scale similarities so that each column's largest is 1: loud and quiet columns count alike.

    Columns are divided by a scale of their own, again and again, until the largest are 1. A column
    that is near to none is not made loud: no scale is less than half the median.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric; larger is nearer. Negative values count as 0.

    Returns
    -------
    array of shape (n, n)
        S_ij / √(scale_i · scale_j), with 0 on the diagonal.
    """
    s = np.clip(similarity, 0.0, None).astype(float)
    np.fill_diagonal(s, 0.0)
    scale = np.ones(len(s))
    for _ in range(BALANCE_ROUNDS):  # each halves, in logarithms, what is still to do
        most = (s / np.sqrt(scale)).max(axis=1) / np.sqrt(scale)
        scale = scale * np.where(most > 0, most, 1.0)
        scale = np.maximum(scale, QUIETEST * np.median(scale))
    return np.minimum(s / np.sqrt(np.outer(scale, scale)), 1.0)


def joined_lengths(similarity: Array) -> Array:
    """Lengths of the edges between similar columns (n, n); 0 where two are not joined.

    Each column is joined to its nearest four (fewer of less than 20 columns); a spanning tree
    joins what is still apart. An edge of similarity s (balanced) has length 1 / s.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric; larger is nearer.

    Returns
    -------
    array of shape (n, n)
    """
    n = len(similarity)
    lengths = 1 / balanced(similarity).clip(LEAST)
    np.fill_diagonal(lengths, 0.0)
    joined = np.zeros((n, n), dtype=bool)
    joined[np.arange(n)[:, None], nearest(similarity, min(max(2, n // 5), JOINED, n - 1))] = True
    tree = minimum_spanning_tree(lengths).toarray() > 0
    return np.where(joined | joined.T | tree | tree.T, lengths, 0.0)


def path_lengths(similarity: Array) -> Array:
    """Distances (n, n) along the shortest paths of `joined_lengths`."""
    paths: Array = shortest_path(joined_lengths(similarity), method="D", directed=False)
    return paths


def map_distances(similarity: Array) -> Array:
    """How far apart columns should be drawn (n, n): the electrical resistance between them.

    An edge of length l conducts 1 / l². A resistance counts every way from one column to another,
    where a shortest path is cut short by one false edge.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric; larger is nearer.

    Returns
    -------
    array of shape (n, n)
    """
    lengths = joined_lengths(similarity)
    conducts = np.divide(1.0, lengths**2, out=np.zeros_like(lengths), where=lengths > 0)
    inverse = np.linalg.pinv(np.diag(conducts.sum(1)) - conducts, hermitian=True)
    own = np.diag(inverse)
    resistance: Array = (own[:, None] + own - 2 * inverse).clip(0)
    return resistance


def classical_mds(distances: Array, dimensions: int) -> tuple[Array, Array]:
    """Coordinates (n, dimensions) by classical scaling, and all eigenvalues, largest first."""
    squared = distances**2
    inner = -0.5 * (squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(inner)
    values, vectors = values[::-1], vectors[:, ::-1]
    coords = np.zeros((len(distances), dimensions))
    kept = min(dimensions, len(distances))
    coords[:, :kept] = vectors[:, :kept] * np.sqrt(values[:kept].clip(0))
    # the sign of an axis is arbitrary; the largest coordinate is positive
    signs = np.sign(coords[np.abs(coords).argmax(0), np.arange(dimensions)])
    return coords * np.where(signs == 0, 1.0, signs), values


def majorise(distances: Array, start: Array) -> Array:
    """Move points (n, d) until their distances fit best: stress majorisation, in which a distance
    counts by its inverse, so that what is near is drawn well."""
    n = len(start)
    off = ~np.eye(n, dtype=bool)
    weight = np.where(off, 1 / distances.clip(1e-9), 0.0)
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    x = start - start.mean(0)
    for _ in range(ROUNDS):
        now = squareform(pdist(x))
        ratio = np.divide(weight * distances, now, out=np.zeros_like(now), where=now > 1e-12)
        moved = inverse @ (ratio.sum(1)[:, None] * x - ratio @ x)
        still = np.abs(moved - x).max() < 1e-4 * np.abs(moved).max()
        x = moved
        if still:
            break
    return x


def lay_out(similarity: Array, dimensions: int = 2) -> Array:
    """Place columns so that they are as far apart as `map_distances` says.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric; larger is nearer.
    dimensions : int
        Number of coordinates.

    Returns
    -------
    array of shape (n, dimensions)
        Coordinates, centred, along their principal axes.
    """
    distances = map_distances(similarity)
    coords = majorise(distances, classical_mds(distances, dimensions)[0])
    coords = coords - coords.mean(0)
    axes = np.linalg.svd(coords, full_matrices=False)[2]
    turned = coords @ axes.T
    full = np.zeros((len(coords), dimensions))
    full[:, : turned.shape[1]] = turned
    signs = np.sign(full[np.abs(full).argmax(0), np.arange(dimensions)])
    result: Array = full * np.where(signs == 0, 1.0, signs)
    return result


def estimate_dimensions(similarity: Array) -> int:
    """How many coordinates the map seems to need, from 1 to 5 (to a quarter of the columns).

    The number after which the eigenvalues of classical scaling fall most. An arrangement without
    any (modules, a star) has no clear fall, and the number then says little.

    Parameters
    ----------
    similarity : array of shape (n, n)

    Returns
    -------
    int
    """
    values = classical_mds(path_lengths(similarity), 1)[1].clip(0)
    most = min(MOST_DIMENSIONS, max(1, len(values) // 4))  # few columns cannot tell more
    if len(values) < 3 or values[0] <= 0:
        return 1
    floor = 1e-3 * values[0]
    return int(np.argmax(values[:most].clip(floor) / values[1 : most + 1].clip(floor))) + 1


def matrix_order(similarity: Array, labels: IntArray) -> IntArray:
    """Order (n,) of the columns for a picture: modules together, similar columns side by side."""
    distance = 1 - balanced(similarity)
    np.fill_diagonal(distance, 0.0)
    parts = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) > 2:
            pairs = squareform(distance[np.ix_(members, members)], checks=False)
            tree = linkage(pairs, "average")
            if len(members) <= 200:
                tree = optimal_leaf_ordering(tree, pairs)
            members = members[leaves_list(tree)]
        parts.append(members)
    return np.concatenate(parts).astype(np.int64)


def nearest(similarity: Array, count: int) -> IntArray:
    """The `count` nearest columns of each column (n, count), nearest first."""
    s = similarity.astype(float).copy()
    np.fill_diagonal(s, -np.inf)
    order: IntArray = np.argsort(-s, axis=1, kind="stable")[:, :count]
    return order


def neighbour_agreement(one: Array, two: Array, count: int = 3) -> Array:
    """Share of each column's nearest that two similarities have in common (n,).

    A column of similarity 0 is not near, whatever its place in the order.
    """
    a, b = nearest(one, count), nearest(two, count)
    near_a, near_b = (np.take_along_axis(s, i, 1) > 0 for s, i in ((one, a), (two, b)))
    same = (a[:, :, None] == b[:, None, :]) & near_a[:, :, None] & near_b[:, None, :]
    most = np.maximum(near_a.sum(1), near_b.sum(1)).clip(1)
    share: Array = same.any(-1).sum(-1) / most
    return share
