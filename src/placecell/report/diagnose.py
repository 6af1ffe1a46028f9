"""Diagnoses of whole folders and of single runs: from what was measured to the names in `analysis.diagnosis`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from placecell import tasks
from placecell.analysis import Diagnosis, Numbers, diagnose, map_consistency
from placecell.analysis.diagnosis import MOVED
from placecell.errors import InputError
from placecell.report.summary import RunSummary, error_of_mean, look, map_sample, more_is_better, table_moved
from placecell.sweep import label
from placecell.train.run import RunResult, load_model, load_snapshots, make_task


def diagnose_summary(runs: Sequence[RunSummary], simpler: Mapping[str, float] | None = None) -> list[Diagnosis]:
    """The diagnosis of each of the measured runs; `simpler` is what simpler methods reach on the same data."""
    seeds = Counter(run.label for run in runs)
    return [
        diagnose(
            numbers(
                run.result,
                moved=run.values.get("table/moved", math.nan),
                consistency=run.values.get("attention/consistency", math.nan),
                seeds=seeds[run.label],
                mean=run.values.get("error_of_mean", math.nan),
                simpler=simpler,
            )
        )
        for run in runs
    ]


def diagnose_result(result: RunResult) -> Diagnosis:
    """The diagnosis of one run, without other seeds to compare its attention with."""
    return diagnose_results([result], [])[0][1]


def diagnose_results(results: Sequence[RunResult], keys: Sequence[str]) -> list[tuple[str, Diagnosis]]:
    """The diagnosis of each run of a sweep, with its label; `keys` are what varies. What takes time is looked at only
    where it can make a difference: the mean where nothing was found, and attention over seeds where a table moved and
    nothing worse was found."""
    labels, distances = [label(r.config, keys) for r in results], [_moved(r) for r in results]
    found = [diagnose(numbers(r, moved=distance)) for r, distance in zip(results, distances, strict=True)]
    guesses: dict[Any, float] = {}
    for i, result in enumerate(results):
        if found[i].healthy:
            if result.config.data not in guesses:
                guesses[result.config.data] = error_of_mean(make_task(result.config))
            found[i] = diagnose(numbers(result, moved=distances[i], mean=guesses[result.config.data]))
    for name in dict.fromkeys(labels):
        same = [i for i, one in enumerate(labels) if one == name and results[i].status == "done"]
        unclear = [i for i in same if distances[i] >= MOVED and found[i].name in ("learned", "overfitting")]
        if len(same) < 2 or not unclear:
            continue
        task = make_task(results[same[0]].config)
        sample = map_sample(task)
        maps = [one for one in (look(results[i], task, sample).maps for i in same) if one is not None]
        agreed = dict(zip(same, map_consistency(maps), strict=True))
        for i in unclear:
            more = numbers(results[i], moved=distances[i], consistency=float(agreed[i]), seeds=len(same))
            found[i] = diagnose(more)
    return list(zip(labels, found, strict=True))


def lines(diagnoses: Sequence[tuple[str, Diagnosis]]) -> list[str]:
    """What is not well, a line for each configuration and signature."""
    found: dict[tuple[str, str], list[Diagnosis]] = {}
    for name, one in diagnoses:
        if not one.healthy:
            found.setdefault((name, one.name), []).append(one)
    total = Counter(name for name, _ in diagnoses)
    return [f"diagnosis: {name} ({len(same)} of {total[name]}) {same[0]}" for (name, _), same in found.items()]


def numbers(
    result: RunResult,
    moved: float = math.nan,
    consistency: float = math.nan,
    seeds: int = 1,
    mean: float = math.nan,
    simpler: Mapping[str, float] | None = None,
) -> Numbers:
    """What a diagnosis looks at, from a run's metrics."""
    task = tasks.load(result.config.task)(result.config.data)
    train = result.final("train", task.headline)
    losses = {r.step: r.value for r in result.rows if (r.split, r.name) == ("train", "loss")}
    pulls = {r.step: r.value for r in result.rows if (r.split, r.name) == ("train", "table_gradient")}
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
        mean=mean,
        simpler=simpler or {},
    )


def _moved(result: RunResult) -> float:
    """How far the table of a finished run moved; NaN where that cannot be told."""
    if result.status != "done":
        return math.nan
    try:
        config, task, model = load_model(result.folder)
        first = load_snapshots(result.folder).get(0)
    except InputError:  # its weights have gone
        return math.nan
    return table_moved(config, task, model, None if first is None else first.double().numpy())
