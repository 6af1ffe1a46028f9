"""Pictures of modules and networks: similarity of rows, attention between them, rows in 3D."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from placecell.report.figures.rows import (
    GROUP,
    MOST_ROWS,
    group_colours,
    name_groups,
    name_rows,
)
from placecell.report.names import as_drawn, marks, shortened
from placecell.report.sentences import plural
from placecell.study.networks import Labels, Networks, networks
from placecell.study.records import Array, Summary
from placecell.tasks.optional import HasPicture


def pictures(summary: Summary) -> dict[str, Figure]:
    """Draw the pictures of a task with modules.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Figures by name; empty for other tasks.
    """
    shown = networks(summary)
    if shown is None:
        return {}
    pictures = {"networks": fig_networks(shown)}
    if not isinstance(summary.task, HasPicture):
        return pictures
    drawn = summary.task.draw(shown.partitions)
    return pictures if drawn is None else pictures | {"places": drawn}


def fig_networks(shown: Networks) -> Figure:
    """Draw a column for each run.

    The similarity of the table's rows in the order of the networks, attention between networks, and
    the rows in their first three principal components.

    Parameters
    ----------
    shown : Networks
        What was measured of the networks.

    Returns
    -------
    Figure
    """
    word, labels, columns = shown.word, shown.labels, len(shown.runs)
    order, kinds = np.argsort(labels, kind="stable"), np.unique(labels)
    names = [as_drawn(shortened(name, GROUP)) for name in shown.names]
    groups = [shown.names[kind] for kind in np.searchsorted(kinds, labels)]
    figure = Figure(figsize=(3.4 * columns + 0.6, 9.9), layout="constrained")
    for column, run in enumerate(shown.runs):
        axis = figure.add_subplot(3, columns, 1 + column)
        _matrix(figure, axis, run.similarity[np.ix_(order, order)], labels[order])
        if column == 0:
            name_rows(axis, marks(shown.places), order, groups)
        axis.set_title(f"{run.label}\nmodularity {run.modularity:.2f}", fontsize=9)
        axis = figure.add_subplot(3, columns, 1 + columns + column)
        if run.attention is not None:
            image = axis.imshow(run.attention, cmap="magma", vmin=0)
            figure.colorbar(image, ax=axis, shrink=0.7)
        ticks = range(len(kinds)) if len(kinds) <= MOST_ROWS else range(0)
        axis.set_xticks(ticks, names[: len(ticks)], fontsize=6, rotation=90)
        axis.set_yticks(ticks, names[: len(ticks)], fontsize=6)
        axis.set_xlabel(f"{word} attended to", fontsize=8)
        axis.set_ylabel(f"{word} that attends", fontsize=8)
        axis.set_title("attention, 1 = uniform", fontsize=8)
        solid: Any = figure.add_subplot(3, columns, 1 + 2 * columns + column, projection="3d")
        solid.scatter(*run.coordinates.T, **group_colours(labels), s=18, depthshade=False)
        solid.set_title(f"rows in 3D ({run.explained:.0%} of the variance)", fontsize=8)
        for one in (solid.xaxis, solid.yaxis, solid.zaxis):
            one.set_ticklabels([])
    name_groups(figure, labels, groups, plural(word))
    return figure


def _matrix(figure: Figure, axis: Axes, matrix: Array, labels: Labels) -> None:
    """A matrix whose rows stand in the order of their labels, with a line where one ends."""
    most = float(np.abs(matrix).max()) or 1.0
    image = axis.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
    figure.colorbar(image, ax=axis, shrink=0.7)
    for border in np.flatnonzero(np.diff(labels)) + 0.5:
        axis.axhline(border, color="black", lw=0.6)
        axis.axvline(border, color="black", lw=0.6)
    axis.set_xticks([])
    axis.set_yticks([])
