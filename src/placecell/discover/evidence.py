"""Is there anything? Rows are split once, and the last part answers with a test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
SHARES = (0.6, 0.2, 0.2)  # of rows: to train, to choose, to test
ROUNDING = 1e-5  # nats a value: a gain must be larger, since a model that learned nothing has the
# rounding of its numbers as a gain, about 1e-7, which is the same in every row


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, to choose by, and to test on, as indices."""

    train: IntArray
    valid: IntArray
    test: IntArray


def split_rows(groups: IntArray, rng: np.random.Generator) -> Split:
    """Split rows at random, 60/20/20, with all rows of a group in one part.

    Parameters
    ----------
    groups : int array of shape (rows,)
        The group of each row; at least three different ones.
    rng : numpy.random.Generator

    Returns
    -------
    Split
    """
    names, group, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = rng.permutation(len(names))
    before = np.cumsum(counts[order]) - counts[order] / 2
    part_of = np.empty(len(names), dtype=np.int64)
    part_of[order] = np.digitize(before / counts.sum(), np.cumsum(SHARES)[:2])
    for part in range(3):  # few large groups: a part without any takes one of a part with most
        if not (part_of == part).any():
            most = np.bincount(part_of, minlength=3).argmax()
            part_of[np.flatnonzero(part_of == most)[-1]] = part
    rows = part_of[group]
    return Split(*(np.flatnonzero(rows == part).astype(np.int64) for part in range(3)))


@dataclass(frozen=True)
class Evidence:
    """What columns say about each other on rows untouched by training and choice.

    Attributes
    ----------
    gain : float
        Mean of log p(value | other columns) − log p(value), in nats a value.
    p_value : float
        Of a gain this large if columns say nothing: one-sided t-test over groups of rows.
    units : int
        Number of groups (rows, if there are no groups) of the test.
    """

    gain: float
    p_value: float
    units: int


def gain_test(gains: Array, groups: IntArray, weight: Array) -> Evidence:
    """Test whether the mean gain of rows is above zero, by more than rounding.

    Rows of a group count as one, for they are not independent.

    Parameters
    ----------
    gains : array of shape (rows,)
        The gain of each row.
    groups : int array of shape (rows,)
        The group of each row.
    weight : array of shape (rows,)
        The weight of each row.

    Returns
    -------
    Evidence
        With p = 1 if there are fewer than three groups.
    """
    _, group = np.unique(groups, return_inverse=True)
    heavy = np.bincount(group, weight)
    mean_of = np.bincount(group, weight * gains)[heavy > 0] / heavy[heavy > 0]
    heavy = heavy[heavy > 0]
    gain = float(np.average(mean_of, weights=heavy))
    units = len(mean_of)
    if units < 3:
        return Evidence(gain, 1.0, units)
    share = heavy / heavy.sum()
    error = np.sqrt((share**2 * (mean_of - gain) ** 2).sum() * units / (units - 1))
    if error <= 0:
        return Evidence(gain, 1.0 if gain <= ROUNDING else 0.0, units)
    return Evidence(gain, float(student.sf((gain - ROUNDING) / error, units - 1)), units)
