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
    splits: dict[str, dict[str, Examples]] = {}
    known: dict[str, float] = {}  # kind of model -> seconds of its runs
    total, longest = 0.0, 0.0
    for config in configs:
        if finished(out / config.name):
            continue
        key = data_key(config)
        if key not in splits:
            splits[key] = make_task(config).splits()
        kind = repr((key, replace(config.encoding, sigma=None), config.model, config.train))
        if kind not in known:
            known[kind] = _seconds(config, splits[key], device)
        total, longest = total + known[kind], max(longest, known[kind])
    return max(longest, total / max(1, workers))


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
