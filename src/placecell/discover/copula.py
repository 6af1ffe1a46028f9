"""The linear base: a Gaussian copula, and what it predicts from any set of visible columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf_shrinkage
from torch import Tensor

from placecell.discover.columns import Coding

Array = NDArray[np.float64]
LEAST = 1e-7  # probability: a bin is never impossible
MANY = 0.25  # columns for each row, above which shrinkage is chosen by prediction
MORE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FOLDS = 3  # of the rows, for that


def covariance(
    scores: Array,
    present: NDArray[np.bool_],
    weight: Array,
    groups: NDArray[np.int64] | None = None,
) -> tuple[Array, float]:
    """Correlations of normal scores, shrunk by Ledoit and Wolf's rule, or more.

    The rule makes correlations right in the mean. Where columns are many for the rows it leaves far
    too much for prediction; there, more is tried, and what predicts rows left out best is taken.

    Parameters
    ----------
    scores : array of shape (rows, n)
        Normal scores, 0 where missing.
    present : bool array of shape (rows, n)
        Where a value is known. Pairs of columns use the rows in which both are.
    weight : array of shape (rows,)
        Weights of the rows.
    groups : int array of shape (rows,), optional
        Rows of a group are left out together. None: each row is alone.

    Returns
    -------
    array of shape (n, n)
        Shrunk covariance of scores scaled to variance 1.
    float
        How much was shrunk, from 0 to 1.
    """
    raw, unit = _correlations(scores, present, weight)
    shrinkage = float(ledoit_wolf_shrinkage(unit * np.sqrt(weight / weight.mean())[:, None]))
    missing = 1 - float(present.mean())
    shrinkage = min(1.0, max(shrinkage + missing * (1 - shrinkage) * 0.1, 1e-4))
    if scores.shape[1] > MANY * len(scores):
        alone = np.arange(len(scores)) if groups is None else groups
        shrinkage = _that_predicts(scores, present, weight, alone, shrinkage)
    shrunk = (1 - shrinkage) * raw + shrinkage * np.eye(len(raw))
    if missing:  # correlations from different rows need not fit together
        lengths, axes = np.linalg.eigh(shrunk)
        shrunk = (axes * lengths.clip(1e-4)) @ axes.T
    return shrunk, shrinkage


def _correlations(scores: Array, present: NDArray[np.bool_], weight: Array) -> tuple[Array, Array]:
    """Correlations (n, n) of scores, and the scores at mean 0 and variance 1 (rows, n)."""
    w = weight[:, None] * present
    mean = (w * scores).sum(0) / w.sum(0).clip(1e-12)
    centred = np.where(present, scores - mean, 0.0)
    spread = np.sqrt((w * centred**2).sum(0) / w.sum(0).clip(1e-12)).clip(1e-9)
    unit = centred / spread
    root = np.sqrt(weight)[:, None]
    together = (root * present).T @ (root * present)
    return (root * unit).T @ (root * unit) / together.clip(1e-12), unit


def _that_predicts(
    scores: Array,
    present: NDArray[np.bool_],
    weight: Array,
    groups: NDArray[np.int64],
    least: float,
) -> float:
    """The shrinkage, `least` or more, by which each column is predicted best from all others."""
    tried = np.unique([least, *(s for s in MORE if s > least)])
    names, group = np.unique(groups, return_inverse=True)
    fold = np.random.default_rng(0).permutation(len(names))[group] % FOLDS
    told = np.zeros(len(tried))
    for part in np.unique(fold):
        fit, judge = fold != part, fold == part
        if len(np.unique(fold)) < 2 or not weight[fit].any():
            return least
        raw, _ = _correlations(scores[fit], present[fit], weight[fit])
        z = _correlations(scores[judge], present[judge], weight[judge])[1]
        lengths, axes = np.linalg.eigh(raw)
        for k, s in enumerate(tried):
            inverse = 1 / ((1 - s) * lengths + s).clip(1e-4)
            own = (axes**2 @ inverse)[None]  # of the precision, 1 / variance left
            missed = ((z @ axes) * inverse) @ axes.T / own
            told[k] += (weight[judge] @ (np.log(own) - own * missed**2)).mean()
    return float(tried[told.argmax()])


@dataclass(frozen=True, eq=False)
class Copula:
    """A Gaussian copula of the columns.

    Attributes
    ----------
    precision : Tensor
        Inverse of the shrunk correlations of normal scores (n n), float64.
    spread : Tensor
        Standard deviation of each column's scores (n), below 1 where values are tied.
    edges : Tensor
        Where bins begin and end, in normal scores (n bins + 1).
    """

    precision: Tensor
    spread: Tensor
    edges: Tensor

    @classmethod
    def fit(
        cls,
        coding: Coding,
        scores: Array,
        present: NDArray[np.bool_],
        w: Array,
        groups: NDArray[np.int64] | None = None,
    ) -> Copula:
        shrunk, _ = covariance(scores, present, w, groups)
        counts = (w[:, None] * present).sum(0).clip(1e-12)
        spread = np.sqrt((w[:, None] * present * scores**2).sum(0) / counts).clip(1e-3, 1.0)
        as_tensor = torch.from_numpy
        return cls(
            as_tensor(np.linalg.inv(shrunk)), as_tensor(spread), as_tensor(coding.edges.copy())
        )

    def to(self, device: torch.device) -> Copula:
        """The same on another device."""
        return Copula(*(part.to(device) for part in vars(self).values()))

    def logits(self, scores: Tensor, hidden: Tensor, real: Tensor) -> Tensor:
        """Log-probabilities of the bins of hidden columns, given all that are visible.

        Parameters
        ----------
        scores : Tensor
            Normal scores (b n); those of hidden columns are not used.
        hidden : Tensor
            Which columns are hidden, as indices (b m).
        real : Tensor
            Boolean (b m): False for a place of `hidden` that only fills the row up.

        Returns
        -------
        Tensor
            Log-probabilities (b m bins), float32.
        """
        rows = torch.arange(len(scores), device=scores.device)[:, None]
        z = scores.double() / self.spread
        seen = torch.ones_like(z)
        seen[rows, torch.where(real, hidden, hidden[:, :1])] = 0.0
        pairs = self.precision[hidden[:, :, None], hidden[:, None, :]]
        both = real[:, :, None] & real[:, None, :]
        eye = torch.eye(hidden.shape[1], dtype=pairs.dtype, device=pairs.device)
        pairs = torch.where(both, pairs, eye)
        pull = -((z * seen) @ self.precision).gather(1, hidden) * real
        root = torch.linalg.cholesky(pairs)
        mean = torch.cholesky_solve(pull[..., None], root)[..., 0]
        variance = torch.cholesky_inverse(root).diagonal(dim1=1, dim2=2)
        spread = self.spread[hidden]
        # scores of tied values vary less than the normal variable behind them
        deviation = (variance * spread**2 + 1 - spread**2).clamp(min=1e-6).sqrt()
        return bin_log_probabilities(mean * spread, deviation, self.edges[hidden])


def bin_log_probabilities(mean: Tensor, deviation: Tensor, edges: Tensor) -> Tensor:
    """Log-probabilities (... bins) of normal variables (...), by edges (... bins + 1)."""
    below = torch.special.ndtr((edges - mean[..., None]) / deviation[..., None])
    share = below.diff(dim=-1)
    return (share.clamp(min=0) + LEAST).log().float()
