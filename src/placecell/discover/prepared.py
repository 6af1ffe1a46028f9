"""A table ready for fitting: its values, its coding, coded rows and new networks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.discover.columns import Coding, IntArray, Ranks, learn_coding, rank_categories
from placecell.discover.copula import Copula
from placecell.discover.network import Net, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Values of a table and how rows are used.

    Attributes
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing. Of a nominal column they are codes of categories.
    weight : array of shape (rows,)
    groups : int array of shape (rows,)
    nominal : bool array of shape (n,), optional
        Which columns have no order. None: all have one.
    """

    x: Array
    weight: Array
    groups: IntArray
    nominal: NDArray[np.bool_] | None = None

    def take(self, rows: IntArray) -> Prepared:
        """Some of the rows."""
        return replace(self, x=self.x[rows], weight=self.weight[rows], groups=self.groups[rows])

    def columns(self, which: IntArray) -> Prepared:
        """Some of the columns."""
        nominal = None if self.nominal is None else self.nominal[which]
        return replace(self, x=self.x[:, which], nominal=nominal)

    def halves(self, seed: int) -> tuple[Prepared, Prepared]:
        """Two parts of the rows, with the rows of a group together."""
        names, group = np.unique(self.groups, return_inverse=True)
        first = np.random.default_rng(seed).permutation(len(names)) < len(names) / 2
        return self.take(np.flatnonzero(first[group])), self.take(np.flatnonzero(~first[group]))


@dataclass(frozen=True, eq=False)
class Coded:
    """An order of categories, a coding and a copula, learned from the same rows."""

    ranks: Ranks
    coding: Coding
    copula: Copula

    @classmethod
    def learn(cls, data: Prepared) -> Coded:
        """Learn all from a table."""
        n = data.x.shape[1]
        nominal = np.zeros(n, dtype=bool) if data.nominal is None else data.nominal
        ranks = Ranks(rank_categories(data.x, nominal))
        x = ranks.apply(data.x)
        coding = learn_coding(x, data.weight)
        _, scores = coding.encode(x)
        copula = Copula.fit(coding, scores, np.isfinite(x), data.weight, data.groups)
        return cls(ranks, coding, copula)

    def encode(self, x: Array) -> tuple[IntArray, Array]:
        """Bins and normal scores (see `Coding.encode`) of values, with codes of categories."""
        return self.coding.encode(self.ranks.apply(x))

    def rows(self, data: Prepared, device: torch.device) -> Rows:
        """Rows of a table, coded, as tensors."""
        bins, scores = self.encode(data.x)
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
