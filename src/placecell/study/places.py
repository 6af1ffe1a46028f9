"""The places of a task by name, and what the tables of a sweep say of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from placecell import analysis
from placecell.errors import InputError
from placecell.store.table import Table
from placecell.study.records import Summary
from placecell.tasks.optional import HasNames


def place_table(summary: Summary) -> Table:
    """List the places: name, what is known of each, and its nearest place in every table.

    Parameters
    ----------
    summary : Summary
        A sweep of a task whose places have names.

    Returns
    -------
    Table
        One row a place: `place` (its number), `name`, its coordinates, its labels, and for the
        first run of every configuration with a table the name of the place whose row is most
        similar, with that similarity.
    """
    task = summary.task
    if not isinstance(task, HasNames):
        raise InputError("the places of this task have no names.")
    names, coords = task.names(), task.places.coords.double().numpy()
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        row: dict[str, Any] = {"place": place, "name": name}
        if summary.truth.spatial:
            row |= {f"coordinate {axis + 1}": float(v) for axis, v in enumerate(coords[place])}
        row |= {label: int(values[place]) for label, values in summary.truth.labels.items()}
        rows.append(row)
    for label in summary.labels:
        run = next(r for r in summary.runs if r.label == label)
        if run.table is None or np.ptp(run.table) == 0:
            continue
        similarity = analysis.row_similarity(run.table)
        np.fill_diagonal(similarity, -np.inf)
        for row, nearest in zip(rows, similarity.argmax(axis=1), strict=True):
            row[f"nearest, {label}"] = names[nearest]
            row[f"similarity, {label}"] = float(similarity[row["place"], nearest])
    return Table.from_rows(rows)
