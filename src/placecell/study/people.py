"""Models beside people: the best run of each configuration on items that people worked on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placecell.store.table import Table
from placecell.study.records import Summary, more_is_better
from placecell.tasks.optional import need_items
from placecell.train.run import load_model


@dataclass(frozen=True)
class PeopleComparison:
    """Scores of models, and of people where they are known, on the same items.

    Attributes
    ----------
    people
        Condition (and `all`) to the share of items that people solve; NaN where it is not known.
    models
        One dict per configuration: its name and seed under `configuration`, the share of items
        solved under each condition, and where it is known its rank correlation with people.
    """

    people: dict[str, float]
    models: list[dict[str, Any]]

    @property
    def known(self) -> bool:
        """Whether it is known how people did."""
        return any(math.isfinite(score) for score in self.people.values())

    @property
    def above_people(self) -> int:
        """The number of configurations that solve more of all items than people do."""
        people = self.people.get("all", math.inf)
        return sum(row.get("all", 0.0) > people for row in self.models) if self.known else 0

    def table(self) -> Table:
        """Return one row per configuration, after one row for people if their scores are known.

        Returns
        -------
        Table
        """
        people = [{"configuration": "people"} | self.people] if self.known else []
        return Table.from_rows([*people, *self.models])


def beside_people(summary: Summary, items: Path, human: Path | None = None) -> PeopleComparison:
    """Score the best run of each configuration on the items that people solved.

    Parameters
    ----------
    summary : Summary
        A sweep of a task that has items used with people.
    items : Path
        The file of the items.
    human : Path, optional
        A file of how people did on each item, if there is one.

    Returns
    -------
    PeopleComparison
    """
    name, sign = f"test/{summary.task.headline}", 1 if more_is_better(summary.task) else -1
    models: list[dict[str, Any]] = []
    people: dict[str, float] = {}
    for label in summary.labels:
        same = [
            run
            for run in summary.runs
            if run.label == label and run.result.status == "done" and name in run.values
        ]
        if not same:
            continue
        best = max(same, key=lambda run: sign * run.values[name])
        _, task, model = load_model(best.result.folder)
        scores = need_items(task, items).score_items(model, items, human)
        people = {group: values["people"] for group, values in scores.groups.items()}
        row: dict[str, Any] = {"configuration": f"{label} (seed {best.result.config.seed})"}
        row |= {group: values["model"] for group, values in scores.groups.items()}
        rank = scores.notes.get("rank_correlation_with_people")
        models.append(row if rank is None else row | {"rank correlation with people": float(rank)})
    return PeopleComparison(people, models)
