"""The places of a task by name, and what the tables of a sweep say of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from placecell import analysis
from placecell.store.table import Table
from placecell.study.records import Summary


def place_table(summary: Summary) -> Table:
    """List the places: name, what is known of each, and its nearest place in every table.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Table
        One row a place: `place` (its row in a table, from 0), `name`, its coordinates, its labels
        by name, and for the first run of every configuration with a table the name of the place
        whose row is most similar, with that similarity.
    """
    names, truth = summary.names, summary.truth
    coords = summary.task.places.coords.double().numpy()
    labels = {label: truth.named(label) for label in truth.labels}
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        row: dict[str, Any] = {"place": place, "name": name}
        if truth.spatial:
            row |= {f"coordinate {axis + 1}": float(v) for axis, v in enumerate(coords[place])}
        row |= {label: values[place] for label, values in labels.items()}
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
