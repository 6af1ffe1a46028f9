"""The page's tables and attention maps, packed as 16-bit integers in base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell import analysis
from placecell.report import sentences
from placecell.report.names import marks
from placecell.report.page.panels import shown
from placecell.study.arrangement import Arrangement, arrangement, full_colour
from placecell.study.records import Array, RunSummary, Summary
from placecell.study.tables import principal_points, table_course

BUDGET = 8_000_000  # bytes of the page for tables, and the same for attention maps
FULL = 32767
VIEWS = {  # in which a table can be shown, first the one that the page opens on
    "grid": ("tiles", "matrix", "points", "space"),
    "order": ("matrix", "points", "space"),
    "groups": ("matrix", "points", "space"),
    "plane": ("points", "space", "matrix"),
    "unknown": ("points", "space", "matrix"),
}
SPREAD = 2.0  # the largest coordinate in a picture, where the mean squared radius is 1/16


def pack(values: Array, most: float = 1.0) -> str:
    """Pack values as little-endian 16-bit integers in base64.

    Parameters
    ----------
    values : ndarray
        Numbers of any shape.
    most : float
        The largest absolute value; larger ones are clipped.

    Returns
    -------
    str
        To be multiplied by most / 32767.
    """
    whole: NDArray[np.int16] = np.round(np.clip(values / most, -1, 1) * FULL).astype("<i2")
    return base64.b64encode(whole.tobytes()).decode()


def tables(summary: Summary) -> dict[str, Any]:
    """Pack every table over training, and the ideal one.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Principal components and similarities of each run and of the ideal, how they are laid out
        and in which ways they can be shown, with labels, names, edges and sentences; empty if no
        run has a table.
    """
    truth = summary.truth
    runs = [run for run in summary.runs if run.table is not None and np.ptp(run.table) > 0]
    if not runs:
        return {}
    n = summary.n_places
    steps = max(len(run.snapshots) for run in runs) or 1
    chosen = shown(runs, steps * (n * 3 + n * (n - 1) // 2) * 2 * 4 // 3, BUDGET)
    labels = {name: truth.named(name) for name in truth.labels}
    edges = np.argwhere(np.triu(truth.relation, 1) > 0)
    how = arrangement(summary)
    return {
        "n": n,
        "spread": SPREAD,
        "labels": labels or {"position": [str(i + 1) for i in range(n)]},
        "names": summary.names,
        "marks": marks(summary.names),
        "views": {view: sentences.reading(summary, view) for view in VIEWS[how.kind]},
        "order": how.order.tolist(),
        "grid": how.shape,
        "borders": how.borders,
        "groups": _groups(how, summary),
        "edges": edges.tolist() if len(edges) <= 20 * n else [],
        "runs": [_over_training(run, summary) for run in _ordered(chosen, summary)],
        "ideal": _ideal(how, summary),
        "all": len(chosen) == len(runs),
        "reference": summary.reference,
        "title": sentences.claim(summary),
        "sentence": sentences.tables(summary),
    }


def attention(summary: Summary) -> dict[str, Any]:
    """Pack every run's attention maps by layer and head, with the ideal map.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Empty if no run has maps.
    """
    runs = [run for run in summary.runs if run.heads is not None]
    if not runs:
        return {}
    how, relation = arrangement(summary), summary.truth.relation
    total = relation.sum(1, keepdims=True)
    ideal = relation / np.where(total > 0, total, 1.0)
    cost = max(run.heads.size for run in runs if run.heads is not None) * 2 * 4 // 3
    chosen = shown(runs, cost, BUDGET)
    packed = []
    for run in _ordered(chosen, summary):
        assert run.heads is not None
        layers, heads = run.heads.shape[:2]
        by_layer = [
            run.values.get(f"attention/relation_layer{i + 1}", float("nan")) for i in range(layers)
        ]
        one = {"label": run.label, "seed": run.result.config.seed, "layers": layers, "heads": heads}
        packed.append(one | {"maps": pack(run.heads), "relation": by_layer})
    return {
        "n": summary.n_places,
        "names": summary.names,
        "marks": marks(summary.names),
        "order": how.order.tolist(),
        "borders": how.borders,
        "groups": _groups(how, summary),
        "ideal": pack(ideal),
        "runs": packed,
        "all": len(chosen) == len(runs),
        "reference": summary.reference,
        "sentence": sentences.attention(summary),
    }


def _over_training(run: RunSummary, summary: Summary) -> dict[str, Any]:
    """A table at every step that was kept, else at the end only."""
    coords = summary.task.places.coords.double().numpy()
    course = table_course(run, coords, summary.truth.relation)
    return {
        "label": run.label,
        "seed": run.result.config.seed,
        "steps": course.steps,
        "points": _points(course.points),
        "similarity": pack(course.similarity),
        "full": full_colour(analysis.row_similarity(run.table)) if run.table is not None else 1.0,
        "relation": course.relation,
        "explained": course.explained,
        "size": course.size,
    }


def _ideal(how: Arrangement, summary: Summary) -> dict[str, Any] | None:
    """The ideal table as points and similarities; None where nothing is known."""
    if how.ideal_table is None:
        return None
    coords = summary.task.places.coords.double().numpy()
    planar = summary.truth.spatial and coords.shape[1] == 2
    points = principal_points(how.ideal_table, coords if planar else None)
    if how.kind == "plane":  # they are where they are
        points = np.pad(coords - coords.mean(0), ((0, 0), (0, 1)))
    above = np.triu_indices(len(coords), 1)
    alike = analysis.row_similarity(how.ideal_table)[above]
    return {"points": _points(points[None]), "similarity": pack(alike)}


def _groups(how: Arrangement, summary: Summary) -> list[str]:
    """The name of each group of places, in the order in which they are drawn."""
    truth = summary.truth
    if truth.partition is None:
        return []
    names = truth.named(truth.partition)
    return [names[how.order[start]] for start in (0, *how.borders)]


def _points(course: Array) -> str:
    """Points over training (s n 3), with one radius at all steps: their arrangement is the
    picture."""
    drawn = [p / (np.sqrt((p[:, :2] ** 2).sum(1).mean()) or 1.0) / 4 for p in course]
    return pack(np.array(drawn), SPREAD)


def _ordered(runs: Sequence[RunSummary], summary: Summary) -> list[RunSummary]:
    place = {label: i for i, label in enumerate(summary.labels)}
    return sorted(runs, key=lambda run: (place[run.label], run.result.config.seed))
