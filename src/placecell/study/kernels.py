"""Lazy or rich? How tangent kernel and weights of finished runs changed over training.

Measured at every step whose weights were kept (`--snapshots weights`), else at the first and the
last: kernel distance and velocity, the share of each block of parameters in the kernel, alignment
with the targets, the loss, movement of each block, and rank and CKA of the table. At the first and
the last step also: ridge regression with the kernel, to compare with the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from placecell import analysis
from placecell.analysis import regimes
from placecell.analysis.ntk import block_of, ntk
from placecell.config import RunConfig
from placecell.config.labels import label, varying
from placecell.errors import InputError
from placecell.model import Transformer
from placecell.seeds import numpy_stream, torch_stream
from placecell.store import Store
from placecell.store.runs import RunResult, load_result
from placecell.tasks.base import Examples, Task
from placecell.train.loop import predict
from placecell.train.run import load_snapshots, load_weights_along, make_model, make_task

Array = NDArray[np.float64]
WHOLE = "all"  # the block that is the whole network
MOVES = 0.1  # a table has begun to move when it has gone this share of its initial norm


class Fact(NamedTuple):
    """One measurement of one run.

    What belongs to no step has the last step; what belongs to no block has the block `all`.
    """

    run: str
    label: str
    seed: int
    step: int
    block: str
    measure: str
    value: float


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    probes : int
        Test samples of a kernel.
    learn : int
        Training samples that the ridge regression learns from.
    budget : float
        Memory of a kernel, in bytes.
    """

    probes: int = 128
    learn: int = 384
    budget: float = 2e9

    def __post_init__(self) -> None:
        if self.probes < 8 or self.learn < 8:
            raise InputError(
                f"at least 8 probes and 8 samples to learn are needed, not {self.probes}, "
                f"{self.learn}."
            )


@dataclass(frozen=True, eq=False)
class LazyRich:
    """The measurements of some runs of one task.

    Attributes
    ----------
    task : Task
        The task.
    runs : sequence of (str, RunResult)
        Label and run.
    facts : list of Fact
        The measurements.
    rest : dict
        From a label to the label without σ: runs that share it are one curve over σ.
    """

    task: Task
    runs: Sequence[tuple[str, RunResult]]
    facts: list[Fact]
    rest: dict[str, str]

    @property
    def labels(self) -> list[str]:
        """The configurations, in the order of the runs."""
        return list(dict.fromkeys(label for label, _ in self.runs))

    def config(self, label: str) -> RunConfig:
        """Return the settings of a configuration's first run.

        Parameters
        ----------
        label : str
            The configuration.

        Returns
        -------
        RunConfig
        """
        return next(result.config for name, result in self.runs if name == label)

    def values(
        self, label: str, measure: str, block: str = WHOLE, step: int | None = None
    ) -> Array:
        """Return a measurement of a configuration for every seed.

        Parameters
        ----------
        label : str
            The configuration.
        measure : str
            Name of the measurement.
        block : str
            Block of parameters.
        step : int, optional
            Step of training; None is the last one measured.

        Returns
        -------
        ndarray
            One value for each seed, in the order of seeds.
        """
        chosen = [
            fact
            for fact in self._about.get((label, measure, block), ())
            if step in (None, fact.step)
        ]
        value_by_seed = {
            fact.seed: fact.value for fact in sorted(chosen, key=lambda fact: fact.step)
        }
        return np.array([value_by_seed[seed] for seed in sorted(value_by_seed)])

    def steps(self, label: str, measure: str, block: str = WHOLE) -> list[int]:
        """Return the steps at which something was measured.

        Parameters
        ----------
        label : str
            The configuration.
        measure : str
            Name of the measurement.
        block : str
            Block of parameters.

        Returns
        -------
        list of int
            Rising.
        """
        return sorted({fact.step for fact in self._about.get((label, measure, block), ())})

    @cached_property
    def _about(self) -> dict[tuple[str, str, str], list[Fact]]:
        by_key: dict[tuple[str, str, str], list[Fact]] = {}
        for fact in self.facts:
            by_key.setdefault((fact.label, fact.measure, fact.block), []).append(fact)
        return by_key

    def interval(
        self, label: str, measure: str, block: str = WHOLE, step: int | None = None
    ) -> analysis.Interval:
        """Average a measurement over seeds, with a bootstrap interval.

        Parameters
        ----------
        label : str
            The configuration.
        measure : str
            Name of the measurement.
        block : str
            Block of parameters.
        step : int, optional
            Step of training; None is the last one measured.

        Returns
        -------
        analysis.Interval
            NaN if it was never measured.
        """
        values = self.values(label, measure, block, step)
        kept = values[np.isfinite(values)]
        if not len(kept):
            return analysis.Interval(float("nan"), float("nan"), float("nan"), 0.95, "not measured")
        return analysis.bootstrap_interval(
            kept, numpy_stream(0, f"lazy/{label}/{measure}/{block}/{step}")
        )


def find_runs(paths: Sequence[Path]) -> list[RunResult]:
    """Load the finished runs of several folders.

    Parameters
    ----------
    paths : sequence of Path
        Folders of runs, or of one run.

    Returns
    -------
    list of RunResult
        Without transplants and runs that diverged; all of one task.
    """
    finished: dict[str, RunResult] = {}
    for path in paths:
        one = (path / "status.json").exists()
        for result in [load_result(path)] if one else Store(path).run_set().results:
            if result.status == "done" and result.config.donor is None:
                finished[result.config.name] = result
    where = ", ".join(map(str, paths))
    if not finished:
        raise InputError(f"{where}: no run here is finished yet; the same sweep goes on with them.")
    names = sorted({result.config.task for result in finished.values()})
    if len(names) > 1:
        raise InputError(
            f"{where}: runs of different tasks ({', '.join(names)}); measure each task by itself."
        )
    return list(finished.values())


def lazy_rich(
    paths: Sequence[Path],
    sizes: Sizes | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> LazyRich:
    """Measure how lazily or richly finished runs learned.

    Parameters
    ----------
    paths : sequence of Path
        Folders of runs, or of one run.
    sizes : Sizes, optional
        How much is measured; None takes the defaults.
    on_run : callable
        Called with the number of runs measured so far, and of all.

    Returns
    -------
    LazyRich
    """
    sizes, results = sizes or Sizes(), find_runs(paths)
    keys = varying([r.config for r in results])
    rest = [key for key in keys if key != "encoding.sigma"]
    order = sorted(
        results,
        key=lambda r: (label(r.config, rest), r.config.encoding.sigma or 0.0, r.config.seed),
    )
    splits: dict[Any, tuple[Task, dict[str, Examples]]] = {}
    facts: list[Fact] = []
    for number, result in enumerate(order):
        on_run(number, len(order))
        if result.config.data not in splits:
            task = make_task(result.config)
            splits[result.config.data] = task, task.splits()
        name = label(result.config, keys)
        for step, block, measure, value in measure_run(result, *splits[result.config.data], sizes):
            facts.append(
                Fact(result.config.name, name, result.config.seed, step, block, measure, value)
            )
    on_run(len(order), len(order))
    runs = [(label(r.config, keys), r) for r in order]
    without = {name: label(r.config, rest) for name, r in runs}
    return LazyRich(splits[order[0].config.data][0], runs, facts, without)


Measured = Iterator[tuple[int, str, str, float]]  # step, block, measure, value


def measure_run(
    result: RunResult, task: Task, splits: Mapping[str, Examples], sizes: Sizes
) -> Measured:
    """Measure one finished run.

    Parameters
    ----------
    result : RunResult
        The run.
    task : Task
        Its task.
    splits : mapping
        The data of the task.
    sizes : Sizes
        How much is measured.

    Returns
    -------
    Measured
        Of (step, block, measure, value).
    """
    config, last = result.config, result.step
    learn, probes = (
        kernel_samples(splits, "train", sizes.learn),
        kernel_samples(splits, "test", sizes.probes),
    )
    both = learn.join(probes)
    weights = load_weights_along(result.folder)
    model = make_model(config, task)
    learned = [name for name, _ in model.named_parameters()]
    kernels: list[dict[str, Array]] = []
    for step, state in weights.items():
        model.load_state_dict(state)
        ends = step in (0, last)
        kernel = _kernel(model, task, both if ends else probes, sizes.budget)
        if ends:
            yield from _ridge(kernel[WHOLE], learn, probes, task, step)
            kernel = {block: k[len(learn) :, len(learn) :] for block, k in kernel.items()}
        kernels.append(kernel)
        for block, k in kernel.items():
            yield step, block, "kernel_share", float(np.trace(k) / np.trace(kernel[WHOLE]))
            yield step, block, "kernel_distance", regimes.kernel_distance(kernels[0][block], k)
        yield (
            step,
            WHOLE,
            "target_alignment",
            regimes.target_alignment(kernel[WHOLE], _targets(probes, task)),
        )
        yield (
            step,
            WHOLE,
            "train_loss",
            float(task.loss(predict(model, learn, task.positions), learn)),
        )
        before, now = (
            {name: of[name].double().numpy() for name in learned} for of in (weights[0], state)
        )
        yield from _movement(before, now, step)
    steps = list(weights)
    for block in kernels[0]:
        speeds = regimes.velocity([k[block] for k in kernels], steps)
        for step, speed in zip(steps[1:], speeds, strict=True):
            yield step, block, "kernel_velocity", speed
    scores = {f"{r.split}/{r.name}": r.value for r in result.rows}
    yield last, WHOLE, f"test/{task.headline}", scores[f"test/{task.headline}"]
    yield last, WHOLE, f"train/{task.headline}", scores[f"train/{task.headline}"]
    if config.encoding.sigma is not None:
        yield last, WHOLE, "sigma_over_tokens", config.encoding.sigma / config.model.token_sigma
    yield from _table(result, weights)


def _kernel(model: Transformer, task: Task, examples: Examples, budget: float) -> dict[str, Array]:
    """The trace kernel by block of parameters, and of all of them."""
    kernel = ntk(model, examples.inputs(task.positions), "trace", budget)
    return {
        block: k.double().numpy() for block, k in ({WHOLE: kernel.total} | kernel.blocks).items()
    }


def _ridge(kernel: Array, learn: Examples, probes: Examples, task: Task, step: int) -> Measured:
    """The linear model of this kernel, learned from the samples `learn` and scored on the
    probes."""
    n = len(learn)
    targets = _targets(learn, task)
    ridge = regimes.choose_ridge(kernel[:n, :n], targets)
    predicted = regimes.kernel_ridge(kernel[:n, :n], kernel[n:, :n], targets, ridge)
    outputs = torch.from_numpy(predicted).view(len(probes), probes.read.shape[1], -1)
    yield step, WHOLE, "ridge", task.metrics(outputs, probes)[task.headline]


def _movement(first: Mapping[str, Array], now: Mapping[str, Array], step: int) -> Measured:
    """How far each block has gone, as a share of the norm it began with."""
    blocks: dict[str, list[tuple[Array, Array]]] = {}
    for name, before in first.items():
        pieces = [(block_of(name), before, now[name])]
        if "qkv" in name.split("."):
            cut = len(before) - len(before) // 3
            pieces = [("QK", before[:cut], now[name][:cut]), ("OV", before[cut:], now[name][cut:])]
        for block, a, b in pieces:
            blocks.setdefault(block, []).append((a.ravel(), b.ravel()))
            blocks.setdefault(WHOLE, []).append((a.ravel(), b.ravel()))
    for block, parts in blocks.items():
        before, after = (np.concatenate(side) for side in zip(*parts, strict=True))
        yield step, block, "moved", regimes.movement(before, after).relative


def _table(result: RunResult, weights: Mapping[int, Mapping[str, Tensor]]) -> Measured:
    """What a learned table did: rank of its change, likeness to its start, the pull on it, when it
    began to move."""
    ends = {
        step: state["encoding.weight"]
        for step, state in weights.items()
        if "encoding.weight" in state
    }
    # tables are kept more often than all weights
    kept = ends and ends | load_snapshots(result.folder)
    tables = {step: kept[step].double().numpy() for step in sorted(kept)}
    pulls = [r for r in result.rows if (r.split, r.name) == ("train", "table_gradient")]
    for row in pulls:
        yield row.step, "PE", "table_gradient", row.value
    if not tables or not pulls:  # no table, or one that is not learned
        return
    first = tables[0]
    moved = {step: regimes.movement(first, table) for step, table in tables.items()}
    for step, table in tables.items():
        if step:
            yield step, "PE", "stable_rank", moved[step].stable_rank
            yield step, "PE", "cka", regimes.linear_cka(first, table)
    began = next((step for step, m in moved.items() if m.relative >= MOVES), None)
    yield result.step, "PE", "moves_at", float("nan") if began is None else float(began)


def kernel_samples(splits: Mapping[str, Examples], split: str, n: int) -> Examples:
    """Choose samples for a kernel, the same ones for every run.

    Each is read at its first token only: a kernel over outputs at different tokens would compare
    what does not belong together.

    Parameters
    ----------
    splits : mapping
        The data of a task.
    split : str
        The split to choose from.
    n : int
        Number of samples.

    Returns
    -------
    Examples
        n samples in random order.
    """
    order = torch.randperm(len(splits[split]), generator=torch_stream(0, f"lazy_rich/{split}"))
    part = splits[split].take(order[:n])  # the first n of a time series would be alike
    return replace(part, read=part.read[:, :1], targets=part.targets[:, :1], scored=None)


def _targets(examples: Examples, task: Task) -> Array:
    """Targets (n k): classes as one-hot vectors, values as they are."""
    targets = examples.targets
    if not targets.is_floating_point():
        targets = F.one_hot(targets, task.n_outputs).double()
    return targets.flatten(1).double().numpy()
