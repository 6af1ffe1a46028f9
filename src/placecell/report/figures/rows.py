"""Names beside the rows of a matrix of places, and of the colours of their groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from placecell.report.names import as_drawn, shortened

MOST_ROWS = 30  # of more, only the groups are named
GROUP = 18  # letters of a group's name at most
COLOURS = "tab10"
KINDS = 10  # colours that it has


def name_rows(
    axis: Axes, marks: Sequence[str], order: NDArray[np.intp], groups: Sequence[str] | None = None
) -> None:
    """Write beside each row of a matrix which place it is, or beside many rows which group.

    Parameters
    ----------
    axis : Axes
        Where the matrix is drawn.
    marks : sequence of str
        A short name for each place (n).
    order : ndarray
        The place of each row (n).
    groups : sequence of str, optional
        The group of each place (n), if rows of one group stand together.
    """
    if len(order) <= MOST_ROWS:
        names = [as_drawn(marks[place]) for place in order]
        axis.set_yticks(range(len(order)), names, fontsize=5)
    elif groups is not None:
        in_order = np.array([groups[place] for place in order])
        ends = np.flatnonzero(np.append(in_order[1:] != in_order[:-1], True))
        starts = np.append(0, ends[:-1] + 1)
        names = [as_drawn(shortened(str(name), GROUP)) for name in in_order[ends]]
        axis.set_yticks((starts + ends) / 2, names, fontsize=6)
    else:
        axis.set_yticks([])
    axis.tick_params(axis="y", length=0, pad=1)


def group_colours(labels: NDArray[np.int64]) -> dict[str, Any]:
    """Return how matplotlib's `scatter` colours places by group, in all figures alike.

    Parameters
    ----------
    labels : ndarray
        The group of each place (n).

    Returns
    -------
    dict
        Arguments by name.
    """
    return {"c": labels % KINDS, "cmap": COLOURS, "vmin": 0, "vmax": KINDS - 1}


def name_groups(
    figure: Figure, labels: NDArray[np.int64], groups: Sequence[str], title: str
) -> None:
    """Say below a figure which colour stands for which group, if each has one of its own.

    Parameters
    ----------
    figure : Figure
        The figure; its layout is constrained.
    labels : ndarray
        The group of each place (n).
    groups : sequence of str
        Its name (n).
    title : str
        What the groups are.
    """
    names = dict(zip(labels.tolist(), groups, strict=True))
    if len({kind % KINDS for kind in names}) < len(names):
        return
    shades = colormaps[COLOURS]
    spots = [
        Line2D([], [], marker="o", ls="", color=shades(kind % KINDS), label=as_drawn(name))
        for kind, name in ((kind, shortened(names[kind], GROUP)) for kind in sorted(names))
    ]
    look: dict[str, Any] = {"ncols": 5, "fontsize": 8, "title": as_drawn(title)}
    figure.legend(handles=spots, loc="outside lower center", **look)
