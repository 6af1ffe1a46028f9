"""Modules of columns: many partitions, by several read-outs, and what most of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from placecell.discover.layout import nearest

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Partition = tuple[str, float]  # by which read-out, and how fine
Halves = tuple[dict[Partition, IntArray], dict[Partition, IntArray]]  # labels of columns
ROUNDS = 4  # of partitions of all rows: the order in which columns are visited matters
FINENESS = (0.7, 1.0, 1.6, 2.5)  # Louvain's resolution: more makes smaller modules
MODULE_NEAREST = 30  # columns that a column hangs together with; more only take time
LEAST_TRUST = 1e-3
LEAST_AGREED = 0.1  # mean trust below which partitions are chance: all columns are one module


def excess(similarity: Array) -> Array:
    """What two columns have in common beyond what each has in common with all.

    Something that all columns share ties every pair, and modules run together. A column that is
    near to all, on average, is expected to be near to any other by the product of the two averages;
    what is above that is kept.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Symmetric; larger is nearer. Negative values count as 0.

    Returns
    -------
    array of shape (n, n)
        Of each column's nearest thirty, the others are 0.
    """
    s = np.clip(similarity, 0.0, None).astype(float)
    np.fill_diagonal(s, 0.0)
    n = len(s)
    mean = s.sum(1) / max(n - 1, 1)
    if n > 3 and mean.any():  # of three columns, say, too much of an average is the pair itself
        s = (s - np.outer(mean, mean) / mean.mean()).clip(0)
        np.fill_diagonal(s, 0.0)
    kept = np.zeros(s.shape, dtype=bool)
    kept[np.arange(n)[:, None], nearest(s, min(MODULE_NEAREST, n - 1))] = True
    return np.where(kept | kept.T, s, 0.0)


def partitions(
    similarities: Mapping[str, Array], rng: np.random.Generator
) -> dict[Partition, IntArray]:
    """Partition the columns by each similarity, coarsely and finely, by Louvain's method.

    Parameters
    ----------
    similarities : mapping
        Arrays of shape (n, n) by the name of their read-out.
    rng : numpy.random.Generator

    Returns
    -------
    dict
        Labels (n,) by read-out and resolution.
    """
    import networkx as nx  # here, since it takes long to import

    found = {}
    for name, similarity in similarities.items():
        graph = nx.from_numpy_array(excess(similarity))
        for fineness in FINENESS:
            seed = int(rng.integers(2**31))
            labels = np.arange(len(similarity), dtype=np.int64)
            if graph.number_of_edges():  # without any, each column is alone
                parts = nx.community.louvain_communities(graph, resolution=fineness, seed=seed)
                for number, members in enumerate(parts):
                    labels[list(members)] = number
            found[name, fineness] = labels
    return found


def partition_trust(halves: Sequence[Halves]) -> dict[Partition, float]:
    """How far partitions of two halves of the rows agree (adjusted Rand index), in the mean.

    Parameters
    ----------
    halves : sequence
        Partitions of two halves of the rows, for each way to halve them.

    Returns
    -------
    dict
        From 0 to 1, by read-out and resolution. A partition into one part, which always agrees with
        itself, has 0.
    """
    from sklearn.metrics import adjusted_rand_score

    agreed: dict[Partition, list[float]] = {}
    for one, two in halves:
        for name in one:
            trivial = min(len(np.unique(one[name])), len(np.unique(two[name]))) < 2
            value = 0.0 if trivial else float(adjusted_rand_score(one[name], two[name]))
            agreed.setdefault(name, []).append(max(value, 0.0))
    return {name: float(np.mean(values)) for name, values in agreed.items()}


def find_modules(
    similarities: Mapping[str, Array], rng: np.random.Generator, halves: Sequence[Halves] = ()
) -> IntArray:
    """Find modules of the columns, and how many: those that most partitions have in common.

    One partition by one similarity is noisy, and how fine it is is arbitrary. Many are made, by
    each similarity at several resolutions, of all rows and of halves; two columns are as near as
    the share of partitions that put them together, each counted by the square of its trust; and
    columns that are together in half of them or more are joined (average linkage).

    Parameters
    ----------
    similarities : mapping
        Arrays of shape (n, n) by the name of their read-out; symmetric, larger is nearer.
    rng : numpy.random.Generator
    halves : sequence, optional
        Partitions of two halves of the rows, for each way to halve them: they say how far each is
        trusted (see `partition_trust`). None: all count alike. Where they agree on next to nothing,
        as where one thing drives all columns, there are no modules but one.

    Returns
    -------
    int array of shape (n,)
        Modules, numbered from the largest.
    """
    made = [item for _ in range(ROUNDS) for item in partitions(similarities, rng).items()]
    made += [item for pair in halves for half in pair for item in half.items()]
    made = [(key, labels) for key, labels in made if key[0] in similarities]
    trust = partition_trust(halves)
    if trust and np.mean(list(trust.values())) < LEAST_AGREED:
        return np.zeros(len(made[0][1]), dtype=np.int64)
    together, total = np.zeros((len(made[0][1]),) * 2), 0.0
    for key, labels in made:
        weight = max(trust.get(key, 1.0), LEAST_TRUST) ** 2
        together += weight * (labels[:, None] == labels)
        total += weight
    apart = (1 - together / total).clip(0)  # rounding may leave a little below 0
    np.fill_diagonal(apart, 0.0)
    joined = fcluster(linkage(squareform(apart, checks=False), "average"), 0.5, "distance")
    kinds, first, counts = np.unique(joined, return_index=True, return_counts=True)
    order = kinds[np.lexsort((first, -counts))]  # ties by their first member
    place = {int(kind): number for number, kind in enumerate(order)}
    return np.array([place[int(label)] for label in joined], dtype=np.int64)
