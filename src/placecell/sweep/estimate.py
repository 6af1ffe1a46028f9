"""How long a sweep will take, from a few steps of each kind of model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from placecell.config import RunConfig
from placecell.store.runs import finished
from placecell.sweep.backends.base import data_key
from placecell.tasks.base import Examples
from placecell.train.device import pick_device
from placecell.train.loop import State, fit, make_optimizer
from placecell.train.run import make_model, make_task

STEPS = 4  # timed for each kind of model, after one that warms up
# of a compiled training step on a CPU (docs/benchmarks.md): seconds to compile it, share it saves
COMPILING, SAVED = 45.0, 0.07


def estimate(configs: Sequence[RunConfig], out: Path, device: str, workers: int) -> float:
    """Return how many seconds a sweep will take on this machine.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs; those that are done count nothing.
    out : Path
        The folder of the runs.
    device : str
        As in `placecell.sweep`.
    workers : int
        Number of processes.

    Returns
    -------
    float
        Seconds, from a few timed steps of each kind of model.
    """
    seconds = [one for kind in _by_kind(configs, out, device).values() for one in kind.values()]
    return max(max(seconds, default=0.0), sum(seconds) / max(1, workers))


def worth_compiling(
    configs: Sequence[RunConfig], out: Path, device: str, workers: int
) -> frozenset[str]:
    """Return the runs of a sweep whose training step should be compiled.

    A worker compiles once for all runs that differ in values only (σ, seeds). That pays if they
    take long enough together; GPUs were not measured, so nothing is compiled there.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs; those that are done count nothing.
    out : Path
        The folder of the runs.
    device : str
        As in `placecell.sweep`.
    workers : int
        Number of processes, each of which compiles.

    Returns
    -------
    frozenset of str
        Names of runs.
    """
    if pick_device(device).type != "cpu":
        return frozenset()
    worth: set[str] = set()
    for kind in _by_kind(configs, out, device).values():
        compiling = COMPILING * min(max(1, workers), len(kind))
        if SAVED * sum(kind.values()) > compiling:
            worth |= kind.keys()
    return frozenset(worth)


def _by_kind(configs: Sequence[RunConfig], out: Path, device: str) -> dict[str, dict[str, float]]:
    """Kind of model -> name of each of its runs that are not done -> seconds."""
    splits: dict[str, dict[str, Examples]] = {}
    kinds: dict[str, dict[str, float]] = {}
    for config in configs:
        if finished(out / config.name):
            continue
        key = data_key(config)
        if key not in splits:
            splits[key] = make_task(config).splits()
        kind = repr((key, replace(config.encoding, sigma=None), config.model, config.train))
        if kind in kinds:
            seconds = next(iter(kinds[kind].values()))
        else:
            seconds = _seconds(config, splits[key], device)
        kinds.setdefault(kind, {})[config.name] = seconds
    return kinds


def _seconds(config: RunConfig, splits: dict[str, Examples], device: str) -> float:
    """One run: its evaluations and its steps, each timed on the real thing."""
    task = make_task(config)
    model = make_model(config, task).to(pick_device(device))
    optimizer, state, marks = make_optimizer(model, config.train), State(), [time.perf_counter()]

    def mark(state: State) -> None:
        if next(model.parameters()).is_cuda:
            torch.cuda.synchronize()
        marks.append(time.perf_counter())

    def on_step(state: State) -> bool:
        mark(state)
        return True

    short = replace(config.train, steps=STEPS + 2, eval_every=STEPS + 2, warmup=0)
    fit(
        model,
        task,
        splits,
        short,
        seed=0,
        state=state,
        optimizer=optimizer,
        on_evaluation=mark,
        on_step=on_step,
    )
    evaluation, step = marks[1] - marks[0], (marks[STEPS + 2] - marks[2]) / STEPS
    return (
        config.train.steps * step + (1 + config.train.steps // config.train.eval_every) * evaluation
    )
