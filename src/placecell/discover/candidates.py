"""All read-outs of one table, twice over, so that two maps can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.discover.layout import balanced, neighbour_agreement
from placecell.discover.modules import Halves, partitions
from placecell.discover.network import Net, Rows
from placecell.discover.prepared import Coded, Prepared
from placecell.discover.readout import (
    ablation,
    correlation,
    mutual_information,
    partial_correlation,
    usual_difference,
)
from placecell.seeds import numpy_stream, torch_stream

Array = NDArray[np.float64]
NET_READOUTS = ("ablation", "signed ablation")
JOINED = ("partial correlation", "mutual information", "ablation")  # in the consensus
SPLITS, FEW_SPLITS = 6, 2  # of the rows into halves, by which agreement is measured
SHRUNK = (0.3, 0.6, 0.8)  # correlations behind the partial ones by which modules are found
MODULE_SPLITS = 3  # of these, by which partitions are trusted
MANY = 160  # columns from which there are few splits, since each takes long


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
    x = coded.ranks.apply(data.x)
    bins, scores = coded.coding.encode(x)
    here = np.isfinite(x)
    partial = partial_correlation(coded.copula)
    return {
        "partial correlation": partial,
        "absolute partial correlation": np.abs(partial),
        "correlation": correlation(x),
        "rank correlation": correlation(np.where(here, scores, np.nan)),
        "mutual information": mutual_information(bins),
        "usual difference": usual_difference(scores, here),
    }


def single_readouts(
    pairwise: Mapping[str, Array], of_net: tuple[Array, Array] | None
) -> dict[str, Array]:
    """Pairwise read-outs and those of a network (see `ablation`), if there is one.

    All are scaled by each column's largest (`balanced`), so that a column which is near to many is
    not the nearest of all of them.
    """
    named = {} if of_net is None else dict(zip(NET_READOUTS, of_net, strict=True))
    return {name: balanced(each) for name, each in {**pairwise, **named}.items()}


def module_readouts(
    pairwise: Mapping[str, Array], coded: Coded, of_net: tuple[Array, Array] | None
) -> dict[str, Array]:
    """The similarities by which modules are found, as they are: not scaled.

    Plain partial correlations keep the nearest relations only, so that modules fall apart, and
    correlations keep what all columns share; shrunk partial correlations lie between the two.
    """
    found = {name: pairwise[name] for name in ("correlation", "mutual information")}
    for s in SHRUNK:
        found[f"partial correlation, shrunk by {s}"] = partial_correlation(coded.copula, s)
    return found if of_net is None else {**found, "ablation": of_net[0]}


def consensus(readouts: Mapping[str, Array], trust: Mapping[str, float]) -> Array:
    """What several read-outs say together: their mean, each with the weight of its trust.

    A divergence and an information are squares beside a correlation, so their roots are taken.

    Parameters
    ----------
    readouts : mapping
        Balanced similarities by name (see `single_readouts`).
    trust : mapping
        How far two maps by each read-out agree, from 0 to 1.

    Returns
    -------
    array of shape (n, n)
    """
    parts = {name: readouts[name] for name in JOINED if name in readouts}
    scaled = [each if "correlation" in name else np.sqrt(each) for name, each in parts.items()]
    weights = np.array([trust[name] for name in parts]) + 1e-6
    return balanced(np.average(scaled, axis=0, weights=weights))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The read-outs among which one is chosen.

    Attributes
    ----------
    on_train : dict
        Each read-out of the training rows.
    agreement : dict
        Share of each column's three nearest on which two maps by a read-out agree (n,), one of
        each half of the rows; the mean over several ways to halve them. That of a network is at
        most that of the pairwise read-out that agrees most, and that of the consensus at most that
        of its parts without the network.
    halves : list
        Partitions into modules of two halves of the rows, for some ways to halve them.
    of_net : tuple, optional
        What a network says of the training rows (see `ablation`).
    """

    on_train: dict[str, Array]
    agreement: dict[str, Array]
    halves: list[Halves]
    of_net: tuple[Array, Array] | None = None

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
        of_net: list[tuple[Array, Array] | None] = [None, None, None]
        if net is not None:
            order = torch_stream(seed, "halves of rows")
            parts = torch.randperm(len(rows), generator=order).chunk(2)
            one, two = (ablation(net, rows.take(part), seed + k) for k, part in enumerate(parts))
            of_net = [((one[0] + two[0]) / 2, (one[1] + two[1]) / 2), one, two]
        pairwise = pairwise_readouts(train, coded)
        whole = single_readouts(pairwise, of_net[0])
        splits = SPLITS if data.x.shape[1] <= MANY else FEW_SPLITS
        halves = [[_of_half(half) for half in data.halves(seed + k)] for k in range(splits)]
        pairs = [
            [single_readouts(half, said) for (half, _), said in zip(both, of_net[1:], strict=True)]
            for both in halves
        ]
        agreement = {
            name: _mean_agreement([(one[name], two[name]) for one, two in pairs]) for name in whole
        }
        trust = {name: float(each.mean()) for name, each in agreement.items()}
        agreement["consensus"] = _mean_agreement(
            [(consensus(one, trust), consensus(two, trust)) for one, two in pairs]
        )
        if net is not None:  # one network read twice agrees with itself more than two would
            most = max(agreement[name].mean() for name in pairwise)
            alone = [[{name: each[name] for name in pairwise} for each in both] for both in pairs]
            joined = _mean_agreement(
                [(consensus(one, trust), consensus(two, trust)) for one, two in alone]
            )
            caps = dict.fromkeys(NET_READOUTS, most) | {"consensus": min(most, joined.mean())}
            for name, cap in caps.items():
                agreement[name] = agreement[name] * min(
                    1.0, cap / agreement[name].mean().clip(1e-9)
                )
        rng = numpy_stream(seed, "partitions")
        by_half = [
            (
                partitions(module_readouts(*one, of_net[1]), rng),
                partitions(module_readouts(*two, of_net[2]), rng),
            )
            for one, two in halves[:MODULE_SPLITS]
        ]
        every = {**whole, "consensus": consensus(whole, trust)}
        return cls(every, agreement, by_half, of_net[0])

    def read_again(
        self, name: str, pairwise: Mapping[str, Array], of_net: tuple[Array, Array] | None
    ) -> Array:
        """One read-out of other rows, with a consensus by the same trust (n, n)."""
        readouts = single_readouts(pairwise, of_net)
        if name != "consensus":
            return readouts[name]
        return consensus(readouts, {k: float(each.mean()) for k, each in self.agreement.items()})


def _of_half(half: Prepared) -> tuple[dict[str, Array], Coded]:
    """Pairwise read-outs of a half of the rows, and its own coding and copula."""
    coded = Coded.learn(half)
    return pairwise_readouts(half, coded), coded


def _mean_agreement(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """Mean of `neighbour_agreement` (n,) over pairs of similarities."""
    mean: Array = np.mean([neighbour_agreement(one, two) for one, two in pairs], axis=0)
    return mean
