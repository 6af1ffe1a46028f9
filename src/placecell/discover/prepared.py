"""A table ready for fitting: its values, its coding, coded rows and new networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.discover.columns import Coding, IntArray, learn_coding
from placecell.discover.copula import Copula
from placecell.discover.network import Net, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Values of a table and how rows are used.

    Attributes
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing.
    weight : array of shape (rows,)
    groups : int array of shape (rows,)
    """

    x: Array
    weight: Array
    groups: IntArray

    def take(self, rows: IntArray) -> Prepared:
        """Some of the rows."""
        return Prepared(self.x[rows], self.weight[rows], self.groups[rows])

    def columns(self, which: IntArray) -> Prepared:
        """Some of the columns."""
        return Prepared(self.x[:, which], self.weight, self.groups)

    def halves(self, seed: int) -> tuple[Prepared, Prepared]:
        """Two parts of the rows, with the rows of a group together."""
        names, group = np.unique(self.groups, return_inverse=True)
        first = np.random.default_rng(seed).permutation(len(names)) < len(names) / 2
        return self.take(np.flatnonzero(first[group])), self.take(np.flatnonzero(~first[group]))


@dataclass(frozen=True, eq=False)
class Coded:
    """A coding and a copula, learned from the same rows."""

    coding: Coding
    copula: Copula

    @classmethod
    def learn(cls, data: Prepared) -> Coded:
        """Learn both from a table."""
        coding = learn_coding(data.x, data.weight)
        _, scores = coding.encode(data.x)
        return cls(coding, Copula.fit(coding, scores, np.isfinite(data.x), data.weight))

    def rows(self, data: Prepared, device: torch.device) -> Rows:
        """Rows of a table, coded, as tensors."""
        bins, scores = self.coding.encode(data.x)
        return Rows(
            torch.from_numpy(bins).to(device),
            torch.from_numpy(scores).float().to(device),
            torch.from_numpy(data.weight / data.weight.mean()).float().to(device),
        )

    def net(self, based: bool, seed: int, device: torch.device) -> Net:
        """A new network, on the linear base or alone."""
        log_share = torch.from_numpy(self.coding.log_share).float().clamp(min=-16).to(device)
        copula = self.copula.to(device) if based else None
        return Net(self.coding.n_columns, log_share, copula).reset_parameters(seed).to(device)
