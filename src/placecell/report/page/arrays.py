"""The page's tables and attention maps, packed as 16-bit integers in base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell.report import sentences
from placecell.report.page.panels import shown
from placecell.study.records import Array, RunSummary, Summary
from placecell.study.tables import table_course
from placecell.tasks.optional import HasNames

BUDGET = 8_000_000  # bytes of the page for tables, and the same for attention maps
FULL = 32767
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
    """Pack every table over training.

    Tokens are ordered by their first known label, so that those that belong together are
    neighbours.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Principal components and similarities of each run, with labels, edges and a sentence; empty
        if no run has a table.
    """
    truth = summary.truth
    runs = [run for run in summary.runs if run.table is not None and np.ptp(run.table) > 0]
    if not runs:
        return {}
    n = summary.n_places
    steps = max(len(run.snapshots) for run in runs) or 1
    chosen = shown(runs, steps * (n * 3 + n * (n - 1) // 2) * 2 * 4 // 3, BUDGET)
    labels = {name: [_plain(v) for v in values] for name, values in truth.labels.items()}
    edges = np.argwhere(np.triu(truth.relation, 1) > 0)
    return {
        "n": n,
        "spread": SPREAD,
        "labels": labels or {"token": list(range(n))},
        "names": _names(summary),
        "order": _order(summary),
        "edges": edges.tolist() if len(edges) <= 20 * n else [],
        "runs": [_over_training(run, summary) for run in _ordered(chosen, summary)],
        "all": len(chosen) == len(runs),
        "reference": summary.reference,
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
    relation = summary.truth.relation
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
        "names": _names(summary),
        "order": _order(summary),
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
    # tokens drawn with one radius at all steps: the arrangement is the picture, `size` tells how
    # large the table is
    drawn = [p / (np.sqrt((p[:, :2] ** 2).sum(1).mean()) or 1.0) / 4 for p in course.points]
    return {
        "label": run.label,
        "seed": run.result.config.seed,
        "steps": course.steps,
        "points": pack(np.array(drawn), SPREAD),
        "similarity": pack(course.similarity),
        "relation": course.relation,
        "explained": course.explained,
        "size": course.size,
    }


def _order(summary: Summary) -> list[int]:
    """The tokens in the order of the first thing known of them."""
    n = summary.n_places
    first = next(iter(summary.truth.labels.values()), np.arange(n))
    order: list[int] = np.argsort(first, kind="stable").tolist()
    return order


def _names(summary: Summary) -> list[str]:
    """Names of the places, if the task has any."""
    task = summary.task
    return list(task.names()) if isinstance(task, HasNames) else []


def _ordered(runs: Sequence[RunSummary], summary: Summary) -> list[RunSummary]:
    place = {label: i for i, label in enumerate(summary.labels)}
    return sorted(runs, key=lambda run: (place[run.label], run.result.config.seed))


def _plain(value: Any) -> int | str:
    return str(value) if isinstance(value, str) else int(value)
