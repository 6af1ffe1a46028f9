"""Modules and networks of tokens: what some tables of a sweep show of them, and blind clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placecell import analysis
from placecell.seeds import numpy_stream
from placecell.study.records import OWN_COMMUNITIES, Array, RunSummary, Summary

Labels = NDArray[np.int64]
MOST_RUNS = 4


@dataclass(frozen=True, eq=False)
class NetworkRun:
    """What the table of one run shows of known modules or networks.

    Attributes
    ----------
    label
        The run's configuration.
    similarity
        Of the table's rows with each other (n n).
    modularity
        Of that similarity, by the known networks.
    attention
        Mean attention between networks, 1 where it is uniform (networks networks); None without
        maps.
    coordinates
        The rows in their first three principal components (n 3).
    explained
        The share of the variance that these have.
    clusters
        The cluster of each token (n), from the similarity alone.
    """

    label: str
    similarity: Array
    modularity: float
    attention: Array | None
    coordinates: Array
    explained: float
    clusters: Labels


@dataclass(frozen=True, eq=False)
class Networks:
    """A few runs of a sweep beside the known networks of their tokens.

    Attributes
    ----------
    word
        What the networks are called, such as `module`.
    labels
        The network of each token (n).
    names
        What each network is called, in the order of their numbers in `labels`.
    places
        The name of each token (n).
    runs
        The runs that are shown.
    title
        What the networks are, as the title of a picture.
    """

    word: str
    labels: Labels
    names: list[str]
    places: list[str]
    runs: list[NetworkRun]
    title: str

    @property
    def partitions(self) -> dict[str, Labels]:
        """Title to the part of each token: the known networks, then each run's clusters."""
        clusters = {f"{run.label}: blind clusters": run.clusters for run in self.runs}
        return {self.title: self.labels} | clusters


def networks(summary: Summary) -> Networks | None:
    """Measure what a few tables show of the known networks.

    Parameters
    ----------
    summary : Summary
        A sweep. A run of its smallest, its best and its largest σ, and of the σ nearest 0.1, is
        shown; or, where σ does not vary alone, of the first configurations that have a table.

    Returns
    -------
    Networks or None
        None for a task that knows of no networks.
    """
    truth = summary.task.truth()
    shown = _runs_to_show(summary)
    if truth is None or truth.partition is None or not shown:
        return None
    labels = truth.labels[truth.partition]
    title = OWN_COMMUNITIES if truth.from_data else f"known {truth.partition}s"
    runs = [_network_run(run, labels) for run in shown]
    name_of = dict(zip(labels.tolist(), truth.named(truth.partition), strict=True))
    names = [name_of[kind] for kind in sorted(name_of)]
    return Networks(truth.partition, labels, names, summary.names, runs, title)


def _runs_to_show(summary: Summary) -> list[RunSummary]:
    curve = summary.sigma_curve()
    if curve:
        near = int(np.argmin([abs(sigma - 0.1) for sigma, _ in curve]))
        places = sorted({0, summary.best_sigma(), near, len(curve) - 1})
        wanted = [curve[i][1] for i in places]
    else:
        wanted = summary.labels
    runs = [next(r for r in summary.runs if r.label == label) for label in wanted]
    return [r for r in runs if r.table is not None and np.ptp(r.table) > 0][:MOST_RUNS]


def _network_run(run: RunSummary, labels: Labels) -> NetworkRun:
    assert run.table is not None
    similarity = analysis.row_similarity(run.table)
    points = analysis.picture(run.table, 3)
    attention = None
    if run.maps is not None:
        attention = analysis.block_means(run.maps.mean(0) * len(labels), labels)
    return NetworkRun(
        run.label,
        similarity,
        analysis.modularity(similarity, labels),
        attention,
        points.coordinates,
        float(points.explained.sum()),
        analysis.louvain(similarity, numpy_stream(0, run.label)),
    )
