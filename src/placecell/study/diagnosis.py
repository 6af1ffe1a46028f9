"""What went wrong in runs, by the signatures of `analysis.diagnosis`, and what to try next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from placecell import analysis
from placecell.analysis import Diagnosis, Numbers, map_consistency
from placecell.analysis.diagnosis import MOVED
from placecell.config import RunConfig
from placecell.config.labels import label, varying
from placecell.errors import InputError
from placecell.store import RunSet, Store, Table
from placecell.store.runs import ENDED, RunResult, load_result
from placecell.study.records import RunSummary, more_is_better
from placecell.study.summary import chance, map_sample, passes, read_run, table_moved
from placecell.tasks.base import Examples, Task
from placecell.tasks.optional import HasBaselineScores
from placecell.train.run import load_model, load_snapshots, make_task

if TYPE_CHECKING:
    import pandas as pd

HEALTHY = "diagnosis: no sign of trouble"


class RunDiagnosis(NamedTuple):
    """The diagnosis of one run, with the label of its configuration, its name and its seed."""

    label: str
    diagnosis: Diagnosis
    run: str
    seed: int


class Diagnoses(list[RunDiagnosis]):
    """The diagnosis of each run.

    `print(diagnoses)` names what is not well, as `placecell sweep` does at its end.
    """

    @property
    def table(self) -> Table:
        """One row per run: label, seed, diagnosis, the numbers that show it, what to try."""
        return Table.from_rows(
            {
                "run": one.run,
                "label": one.label,
                "seed": one.seed,
                "diagnosis": one.diagnosis.name,
                "healthy": one.diagnosis.healthy,
                "seen": one.diagnosis.seen,
                "advice": one.diagnosis.advice,
            }
            for one in self
        )

    def grouped(self, labels: Mapping[str, str]) -> Diagnoses:
        """Return the same diagnoses under other labels, which `print` then counts together.

        Parameters
        ----------
        labels : mapping of str to str
            Name of a run to its label.

        Returns
        -------
        Diagnoses
        """
        return Diagnoses(one._replace(label=labels[one.run]) for one in self)

    def to_frame(self) -> pd.DataFrame:
        """Return `table` as a pandas data frame.

        Returns
        -------
        pd.DataFrame
            One row per run.
        """
        return self.table.to_frame()

    def __str__(self) -> str:
        return "\n".join(lines([(one.label, one.diagnosis) for one in self])) or HEALTHY

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def diagnose(
    runs: Path | str | RunResult | Iterable[Any], *, keys: Sequence[str] | None = None
) -> Diagnoses:
    """Say what the numbers of runs show of how they went, and what to try next.

    Parameters
    ----------
    runs
        A folder of runs or of one run; or a result of `placecell.run`; or several results, or the
        outcomes of `placecell.sweep`. Of several runs, those that have not ended are left out.
    keys
        The settings that labels name; None names those that vary over the runs.

    Returns
    -------
    Diagnoses
        A list with one diagnosis per run.

    Examples
    --------
    >>> print(placecell.diagnose("runs/mine"))  # doctest: +SKIP
    diagnosis: learnable σ=2.0 (3 of 3) memorising: ...
    """
    if isinstance(runs, RunResult):
        results = [runs]
    elif isinstance(runs, str | Path):
        folder = Path(runs)
        is_one_run = (folder / "status.json").exists()
        results = [load_result(folder)] if is_one_run else _ended(Store(folder).run_set())
    else:
        results = _ended(RunSet.of(runs))
    keys = varying([result.config for result in results]) if keys is None else keys
    return Diagnoses(
        RunDiagnosis(name, one, result.config.name, result.config.seed)
        for result, (name, one) in zip(results, diagnose_results(results, keys), strict=True)
    )


def _ended(runs: RunSet) -> list[RunResult]:
    """The runs that are done or diverged."""
    results = [result for result in runs.results if result.status in ENDED]
    if not results:
        raise InputError(
            f"{runs.where}: no run here is finished yet; the same sweep goes on with them."
        )
    return results


def diagnose_summary(
    runs: Sequence[RunSummary], simpler: Mapping[str, float] | None = None
) -> list[Diagnosis]:
    """Diagnose runs that are measured already.

    Parameters
    ----------
    runs : sequence of RunSummary
        The runs.
    simpler : mapping, optional
        Test headlines of simpler methods on the same data, by name.

    Returns
    -------
    list of Diagnosis
        One for each run.
    """
    seeds = Counter(run.label for run in runs)
    return [
        analysis.diagnose(
            numbers(
                run.result,
                moved=run.values.get("table/moved", math.nan),
                consistency=run.values.get("attention/consistency", math.nan),
                seeds=seeds[run.label],
                chance=run.values.get("chance", math.nan),
                simpler=simpler,
                passes=run.values.get("passes", math.nan),
            )
        )
        for run in runs
    ]


def diagnose_result(result: RunResult) -> Diagnosis:
    """Diagnose one run, without other seeds to compare its attention with.

    Parameters
    ----------
    result : RunResult
        A run that has ended.

    Returns
    -------
    Diagnosis
    """
    return diagnose_results([result], [])[0][1]


def diagnose_results(
    results: Sequence[RunResult], keys: Sequence[str]
) -> list[tuple[str, Diagnosis]]:
    """Diagnose the runs of a sweep.

    Slow measurements are made only where they can change the diagnosis: chance and simpler methods
    if nothing else is wrong, and agreement of attention over seeds if a table moved.

    Parameters
    ----------
    results : sequence of RunResult
        Runs that have ended.
    keys : sequence of str
        The settings that labels name.

    Returns
    -------
    list of (str, Diagnosis)
        Label and diagnosis of each run.
    """
    labels, distances = [label(r.config, keys) for r in results], [_moved(r) for r in results]
    of_data: dict[Any, _Yardsticks] = {}
    for result in results:
        of_data.setdefault(result.config.data, _Yardsticks(result.config))
    known: list[dict[str, Any]] = []
    diagnoses = []
    for result, distance in zip(results, distances, strict=True):
        yardsticks = of_data[result.config.data]
        known.append({"task": yardsticks.task, "moved": distance})
        if result.status == "done":
            known[-1]["passes"] = passes(result, len(yardsticks.splits["train"]))
        first = analysis.diagnose(numbers(result, **known[-1]))
        if first.healthy or first.name == "too short to tell":
            known[-1] |= {"chance": yardsticks.chance, "simpler": yardsticks.simpler}
            first = analysis.diagnose(numbers(result, **known[-1]))
        diagnoses.append(first)
    for name in dict.fromkeys(labels):
        same = [i for i, one in enumerate(labels) if one == name and results[i].status == "done"]
        unclear = [
            i
            for i in same
            if distances[i] >= MOVED and diagnoses[i].name in ("learned", "overfitting")
        ]
        if len(same) < 2 or not unclear:
            continue
        task = of_data[results[same[0]].config.data].task
        sample = map_sample(task)
        maps = [
            one
            for one in (read_run(results[i], task, sample).maps for i in same)
            if one is not None
        ]
        agreed = dict(zip(same, map_consistency(maps), strict=True))
        for i in unclear:
            more = known[i] | {"consistency": float(agreed[i]), "seeds": len(same)}
            diagnoses[i] = analysis.diagnose(numbers(results[i], **more))
    return list(zip(labels, diagnoses, strict=True))


class _Yardsticks:
    """What runs on the same data are compared with; each is computed when it is first needed."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config

    @cached_property
    def task(self) -> Task:
        return make_task(self.config)

    @cached_property
    def splits(self) -> dict[str, Examples]:
        return self.task.splits()

    @cached_property
    def chance(self) -> float:
        return chance(self.task, self.splits)

    @cached_property
    def simpler(self) -> Mapping[str, float]:
        return self.task.baseline_scores() if isinstance(self.task, HasBaselineScores) else {}


def lines(diagnoses: Sequence[tuple[str, Diagnosis]]) -> list[str]:
    """Say what is not well, in one line for each configuration and diagnosis.

    Parameters
    ----------
    diagnoses : sequence of (str, Diagnosis)
        Label and diagnosis of each run.

    Returns
    -------
    list of str
        Empty if all runs are well.
    """
    unwell: dict[tuple[str, str], list[Diagnosis]] = {}
    for name, one in diagnoses:
        if not one.healthy:
            unwell.setdefault((name, one.name), []).append(one)
    total = Counter(name for name, _ in diagnoses)
    return [
        f"diagnosis: {name} ({len(same)} of {total[name]}) {same[0]}"
        for (name, _), same in unwell.items()
    ]


def numbers(
    result: RunResult,
    moved: float = math.nan,
    consistency: float = math.nan,
    seeds: int = 1,
    chance: float = math.nan,
    simpler: Mapping[str, float] | None = None,
    passes: float = math.nan,
    task: Task | None = None,
) -> Numbers:
    """Collect the numbers of a run that a diagnosis is made from.

    Parameters
    ----------
    result : RunResult
        A run that has ended.
    moved : float
        How far its table moved, as a share of its initial norm.
    consistency : float
        How far its attention agrees with that of the other seeds.
    seeds : int
        Number of runs that share its configuration.
    chance : float
        Test headline of a guess that ignores the input.
    simpler : mapping, optional
        Test headlines of simpler methods on the same data, by name.
    passes : float
        How often training went over the training set.
    task : Task, optional
        The run's task; None makes it.

    Returns
    -------
    Numbers
    """
    task = task or make_task(result.config)
    train = result.final("train", task.headline)
    losses = {r.step: r.value for r in result.rows if (r.split, r.name) == ("train", "loss")}
    pulls = {
        r.step: r.value for r in result.rows if (r.split, r.name) == ("train", "table_gradient")
    }
    return Numbers(
        status=result.status,
        up=more_is_better(task),
        train=train,
        test=result.final("test", task.headline),
        learned=task.learned(train),
        loss=list(losses.values()),
        moved=moved,
        gradient=[pulls[step] for step in losses if step in pulls],
        consistency=consistency,
        seeds=seeds,
        steps=result.step,
        warmup=result.config.train.warmup,
        chance=chance,
        simpler=simpler or {},
        passes=passes,
        decays=result.config.train.schedule == "cosine",
    )


def _moved(result: RunResult) -> float:
    """How far the table of a finished run moved; NaN if it is not known."""
    if result.status != "done":
        return math.nan
    try:
        config, task, model = load_model(result.folder)
        first = load_snapshots(result.folder).get(0)
    except InputError:  # its weights have gone
        return math.nan
    return table_moved(config, task, model, None if first is None else first.double().numpy())
