"""The order of tokens along a line, recovered from a table."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from placecell.analysis.modularity import row_similarity
from placecell.analysis.statistics import Array, finite
from placecell.errors import InputError

POWER = 3  # of the similarities
LEAST = 1e-3  # weight of an edge between rows that are not similar, as a share of the largest


def recover_order(table: ArrayLike) -> Array:
    """Place the rows of a table on a line so that similar rows are near each other.

    This is spectral seriation (Atkins et al. 1998): the Fiedler vector of the graph whose edges are
    the positive similarities (cosine of the centred rows), cubed. Negative ones count as none, and
    the cube keeps the many weak ones, which chance makes, from outweighing the few strong ones: it
    was chosen on bumps along a line at random angles, where it finds the order most often.

    Parameters
    ----------
    table : array of shape (n, d)

    Returns
    -------
    array of shape (n,)
        Where each row lies on the line. Its direction means nothing.

    Examples
    --------
    >>> places = np.array([0.0, 3.0, 1.0, 2.0])
    >>> bumps = np.exp(-((places[:, None] - np.arange(4)) ** 2))
    >>> np.argsort(recover_order(bumps)).tolist() in ([0, 2, 3, 1], [1, 3, 2, 0])
    True
    """
    rows = finite("table", table, 2)
    if len(rows) < 3:
        raise InputError(f"table: expected at least 3 rows, found {len(rows)}")
    similarity = row_similarity(rows)
    positive = np.clip(similarity, 0.0, None) ** POWER
    weights = positive + LEAST * positive.max()  # an edge everywhere: the graph is connected
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    line: Array = np.linalg.eigh(laplacian)[1][:, 1]
    return line


def order_correlation(table: ArrayLike, order: ArrayLike) -> float:
    """Compare the order that a table shows with the true one, up to reversal.

    Parameters
    ----------
    table : array of shape (n, d)
    order : array of shape (n,)
        True position of each row.

    Returns
    -------
    float
        Spearman's ρ between the recovered and the true positions, without its sign. On a random
        table of 24 rows it is 0.17 on average.
    """
    truth = finite("order", order, 1)
    line = recover_order(table)
    if len(truth) != len(line):
        raise InputError(f"order: expected one position for each of {len(line)} rows.")
    return float(abs(scipy.stats.spearmanr(line, truth).statistic))
