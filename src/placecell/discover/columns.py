"""What the columns of a table are: their kinds, and values as bins and as normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
N_BINS = 8  # most bins of a column; eight made the best maps of those tried
AVERAGE_ROWS = 5  # by which the mean of a category is drawn towards that of all rows
ORDERED, NOMINAL = "ordered", "nominal"


@dataclass(frozen=True, eq=False)
class Coding:
    """How values become bins and normal scores, learned from some rows.

    A column with few different values has a bin for each; another has bins of about equal counts.
    The normal score of a value is the normal quantile of its mid-rank, so that it does not depend
    on units, outliers or monotone transforms.

    Attributes
    ----------
    values : list of array
        The different values of each column, in order (of a nominal column: as ranked by `ranks`).
    scores : list of array
        The normal score of each of these values.
    bins : list of array
        The bin of each of these values.
    edges : array of shape (n, N_BINS + 1)
        Where bins begin and end, in normal scores; bins that a column lacks are empty.
    log_share : array of shape (n, N_BINS)
        Log of the share of rows in each bin; −inf for a bin that a column lacks.
    """

    values: list[Array]
    scores: list[Array]
    bins: list[IntArray]
    edges: Array
    log_share: Array

    @property
    def n_columns(self) -> int:
        """Number of columns n."""
        return len(self.values)

    def encode(self, x: Array) -> tuple[IntArray, Array]:
        """Return bins and normal scores.

        Parameters
        ----------
        x : array of shape (rows, n)
            Values; NaN is missing.

        Returns
        -------
        bins : int array of shape (rows, n)
            The bin of each value; −1 where it is missing or a category never seen.
        scores : array of shape (rows, n)
            Normal scores; 0, the middle, where missing.
        """
        bins = np.full(x.shape, -1, dtype=np.int64)
        scores = np.zeros(x.shape)
        for i, known in enumerate(self.values):
            here = np.isfinite(x[:, i])
            place = np.searchsorted(known, x[here, i]).clip(0, len(known) - 1)
            before = (place - 1).clip(0)
            # a value between two known ones counts as the nearer one
            value = x[here, i] / 2  # halves, so that the difference of huge values is finite
            nearer = np.abs(value - known[before] / 2) < np.abs(value - known[place] / 2)
            place = np.where(nearer, before, place)
            bins[here, i] = self.bins[i][place]
            scores[here, i] = self.scores[i][place]
        return bins, scores


def learn_coding(x: Array, weight: Array | None = None) -> Coding:
    """Learn the coding of columns from rows.

    Parameters
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing. A column without any has one bin, of which nothing is known.
    weight : array of shape (rows,), optional
        Weight of each row.

    Returns
    -------
    Coding
    """
    weight = np.ones(len(x)) if weight is None else weight
    n = x.shape[1]
    values, scores, bins = [], [], []
    edges = np.full((n, N_BINS + 1), np.inf)
    log_share = np.full((n, N_BINS), -np.inf)
    for i in range(n):
        here = np.isfinite(x[:, i])
        known, which = np.unique(x[here, i], return_inverse=True)
        if not len(known):  # a part of the rows may lack every value of a column
            known = np.zeros(1)
        mass = np.bincount(which, weight[here], minlength=len(known)) + 1e-12
        share = mass / mass.sum()
        middle = np.cumsum(share) - share / 2
        place = np.arange(len(known)) if len(known) <= N_BINS else (N_BINS * middle).astype(int)
        place = np.unique(place.clip(0, N_BINS - 1), return_inverse=True)[1]
        count = np.bincount(place, mass)
        used = len(count)
        log_share[i, :used] = np.log(count / count.sum())
        edges[i, 0] = -np.inf
        edges[i, 1:used] = ndtri(np.cumsum(np.bincount(place, share))[:-1].clip(1e-6, 1 - 1e-6))
        values.append(known)
        scores.append(ndtri(middle))
        bins.append(place.astype(np.int64))
    return Coding(values, scores, bins, edges, log_share)


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank of each category of nominal columns (n, most); NaN for ordered columns, and for
    categories that were never seen."""

    ranks: Array

    def apply(self, x: Array) -> Array:
        """Values (rows, n) with codes of categories replaced by their ranks."""
        x = x.copy()
        for i in np.flatnonzero(np.isfinite(self.ranks).any(axis=1)):
            here = np.isfinite(x[:, i])
            code = x[here, i].astype(int)
            known = code < self.ranks.shape[1]
            x[here, i] = np.where(known, self.ranks[i, np.where(known, code, 0)], np.nan)
        return x


def rank_categories(x: Array, nominal: Sequence[bool] | NDArray[Any]) -> Array:
    """Replace the codes of nominal columns by ranks that follow the other columns.

    The categories of a nominal column have no order. They get the one in which the mean of the
    table's first principal component (of the other columns, by ranks) rises, so that the linear
    part of the model has something to work with. The mean of a rare category, which is mostly
    chance, counts as if some rows of it were average.

    Parameters
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing. They must not be rows of a test: the order follows them.
    nominal : bool array of shape (n,)
        Which columns have no order.

    Returns
    -------
    array of shape (n_columns, most)
        Of each column, the rank of each category; NaN where there is none, and for ordered columns.
    """
    nominal = np.asarray(nominal, dtype=bool)
    if not (nominal & np.isfinite(x).any(axis=0)).any():
        return np.full((x.shape[1], 0), np.nan)
    most = int(np.nanmax(x[:, nominal])) + 1
    ranks = np.full((x.shape[1], most), np.nan)
    _, scores = learn_coding(x).encode(x)
    scores = scores - scores.mean(0)
    products = scores.T @ scores
    for i in np.flatnonzero(nominal):
        others = np.flatnonzero(np.arange(x.shape[1]) != i)
        axis = np.linalg.eigh(products[np.ix_(others, others)])[1][:, -1:]
        axis = axis * np.where(axis.sum() < 0, -1, 1)  # so that two columns are ranked one way
        along = (scores[:, others] @ axis).sum(1)  # of one column alone: 0
        here = np.isfinite(x[:, i])
        code = x[here, i].astype(int)
        count = np.bincount(code, minlength=most)
        mean = np.bincount(code, along[here], minlength=most) / (count + AVERAGE_ROWS)
        seen = np.flatnonzero(count)
        ranks[i, seen[np.argsort(mean[seen], kind="stable")]] = np.arange(len(seen))
    return ranks
