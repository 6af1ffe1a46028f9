"""Pictures of modules and networks: similarity in their order, attention between them, and where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from placecell import analysis
from placecell.report.summary import RunSummary, Summary
from placecell.seeds import numpy_stream

Array = NDArray[np.float64]
COLOURS = "tab10"


def pictures(summary: Summary) -> dict[str, Figure]:
    """The pictures that a sweep of a task with modules gets beside the others; none for other tasks."""
    truth = summary.task.truth()
    shown = _chosen(summary)
    if truth.partition is None or not shown:
        return {}
    labels = truth.labels[truth.partition]
    found = {"networks": fig_networks(shown, labels, truth.partition)}
    clusters = {
        f"{run.label}: blind clusters": analysis.louvain(analysis.row_similarity(run.table), numpy_stream(0, run.label))
        for run in shown
        if run.table is not None
    }
    drawn = summary.task.draw({f"known {truth.partition}s": labels, **clusters})
    return found if drawn is None else found | {"places": drawn}


def _chosen(summary: Summary) -> list[RunSummary]:
    """A run of the smallest, the best and the largest σ; without a σ curve, of the first tables there are."""
    curve = summary.sigma_curve()
    if curve:
        places = sorted({0, summary.best_sigma(), int(np.argmin([abs(s - 0.1) for s, _ in curve])), len(curve) - 1})
        wanted = [curve[i][1] for i in places]
    else:
        wanted = summary.labels
    runs = [next(r for r in summary.runs if r.label == label) for label in wanted]
    return [r for r in runs if r.table is not None and np.ptp(r.table) > 0][:4]


def fig_networks(runs: list[RunSummary], labels: NDArray[np.int64], word: str) -> Figure:
    """For each run: the similarity of the table's rows in the order of the known networks, attention between
    networks, and the rows in their first three principal components."""
    order = np.argsort(labels, kind="stable")
    figure = Figure(figsize=(3.4 * len(runs), 9.6), layout="constrained")
    for column, run in enumerate(runs):
        assert run.table is not None
        similarity = analysis.row_similarity(run.table)
        axis = figure.add_subplot(3, len(runs), 1 + column)
        _matrix(figure, axis, similarity[np.ix_(order, order)], labels[order])
        q = analysis.modularity(similarity, labels)
        axis.set_title(f"{run.label} (modularity {q:.2f})", fontsize=9)
        axis = figure.add_subplot(3, len(runs), 1 + len(runs) + column)
        if run.maps is not None:
            means = analysis.block_means(run.maps.mean(0) * len(labels), labels)
            image = axis.imshow(means, cmap="magma", vmin=0)
            figure.colorbar(image, ax=axis, shrink=0.7)
        axis.set_xlabel(f"{word} attended to", fontsize=8)
        axis.set_ylabel(f"{word} that attends", fontsize=8)
        axis.set_title("attention, 1 = uniform", fontsize=8)
        solid: Any = figure.add_subplot(3, len(runs), 1 + 2 * len(runs) + column, projection="3d")
        points = analysis.picture(run.table, 3)
        solid.scatter(*points.coordinates.T, c=labels % 10, cmap=COLOURS, vmin=0, vmax=9, s=18, depthshade=False)
        solid.set_title(f"rows in 3D ({points.explained.sum():.0%} of the variance)", fontsize=8)
        for one in (solid.xaxis, solid.yaxis, solid.zaxis):
            one.set_ticklabels([])
    return figure


def _matrix(figure: Figure, axis: Axes, matrix: Array, labels: NDArray[np.int64]) -> None:
    """A matrix whose rows stand in the order of their labels, with a line where one ends."""
    most = float(np.abs(matrix).max()) or 1.0
    image = axis.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
    figure.colorbar(image, ax=axis, shrink=0.7)
    for border in np.flatnonzero(np.diff(labels)) + 0.5:
        axis.axhline(border, color="black", lw=0.6)
        axis.axvline(border, color="black", lw=0.6)
    axis.set_xticks([])
    axis.set_yticks([])
