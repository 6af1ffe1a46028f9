"""Similarity tiles: for each token, a small map of how similar its row is to all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from placecell import analysis
from placecell.study.records import Array, RunSummary, Summary

MOST_TILES = 100  # tokens: more tiles would be too small to see
INCH = 0.62  # of one tile


def pictures(summary: Summary) -> dict[str, Figure]:
    """Draw the tiles of a sweep whose places are the cells of a grid.

    Parameters
    ----------
    summary : Summary

    Returns
    -------
    dict
        The figure as `tiles`; empty if the places are not a whole grid, or no run has a table.
    """
    grid = grid_of(summary.task.places.coords.double().numpy())
    shown = _runs_to_show(summary)
    if grid is None or len(grid[0]) > MOST_TILES or not shown or not summary.truth.spatial:
        return {}
    return {"tiles": fig_tiles(shown, *grid)}


def grid_of(coords: Array) -> tuple[Array, tuple[int, int]] | None:
    """Find the cell of each token on a grid of two axes.

    Parameters
    ----------
    coords : array of shape (n, c)
        Coordinates of the tokens.

    Returns
    -------
    cells : int array of shape (n,)
        The cell of each token, counted row by row.
    shape : tuple of int
        Rows and columns.

    None if the tokens are not one at each cell of a grid.
    """
    if coords.shape[1] != 2 or not np.array_equal(coords, np.round(coords)):
        return None
    places = (coords - coords.min(0)).astype(int)
    rows, columns = (int(most) + 1 for most in places.max(0))
    cells = places[:, 0] * columns + places[:, 1]
    whole = len(cells) == rows * columns and len(np.unique(cells)) == len(cells)
    return (cells, (rows, columns)) if whole and min(rows, columns) > 1 else None


def fig_tiles(shown: list[RunSummary], cells: Array, shape: tuple[int, int]) -> Figure:
    """Draw, side by side for each run, the tiles of all tokens at their places on the grid.

    Tile (r, c) is a map of the grid: the similarity (cosine of the centred rows) of the token at
    row r and column c to every other token; the token itself is left blank. All tiles share one
    colour scale.

    Parameters
    ----------
    shown : list of RunSummary
        Runs with a table (n, d).
    cells : int array of shape (n,)
        The cell of each token, counted row by row.
    shape : tuple of int
        Rows and columns of the grid.

    Returns
    -------
    Figure
    """
    rows, columns = shape
    at = np.argsort(cells)  # cell -> token
    tiles = [_similarities(run)[np.ix_(at, at)].reshape(-1, rows, columns) for run in shown]
    most = max(float(np.nanmax(np.abs(tile))) for tile in tiles)
    width = INCH * columns * len(shown) + 1.2
    figure = Figure(figsize=(width, INCH * rows + 0.9), layout="constrained")
    ratios = [*[INCH * columns] * len(shown), 1.0]  # the last part is the scale's
    every: Any = figure.subfigures(1, len(ratios), wspace=0.04, width_ratios=ratios)
    *parts, last = every
    image: Any = None
    for part, run, maps in zip(parts, shown, tiles, strict=True):
        part.suptitle(run.label, fontsize=10)
        axes = np.atleast_1d(part.subplots(rows, columns)).flatten()
        for axis, tile in zip(axes, maps, strict=True):
            image = axis.imshow(tile, cmap="RdBu_r", vmin=-most, vmax=most)
            axis.set_xticks([])
            axis.set_yticks([])
    bar = figure.colorbar(image, cax=last.add_axes((0.1, 0.15, 0.2, 0.7)))
    bar.set_label("similarity of the rows", fontsize=8)
    return figure


def _similarities(run: RunSummary) -> Array:
    assert run.table is not None
    similarity = analysis.row_similarity(run.table)
    np.fill_diagonal(similarity, np.nan)  # of a row with itself: left blank
    return similarity


def _runs_to_show(summary: Summary) -> list[RunSummary]:
    """A run of the σ nearest 0.1 and one of the largest; without a curve, of the first tables."""
    curve = summary.sigma_curve()
    wanted = summary.labels
    if curve:
        small = min(curve, key=lambda one: abs(one[0] - 0.1))
        wanted = list(dict.fromkeys((small[1], curve[-1][1])))
    runs = [next(r for r in summary.runs if r.label == label) for label in wanted]
    return [r for r in runs if r.table is not None and np.ptp(r.table) > 0][:2]
