"""What the page says in words: what is compared, found, run and left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placecell import tasks
from placecell.config.labels import flatten, varying
from placecell.report import sentences
from placecell.report.page.repeat import commands, environments, sweep_toml
from placecell.report.page.rows import diagnosis_rows, diagnosis_sentence, headline_of, run_rows
from placecell.store.run_set import RunSet, current_status
from placecell.store.runs import RunResult
from placecell.store.table import Table
from placecell.study.records import Summary

STATUSES = ("done", "diverged", "failed", "interrupted", "stopped", "running")


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
        name = self.runs[0].config.task if self.runs else "no readable runs"
        task = (tasks.load(name).title if self.runs else "") or name.replace("_", " ")
        return f"{task[:1].upper()}{task[1:]}: what the positions learned"

    def context(self) -> dict[str, Any]:
        """Return all texts and tables by the names that the template uses."""
        diagnoses, runs = self.rows()
        return {
            "lead": self.lead(),
            "found": self.found(),
            "ran": self.ran(),
            "facts": self.facts(),
            "notes": self.notes(),
            "diagnoses": diagnoses,
            "diagnosis_sentence": diagnosis_sentence(diagnoses, self.summary),
            "all_runs": runs,
            "troubles": [row for row in runs if row["status"] != "done"],
            "runs_sentence": self.counts(),
            "headline_name": f"test {sentences.metric(headline_of(self.runs[0]))}"
            if self.runs
            else "score",
            "sweep_toml": sweep_toml(self.runs),
            "commands": commands(self.runs),
            "environments": environments(self.runs),
        }

    def columns(self) -> dict[str, Any]:
        """Return the data of the tables that are not figures."""
        diagnoses, runs = self.rows()
        tables = {"diagnosis": diagnoses, "runs": runs}
        return {name: {"columns": Table.from_rows(rows)} for name, rows in tables.items()}

    def rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the rows of the diagnosis, and those of all runs."""
        runs = run_rows(self.store, self.runs, self.labels, self.summary)
        return diagnosis_rows(self.summary), runs

    def lead(self) -> str:
        """Return the first sentences of the page: what is compared."""
        if self.summary is not None:
            return sentences.compared(self.summary)
        return (
            "No run here is finished, so there is nothing to compare yet."
            if self.runs
            else "No run here can be read."
        )

    def found(self) -> str:
        """Return what the task is, and the finding."""
        if self.summary is None:
            return ""
        return f"The task: {self.task_in_words()} {sentences.headline(self.summary, short=True)}"

    def task_in_words(self) -> str:
        """Return the first sentence of the task's own description."""
        about = tasks.load(self.runs[0].config.task).__doc__ or "not described."
        return " ".join(about.split("\n\n")[0].split())

    def ran(self) -> list[str]:
        """Say what was run."""
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
        """Return the settings that all runs share and a reader asks for first."""
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
        """Say what is left out."""
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
        """Say how many runs ended how."""
        counts = Counter(current_status(r.folder, r.status) for r in self.runs)
        text = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
        if self.store.unreadable:
            text += f"{', ' if text else ''}{len(self.store.unreadable)} unreadable"
        trouble = counts["diverged"] + counts["failed"] + len(self.store.unreadable)
        seconds = sum(r.seconds for r in self.runs)
        ended = f"{trouble} did not end well" if trouble else "Nothing failed"
        return f"{text}. {ended}; {seconds / 60:.1f} minutes of training in all."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
