"""What a table encodes: a token's row and column, distances on the grid, related tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from placecell.analysis.procrustes import standardized
from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import Alignment, IntArray, Symmetries, group_for, match, shuffles
from placecell.errors import InputError

# Penalty for rows of mean squared length 1; more would hide part of the 2D sinusoidal table.
RIDGE = 0.01


@dataclass(frozen=True, eq=False)
class Probe:
    """Result of `linear_probe`.

    Attributes
    ----------
    accuracy : float
        Balanced accuracy on held-out tokens: every label has the same weight.
    chance : float
        1 / number of labels.
    null : array of shape (permutations,)
        Accuracies with shuffled rows.
    p : float
        Permutation p-value of the accuracy.
    """

    accuracy: float
    chance: float
    null: Array  # (permutations,)
    p: float


@dataclass(frozen=True, eq=False)
class Correlation:
    """A correlation over pairs of tokens, with its Mantel test.

    Attributes
    ----------
    value : float
        The correlation.
    alignment : Alignment
        The relabelling of the reference that was used.
    null : array of shape (permutations,)
        Correlations for shuffled tokens; empty if no generator was given.
    p : float
        Permutation p-value; NaN if no generator was given.
    """

    value: float
    alignment: Alignment
    null: Array  # (permutations,)
    p: float


def linear_probe(
    table: ArrayLike,  # (n, d)
    labels: ArrayLike,  # (n,) for example the row of each cell
    *,
    rng: np.random.Generator,
    permutations: int = 1000,
    repeats: int = 5,
) -> Probe:
    """Predict each token's label from its row by cross-validated ridge regression.

    With fewer tokens than columns a linear map fits any labels, so only held-out tokens count. Each
    fold holds out one token per label (as nearly as the labels allow; at most ten folds), which
    keeps the training tokens balanced: on a random table the accuracy is 1 / labels on average,
    whereas leaving out single tokens would give less. One-hot targets are regressed on the
    standardized rows with penalty 0.01 (mean squared row length 1), and the label with the largest
    output is predicted. The null shuffles the table's rows and uses the same folds.

    Parameters
    ----------
    table : array of shape (n, d)
    labels : array of shape (n,)
        For example the grid row of each cell; every label occurs at least twice.
    rng : numpy.random.Generator
        Source of the folds and the shuffles.
    permutations : int
        Number of draws of the null.
    repeats : int
        How often folds are drawn; accuracies are averaged.

    Returns
    -------
    Probe
    """
    x = standardized("table", table)
    n = len(x)
    names = np.asarray(labels)
    if names.shape != (n,):
        raise InputError(f"labels: expected one for each of {n} rows, found shape {names.shape}")
    _, label, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(counts) < 2 or counts.min() < 2:
        raise InputError(
            f"labels: expected at least two different, each at least twice, "
            f"found counts {counts.tolist()}"
        )
    if repeats < 1:
        raise InputError(f"repeats: expected 1 or more, found {repeats}")
    from sklearn.model_selection import StratifiedKFold  # here: it takes a second

    folds = []
    for _ in range(repeats):
        seed = int(rng.integers(2**31))
        splitter = StratifiedKFold(min(int(counts.min()), 10), shuffle=True, random_state=seed)
        folds += list(splitter.split(x, label))
    orders = np.concatenate([np.arange(n)[None], shuffles(n, permutations, rng)])
    chunks = np.array_split(orders, 1 + orders.size * x.shape[1] // 2**22)
    counted = [_count_correct(x[chunk] * np.sqrt(n), label, folds) for chunk in chunks]
    correct = np.concatenate(counted) / repeats
    accuracy: Array = correct @ (1 / (counts[label] * len(counts)))  # (1 + permutations,)
    p = float(permutation_p(accuracy[0], accuracy[1:]))
    return Probe(float(accuracy[0]), 1 / len(counts), accuracy[1:], p)


def distance_correlation(
    table: ArrayLike,  # (n, d)
    coords: ArrayLike | None = None,  # (n, c)
    *,
    distances: ArrayLike | None = None,  # (n, n)
    symmetries: Symmetries | None = None,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Correlation:
    """Correlate distances between rows of a table with distances between places.

    The value is Spearman's ρ over pairs i < j between ‖tᵢ − tⱼ‖ in the table and ‖xᵢ − xⱼ‖ on the
    grid, both Euclidean. A table whose rows are all equally far apart has ρ = 0.

    Parameters
    ----------
    table : array of shape (n, d)
    coords : array of shape (n, c), optional
        Coordinates of the tokens.
    distances : array of shape (n, n), optional
        Distances between the tokens, instead of their coordinates: lengths of paths, for example.
    symmetries : Symmetries, optional
        Relabellings of the grid. The largest ρ over all of them is taken, for the observed table
        and for the shuffled tables of the null alike.
    permutations : int
        Number of draws of the null.
    rng : numpy.random.Generator, optional
        Source of the shuffles; without it there is no null.

    Returns
    -------
    Correlation

    Examples
    --------
    >>> round(distance_correlation([[0.0], [2.0], [5.0]], [[0], [1], [3]]).value, 6)
    1.0
    """
    x = finite("table", table, 2)
    _check_tokens(len(x))
    if (coords is None) == (distances is None):
        raise InputError("give the coordinates of the tokens, or the distances between them.")
    if coords is not None:
        y = finite("coords", coords, 2)
        if len(y) != len(x):
            raise InputError(f"coords: expected {len(x)} rows as in the table, found {len(y)}")
        apart = _distance_ranks(y)
    else:
        y = finite("distances", np.asarray(distances), 2)
        if y.shape != (len(x), len(x)) or not np.allclose(y, y.T):
            raise InputError(
                f"distances: expected a symmetric matrix {(len(x), len(x))}, found {y.shape}"
            )
        apart = _ranks(y[np.triu_indices(len(y), 1)])
    return _mantel(_distance_ranks(x), apart, symmetries, permutations, rng)


def relation_correlation(
    table: ArrayLike,  # (n, d)
    relation: ArrayLike,  # (n, n) symmetric
    *,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Correlation:
    """Correlate the similarity of rows of a table with a relation between tokens.

    The value is Pearson's r over pairs i < j between cos(tᵢ − t̄, tⱼ − t̄) and the relation, with
    t̄ the mean row. The mean row is subtracted because it is the same for every token and so
    carries no information about where a token is.

    Parameters
    ----------
    table : array of shape (n, d)
    relation : array of shape (n, n)
        Symmetric weights of the relation; the diagonal is ignored.
    permutations : int
        Number of draws of the null.
    rng : numpy.random.Generator, optional
        Source of the shuffles; without it there is no null.

    Returns
    -------
    Correlation
    """
    x, related = standardized("table", table), finite("relation", relation, 2)
    n = len(x)
    _check_tokens(n)
    if related.shape != (n, n) or not np.allclose(related, related.T):
        raise InputError(f"relation: expected a symmetric matrix {(n, n)}, found {related.shape}")
    length = np.linalg.norm(x, axis=1, keepdims=True)
    unit = x / np.where(length > 1e-12, length, 1.0)
    pairs = np.triu_indices(n, 1)
    return _mantel((unit @ unit.T)[pairs], related[pairs], None, permutations, rng)


def _mantel(
    x: Array,  # (n (n − 1) / 2,) one value per pair, in the order of scipy's pdist
    y: Array,
    symmetries: Symmetries | None,
    permutations: int,
    rng: np.random.Generator | None,
) -> Correlation:
    """Pearson correlation over pairs; the null relabels the tokens of x, not individual pairs."""
    # Divided by √2 because a square matrix holds each pair twice.
    first, second = (scipy.spatial.distance.squareform(_unit(v))[None] / np.sqrt(2) for v in (x, y))
    n = first.shape[1]
    group, orders = group_for(n, symmetries), shuffles(n, permutations, rng)
    values, alignment, null = match(first, second, group, orders)
    p = float(permutation_p(values, null)[0])
    return Correlation(float(values[0]), alignment, null[:, 0], p)


def _unit(v: Array) -> Array:
    """Centre a vector and scale it to norm 1; a constant vector becomes zero."""
    centred: Array = v - v.mean()
    norm = np.linalg.norm(centred)
    return centred / norm if norm > 1e-12 * np.linalg.norm(v) else np.zeros_like(v)


def _distance_ranks(x: Array) -> Array:
    """Ranks of the distances between rows; distances equal up to rounding are ties."""
    return _ranks(scipy.spatial.distance.pdist(x))


def _ranks(distance: Array) -> Array:
    ranks: Array = scipy.stats.rankdata(np.round(distance / (distance.max() or 1.0), 12))
    return ranks


def _count_correct(x: Array, label: IntArray, folds: list[tuple[IntArray, IntArray]]) -> Array:
    """Count correct held-out predictions of each token (m, n), for tables x (m, n, d)."""
    target = np.eye(label.max() + 1)[label]  # (n, labels)
    correct = np.zeros(x.shape[:2])
    for train_rows, test_rows in folds:
        offset = x[:, train_rows].mean(axis=1, keepdims=True)
        train, test = x[:, train_rows] - offset, x[:, test_rows] - offset
        gram = train @ train.swapaxes(1, 2) + RIDGE * np.eye(len(train_rows))
        mean = target[train_rows].mean(axis=0)
        centred = target[train_rows] - mean
        dual = np.linalg.solve(gram, np.broadcast_to(centred, (len(x), *centred.shape)))
        scores = mean + test @ (train.swapaxes(1, 2) @ dual)  # (m, test_rows, labels)
        correct[:, test_rows] += scores.argmax(axis=-1) == label[test_rows]
    return correct


def _check_tokens(n: int) -> None:
    if n < 3:
        raise InputError(f"table: expected at least 3 rows, found {n}")
