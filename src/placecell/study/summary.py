"""Measure runs: from their folders to a `Summary` of scores, tables and attention maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from placecell import analysis
from placecell.config import RunConfig
from placecell.config.labels import label, varying
from placecell.encodings import SinusoidalPE
from placecell.errors import InputError
from placecell.model import Transformer
from placecell.seeds import numpy_stream
from placecell.store import Store
from placecell.store.runs import RunResult
from placecell.study.maps import mean_maps
from placecell.study.records import Array, RunSummary, Summary
from placecell.tasks.base import Examples, Task, Truth
from placecell.tasks.optional import HasMeasures, Learned
from placecell.train.run import load_model, load_snapshots, make_model, make_task
from placecell.train.share import initial_share, token_mean_square

MAP_SAMPLES = 512  # test samples over which attention maps are averaged
SHUFFLES = 100  # shuffled tables that a measure is compared with
# a training loss that changed by less since the evaluation before has stopped falling
SETTLED = 0.01


def summarise(
    folder: Path | str, *, on_run: Callable[[int, int], None] = lambda done, total: None
) -> Summary:
    """Read a folder of runs and measure the table and attention maps of every finished one.

    Parameters
    ----------
    folder : Path or str
        A folder of runs.
    on_run : callable
        Called with the number of runs measured so far, and of all.

    Returns
    -------
    Summary
    """
    runs = Store(Path(folder)).run_set()
    return measure(runs.results, runs.where, left_out=runs.unreadable, on_run=on_run)


def measure(
    results: Sequence[RunResult],
    where: str,
    *,
    known: Mapping[str, Mapping[str, float]] | None = None,
    seen: dict[str, RunSummary] | None = None,
    keys: list[str] | None = None,
    left_out: Mapping[str, str] | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Measure the finished ones among runs of one task.

    A finished run never changes, so what was measured of it once can be given as `known` or `seen`.

    Parameters
    ----------
    results : sequence of RunResult
        The runs.
    where : str
        What messages call them.
    known : mapping, optional
        Measurements of tables by run, as an earlier analysis wrote them.
    seen : dict, optional
        What was measured before, by run; new measurements are added to it.
    keys : list of str, optional
        The settings that labels name; None names those that vary.
    left_out : mapping, optional
        Name of each run that could not be read, to what is wrong with it.
    on_run : callable
        Called with the number of runs measured so far, and of all.

    Returns
    -------
    Summary
    """
    # transplants are compared by `placecell transplant`
    results = [r for r in results if r.status in ("done", "diverged") and r.config.donor is None]
    if not results:
        raise InputError(nothing_to_measure(where, left_out or {}))
    names = {r.config.task for r in results}
    if len(names) > 1:
        raise InputError(
            f"{where}: runs of different tasks ({', '.join(sorted(names))}); give each a folder "
            f"of its own."
        )
    keys = varying([r.config for r in results]) if keys is None else keys
    shared = {
        data: make_task(config)
        for data, config in {r.config.data: r.config for r in results}.items()
    }
    truths = {data: task.truth() for data, task in shared.items()}
    samples: dict[Any, Examples] = {}
    guesses: dict[Any, float] = {}
    sizes: dict[Any, int] = {}  # of the training sets
    squares: dict[Any, float] = {}  # of their tokens
    known, seen, left_out = known or {}, {} if seen is None else seen, dict(left_out or {})
    for number, result in enumerate(results):
        on_run(number, len(results))
        name, data = result.config.name, result.config.data
        if name in seen and seen[name].result == result:
            continue
        if data not in samples:
            splits = shared[data].splits()
            samples[data] = splits["test"].take(slice(0, MAP_SAMPLES))
            guesses[data], sizes[data] = chance(shared[data], splits), len(splits["train"])
            squares[data] = token_mean_square(shared[data], 1.0, splits["train"])
        try:
            one = read_run(result, shared[data], samples[data])
        except InputError as error:  # its weights are not those of its settings
            left_out[name] = str(error)
            continue
        if math.isfinite(guesses[data]):
            one.values["chance"] = guesses[data]
        one.values["passes"] = passes(result, sizes[data])
        start = _first_table(one, shared[data])
        if start is not None:
            table = torch.from_numpy(start)
            one.values["rho"] = initial_share(result.config, table, squares[data])
        if name in known:
            one.values.update(known[name])
            _measure_task(one, shared[data], tables=False)
        else:
            truth = truths[data]
            if truth is not None:
                _measure_table(one, shared[data], truth)
            _measure_task(one, shared[data])
        seen[name] = one
    results = [r for r in results if r.config.name not in left_out]
    if not results:
        raise InputError(nothing_to_measure(where, left_out))
    runs = [replace(seen[r.config.name], label=label(r.config, keys)) for r in results]
    for one in runs:
        data = one.result.config.data
        truth = truths[data]
        if truth is not None:
            reference = _reference_maps(runs, one, shared[data]) if truth.spatial else None
            _measure_attention(one, truth, reference)
    _measure_consistency(runs)
    on_run(len(results), len(results))
    return Summary(shared[results[0].config.data], runs, keys, left_out)


def nothing_to_measure(where: str, left_out: Mapping[str, str]) -> str:
    """Say why there is nothing to measure.

    Parameters
    ----------
    where : str
        What messages call the runs.
    left_out : mapping of str to str
        Name of each run that could not be read, to what is wrong with it.

    Returns
    -------
    str
        One sentence.
    """
    if not left_out:
        return f"{where}: no run here is finished yet; `placecell sweep` goes on with them."
    first = next(iter(left_out.values()))
    return f"{where}: no finished run here can be read ({len(left_out)} cannot); {first}"


def _scores(result: RunResult, task: Task) -> dict[str, float]:
    """Final metrics (split/name), and when the training set was first learned whole."""
    values = {f"{r.split}/{r.name}": r.value for r in result.rows}
    learned = task.learned(result.final("train", task.headline))
    if learned is not None:
        rows = [r for r in result.rows if (r.split, r.name) == ("train", task.headline)]
        values["learned_at"] = next(
            (float(r.step) for r in rows if task.learned(r.value)), float("nan")
        )
        losses = [r.value for r in result.rows if (r.split, r.name) == ("train", "loss")]
        settled = len(losses) > 1 and abs(losses[-1] - losses[-2]) < SETTLED
        values["converged"] = float(settled and learned)
    return values | {"steps": float(result.step), "seconds": result.seconds}


def map_sample(task: Task) -> Examples:
    """Return the samples over which attention maps are averaged.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    Examples
        The first test samples.
    """
    return task.splits()["test"].take(slice(0, MAP_SAMPLES))


def passes(result: RunResult, samples: int) -> float:
    """Return how often training went over the training set.

    Parameters
    ----------
    result : RunResult
        The run.
    samples : int
        Number of training samples.

    Returns
    -------
    float
    """
    return result.step * result.config.train.batch_size / samples


def chance(task: Task, splits: Mapping[str, Examples] | None = None) -> float:
    """Return the test headline of a guess that ignores the input.

    It is the mean of the training targets, or of classes their shares.

    Parameters
    ----------
    task : Task
        The task.
    splits : mapping, optional
        Its data; None makes them.

    Returns
    -------
    float
        NaN if outputs are neither single values nor classes.
    """
    splits = splits or task.splits()
    train, test = splits["train"], splits["test"]
    targets = train.targets if train.scored is None else train.targets[train.scored.bool()]
    shape = (*test.targets.shape[:2], task.n_outputs)
    if not targets.is_floating_point():
        counts = torch.bincount(targets.flatten(), minlength=task.n_outputs)
        if len(counts) != task.n_outputs:
            return math.nan
        # as logits: the commonest class is the answer, and a cross-entropy is that of the shares
        guess = ((counts + 1.0) / (counts + 1.0).sum()).log().expand(shape)
    elif test.targets.ndim == 3 and test.targets.shape == shape:
        guess = targets.reshape(-1, task.n_outputs).mean(0).expand(shape)
    elif test.targets.ndim == 2 and task.n_outputs == 1:
        guess = targets.mean().expand(shape)
    else:
        return math.nan
    return task.metrics(guess, test)[task.headline]


@torch.no_grad()
def read_run(result: RunResult, task: Task, sample: Examples) -> RunSummary:
    """Read a finished run: its scores, its learned table and its mean attention maps.

    Parameters
    ----------
    result : RunResult
        The run.
    task : Task
        Its task.
    sample : Examples
        The samples over which attention is averaged.

    Returns
    -------
    RunSummary
        Without a label. A run that diverged has scores only.
    """
    values = _scores(result, task)
    if result.status != "done":
        return RunSummary(result, "", values, {}, None, None)
    config, task, model = load_model(result.folder)
    heads = mean_maps(model, sample.inputs(task.positions), len(task.places.index))
    table = model.table(task.places)
    snapshots = {step: one.double().numpy() for step, one in load_snapshots(result.folder).items()}
    values["table/moved"] = table_moved(config, task, model, snapshots.get(0))
    learned_table = None if table is None else table.double().numpy()
    return RunSummary(result, "", values, {}, learned_table, heads.mean(1), heads, snapshots)


def table_moved(
    config: RunConfig, task: Task, model: Transformer, first: Array | None = None
) -> float:
    """Return how far a learned table moved, as a share of its initial norm.

    Parameters
    ----------
    config : RunConfig
        The settings of the run.
    task : Task
        Its task.
    model : Transformer
        The trained model.
    first : ndarray, optional
        The table before training (n d); None draws it again from the seed.

    Returns
    -------
    float
        NaN if no table was learned.
    """
    table = model.table(task.places)
    if table is None or not list(model.encoding.parameters()) or config.donor is not None:
        return float("nan")
    if first is None:
        start = make_model(config, task).table(task.places)
        assert start is not None
        first = start.double().numpy()
    norm, distance = np.linalg.norm(first), np.linalg.norm(table.double().numpy() - first)
    return float(distance / norm) if norm else float("inf")


def _reference_maps(runs: Sequence[RunSummary], own: RunSummary, task: Task) -> Array | None:
    """The attention maps of the ground-truth model: sinusoidal over the task's own axes, averaged
    over the seeds of models of the same size; never the run's own."""
    chosen = [
        r.maps
        for r in runs
        if r is not own
        and r.maps is not None
        and own.maps is not None
        and r.maps.shape == own.maps.shape
        and r.result.config.encoding.name == "sinusoidal"
        and r.result.config.encoding.axes == task.places.axes
    ]
    return np.mean(chosen, axis=0) if chosen else None


def _measure_table(run: RunSummary, task: Task, truth: Truth) -> None:
    """How readable the table is; `_p` is the share of shuffled tables that do as well."""
    if run.table is None or np.ptp(run.table) == 0:
        return
    rng, values = numpy_stream(run.result.config.seed, "measure"), run.values
    relation = analysis.relation_correlation(
        run.table, truth.relation, permutations=SHUFFLES, rng=rng
    )
    values |= {"table/relation": relation.value, "table/relation_p": relation.p}
    if truth.spatial:
        _measure_place(run, task, truth, rng)
    for name, labels in truth.labels.items():
        if np.unique(labels, return_counts=True)[1].min() < 2 or len(np.unique(labels)) < 2:
            continue  # a probe must see a label in one token to find it in another
        probe = analysis.linear_probe(run.table, labels, rng=rng, permutations=SHUFFLES)
        values |= {f"table/probe_{name}": probe.accuracy, f"table/probe_{name}_p": probe.p}


def _measure_place(run: RunSummary, task: Task, truth: Truth, rng: np.random.Generator) -> None:
    """How near the table is to the tokens' places, and to the sinusoidal table over them."""
    assert run.table is not None
    values, coords = run.values, task.places.coords.double().numpy()
    ground = SinusoidalPE(run.table.shape[1], task.places.axes).table(task.places).double().numpy()
    values["table/distance"] = analysis.distance_correlation(
        run.table, coords, symmetries=truth.symmetries
    ).value
    fit = analysis.procrustes(
        run.table, ground, symmetries=truth.symmetries, permutations=SHUFFLES, rng=rng
    )
    values |= {"table/procrustes": fit.distance, "table/procrustes_p": fit.p}
    values["table/procrustes_shuffled"] = float(fit.null.mean())
    run.notes["procrustes_alignment"] = fit.alignment.words


def _first_table(run: RunSummary, task: Task) -> Array | None:
    """The table before training, as it was kept or drawn again (n d)."""
    if 0 in run.snapshots:
        return run.snapshots[0]
    start = make_model(run.result.config, task).table(task.places)
    return None if start is None else start.double().numpy()


def _measure_task(run: RunSummary, task: Task, tables: bool = True) -> None:
    """What the task itself reads from a run, its table before training beside it; or, without
    `tables`, from its attention alone, which takes no time."""
    if run.maps is None or not isinstance(task, HasMeasures):
        return
    learned = Learned(None, None, run.maps)
    if tables:
        learned = Learned(run.table, _first_table(run, task), run.maps)
    run.values.update(task.measure(learned, numpy_stream(run.result.config.seed, "task")))


def _measure_attention(run: RunSummary, truth: Truth, reference: Array | None) -> None:
    """How far attention follows the true arrangement, and the maps of the model that is given it;
    by layer."""
    if run.maps is None:
        return
    ideal = analysis.relation_agreement(run.maps, truth.relation)
    agreement_by_layer = {"attention/relation": ideal.correlation}
    if reference is not None:
        agreement_by_layer["attention/reference"] = analysis.agreement(run.maps, reference).cosine
    for name, by_layer in agreement_by_layer.items():
        run.values[name] = float(by_layer.mean())
        run.values.update({f"{name}_layer{i + 1}": float(v) for i, v in enumerate(by_layer)})


def _measure_consistency(runs: Sequence[RunSummary]) -> None:
    """How far the seeds of a configuration agree in their attention maps."""
    for name in dict.fromkeys(one.label for one in runs):
        same = [one for one in runs if one.label == name and one.maps is not None]
        for one, value in zip(
            same,
            analysis.map_consistency([r.maps for r in same if r.maps is not None]),
            strict=True,
        ):
            one.values["attention/consistency"] = float(value)
