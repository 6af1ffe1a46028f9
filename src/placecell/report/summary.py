"""What a folder of runs says: one row of measurements a run, one a configuration with intervals over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from placecell import analysis
from placecell.encodings import SinusoidalPE
from placecell.errors import InputError
from placecell.seeds import numpy_stream
from placecell.sweep import flatten, label, load_store, varying
from placecell.tasks.base import Examples, Learned, Task, Truth
from placecell.train.run import RunResult, load_model, make_model, make_task

Array = NDArray[np.float64]
MAP_SAMPLES = 512  # test samples over which attention maps are averaged
SHUFFLES = 100  # shuffled tables that a measure is compared with
FLAT = 0.01  # a training loss that has changed by less since the evaluation before has stopped falling


@dataclass(frozen=True, eq=False)
class RunSummary:
    """One run's measurements by name, with the arrays that figures show."""

    result: RunResult
    label: str
    values: dict[str, float]
    notes: dict[str, str]  # measurements in words
    table: Array | None  # n d
    maps: Array | None  # layers n n, averaged over samples and heads


@dataclass(frozen=True, eq=False)
class Summary:
    """A sweep: its runs, what varies in it, and the task that they share."""

    task: Task
    runs: list[RunSummary]
    keys: list[str]
    baselines: dict[str, dict[str, float]]  # other methods on the same data: name -> measurements

    @property
    def labels(self) -> list[str]:
        """The configurations in a readable order: by encoding, then by what varies."""
        order: dict[str, tuple[Any, ...]] = {}
        for one in self.runs:
            flat = flatten(one.result.config)
            order.setdefault(one.label, (one.result.config.encoding.name, *(_rank(flat.get(k)) for k in self.keys)))
        return sorted(order, key=lambda name: order[name])

    def values(self, label: str, name: str) -> Array:
        """A measurement over the seeds of one configuration, in the order of the seeds."""
        chosen = sorted((r for r in self.runs if r.label == label), key=lambda r: r.result.config.seed)
        return np.array([r.values.get(name, np.nan) for r in chosen])

    def interval(self, label: str, name: str) -> analysis.Interval:
        """Mean over seeds with a bootstrap interval; NaN where it was never measured."""
        values = self.values(label, name)
        kept = values[np.isfinite(values)]
        if not len(kept):
            return analysis.Interval(float("nan"), float("nan"), float("nan"), 0.95, "not measured")
        return analysis.bootstrap_interval(kept, numpy_stream(0, f"interval/{label}/{name}"))

    def sigma_curve(self) -> list[tuple[float, str]]:
        """The learnable tables, if they differ in σ alone: (σ, label), rising. Empty when other settings vary too."""
        found = {
            r.label: r.result.config.encoding.sigma for r in self.runs if r.result.config.encoding.name == "learnable"
        }
        curve = sorted((sigma, name) for name, sigma in found.items() if sigma is not None)
        return curve if len({sigma for sigma, _ in curve}) == len(curve) else []

    def paired(self, labels: Sequence[str], name: str) -> Array:
        """A measurement of several configurations (configurations, seeds), over the seeds that all of them have."""
        found = [{r.result.config.seed: r.values.get(name, np.nan) for r in self.runs if r.label == x} for x in labels]
        seeds = sorted(set.intersection(*map(set, found)))
        return np.array([[values[seed] for seed in seeds] for values in found])

    def best_sigma(self) -> int:
        """The place on the σ curve of the best headline."""
        sign = -1 if self.task.headline_lower_is_better else 1
        name = f"test/{self.task.headline}"
        return int(np.nanargmax([sign * self.interval(label, name).estimate for _, label in self.sigma_curve()]))


def summarise(folder: Path, *, on_run: Callable[[int, int], None] = lambda done, total: None) -> Summary:
    """Read a folder of runs and measure every finished one's table and attention maps."""
    results = [r for r in load_store(folder) if r.status in ("done", "diverged")]
    results = [r for r in results if r.config.donor is None]  # transplants are compared by `placecell transplant`
    if not results:
        raise InputError(f"{folder}: no run here is finished yet; `placecell sweep` goes on with them.")
    names = {r.config.task for r in results}
    if len(names) > 1:
        raise InputError(
            f"{folder}: runs of different tasks ({', '.join(sorted(names))}); give each a folder of its own."
        )
    keys = varying([r.config for r in results])
    shared = {data: make_task(config) for data, config in {r.config.data: r.config for r in results}.items()}
    samples = {data: task.splits()["test"].take(slice(0, MAP_SAMPLES)) for data, task in shared.items()}
    found = []
    for number, result in enumerate(results):
        on_run(number, len(results))
        data, rng = result.config.data, numpy_stream(result.config.seed, "task")
        learned = _look(result, shared[data], samples[data]) if result.status == "done" else None
        scores = _scores(result, shared[data]) | (shared[data].measure(learned, rng) if learned else {})
        table, maps = (learned.table, learned.maps) if learned else (None, None)
        found.append(RunSummary(result, label(result.config, keys), scores, {}, table, maps))
    truths = {data: task.truth() for data, task in shared.items()}
    for one in found:
        data = one.result.config.data
        _measure_table(one, shared[data], truths[data])
        _measure_attention(one, truths[data], _reference_maps(found, one, shared[data]))
    on_run(len(results), len(results))
    task = shared[results[0].config.data]
    return Summary(task, found, keys, task.baselines() if len(shared) == 1 else {})


def _rank(value: Any) -> tuple[int, Any]:
    return (0, 0) if value is None else (1, value) if isinstance(value, int | float) else (2, str(value))


def _scores(result: RunResult, task: Task) -> dict[str, float]:
    """Final metrics (split/name), and when the training set was first learned whole."""
    values = {f"{r.split}/{r.name}": r.value for r in result.rows}
    learned = task.learned(result.final("train", task.headline))
    if learned is not None:
        rows = [r for r in result.rows if (r.split, r.name) == ("train", task.headline)]
        values["learned_at"] = next((float(r.step) for r in rows if task.learned(r.value)), float("nan"))
        losses = [r.value for r in result.rows if (r.split, r.name) == ("train", "loss")]
        flat = len(losses) > 1 and abs(losses[-1] - losses[-2]) < FLAT
        values["converged"] = float(flat and learned)
    return values | {"steps": float(result.step), "seconds": result.seconds}


@torch.no_grad()
def _look(result: RunResult, task: Task, sample: Examples) -> Learned:
    """The table of a finished run, before and after training, and its mean attention maps."""
    config, _, model = load_model(result.folder)
    maps = model(sample.tokens, task.positions, sample.read, maps=True).maps
    tables = (one.table(task.positions) for one in (model, make_model(config, task)))
    learned, untrained = (None if table is None else table.double().numpy() for table in tables)
    return Learned(learned, untrained, torch.stack([m.mean((0, 1)) for m in maps]).double().numpy())


def _reference_maps(runs: Sequence[RunSummary], own: RunSummary, task: Task) -> Array | None:
    """The attention maps of the ground-truth model: sinusoidal over the task's own axes, averaged over the seeds of
    models of the same size; never the run's own."""
    chosen = [
        r.maps
        for r in runs
        if r is not own
        and r.maps is not None
        and own.maps is not None
        and r.maps.shape == own.maps.shape
        and r.result.config.encoding.name == "sinusoidal"
        and r.result.config.encoding.axes == task.positions.axes
    ]
    return np.mean(chosen, axis=0) if chosen else None


def _measure_table(run: RunSummary, task: Task, truth: Truth) -> None:
    """How readable the table is; `_p` is the share of shuffled tables that do as well."""
    if run.table is None or np.ptp(run.table) == 0:
        return
    rng, values = numpy_stream(run.result.config.seed, "measure"), run.values
    relation = analysis.relation_correlation(run.table, truth.relation, permutations=SHUFFLES, rng=rng)
    values |= {"table/relation": relation.value, "table/relation_p": relation.p}
    if truth.spatial:
        _measure_place(run, task, truth, rng)
    for name, labels in truth.labels.items():
        probe = analysis.linear_probe(run.table, labels, rng=rng, permutations=SHUFFLES)
        values |= {f"table/probe_{name}": probe.accuracy, f"table/probe_{name}_p": probe.p}


def _measure_place(run: RunSummary, task: Task, truth: Truth, rng: np.random.Generator) -> None:
    """How near the table is to the tokens' places, and to the sinusoidal table over them."""
    assert run.table is not None
    values, coords = run.values, task.positions.coords.double().numpy()
    ground = SinusoidalPE(run.table.shape[1], task.positions.axes).table(task.positions).double().numpy()
    values["table/distance"] = analysis.distance_correlation(run.table, coords, symmetries=truth.symmetries).value
    found = analysis.procrustes(run.table, ground, symmetries=truth.symmetries, permutations=SHUFFLES, rng=rng)
    values |= {"table/procrustes": found.distance, "table/procrustes_p": found.p}
    values["table/procrustes_shuffled"] = float(found.null.mean())
    run.notes["procrustes_alignment"] = found.alignment.words


def _measure_attention(run: RunSummary, truth: Truth, reference: Array | None) -> None:
    """How far attention follows the true arrangement, and the maps of the model that is given it; by layer."""
    if run.maps is None:
        return
    ideal = analysis.relation_agreement(run.maps, truth.relation)
    found = {"attention/relation": ideal.correlation}
    if reference is not None:
        found["attention/reference"] = analysis.agreement(run.maps, reference).cosine
    for name, by_layer in found.items():
        run.values[name] = float(by_layer.mean())
        run.values.update({f"{name}_layer{i + 1}": float(v) for i, v in enumerate(by_layer)})
