"""Which similarity to trust, decided without any truth: by what nearest columns tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree

from placecell.discover.layout import nearest
from placecell.discover.network import Hidden, Net, Rows, score_rows
from placecell.encodings.positions import Positions

Array = NDArray[np.float64]
Predict = Callable[[Array, Array, Array], Array]
COUNTS = (2, 3, 4)  # how many nearest columns are used
RIDGE = 0.003  # a row's share of the penalty
ALIKE = 15  # rows that are averaged
MOST_RIDGE = 200  # columns that are predicted by regression
NET_ROWS = 48  # on which the network is asked
OWN = {"ablation": 1.0, "consensus": 0.5}  # how much of a read-out is the network's own
LIKE_CORRELATION = ("rank correlation", "mutual information", "usual difference")
FAMILIAR = 1.12  # by which their scores must be larger, if they tell no more than correlation
NO_MORE = 1.01  # times what correlation tells
DOUBT = 2.0  # of what is told, times the root of the number of values that it is measured on
MOST_TRAIN, MOST_VALID, MOST_COLUMNS = 1200, 300, 32  # for the averages, which take time


def informativeness(similarity: Array, train: Array, valid: Array) -> float:
    """How much the nearest columns of a column tell about it, on rows not used before.

    Each column, and its square, are predicted from its nearest two, three and four columns. A
    similarity is good if the nearest columns by it tell much: columns that only look near, by
    chance or through others, do not. There are two predictors, and the better one counts: ridge
    regression on the columns, their squares and products, and the mean of the rows that are most
    alike in these columns, which also finds what no pair of columns shows.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Larger is nearer.
    train, valid : array of shape (rows, n)
        Normal scores of the rows to fit and of the rows to judge on; 0 where missing.

    Returns
    -------
    float
        −½ Σ log(share of variance left) over a column and its square, the mean over columns and
        over the numbers of nearest columns.
    """
    n = len(similarity)
    order = nearest(similarity, min(max(COUNTS), n - 1))
    counts = [count for count in COUNTS if count < n] or [1]
    every = np.linspace(0, n - 1, min(n, MOST_RIDGE)).astype(int)
    some = np.linspace(0, n - 1, min(n, MOST_COLUMNS)).astype(int)
    told = []
    for columns, predict, most in (
        (every, _ridge, (len(train), len(valid))),
        (some, _alike, (MOST_TRAIN, MOST_VALID)),
    ):
        fit, judge = train[: most[0]], valid[: most[1]]
        values = [
            _told(fit[:, i], judge[:, i], predict, fit[:, near], judge[:, near])
            for count in counts
            for i in columns
            for near in [order[i, :count]]
        ]
        told.append(float(np.mean(values)))
    return max(told)


def _told(y: Array, v: Array, predict: Predict, x: Array, w: Array) -> float:
    """−½ Σ log(share of variance left) of a column and its square, on validation rows.

    Where values are tied, all validation rows may be right by chance, so that nothing is left: as
    much as one wrong row is added (times the probability that two rows are tied).
    """
    fit, judge = np.stack([y, y**2], 1), np.stack([v, v**2], 1)
    tied = (np.unique(y, return_counts=True)[1] / len(y)) ** 2
    least = fit.var(0) * (tied.sum() / len(v)) + 1e-12
    left = ((judge - predict(x, fit, w)) ** 2).mean(0) + least
    without = ((judge - fit.mean(0)) ** 2).mean(0) + least
    return float(-0.5 * np.log(left / without).sum())


def _ridge(x: Array, y: Array, w: Array) -> Array:
    """Predictions (rows, 2) at w by ridge regression of y (rows, 2) on x (rows, count)."""
    a, b = _features(x), _features(w)
    count = x.shape[1]
    penalty = RIDGE * len(x) * np.r_[0, np.ones(count), np.full(a.shape[1] - count - 1, 3.0)]
    predicted: Array = b @ np.linalg.solve(a.T @ a + np.diag(penalty + 1e-9), a.T @ y)
    return predicted


def _alike(x: Array, y: Array, w: Array) -> Array:
    """Predictions (rows, 2) at w: means of y over the rows of x that are nearest."""
    count = min(ALIKE, len(x))
    _, rows = KDTree(x).query(w, k=count)
    predicted: Array = y[rows.reshape(len(w), count)].mean(1)
    return predicted


def _features(x: Array) -> Array:
    """1, the columns, their squares and products (rows, f)."""
    i, j = np.triu_indices(x.shape[1])
    return np.concatenate([np.ones((len(x), 1)), x, x[:, i] * x[:, j]], axis=1)


@torch.no_grad()
def told_by_network(similarity: Array, net: Net, rows: Rows) -> float:
    """How much the nearest four columns tell the network about a column, in nats.

    The network sees these four and nothing else. It knows what no pair of columns shows.

    Parameters
    ----------
    similarity : array of shape (n, n)
        Larger is nearer.
    net : Net
        A trained network.
    rows : Rows
        Rows that it was not trained on.

    Returns
    -------
    float
        Mean gain over columns, at most 32 of them, and rows.
    """
    n = len(similarity)
    rows = rows.take(torch.arange(min(len(rows), NET_ROWS)))
    near = nearest(similarity, min(max(COUNTS), n - 1))
    told = []
    for i in np.linspace(0, n - 1, min(n, MOST_COLUMNS)).astype(int):
        hidden = [int(i), *(j for j in range(n) if j != i and j not in set(near[i].tolist()))]
        index = torch.tensor(hidden, device=rows.bins.device).expand(len(rows), -1)
        every = torch.ones_like(index, dtype=torch.bool)
        known = rows.bins.gather(1, index[:, :1]) >= 0
        first = Hidden(index[:, :1], every[:, :1], known)
        said = net(rows, Hidden(index, every, every), Positions.sequence(n))[:, :1]
        gain = score_rows(said, rows, first) - score_rows(net.log_share[index[:, :1]], rows, first)
        told.append(float(gain.mean()))
    return float(np.mean(told))


@dataclass(frozen=True)
class Told:
    """What nearest columns tell, in one way of measuring it.

    Attributes
    ----------
    nats : dict
        What is told, by read-out (see `informativeness` and `told_by_network`).
    values : int
        The number of values on which it was measured.
    weight : float
        How much this way counts.
    """

    nats: dict[str, float]
    values: int
    weight: float = 1.0

    def share_and_loss(self, name: str) -> tuple[float, float]:
        """What is told as a share of the most that any read-out tells, and how much less it is."""
        most, value = max(*self.nats.values(), 0.0), max(self.nats[name], 0.0)
        doubt = DOUBT / math.sqrt(self.values)  # of few values shares are nearly equal
        return (value + doubt) / (most + doubt), most - value


def score_readouts(
    kinds: Sequence[Told], agreement: Mapping[str, float], only_network: float = 0.0
) -> dict[str, float]:
    """Score read-outs by what nearest columns tell and by how far two maps agree.

    Telling much is what makes columns neighbours, but where columns say nearly the same, many
    neighbours tell as much, and noise decides: then the read-out that comes out the same twice is
    the better one. Where only the network finds what columns say about each other, pairs of
    columns have less to say about what is near, however well they agree with themselves.

    Parameters
    ----------
    kinds : sequence of Told
        What is told a regression, and, if there is one, a network.
    agreement : mapping
        Share of nearest columns on which two maps agree, by read-out.
    only_network : float
        Share of the network's gain that the linear model lacks.

    Returns
    -------
    dict
        t⁴ × exp(−lost) × agreement × (1 − only_network² × (1 − own)): t is what is told as a share
        of the largest, and lost is how many nats less it is, both means over the kinds, by their
        weights; own is how much of a read-out is the network's. Read-outs that measure what plain
        correlation does in other ways, and tell no more, must score 12 % more to take its place:
        everybody knows correlation.
    """
    scores, weights = {}, [kind.weight for kind in kinds]
    measured = {
        name: np.average([kind.share_and_loss(name) for kind in kinds], axis=0, weights=weights)
        for name in agreement
    }
    for name, agreed in agreement.items():
        share, lost = measured[name]
        heard = 1 - only_network**2 * (1 - OWN.get(name, 0.0))
        scores[name] = float(share**4 * np.exp(-lost) * agreed * heard)
        if name in LIKE_CORRELATION and "correlation" in measured:
            no_more = share <= NO_MORE * measured["correlation"][0]
            scores[name] /= FAMILIAR if no_more else 1.0
    return scores
