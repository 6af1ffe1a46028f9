"""How the places of a task are laid out in pictures, and which tables show that layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from placecell.analysis import recover_order
from placecell.study.records import Array, RunSummary, Summary

MOST_TILES = 100  # places: the small maps of more would be too small to see
SHOWS = 0.05  # a table shows the truth if fewer shuffled tables than this do as well,
LEAST = 0.2  # and if its correlation with the true relation is at least this


@dataclass(frozen=True, eq=False)
class Arrangement:
    """How similarities between places are drawn, by what a task knows of its places.

    Attributes
    ----------
    kind : str
        `grid` (one place at each cell), `order` (along a line or around a circle), `groups`
        (modules or networks), `plane` (scattered in a plane) or `unknown`.
    order : int array of shape (n,)
        The places row by row on the grid, in their order, or group by group; else so that places
        that belong together are near each other.
    shape : tuple of int or None
        Rows and columns of a grid.
    borders : list of int
        How many places come before each new group.
    relation : ndarray
        Which places belong together (n n).
    """

    kind: str
    order: NDArray[np.intp]
    shape: tuple[int, int] | None
    borders: list[int]
    relation: Array

    @cached_property
    def ideal_table(self) -> Array | None:
        """A table that holds the true relation itself (n n); None where nothing is known.

        The row of a place has a 1 for the place and for each that belongs with it.
        """
        return self.relation + np.eye(len(self.relation)) if self.relation.any() else None

    def tiles(self, similarity: Array) -> Array:
        """Lay similarities out as one small map of the grid for each of its cells.

        Parameters
        ----------
        similarity : ndarray
            Of every place with every other (n n).

        Returns
        -------
        ndarray
            The small maps side by side, at the places of their cells, with NaN between them and
            where a place meets itself. Cell (i, j) of the map of cell (r, c) of a grid of h rows
            and w columns is at row r (h + 1) + i and column c (w + 1) + j.
        """
        assert self.shape is not None
        h, w = self.shape
        alike = similarity[np.ix_(self.order, self.order)]
        np.fill_diagonal(alike, np.nan)
        maps = np.full((h, h + 1, w, w + 1), np.nan)
        maps[:, :h, :, :w] = alike.reshape(h, w, h, w).transpose(0, 2, 1, 3)
        return maps.reshape(h * (h + 1), w * (w + 1))[:-1, :-1]


def arrangement(summary: Summary) -> Arrangement:
    """Decide how the places of a sweep are drawn.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Arrangement
    """
    truth, coords = summary.truth, summary.task.places.coords.double().numpy()
    grid = grid_of(coords) if truth.spatial else None
    along = _along(coords) if truth.spatial else None
    as_given = np.arange(len(coords))
    if truth.partition is not None:
        groups = truth.labels[truth.partition]
        order = np.argsort(groups, kind="stable")
        borders = (np.flatnonzero(np.diff(groups[order])) + 1).tolist()
        return Arrangement("groups", order, None, borders, truth.relation)
    if grid is not None and len(coords) <= MOST_TILES:
        return Arrangement("grid", np.argsort(grid[0]), grid[1], [], truth.relation)
    if along is not None:
        return Arrangement("order", np.argsort(along, kind="stable"), None, [], truth.relation)
    kind = "plane" if truth.spatial and coords.shape[1] == 2 else "unknown"
    order = _near(truth.relation) if truth.relation.any() and len(coords) > 2 else as_given
    return Arrangement(kind, order, None, [], truth.relation)


def grid_of(coords: Array) -> tuple[NDArray[np.intp], tuple[int, int]] | None:
    """Find the cell of each place on a grid of two axes.

    Parameters
    ----------
    coords : array of shape (n, c)
        Coordinates of the places.

    Returns
    -------
    cells : int array of shape (n,)
        The cell of each place, counted row by row.
    shape : tuple of int
        Rows and columns.

    None if the places are not one at each cell of a grid.
    """
    if coords.shape[1] != 2 or not np.array_equal(coords, np.round(coords)):
        return None
    places = (coords - coords.min(0)).astype(np.intp)
    rows, columns = (int(most) + 1 for most in places.max(0))
    cells = places[:, 0] * columns + places[:, 1]
    whole = len(cells) == rows * columns and len(np.unique(cells)) == len(cells)
    return (cells, (rows, columns)) if whole and min(rows, columns) > 1 else None


def _along(coords: Array) -> Array | None:
    """Where each place is on a line, or around a circle; None if they are on neither."""
    if coords.shape[1] == 1:
        return coords[:, 0]
    if coords.shape[1] != 2 or len(coords) < 5:  # the corners of a square are a grid
        return None
    x, y = (coords - coords.mean(0)).T
    radius = np.hypot(x, y)
    angle: Array = np.arctan2(y, x)
    return angle if np.ptp(radius) < 1e-3 * radius.max() else None


def _near(relation: Array) -> NDArray[np.intp]:
    """An order in which places that belong together are near each other."""
    line = recover_order(relation + np.eye(len(relation)))
    return np.argsort(line if line[0] <= line[-1] else -line, kind="stable")


def shows_truth(summary: Summary, label: str) -> bool:
    """Say whether the tables of a configuration show the true relation.

    Parameters
    ----------
    summary : Summary
        A sweep.
    label : str
        The configuration.

    Returns
    -------
    bool
        True if their correlation with it is at least 0.2 and fewer than 5 % of tables with shuffled
        rows do as well (means over seeds).
    """
    value = summary.interval(label, "table/relation").estimate
    p = summary.values(label, "table/relation_p")
    return value >= LEAST and bool(np.isfinite(p).any()) and float(np.nanmean(p)) < SHOWS


def contrast(summary: Summary) -> list[RunSummary]:
    """Choose the two tables that pictures show first.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    list of RunSummary
        Of learned tables the σ that is most readable by the task's first measure (if none shows the
        truth, that of the best headline), and the largest (or, if that is it, the smallest); where
        σ does not vary alone, the most readable configuration and the least. Each by the first seed
        that both have, or else its own. Fewer than two if there are not as many tables.
    """
    runs = sorted(summary.runs, key=lambda run: run.result.config.seed)
    runs = [run for run in runs if run.table is not None and np.ptp(run.table) > 0]
    have = {run.label for run in runs}
    curve = [label for _, label in summary.sigma_curve() if label in have]
    labels = curve if len(curve) > 1 else [label for label in summary.labels if label in have]
    if not labels:
        return []
    score = {label: _readable(summary, label) for label in labels}
    first = max(labels, key=lambda label: score[label])
    if len(curve) > 1 and not any(shows_truth(summary, label) for label in curve):
        best = summary.sigma_curve()[summary.best_sigma()][1]
        first = best if best in curve else first
    rest = [label for label in labels if label != first]
    if len(curve) > 1:
        last = rest[-1] if first != curve[-1] else rest[0]
    else:
        last = min(rest, key=lambda label: score[label], default=first)
    of = {label: {r.result.config.seed: r for r in runs if r.label == label} for label in labels}
    shared = next((seed for seed in of[first] if seed in of[last]), -1)  # -1: none, each its own
    return [
        of[label].get(shared) or next(iter(of[label].values()))
        for label in dict.fromkeys((first, last))
    ]


def full_colour(similarity: Array) -> float:
    """Choose the similarity at which a picture of a table reaches its full colours.

    Parameters
    ----------
    similarity : ndarray
        Of every place with every other (n n).

    Returns
    -------
    float
        One that 5 % of the pairs of different places exceed, with either sign.
    """
    above = np.abs(similarity[np.triu_indices(len(similarity), 1)])
    return float(np.quantile(above, 0.95)) or 1.0


def _readable(summary: Summary, label: str) -> float:
    """The task's first measure of tables, of which more is better; −∞ where it was not measured."""
    value = summary.interval(label, summary.task.shown[0]).estimate
    return value if math.isfinite(value) else -math.inf
