"""Means with intervals, paired differences, rank correlation over σ, permutation p-values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from placecell.errors import InputError

Array = NDArray[np.float64]
RESAMPLES = 9999


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    estimate : float
    low, high : float
        Ends of the interval.
    level : float
        Confidence level.
    method : str
        How the interval was computed: "BCa", "percentile", "constant" (all values are equal and the
        interval is that value), "too few values" (fewer than three: `low` and `high` are NaN) or
        "undefined" (nothing to estimate: `estimate`, `low` and `high` are NaN).
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class PairedDifference:
    """A mean difference over pairs, with its test.

    Attributes
    ----------
    interval : Interval
        Mean of a − b with its confidence interval.
    p : float
        Two-sided sign-flip p-value of the hypothesis that a and b do not differ.
    """

    interval: Interval
    p: float


def finite(name: str, values: ArrayLike, ndim: int) -> Array:
    """Convert values to a float64 array and check them.

    Parameters
    ----------
    name : str
        What error messages call the values.
    values : array-like
    ndim : int
        Required number of axes.

    Returns
    -------
    array
        Never empty, and with finite entries only; an InputError is raised otherwise.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise InputError(
            f"{name}: expected a non-empty array with {ndim} axes, found shape {array.shape}"
        )
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        raise InputError(
            f"{name}: expected finite numbers, found {bad} NaN or infinite of {array.size}"
        )
    return array


def permutation_p(observed: ArrayLike, null: Array) -> Array:
    """Compute one-sided permutation p-values, (1 + #{null ≥ observed}) / (1 + m).

    Parameters
    ----------
    observed : array of shape (...)
        The observed statistics; larger is more extreme.
    null : array of shape (m, ...)
        The same statistics under the null.

    Returns
    -------
    array of shape (...)
        p-values; NaN if m = 0.

    Examples
    --------
    >>> float(permutation_p(2.0, np.array([0.0, 1.0, 2.0])))
    0.5
    """
    if len(null) == 0:
        return np.full(null.shape[1:], np.nan)
    reached = null >= np.asarray(observed) - 1e-9  # equal up to rounding counts
    p: Array = (1 + reached.sum(axis=0)) / (1 + len(null))
    return p


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, level: float = 0.95
) -> Interval:
    """Compute a mean and its bias-corrected and accelerated (BCa) bootstrap interval.

    If BCa is not defined for the values, the percentile interval is used and `method` says so. With
    very few values any bootstrap interval is too narrow: with five seeds it covers the true mean
    less often than `level` promises.

    Parameters
    ----------
    values : array of shape (m,)
    rng : numpy.random.Generator
        Source of the draws.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    Interval

    Examples
    --------
    >>> bootstrap_interval([0.5, 0.5, 0.5], np.random.default_rng(0))
    Interval(estimate=0.5, low=0.5, high=0.5, level=0.95, method='constant')
    """
    sample = finite("values", values, 1)
    _check_level(level)
    mean = float(sample.mean())
    if len(sample) < 3:
        return Interval(mean, np.nan, np.nan, level, "too few values")
    spread = float(np.ptp(sample))
    if spread <= 1e-12 * np.abs(sample).max():
        return Interval(mean, mean, mean, level, "constant")
    # The interval shifts and scales with the values, and standardised values cannot underflow.
    standard = (sample - mean) / spread
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
            interval = scipy.stats.bootstrap(
                (standard,),
                np.mean,
                n_resamples=RESAMPLES,
                confidence_level=level,
                method=method,
                random_state=rng,
            ).confidence_interval
        if np.isfinite(interval.low) and np.isfinite(interval.high):
            break
    low, high = (mean + spread * float(end) for end in (interval.low, interval.high))
    return Interval(mean, low, high, level, method)


def paired_difference(
    a: ArrayLike, b: ArrayLike, rng: np.random.Generator, level: float = 0.95
) -> PairedDifference:
    """Compute the mean of a − b with its interval and sign-flip p-value.

    If a and b do not differ, the two members of a pair can be swapped. With up to 13 pairs, all
    2**m swaps are tried and p is exact; it cannot be below 2 / 2**m. With more pairs, 9999 random
    swaps are tried.

    Parameters
    ----------
    a, b : array of shape (m,)
        Values paired by position, for example by seed.
    rng : numpy.random.Generator
        Source of the draws.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    PairedDifference
    """
    first, second = finite("a", a, 1), finite("b", b, 1)
    if first.shape != second.shape:
        raise InputError(
            f"b: expected {first.shape[0]} values to pair with a, found {second.shape[0]}"
        )
    interval = bootstrap_interval(first - second, rng, level)
    if len(first) == 1:
        return PairedDifference(interval, 1.0)
    test = scipy.stats.permutation_test(
        (first, second),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        random_state=rng,
    )
    return PairedDifference(interval, float(test.pvalue))


def spearman_interval(
    x_by_seed: ArrayLike, y_by_seed: ArrayLike, rng: np.random.Generator, level: float = 0.95
) -> Interval:
    """Compute Spearman's ρ over σ between two quantities averaged over seeds, with its interval.

    ρ = spearman(mean_k x, mean_k y). The percentile interval comes from drawing whole seeds with
    replacement, so it is about other seeds at the same σ. Draws in which one of the means is the
    same at every σ have no ρ and are left out.

    Parameters
    ----------
    x_by_seed, y_by_seed : array of shape (σ, seeds)
        The two quantities; column k of both belongs to the same seed. At least three σ.
    rng : numpy.random.Generator
        Source of the draws.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    Interval
    """
    x, y = finite("x_by_seed", x_by_seed, 2), finite("y_by_seed", y_by_seed, 2)
    _check_level(level)
    if x.shape != y.shape or len(x) < 3:
        raise InputError(
            "x_by_seed, y_by_seed: expected the same shape (σ, seeds) with at least 3 σ, "
            f"found {x.shape} and {y.shape}"
        )
    seeds = x.shape[1]
    estimate = float(_spearman(x.mean(axis=1), y.mean(axis=1)))
    if not np.isfinite(estimate):
        return Interval(estimate, np.nan, np.nan, level, "undefined")
    if seeds < 3:
        return Interval(estimate, np.nan, np.nan, level, "too few values")
    drawn = rng.integers(seeds, size=(RESAMPLES, seeds))
    draws = _spearman(x[:, drawn].mean(axis=2), y[:, drawn].mean(axis=2))  # (RESAMPLES,)
    low, high = np.quantile(draws[np.isfinite(draws)], [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), level, "percentile")


def _spearman(x: Array, y: Array) -> Array:
    """Rank correlation along the first axis; NaN where one side is constant up to rounding."""
    x, y = (
        scipy.stats.rankdata(np.round(v / (np.abs(v).max() or 1.0), 12), axis=0) for v in (x, y)
    )
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    norm = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    rho: Array = np.where(norm > 0, (x * y).sum(axis=0) / np.where(norm > 0, norm, 1.0), np.nan)
    return rho


def _mean_difference(a: Array, b: Array, axis: int) -> Array:
    mean: Array = (a - b).mean(axis=axis)
    return mean


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level: expected a number between 0 and 1, found {level}")
