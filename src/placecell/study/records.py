"""What was measured of runs: a `RunSummary` for each run, a `Summary` for all runs of a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell import analysis
from placecell.config.labels import flatten
from placecell.store.runs import RunResult
from placecell.store.table import Table
from placecell.study.intervals import interval_table, mean_interval
from placecell.tasks.base import Task, Truth
from placecell.tasks.optional import HasBaselines, place_names

Array = NDArray[np.float64]
OWN_COMMUNITIES = "the communities of the data's own correlations"


@dataclass(frozen=True, eq=False)
class RunSummary:
    """One run's measurements, with the arrays that figures show.

    Attributes
    ----------
    result : RunResult
        The run.
    label : str
        Its configuration.
    values : dict
        Measurements by name.
    notes : dict
        Measurements in words.
    table : ndarray or None
        The learned table (n d).
    maps : ndarray or None
        Attention averaged over samples and heads (layers n n).
    heads : ndarray or None
        Attention averaged over samples (layers h n n).
    snapshots : mapping of int to ndarray
        The table during training (n d), by step.
    """

    result: RunResult
    label: str
    values: dict[str, float]
    notes: dict[str, str]
    table: Array | None
    maps: Array | None
    heads: Array | None = None
    snapshots: Mapping[int, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Summary:
    """A sweep: its runs, what varies in it, and the task that they share.

    Attributes
    ----------
    task : Task
        The task of all runs.
    runs : list of RunSummary
        The runs that were measured.
    keys : list of str
        The settings that labels name.
    left_out : mapping of str to str
        Name of each run that could not be read, to what is wrong with it.
    """

    task: Task
    runs: list[RunSummary]
    keys: list[str]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def baselines(self) -> dict[str, dict[str, float]]:
        """Other methods on the same data, name -> measurements; none where runs have different
        data."""
        same_data = len({one.result.config.data for one in self.runs}) == 1
        return self.task.baselines() if same_data and isinstance(self.task, HasBaselines) else {}

    @property
    def n_places(self) -> int:
        """How many places the task has: the rows of a table, and of an attention map."""
        return len(self.task.places.index)

    @cached_property
    def names(self) -> list[str]:
        """The name of each place (n), the same in every table, figure and page."""
        return place_names(self.task)

    @property
    def truth(self) -> Truth:
        """What is known of the places' arrangement; of a task that knows nothing, no relation."""
        return self.task.truth() or Truth.unknown(self.n_places)

    @property
    def reference(self) -> str:
        """What tables and attention are compared with, in words."""
        return OWN_COMMUNITIES if self.truth.from_data else "the true relation"

    def baseline_headlines(self) -> dict[str, float]:
        """Return the test headline of other methods on the same data.

        Returns
        -------
        dict
            Name of the method to its score; methods without a score are left out.
        """
        name = f"test/{self.task.headline}"
        return {
            label: float(values[name])
            for label, values in self.baselines.items()
            if math.isfinite(values.get(name, math.nan))
        }

    @property
    def labels(self) -> list[str]:
        """The configurations in a readable order: by encoding, then by what varies."""
        order: dict[str, tuple[Any, ...]] = {}
        for one in self.runs:
            config = one.result.config
            flat = flatten(config)
            rank = (config.encoding.name, *(_rank(flat.get(key)) for key in self.keys))
            order.setdefault(one.label, rank)
        return sorted(order, key=lambda name: order[name])

    def values(self, label: str, name: str) -> Array:
        """Return a measurement of one configuration for every seed.

        Parameters
        ----------
        label : str
            The configuration.
        name : str
            Name of the measurement.

        Returns
        -------
        ndarray
            One value for each seed, in the order of seeds; NaN where it was not measured.
        """
        chosen = sorted(
            (r for r in self.runs if r.label == label), key=lambda r: r.result.config.seed
        )
        return np.array([r.values.get(name, np.nan) for r in chosen])

    def interval(self, label: str, name: str) -> analysis.Interval:
        """Average a measurement over seeds, with a bootstrap interval.

        Parameters
        ----------
        label : str
            The configuration.
        name : str
            Name of the measurement.

        Returns
        -------
        analysis.Interval
            NaN if it was never measured.
        """
        return mean_interval(self.values(label, name), label, name)

    def interval_table(self) -> Table:
        """Average every measurement of every configuration over seeds.

        Returns
        -------
        Table
            One row for each configuration and measurement: `label`, `measure`, `seeds`, `mean`,
            `low` and `high`.
        """
        place = {label: number for number, label in enumerate(self.labels)}
        ordered = sorted(self.runs, key=lambda r: (place[r.label], r.result.config.seed))
        return interval_table((run.label, run.values) for run in ordered)

    def sigma_curve(self) -> list[tuple[float, str]]:
        """Return the configurations with a learnable table, in the order of σ.

        Returns
        -------
        list of (float, str)
            Pairs of σ and label; empty if anything besides σ varies.
        """
        sigma_of = {
            r.label: r.result.config.encoding.sigma
            for r in self.runs
            if r.result.config.encoding.name == "learnable"
        }
        curve = sorted((sigma, name) for name, sigma in sigma_of.items() if sigma is not None)
        return curve if len({sigma for sigma, _ in curve}) == len(curve) else []

    def paired(self, labels: Sequence[str], name: str) -> Array:
        """Return a measurement of several configurations, over the seeds that all of them have.

        Parameters
        ----------
        labels : sequence of str
            The configurations.
        name : str
            Name of the measurement.

        Returns
        -------
        ndarray
            Configurations by seeds (c s).
        """
        by_seed = [
            {
                r.result.config.seed: r.values.get(name, np.nan)
                for r in self.runs
                if r.label == label
            }
            for label in labels
        ]
        seeds = sorted(set.intersection(*map(set, by_seed)))
        return np.array([[values[seed] for seed in seeds] for values in by_seed])

    def best_sigma(self) -> int:
        """Return the position of the best headline on the σ curve.

        Returns
        -------
        int
            Index into `sigma_curve()`.
        """
        sign = 1 if more_is_better(self.task) else -1
        name = f"test/{self.task.headline}"
        scores = np.array(
            [sign * self.interval(label, name).estimate for _, label in self.sigma_curve()]
        )
        return int(np.where(np.isnan(scores), -np.inf, scores).argmax())

    def run_table(self) -> Table:
        """Return one row per run: name, label, seed, status, notes and every measurement.

        Returns
        -------
        Table
        """
        rows = []
        for run in self.runs:
            config = run.result.config
            row = {
                "run": config.name,
                "label": run.label,
                "seed": config.seed,
                "status": run.result.status,
            }
            rows.append(row | run.notes | run.values)
        return Table.from_rows(rows)


def more_is_better(task: Task | type[Task]) -> bool:
    """Say whether the headline of a task is a score rather than an error.

    Parameters
    ----------
    task : Task or type[Task]
        The task or its class.

    Returns
    -------
    bool
    """
    return not task.headline_lower_is_better


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, int | float) else (2, str(value))
