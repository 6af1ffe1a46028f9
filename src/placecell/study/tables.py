"""A table over training: where its tokens lie, and how far it shows the true relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placecell import analysis
from placecell.errors import InputError
from placecell.study.records import Array, RunSummary


@dataclass(frozen=True, eq=False)
class TableCourse:
    """One run's table at every step that was kept (s of them).

    Attributes
    ----------
    steps
        The steps.
    points
        Where the tokens lie in the plane and space of most variance (s n 3).
    similarity
        Cosine of every pair of centred rows, above the diagonal (s pairs).
    relation
        Correlation with the true relation; NaN where it cannot be computed.
    explained
        The share of the variance in the plane.
    size
        The root mean square of the table's values.
    """

    steps: list[int]
    points: Array
    similarity: Array
    relation: list[float]
    explained: list[float]
    size: list[float]


def table_course(run: RunSummary, coords: Array, relation: Array) -> TableCourse:
    """Measure a run's table over training, or at its end if no others were kept.

    Parameters
    ----------
    run : RunSummary
        A run that has a table (n d).
    coords : ndarray
        Where the tokens are (n c). If c is 2, tables are rotated to match these; otherwise to match
        the last table.
    relation : ndarray
        Which tokens belong together (n n).

    Returns
    -------
    TableCourse
    """
    tables = _kept(run)
    last = list(tables.values())[-1]
    layout = coords if coords.shape[1] == 2 else principal_points(last, None)[:, :2]
    above = np.triu_indices(len(last), 1)
    points, similarity, correlation, explained, size = [], [], [], [], []
    for table in tables.values():
        points.append(principal_points(table, layout))
        rows = table - table.mean(0)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        similarity.append((rows @ rows.T)[above])
        correlation.append(_relation(table, relation))
        explained.append(float(analysis.picture(table, min(2, *table.shape)).explained.sum()))
        size.append(float(np.sqrt((table**2).mean())))
    return TableCourse(
        list(tables), np.array(points), np.array(similarity), correlation, explained, size
    )


def principal_points(table: Array, layout: Array | None) -> Array:
    """Project a table onto its first three principal components.

    Parameters
    ----------
    table : ndarray
        The table (n d).
    layout : ndarray or None
        Points (n 2) that the first two components are rotated to match; None leaves them.

    Returns
    -------
    ndarray
        Coordinates (n 3).
    """
    dims = min(3, *table.shape)
    points = analysis.picture(table, dims).coordinates
    points = np.pad(points, ((0, 0), (0, 3 - dims)))
    if layout is not None and dims >= 2:
        points[:, :2] = analysis.picture(table, 2, align_to=layout).coordinates
    return points


def _kept(run: RunSummary) -> Mapping[int, Array]:
    assert run.table is not None
    usable = {
        step: table
        for step, table in run.snapshots.items()
        if np.isfinite(table).all() and np.ptp(table) > 0
    }
    return usable or {run.result.step: run.table}


def _relation(table: Array, relation: Array) -> float:
    try:
        return analysis.relation_correlation(table, relation).value
    except InputError:
        return float("nan")
