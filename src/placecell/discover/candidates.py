"""All read-outs of one table, twice over, so that two maps can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.discover.layout import balanced, neighbour_agreement
from placecell.discover.network import Net, Rows
from placecell.discover.prepared import Coded, Prepared
from placecell.discover.readout import (
    ablation,
    correlation,
    mutual_information,
    partial_correlation,
)
from placecell.seeds import torch_stream

Array = NDArray[np.float64]
NET_READOUTS = ("ablation", "signed ablation")


def pairwise_readouts(data: Prepared, coded: Coded) -> dict[str, Array]:
    """Similarities that need no network, by name.

    Parameters
    ----------
    data : Prepared
        A table.
    coded : Coded
        Coding and copula of the same table.

    Returns
    -------
    dict
        Arrays of shape (n, n); larger is nearer.
    """
    bins, scores = coded.coding.encode(data.x)
    here = np.isfinite(data.x)
    partial = partial_correlation(coded.copula)
    return {
        "partial correlation": partial,
        "absolute partial correlation": np.abs(partial),
        "correlation": correlation(data.x),
        "rank correlation": correlation(np.where(here, scores, np.nan)),
        "mutual information": mutual_information(bins),
    }


def consensus(pairwise: Mapping[str, Array], moved: Array | None) -> Array:
    """What several read-outs say together: each scaled by its columns' largest, then added.

    A divergence and an information are squares beside a correlation, so their roots are taken.

    Parameters
    ----------
    pairwise : mapping
        Similarities that need no network, by name.
    moved : array of shape (n, n), optional
        Read-out by ablation; None if there is no network.

    Returns
    -------
    array of shape (n, n)
    """
    parts = [pairwise["partial correlation"], np.sqrt(pairwise["mutual information"])]
    if moved is not None:
        parts.append(np.sqrt(moved))
    return np.mean([balanced(part) for part in parts], axis=0)


def all_readouts(
    pairwise: Mapping[str, Array], of_net: tuple[Array, Array] | None
) -> dict[str, Array]:
    """Pairwise read-outs, those of a network (see `ablation`) if there is one, and a consensus."""
    moved = None if of_net is None else of_net[0]
    named = {} if of_net is None else dict(zip(NET_READOUTS, of_net, strict=True))
    return {**pairwise, **named, "consensus": consensus(pairwise, moved)}


@dataclass(frozen=True, eq=False)
class Candidates:
    """The read-outs among which one is chosen.

    Attributes
    ----------
    on_train : dict
        Each read-out of the training rows.
    first, second : dict
        Each read-out twice, from two halves of the rows, to see on what they agree.
    """

    on_train: dict[str, Array]
    first: dict[str, Array] = field(repr=False)
    second: dict[str, Array] = field(repr=False)

    @classmethod
    def read(
        cls,
        data: Prepared,
        train: Prepared,
        coded: Coded,
        net: Net | None,
        rows: Rows,
        seed: int,
    ) -> Candidates:
        """Read everything that can be read.

        Parameters
        ----------
        data, train : Prepared
            The table, and its training rows.
        coded : Coded
            Coding and copula of the training rows.
        net : Net, optional
            The better network; None if none learned anything.
        rows : Rows
            Training rows for the network.
        seed : int

        Returns
        -------
        Candidates
        """
        halves = [pairwise_readouts(half, Coded.learn(half)) for half in data.halves(seed)]
        pairwise = pairwise_readouts(train, coded)
        if net is None:
            return cls(*(all_readouts(each, None) for each in (pairwise, *halves)))
        order = torch_stream(seed, "halves of rows")
        parts = torch.randperm(len(rows), generator=order).chunk(2)
        one, two = (ablation(net, rows.take(part), seed + k) for k, part in enumerate(parts))
        mean = ((one[0] + two[0]) / 2, (one[1] + two[1]) / 2)
        return cls(
            all_readouts(pairwise, mean),
            all_readouts(halves[0], one),
            all_readouts(halves[1], two),
        )

    def agreement(self, name: str) -> Array:
        """Share of each column's three nearest on which two maps agree (n,)."""
        return neighbour_agreement(self.first[name], self.second[name])
