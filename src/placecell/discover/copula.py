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


def covariance(scores: Array, present: NDArray[np.bool_], weight: Array) -> tuple[Array, float]:
    """Correlations of normal scores, shrunk by Ledoit and Wolf's rule.

    Parameters
    ----------
    scores : array of shape (rows, n)
        Normal scores, 0 where missing.
    present : bool array of shape (rows, n)
        Where a value is known. Pairs of columns use the rows in which both are.
    weight : array of shape (rows,)
        Weights of the rows.

    Returns
    -------
    array of shape (n, n)
        Shrunk covariance of scores scaled to variance 1.
    float
        How much was shrunk, from 0 to 1.
    """
    w = weight[:, None] * present
    mean = (w * scores).sum(0) / w.sum(0).clip(1e-12)
    centred = np.where(present, scores - mean, 0.0)
    spread = np.sqrt((w * centred**2).sum(0) / w.sum(0).clip(1e-12)).clip(1e-9)
    unit = centred / spread
    root = np.sqrt(weight)[:, None]
    together = (root * present).T @ (root * present)
    raw = (root * unit).T @ (root * unit) / together.clip(1e-12)
    shrinkage = float(ledoit_wolf_shrinkage(unit * np.sqrt(weight / weight.mean())[:, None]))
    missing = 1 - float(present.mean())
    shrinkage = min(1.0, max(shrinkage + missing * (1 - shrinkage) * 0.1, 1e-4))
    shrunk = (1 - shrinkage) * raw + shrinkage * np.eye(len(raw))
    if missing:  # correlations from different rows need not fit together
        lengths, axes = np.linalg.eigh(shrunk)
        shrunk = (axes * lengths.clip(1e-4)) @ axes.T
    return shrunk, shrinkage


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
    def fit(cls, coding: Coding, scores: Array, present: NDArray[np.bool_], w: Array) -> Copula:
        shrunk, _ = covariance(scores, present, w)
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
