"""Has a position table structure: similar neighbours, few dimensions, rows never trained?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from placecell.analysis.statistics import Array, finite, permutation_p
from placecell.analysis.symmetry import IntArray
from placecell.errors import InputError

PERMUTATIONS = 999
MOST_ROWS = 512  # more are thinned out to blocks of neighbours
BLOCK = 64
LEAST_EFFECT = 0.05  # similarity of neighbours above that of all pairs
LEAST_DEVIATIONS = 5.0  # the same in standard deviations of the null
LEAST_RANK = 1.5  # largest variance along one direction, relative to shuffled entries
LEAST_TAIL = 8  # rows


@dataclass(frozen=True, eq=False)
class Structure:
    """What `structure` measured.

    Attributes
    ----------
    layout : tuple of int
        (n,) for a sequence, (h, w) for a grid.
    neighbours : float
        Mean cosine of neighbouring rows, the table's mean row taken off.
    effect : float
        `neighbours` minus the mean cosine of all pairs: the effect size.
    deviations : float
        The effect in standard deviations of its null (rows shuffled).
    p : float
        Permutation p-value of the effect: uniform for rows in no order.
    effective_dimension : float
        Participation ratio of the variances along the principal axes.
    rank_excess : float
        The largest of these variances, divided by what shuffled entries have.
    order : float
        For a sequence, rank correlation of the order recovered blindly (second eigenvector of the
        similarities' Laplacian) with the true one, sign taken off.
    position_r2 : float
        Share of the coordinates' variance that a ridge regression on the rows predicts on
        rows left out.
    structured : bool
        Whether the effect is large and sure, or one direction far too strong for random entries.
    """

    layout: tuple[int, ...]
    neighbours: float
    effect: float
    deviations: float
    p: float
    effective_dimension: float
    rank_excess: float
    order: float
    position_r2: float
    structured: bool


def structure(
    table: ArrayLike,
    *,
    rng: np.random.Generator,
    grid: tuple[int, int] | None = None,
    permutations: int = PERMUTATIONS,
) -> Structure:
    """Measure whether a table's rows show where they stand.

    Parameters
    ----------
    table : array of shape (n, d)
        At least three rows.
    rng : numpy.random.Generator
        Source of the shuffles.
    grid : (h, w), optional
        The rows are the cells of a grid, row by row; without it they are a sequence.
    permutations : int
        Number of shuffles of the null.

    Returns
    -------
    Structure

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> structure(rng.normal(size=(64, 32)), rng=rng).structured
    False
    >>> structure(np.cumsum(rng.normal(size=(64, 32)), axis=0), rng=rng).structured
    True
    """
    values = finite("table", table, 2)
    n = len(values)
    if n < 3:
        raise InputError(f"table: expected at least 3 rows, found {n}")
    if grid is not None and grid[0] * grid[1] != n:
        raise InputError(f"grid: expected {n} cells, found {grid[0]} × {grid[1]}")
    layout = (n,) if grid is None else grid
    kept, pairs = _neighbours(layout)
    rows = _unit_rows(values - values.mean(axis=0))[kept]
    cosine = rows @ rows.T
    m = len(rows)
    among_all = float((cosine.sum() - np.trace(cosine)) / (m * (m - 1)))
    neighbours = float(cosine[pairs[:, 0], pairs[:, 1]].mean())
    null = np.empty(permutations)
    for i in range(permutations):
        order = rng.permutation(m)
        null[i] = cosine[order[pairs[:, 0]], order[pairs[:, 1]]].mean()
    effect, spread = neighbours - among_all, float(null.std())
    deviations = effect / spread if spread > 0 else 0.0
    p = float(permutation_p(neighbours, null))
    variances, excess = _spectrum(values, rng)
    total = variances.sum()
    dimension = float(total**2 / (variances**2).sum()) if total > 0 else 0.0
    near = effect >= LEAST_EFFECT and deviations >= LEAST_DEVIATIONS
    return Structure(
        layout=layout,
        neighbours=neighbours,
        effect=effect,
        deviations=deviations,
        p=p,
        effective_dimension=dimension,
        rank_excess=excess,
        order=_recovered_order(cosine) if grid is None else float("nan"),
        position_r2=_position_r2(values[kept], _coordinates(layout)[kept], rng),
        structured=bool(near or (excess >= LEAST_RANK and min(values.shape) >= 16)),
    )


def guess_grid(n: int) -> tuple[int, tuple[int, int]] | None:
    """Return how many rows come before a square grid, and the grid; None if none fits.

    Up to five rows before it (class, distillation and register tokens) are considered, fewest
    first.
    """
    for before in range(6):
        side = int(np.sqrt(n - before)) if n > before else 0
        if side >= 3 and side * side == n - before:
            return before, (side, side)
    return None


def looks_like_grid(table: ArrayLike, grid: tuple[int, int]) -> bool:
    """Whether rows of a table (n, d) one grid row apart are alike, more than rows a little less,
    a little more or half of that apart."""
    values = finite("table", table, 2)
    rows = _unit_rows(values - values.mean(axis=0))
    width = grid[1]

    def at(lag: int) -> float:
        return float((rows[:-lag] * rows[lag:]).sum(axis=1).mean())

    margin = max(0.1, LEAST_DEVIATIONS / np.sqrt(rows.size))
    below = at(width) - max(at(max(width // 2, 1)), 0.0)
    beside = at(width) - max(at(width - 1), at(width + 1))
    return below > margin and beside > 0.02


def spectrum(table: ArrayLike) -> Array:
    """Return the variances of a table (n, d) along its principal axes, as shares, largest first."""
    values = finite("table", table, 2)
    variances = np.linalg.svd(values - values.mean(axis=0), compute_uv=False) ** 2
    shares: Array = variances / (variances.sum() or 1.0)
    return shares


def first_untrained_row(table: ArrayLike) -> int:
    """Find the row from which on a table is as it was drawn: the change point.

    Rows as drawn have independent entries: the cosine of neighbours is N(0, 1/d). Rows before the
    change point may have any mean and variance of it. The most likely change point wins, if it
    beats "all as drawn" and "all trained" by more than its free numbers explain (BIC), the rows
    before it are similar to their neighbours and those after it are not. Where no row is, the
    logarithm of the rows' mean square is looked at in the same way.

    Parameters
    ----------
    table : array of shape (n, d)

    Returns
    -------
    int
        n if every row was trained, 0 if no row was. A tail shorter than eight rows counts as
        trained.
    """
    values = finite("table", table, 2)
    n, d = values.shape
    if not values.any():
        return 0
    if n < 2 * LEAST_TAIL or d < 8:
        return n
    norms = np.sqrt((values**2).sum(axis=1))
    both = np.maximum(norms[:-1] * norms[1:], 1e-300)
    cosine = (values[:-1] * values[1:]).sum(axis=1) / both  # (n - 1,)
    cut = _cut(cosine, 0.0, 1 / d)
    mean = cosine[:cut].mean() if cut else 0.0
    if mean >= LEAST_EFFECT and mean * np.sqrt(cut * d) >= LEAST_DEVIATIONS:
        tail = cosine[cut:]
        as_drawn = len(tail) and abs(tail.mean()) * np.sqrt(len(tail) * d) < LEAST_DEVIATIONS
        return cut + 1 if as_drawn else n
    level = 2 * np.log(np.maximum(norms, norms[norms > 0].min() * 1e-3))
    spread = _spread_of_level(values[norms > 0])
    cut = _cut(level, None, spread)
    if cut and (level[:cut].var() > 4 * spread or cut < n):
        away = abs(level[:cut].mean() - level[cut:].mean()) if cut < n else 0.0
        if level[:cut].var() > 4 * spread or away > LEAST_DEVIATIONS * np.sqrt(spread):
            return cut
    return 0


def _cut(x: Array, mean: float | None, variance: float) -> int:
    """Most likely place from which on values are N(mean, variance); before, any normal."""
    n = len(x)
    scores = np.full(n + 1, -np.inf)
    price = np.log(n)  # BIC of two numbers
    for cut in (0, *range(LEAST_TAIL, n - LEAST_TAIL + 1), n):
        head, tail = x[:cut], x[cut:]
        centre = mean if mean is not None or not len(tail) else float(np.median(tail))
        score = _normal(head, float(head.mean()), max(float(head.var()), 1e-4)) if cut else price
        scores[cut] = score + _normal(tail, centre or 0.0, variance) - price
    return int(scores.argmax())


def _normal(x: Array, mean: float, variance: float) -> float:
    """Log-likelihood of independent normal values; far ones count as four deviations."""
    z = np.minimum((x - mean) ** 2 / variance, 16.0)
    return float(-0.5 * (z + np.log(2 * np.pi * variance)).sum())


def _spread_of_level(values: Array) -> float:
    """Variance of the logarithm of a row's mean square, for the entries' own distribution."""
    last = values[-max(LEAST_TAIL, len(values) // 4) :]
    unit = last / np.sqrt((last**2).mean(axis=1, keepdims=True))
    return max(float((unit**4).mean()) - 1.0, 0.1) / values.shape[1]


def _unit_rows(values: Array) -> Array:
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    rows: Array = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    return rows


def _neighbours(layout: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Rows that are looked at, and pairs of neighbours among them, both as indices."""
    n = int(np.prod(layout))
    kept = np.arange(n)
    if len(layout) == 1:
        if n > MOST_ROWS:
            starts = np.linspace(0, n - BLOCK, MOST_ROWS // BLOCK).astype(int)
            kept = np.unique((starts[:, None] + np.arange(BLOCK)).ravel())
        first = np.flatnonzero(np.diff(kept) == 1)
        return kept, np.stack([first, first + 1], axis=1)
    cells = kept.reshape(layout)
    across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    down = np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)
    return kept, np.concatenate([across, down])


def _coordinates(layout: tuple[int, ...]) -> Array:
    return np.stack(np.unravel_index(np.arange(int(np.prod(layout))), layout), axis=1).astype(float)


def _spectrum(values: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """Variances along the principal axes, and the largest relative to that of shuffled entries."""
    centred = values - values.mean(axis=0)
    if len(centred) > MOST_ROWS:
        centred = centred[np.linspace(0, len(centred) - 1, MOST_ROWS).astype(int)]
    variances = _variances(centred)
    # Rows of different length are not structure: shuffled entries keep their row's length.
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = _unit_rows(centred)
    null = []
    for _ in range(5):
        shuffled = rng.permuted(unit, axis=0)
        null.append(_variances(_unit_rows(shuffled) * lengths)[0])
    typical = float(np.mean(null))
    return variances, float(variances[0] / typical) if typical > 0 else 1.0


def _variances(centred: Array) -> Array:
    small = centred if centred.shape[0] <= centred.shape[1] else centred.T
    eigenvalues = np.linalg.eigvalsh(small @ small.T)[::-1]
    variances: Array = np.maximum(eigenvalues, 0.0)
    return variances


def _recovered_order(cosine: Array) -> float:
    """|Spearman| of the order that the similarities suggest with the true one."""
    weight = np.maximum(cosine, 0.0)
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    _, vectors = np.linalg.eigh(laplacian)
    second = vectors[:, 1]
    if np.ptp(second) < 1e-12:
        return 0.0
    return float(abs(scipy.stats.spearmanr(second, np.arange(len(second))).statistic))


def _position_r2(rows: Array, where: Array, rng: np.random.Generator) -> float:
    """Cross-validated share of variance of the coordinates that the rows predict."""
    n = len(rows)
    rows = rows - rows.mean(axis=0)
    rows = rows / (np.sqrt((rows**2).sum(axis=1).mean()) or 1.0)
    folds = np.array_split(rng.permutation(n), min(5, n))
    error = 0.0
    gram = rows @ rows.T
    centred = where - where.mean(axis=0)
    for fold in folds:
        rest = np.setdiff1d(np.arange(n), fold)
        mean = where[rest].mean(axis=0)
        penalty = 0.01 * np.eye(len(rest))
        dual = np.linalg.solve(gram[np.ix_(rest, rest)] + penalty, where[rest] - mean)
        error += float(((where[fold] - mean - gram[np.ix_(fold, rest)] @ dual) ** 2).sum())
    return 1.0 - error / float((centred**2).sum() or 1.0)
