"""The page's text and tables: runs, diagnoses, conditions, people, environment, how to repeat."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from placecell import tasks
from placecell.config.labels import flatten, varying
from placecell.report import sentences
from placecell.store.run_set import RunSet, current_status, environment_of, message_of
from placecell.store.runs import RunResult
from placecell.store.table import Table
from placecell.study.diagnosis import diagnose_summary
from placecell.study.people import beside_people
from placecell.study.records import Summary, more_is_better

STATUSES = ("done", "diverged", "failed", "interrupted", "stopped", "running")


def headline_of(result: RunResult) -> str:
    """Return the name of the headline metric of a run's task.

    Parameters
    ----------
    result : RunResult
        The run.

    Returns
    -------
    str
    """
    return tasks.load(result.config.task).headline_for(result.config.data)


@dataclass(frozen=True)
class PageText:
    """What the page says in words about some runs.

    Attributes
    ----------
    store : RunSet
        All runs, and those that cannot be read.
    runs : sequence of RunResult
        The runs that are shown.
    labels : mapping of str to str
        Name of a run to the label of its configuration.
    summary : Summary or None
        What was measured; None while no run is finished.
    """

    store: RunSet
    runs: Sequence[RunResult]
    labels: Mapping[str, str]
    summary: Summary | None

    @property
    def title(self) -> str:
        """The title of the page, from the task's name."""
        task = self.runs[0].config.task.replace("_", " ") if self.runs else "no readable runs"
        return f"{task[:1].upper()}{task[1:]}: what the positions learned"

    def context(self) -> dict[str, Any]:
        """Return all texts and tables by the names that the template uses.

        Returns
        -------
        dict
        """
        diagnoses = self.diagnoses()
        runs = self.rows()
        return {
            "lead": self.lead(),
            "found": self.found(),
            "ran": self.ran(),
            "facts": self.facts(),
            "notes": self.notes(),
            "diagnoses": diagnoses,
            "diagnosis_sentence": self.diagnosis_sentence(diagnoses),
            "all_runs": runs,
            "troubles": [row for row in runs if row["status"] != "done"],
            "runs_sentence": self.counts(),
            "headline_name": f"test {headline_of(self.runs[0])}" if self.runs else "headline",
            "sweep_toml": self.sweep_toml(),
            "commands": self.commands(),
            "environments": self.environments(),
        }

    def columns(self) -> dict[str, Any]:
        """Return the data of the tables that are not figures.

        Returns
        -------
        dict
        """
        tables = {"diagnosis": self.diagnoses(), "runs": self.rows()}
        return {name: {"columns": Table.from_rows(rows)} for name, rows in tables.items()}

    def lead(self) -> str:
        """Return the first sentences of the page: what is compared.

        Returns
        -------
        str
        """
        if self.summary is not None:
            return sentences.compared(self.summary)
        return (
            "No run here is finished, so there is nothing to compare yet."
            if self.runs
            else "No run here can be read."
        )

    def found(self) -> str:
        """Return what the task is, and the finding.

        Returns
        -------
        str
            Empty while no run is finished.
        """
        if self.summary is None:
            return ""
        return f"The task: {self.task_in_words()} {sentences.headline(self.summary, short=True)}"

    def task_in_words(self) -> str:
        """Return the first sentence of the task's own description.

        Returns
        -------
        str
        """
        about = tasks.load(self.runs[0].config.task).__doc__ or "not described."
        return " ".join(about.split("\n\n")[0].split())

    def ran(self) -> list[str]:
        """Say what was run.

        Returns
        -------
        list of str
            Sentences.
        """
        if not self.runs:
            return []
        config = self.runs[0].config
        seeds = sorted({r.config.seed for r in self.runs})
        configurations = len(set(self.labels.values()))
        each = Counter(self.labels.values())
        span = (
            str(min(each.values()))
            if min(each.values()) == max(each.values())
            else f"{min(each.values())} to {max(each.values())}"
        )
        plural = "seed" if span == "1" else "seeds"
        return [
            f"{_count(len(self.runs), 'run')} of the task {config.task}: "
            f"{_count(configurations, 'configuration')}, "
            f"{span} {plural} each.",
        ] + (
            []
            if len(seeds) > 2
            else ["Few seeds: differences between configurations are uncertain."]
        )

    def facts(self) -> list[tuple[str, str]]:
        """Return the settings that all runs share and a reader asks for first.

        Returns
        -------
        list of (str, str)
            Pairs of name and value.
        """
        if not self.runs:
            return []
        differ = set(varying([r.config for r in self.runs]))
        flat = flatten(self.runs[0].config)
        asked = [
            k
            for k, v in flat.items()
            if k.startswith("data.") and type(v) is int and "seed" not in k
        ]
        asked += [f"model.{k}" for k in ("width", "depth", "heads", "norm")]
        asked += [f"train.{k}" for k in ("optimizer", "lr", "steps", "batch_size")]
        shared = [
            (k.split(".")[1].replace("_", " "), str(flat[k]))
            for k in asked
            if k in flat and k not in differ
        ]
        changed = [k for k in sorted(differ) if not k.startswith("encoding.")]
        return shared + [(k.split(".")[-1].replace("_", " "), "varies") for k in changed]

    def notes(self) -> list[str]:
        """Say what is left out.

        Returns
        -------
        list of str
            Sentences.
        """
        sentences_below = []
        if self.summary is not None and self.summary.truth.from_data:
            sentences_below.append(
                f"No networks are known here (--networks names them): tables and attention are "
                f"compared with {self.summary.reference}, which is not a known truth."
            )
        donors = len(self.store.results) - len(self.runs)
        if donors:
            sentences_below.append(
                f"{donors} transplanted runs are left out here; `placecell transplant` compares "
                f"them."
            )
        if self.store.unreadable:
            sentences_below.append(
                f"{_count(len(self.store.unreadable), 'run')} could not be read; see the runs "
                f"below."
            )
        return sentences_below

    def counts(self) -> str:
        """Say how many runs ended how.

        Returns
        -------
        str
        """
        counts = Counter(current_status(r.folder, r.status) for r in self.runs)
        text = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
        if self.store.unreadable:
            text += f"{', ' if text else ''}{len(self.store.unreadable)} unreadable"
        trouble = counts["diverged"] + counts["failed"] + len(self.store.unreadable)
        seconds = sum(r.seconds for r in self.runs)
        ended = f"{trouble} did not end well" if trouble else "Nothing failed"
        return f"{text}. {ended}; {seconds / 60:.1f} minutes of training in all."

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run, also for those that cannot be read.

        Returns
        -------
        list of dict
        """
        name = headline_of(self.runs[0]) if self.runs else ""
        place = {label: i for i, label in enumerate(self.summary.labels if self.summary else [])}
        order = sorted(
            self.runs,
            key=lambda r: (place.get(self.labels[r.config.name], len(place)), r.config.seed),
        )
        readable = [
            {
                "run": r.config.name,
                "configuration": self.labels[r.config.name],
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
            for run, text in self.store.unreadable.items()
        ]

    def diagnoses(self) -> list[dict[str, Any]]:
        """Return one row per configuration and diagnosis, what is not well first.

        Returns
        -------
        list of dict
        """
        if self.summary is None:
            return []
        groups: dict[tuple[str, str], list[Any]] = {}
        diagnosed = diagnose_summary(self.summary.runs, self.summary.baseline_headlines())
        pairs = zip(self.summary.runs, diagnosed, strict=True)
        for run, one in sorted(pairs, key=lambda pair: pair[0].result.config.seed):
            groups.setdefault((run.label, one.name), []).append((run.result.config.seed, one))
        place = {label: i for i, label in enumerate(self.summary.labels)}
        total = Counter(run.label for run in self.summary.runs)
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

    def diagnosis_sentence(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Count the diagnoses.

        Parameters
        ----------
        rows : sequence of Mapping[str, Any]
            As `diagnoses` returns them.

        Returns
        -------
        str
        """
        counts: Counter[str] = Counter()
        for row in rows:
            if not row["healthy"]:
                counts[row["signature"]] += int(row["runs"].split()[0])
        total = len(self.summary.runs) if self.summary else 0
        if not counts:
            return f"All {total} finished runs are well by their own numbers."
        said = ", ".join(f"{n} {name}" for name, n in counts.most_common())
        return f"Of {total} finished runs, {sum(counts.values())} show a failure signature: {said}."

    def sweep_toml(self) -> str:
        """Return settings from which `placecell sweep` makes exactly these runs.

        Returns
        -------
        str
            TOML.
        """
        if not self.runs:
            return ""
        differ = varying([r.config for r in self.runs])
        seeds = sorted({r.config.seed for r in self.runs})
        first = replace(self.runs[0].config, seed=0).to_toml().rstrip()
        lines = [first, "", "[sweep]", f"seeds = {seeds[-1] + 1}"]
        grids = []
        for result in self.runs:
            flat = flatten(result.config)
            values = {
                ("encoding" if k == "encoding.name" else k.split(".")[-1]): flat[k]
                for k in differ
                if flat.get(k) is not None
            }
            if values and values not in grids:
                grids.append(values)
        for values in grids:
            lines += [
                "",
                "[[sweep.grid]]",
                *(f"{key} = {_toml(value)}" for key, value in values.items()),
            ]
        return "\n".join(lines) + "\n"

    def commands(self) -> str:
        """Return the commands that repeat runs and page.

        Returns
        -------
        str
        """
        task = self.runs[0].config.task if self.runs else "TASK"
        return (
            f"pip install 'placecell[report]'\nplacecell sweep {task} --config sweep.toml --out "
            f"runs/again\n"
            "placecell report runs/again -o report.html"
        )

    def environments(self) -> list[dict[str, Any]]:
        """Return the machines and packages that the runs used.

        Returns
        -------
        list of dict
            One dict for each different environment, with the number of its runs.
        """
        environments = [
            {k: v for k, v in environment_of(r).items() if k != "attempts"} for r in self.runs
        ]
        counts = Counter(json.dumps(one, sort_keys=True) for one in environments)
        different = []
        for text, count in counts.most_common():
            values = json.loads(text)
            packages = values.pop("packages", {})
            rows = [(k.replace("_", " "), str(v)) for k, v in values.items() if v is not None]
            rows += [(k, str(v)) for k, v in packages.items()] if isinstance(packages, dict) else []
            if rows:
                different.append({"runs": count, "rows": rows})
        return different


def grids(summary: Summary, items: Path | None, human: Path | None) -> list[dict[str, Any]]:
    """Make the tables by condition, and beside people if items are given.

    Parameters
    ----------
    summary : Summary
        A sweep.
    items : Path or None
        A file of items used with people.
    human : Path or None
        A file of people's accuracy on these items.

    Returns
    -------
    list of dict
    """
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
            said = sentences.conditions(rows, groups, up)
            tables.append(_grid("conditions", f"Test {headline} by condition", said, rows))
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


def number(value: float | None) -> str:
    """Write a number with three decimals.

    Parameters
    ----------
    value : float or None
        The number.

    Returns
    -------
    str
        "–" if there is none.
    """
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
