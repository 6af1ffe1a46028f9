"""What can be read from a table: a token's row and column, distances on the grid, who is related to whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold

from placecell.analysis.procrustes import standardized
from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import Alignment, IntArray, Symmetries, group_for, match, shuffles
from placecell.errors import InputError

RIDGE = 0.01  # beside rows of mean squared length 1; more would hide part of the 2D sinusoidal table


@dataclass(frozen=True, eq=False)
class Probe:
    """Share of held-out tokens whose label was read correctly, every label weighing the same."""

    accuracy: float
    chance: float  # 1 / number of labels
    null: Array  # (permutations,) accuracies with the rows shuffled
    p: float


@dataclass(frozen=True, eq=False)
class Correlation:
    """A correlation over pairs of tokens, and its Mantel test (`null` empty, `p` NaN without a generator)."""

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
    """Read each token's label from its row, by a ridge regression that has not seen the token.

    With fewer tokens than numbers in a row a linear map fits any labels, so only held-out tokens count. A
    fold holds out one token of each label (as nearly as the labels allow; at most ten folds), which keeps
    the rest balanced: on a random table the accuracy is 1 / labels on average, where leaving out single
    tokens would fall below it. One-hot targets are regressed on the standardized rows with penalty 0.01
    (mean squared row length 1), and the largest wins. Folds are drawn `repeats` times. The null shuffles
    the table's rows under the same folds.
    """
    x = standardized("table", table)
    n = len(x)
    names = np.asarray(labels)
    if names.shape != (n,):
        raise InputError(f"labels: expected one for each of {n} rows, found shape {names.shape}")
    _, label, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(counts) < 2 or counts.min() < 2:
        raise InputError(
            f"labels: expected at least two different, each at least twice, found counts {counts.tolist()}"
        )
    if repeats < 1:
        raise InputError(f"repeats: expected 1 or more, found {repeats}")
    folds = []
    for _ in range(repeats):
        seed = int(rng.integers(2**31))
        splitter = StratifiedKFold(min(int(counts.min()), 10), shuffle=True, random_state=seed)
        folds += list(splitter.split(x, label))
    orders = np.concatenate([np.arange(n)[None], shuffles(n, permutations, rng)])
    chunks = np.array_split(orders, 1 + orders.size * x.shape[1] // 2**22)
    correct = np.concatenate([_held_out(x[chunk] * np.sqrt(n), label, folds) for chunk in chunks]) / repeats
    accuracy: Array = correct @ (1 / (counts[label] * len(counts)))  # (1 + permutations,)
    p = float(permutation_p(accuracy[0], accuracy[1:]))
    return Probe(float(accuracy[0]), 1 / len(counts), accuracy[1:], p)


def distance_correlation(
    table: ArrayLike,  # (n, d)
    coords: ArrayLike,  # (n, c)
    *,
    symmetries: Symmetries | None = None,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Correlation:
    """Spearman's ρ over pairs i < j between ‖tᵢ − tⱼ‖ in the table and ‖xᵢ − xⱼ‖ on the grid, both Euclidean.

    With `symmetries`, ρ is the largest over relabellings of the grid, for the observed table and for the
    shuffled ones of the null alike. A table whose rows are all equally far apart has ρ = 0.
    """
    x, y = finite("table", table, 2), finite("coords", coords, 2)
    _check_tokens(len(x))
    if len(y) != len(x):
        raise InputError(f"coords: expected {len(x)} rows as in the table, found {len(y)}")
    return _mantel(_distance_ranks(x), _distance_ranks(y), symmetries, permutations, rng)


def relation_correlation(
    table: ArrayLike,  # (n, d)
    relation: ArrayLike,  # (n, n) symmetric
    *,
    permutations: int = 1000,
    rng: np.random.Generator | None = None,
) -> Correlation:
    """Pearson's r over pairs i < j between cos(tᵢ − t̄, tⱼ − t̄) and the relation, t̄ being the mean row.

    The mean row is taken away because it is the same everywhere and so says nothing of where a token is.
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
    x: Array,  # (n (n − 1) / 2,) one value for each pair, as scipy's pdist orders them
    y: Array,
    symmetries: Symmetries | None,
    permutations: int,
    rng: np.random.Generator | None,
) -> Correlation:
    """Pearson correlation over pairs; the null relabels the tokens of x, never single pairs."""
    first, second = (squareform(_unit(v))[None] / np.sqrt(2) for v in (x, y))  # each pair is there twice
    n = first.shape[1]
    values, alignment, null = match(first, second, group_for(n, symmetries), shuffles(n, permutations, rng))
    return Correlation(float(values[0]), alignment, null[:, 0], float(permutation_p(values, null)[0]))


def _unit(v: Array) -> Array:
    centred: Array = v - v.mean()
    norm = np.linalg.norm(centred)
    return centred / norm if norm > 1e-12 * np.linalg.norm(v) else np.zeros_like(v)


def _distance_ranks(x: Array) -> Array:
    """Ranks of the distances between rows; equal up to rounding is equal."""
    distance = pdist(x)
    ranks: Array = rankdata(np.round(distance / (distance.max() or 1.0), 12))
    return ranks


def _held_out(x: Array, label: IntArray, folds: list[tuple[IntArray, IntArray]]) -> Array:
    """How often each token's label is right when held out, for tables x (m, n, d): (m, n)."""
    target = np.eye(label.max() + 1)[label]  # (n, labels)
    correct = np.zeros(x.shape[:2])
    for seen, unseen in folds:
        offset = x[:, seen].mean(axis=1, keepdims=True)
        train, test = x[:, seen] - offset, x[:, unseen] - offset
        gram = train @ train.swapaxes(1, 2) + RIDGE * np.eye(len(seen))
        mean = target[seen].mean(axis=0)
        dual = np.linalg.solve(gram, np.broadcast_to(target[seen] - mean, (len(x), *target[seen].shape)))
        scores = mean + test @ (train.swapaxes(1, 2) @ dual)  # (m, unseen, labels)
        correct[:, unseen] += scores.argmax(axis=-1) == label[unseen]
    return correct


def _check_tokens(n: int) -> None:
    if n < 3:
        raise InputError(f"table: expected at least 3 rows, found {n}")
