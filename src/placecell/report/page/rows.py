"""Tables of the page with a row for each run, diagnosis or condition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from placecell import tasks
from placecell.report import sentences
from placecell.store.run_set import RunSet, current_status, message_of
from placecell.store.runs import RunResult
from placecell.store.table import Table
from placecell.study.diagnosis import diagnose_summary
from placecell.study.people import beside_people
from placecell.study.records import Summary, more_is_better


def run_rows(
    store: RunSet, runs: Sequence[RunResult], labels: Mapping[str, str], summary: Summary | None
) -> list[dict[str, Any]]:
    """Return one row per run, also for those that cannot be read."""
    name = headline_of(runs[0]) if runs else ""
    place = {label: i for i, label in enumerate(summary.labels if summary else [])}
    order = sorted(
        runs,
        key=lambda r: (place.get(labels[r.config.name], len(place)), r.config.seed),
    )
    readable = [
        {
            "run": r.config.name,
            "configuration": labels[r.config.name],
            "seed": r.config.seed,
            "status": current_status(r.folder, r.status),
            "step": r.step,
            "seconds": f"{r.seconds:.1f}",
            "headline": number(r.final("test", name)),
            "message": message_of(r) if r.status != "done" else "",
        }
        for r in order
    ]
    return readable + [
        {
            "run": run,
            "configuration": "",
            "seed": "",
            "status": "unreadable",
            "step": "",
            "seconds": "",
            "headline": "",
            "message": text,
        }
        for run, text in store.unreadable.items()
    ]


def diagnosis_rows(summary: Summary | None) -> list[dict[str, Any]]:
    """Return one row per configuration and diagnosis, what is not well first."""
    if summary is None:
        return []
    groups: dict[tuple[str, str], list[Any]] = {}
    diagnosed = diagnose_summary(summary.runs, summary.baseline_headlines())
    pairs = zip(summary.runs, diagnosed, strict=True)
    for run, one in sorted(pairs, key=lambda pair: pair[0].result.config.seed):
        groups.setdefault((run.label, one.name), []).append((run.result.config.seed, one))
    place = {label: i for i, label in enumerate(summary.labels)}
    total = Counter(run.label for run in summary.runs)
    rows = []
    for (label, name), same in sorted(
        groups.items(), key=lambda item: (item[1][0][1].healthy, place[item[0][0]])
    ):
        seed, one = same[0]
        seen = f"seed {seed}: {one.seen}" if total[label] > 1 else one.seen
        rows.append(
            {
                "configuration": label,
                "signature": name,
                "runs": f"{len(same)} of {total[label]}",
                "seen": seen,
                "advice": one.advice,
                "healthy": one.healthy,
            }
        )
    return rows


def diagnosis_sentence(rows: Sequence[Mapping[str, Any]], summary: Summary | None) -> str:
    """Count the diagnoses."""
    counts: Counter[str] = Counter()
    for row in rows:
        if not row["healthy"]:
            counts[row["signature"]] += int(row["runs"].split()[0])
    total = len(summary.runs) if summary else 0
    if not counts:
        return f"All {total} finished runs are well by their own numbers."
    said = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    return f"Of {total} finished runs, {sum(counts.values())} did not train as they should: {said}."


def grids(summary: Summary, items: Path | None, human: Path | None) -> list[dict[str, Any]]:
    """Make the tables by condition, and beside people if items are given."""
    headline, groups, up = (
        summary.task.headline,
        list(summary.task.groups),
        more_is_better(summary.task),
    )
    tables = []
    if len(groups) > 1:
        rows: list[dict[str, Any]] = []
        for label in summary.labels:
            means = {g: summary.interval(label, f"test/{headline}/{g}").estimate for g in groups}
            rows.append(
                {
                    "configuration": label,
                    "all": summary.interval(label, f"test/{headline}").estimate,
                }
                | means
            )
        if any(math.isfinite(row[g]) for row in rows for g in groups):
            noun = summary.task.group_noun
            said = sentences.conditions(rows, groups, up, noun)
            tables.append(
                _grid("conditions", f"Test {sentences.metric(headline)} by {noun}", said, rows)
            )
    if items is not None:
        tables.append(_people(summary, items, human))
    return tables


def _people(summary: Summary, items: Path, human: Path | None) -> dict[str, Any]:
    """The best run of each configuration on the items that people solved."""
    scores = beside_people(summary, items, human)
    said = "How people did on these items is not known."
    if scores.known and "all" in scores.people:
        said = (
            f"{scores.above_people} of {len(scores.models)} configurations solve more of these "
            f"items "
            f"than people do ({scores.people['all']:.3f})."
        )
    return _grid("people", "Models beside people", said, scores.table().rows())


def _grid(
    id: str, heading: str, sentence: str, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    columns = Table.from_rows(rows)
    cells = [
        [str(v) if isinstance(v, str) else number(v) for v in row]
        for row in zip(*columns.values(), strict=True)
    ]
    return {
        "id": id,
        "heading": heading,
        "sentence": sentence,
        "notes": [],
        "pictures": [],
        "head": list(columns),
        "rows": cells,
        "columns": columns,
    }


def headline_of(result: RunResult) -> str:
    """Return the name of the headline metric of a run's task."""
    return tasks.load(result.config.task).headline_for(result.config.data)


def number(value: float | None) -> str:
    """Write a number with three decimals."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"
