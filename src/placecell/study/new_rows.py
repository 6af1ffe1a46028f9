"""Runs on samples that need rows of the encoding they never used: before and after tuning these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from placecell.config.labels import label, varying
from placecell.errors import InputError
from placecell.model import Transformer
from placecell.seeds import torch_stream
from placecell.store.runs import RunResult
from placecell.store.table import Table
from placecell.study.intervals import interval_table
from placecell.tasks.base import Examples, Task, check_splits
from placecell.train.loop import batch_rows, evaluate_splits
from placecell.train.run import load_model, make_task

CHUNK = 512  # training samples at a time in the search for unused entries


@dataclass(frozen=True)
class Tuning:
    """How the new entries are tuned.

    Attributes
    ----------
    steps : int
        Steps of Adam.
    lr : float
        Learning rate.
    batch_size : int
        Samples a step.
    """

    steps: int = 100
    lr: float = 1e-2
    batch_size: int = 64


def extend(
    runs: Sequence[RunResult],
    changes: Mapping[str, Any],
    tuning: Tuning,
    *,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Table:
    """Score finished runs on other samples of their task, then tune what these need anew.

    The entries of the encoding's parameters whose gradient is 0 for every training sample were
    never used: rows of a table at places that no training sample has, or vectors of differences
    that none has. Only they are tuned, on the training samples of the changed task; all other
    weights stay. An encoding that has no such entries (a fixed one, or a network) is only scored.

    Parameters
    ----------
    runs : sequence of RunResult
        Finished runs of one task.
    changes : mapping of str to Any
        New values of settings of the task's data by name, such as `{"train_orders": [6]}`.
    tuning : Tuning
        How long and how fast.
    on_run : callable
        Called with the number of runs done so far, and of all.

    Returns
    -------
    Table
        One row per run: label, seed, `new` (number of entries tuned), and every test metric as
        `before/…`, `after/…` and `gain/…`, the difference.
    """
    runs = [run for run in runs if run.status == "done"]
    if not runs:
        raise InputError("no finished run here to extend.")
    keys, rows = varying([run.config for run in runs]), []
    made: dict[Any, tuple[Task, dict[str, Examples]]] = {}
    for number, run in enumerate(runs):
        on_run(number, len(runs))
        config, task, model = load_model(run.folder)
        changed = config.override({f"data.{key}": value for key, value in changes.items()})
        if changed.data not in made:
            other = make_task(changed)
            made[changed.data] = other, other.splits()
            check_splits(*made[changed.data])
        other, splits = made[changed.data]
        _check_same_model(task, other)
        new = unused_entries(model, task, task.splits()["train"])
        row: dict[str, Any] = {"label": label(config, keys), "seed": config.seed}
        row["new"] = sum(int(mask.sum()) for mask in new.values())
        row |= _scores("before", model, other, splits)
        if row["new"]:
            _tune(model, other, splits["train"], new, tuning, config.seed)
        row |= _scores("after", model, other, splits)
        names = [name.partition("/")[2] for name in row if name.startswith("after/")]
        row |= {f"gain/{name}": row[f"after/{name}"] - row[f"before/{name}"] for name in names}
        rows.append(row)
    on_run(len(runs), len(runs))
    return Table.from_rows(rows)


def table_of_means(extended: Table) -> Table:
    """Average what `extend` found over the seeds of each configuration.

    Parameters
    ----------
    extended : Table
        As `extend` returns it.

    Returns
    -------
    Table
        `label`, `measure`, `seeds`, `mean`, `low` and `high`, as `interval_table` has them.
    """
    rows = sorted(extended.rows(), key=lambda row: (row["label"], row["seed"]))
    return interval_table(
        (row["label"], {k: v for k, v in row.items() if "/" in k and v is not None}) for row in rows
    )


def unused_entries(model: Transformer, task: Task, examples: Examples) -> dict[str, Tensor]:
    """Find the entries of the encoding's parameters that no sample uses.

    Parameters
    ----------
    model : Transformer
        A trained model.
    task : Task
        Its task, for the loss.
    examples : Examples
        The samples that it was trained on.

    Returns
    -------
    dict of str to Tensor
        Name of a parameter of the encoding -> boolean, True where its gradient is 0 for all
        samples.
    """
    used = {
        name: torch.zeros_like(part, dtype=torch.bool)
        for name, part in model.encoding.named_parameters()
    }
    for start in range(0, len(examples), CHUNK) if used else ():
        model.zero_grad()
        some = examples.take(slice(start, start + CHUNK))
        task.loss(model(some.inputs(task.positions)).outputs, some).backward()
        for name, part in model.encoding.named_parameters():
            if part.grad is not None:
                used[name] |= part.grad != 0
    model.zero_grad()
    return {name: ~mask for name, mask in used.items()}


def _check_same_model(task: Task, other: Task) -> None:
    """Refuse changes that would need a model of another size."""
    sizes = [
        (t.tokens, t.n_outputs, tuple(t.places.index.shape), t.places.axes) for t in (task, other)
    ]
    if sizes[0] != sizes[1]:
        raise InputError("these settings change the tokens, places or outputs of the task itself.")


def _scores(
    when: str, model: Transformer, task: Task, splits: Mapping[str, Examples]
) -> dict[str, float]:
    rows = evaluate_splits(model, task, {"test": splits["test"]}, task.positions, 0)
    return {f"{when}/{row.name}": row.value for row in rows}


def _tune(
    model: Transformer,
    task: Task,
    train: Examples,
    new: Mapping[str, Tensor],
    tuning: Tuning,
    seed: int,
) -> None:
    """Train the new entries alone, in place; gradients of all others are set to 0."""
    parts = dict(model.encoding.named_parameters())
    optimizer = torch.optim.Adam(list(parts.values()), lr=tuning.lr)
    for step in range(tuning.steps):
        rows = batch_rows(step, len(train), tuning.batch_size, seed)
        batch = task.batch(train, rows, torch_stream(seed, f"extend/{step}"))
        model.zero_grad()
        task.loss(model(batch.inputs(task.positions)).outputs, batch).backward()
        for name, part in parts.items():
            if part.grad is not None:
                part.grad.mul_(new[name])
        optimizer.step()
