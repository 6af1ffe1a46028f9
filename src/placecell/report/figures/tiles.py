"""The picture: for each place of a grid, a small map of how alike its row is to all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure

from placecell import analysis
from placecell.report import sentences
from placecell.study.arrangement import Arrangement, arrangement, contrast, full_colour
from placecell.study.records import Array, RunSummary, Summary

BLUE, ORANGE = ("#2462ab", "#5c97d3"), ("#ef8a54", "#cc4410")
COLOURS = LinearSegmentedColormap.from_list("alike", [*BLUE, "#f6f6f6", *ORANGE])
OWN = "#22303c"  # the place that a small map belongs to
READING = (
    "Each small map belongs to one position of the grid (dark square). It shows how alike the "
    "table's row\nfor this position is to its rows for all others: orange alike, blue unlike."
)


def fig_tiles(summary: Summary) -> Figure | None:
    """Draw the most readable table, that of the largest σ and the ideal, on one colour scale.

    Small map (r, c) shows the similarity (cosine of the centred rows) of the place at row r and
    column c to every other place. The ideal is a table that holds the true relation itself.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None if the places are not a whole grid, or no run has a table.
    """
    how, runs = arrangement(summary), contrast(summary)
    if how.shape is None or not runs:
        return None
    shown = [(_about(run, summary), _similarity(run.table)) for run in runs]
    if how.ideal_table is not None:
        words = f"the ideal:\nalike if they {summary.truth.together}"
        shown.append((words, _similarity(how.ideal_table)))
    most = max(full_colour(_similarity(run.table)) for run in runs)
    rows, columns = how.shape
    figure = Figure(figsize=(3.2 * len(shown) + 1, 2.9 * rows / columns + 1.45))
    figure.set_layout_engine("constrained", wspace=0.08)
    axes = np.atleast_1d(figure.subplots(1, len(shown)))
    image: Any = None
    for axis, (title, values) in zip(axes, shown, strict=True):
        image = _draw(axis, how, values, most)
        axis.set_title(title, fontsize=9.5)
    label = "similarity of the rows"
    figure.colorbar(image, ax=axes.tolist(), shrink=0.8, aspect=25, extend="both", label=label)
    figure.suptitle(sentences.claim(summary), fontsize=14, fontweight="bold")
    figure.supxlabel(READING, fontsize=9.5)
    return figure


def _draw(axis: Axes, how: Arrangement, similarity: Array, most: float) -> Any:
    assert how.shape is not None
    tiles, (h, w) = how.tiles(similarity), how.shape
    own = np.full(tiles.shape, np.nan)
    for row, column in np.ndindex(h, w):
        own[row * (h + 1) + row, column * (w + 1) + column] = 1.0
    image = axis.imshow(tiles, cmap=COLOURS, vmin=-most, vmax=most)
    axis.imshow(own, cmap=ListedColormap([OWN]))
    axis.set_axis_off()
    return image


def _about(run: RunSummary, summary: Summary) -> str:
    headline = run.values.get(f"test/{summary.task.headline}", np.nan)
    relation = run.values.get("table/relation", np.nan)
    sigma = run.result.config.encoding.sigma
    curve = run.label in {label for _, label in summary.sigma_curve()}
    name = f"learned from σ = {sigma:g}" if curve else run.label
    ideal = f"correlation with the ideal {relation:.2f}\n" if np.isfinite(relation) else ""
    return f"{name}\n{ideal}test {summary.task.headline} {headline:.3f}"


def _similarity(table: Array | None) -> Array:
    assert table is not None
    return analysis.row_similarity(table)
