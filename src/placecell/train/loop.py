"""The training loop.

Everything random in it is a function of the seed and the step, so any step can be resumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from placecell.config import TrainConfig
from placecell.encodings.positions import Positions
from placecell.model import Transformer
from placecell.seeds import torch_stream
from placecell.store.runs import Row, Status
from placecell.tasks.base import Examples, Task
from placecell.train.device import compile_options
from placecell.train.muon import Muon

EVAL_BATCH = 1024  # samples per forward pass in evaluations: bounds memory, changes nothing


@dataclass
class State:
    """Progress of a run, apart from its weights.

    Parameters
    ----------
    step : int
        Training steps done.
    seconds : float
        Time spent in training steps.
    best : float
        Lowest loss so far on the split that `patience` watches.
    stale : int
        Evaluations since then.
    rows : list of Row
        The measurements.
    snapshots : dict
        "step/table" or "step/name of a weight" -> tensor.
    """

    step: int = 0
    seconds: float = 0.0
    best: float = math.inf  # lowest loss on the split that `patience` watches
    stale: int = 0  # evaluations since then
    rows: list[Row] = field(default_factory=list)
    # "step/table", "step/name of a weight"
    snapshots: dict[str, Tensor] = field(default_factory=dict)


def make_optimizer(model: Transformer, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimizer, with the positional encoding as a group of its own (the second).

    With Muon the matrices of the layers are a third group; all else, the encoding too, is AdamW's.

    Parameters
    ----------
    model : Transformer
        The model.
    config : TrainConfig
        Optimizer, learning rates and weight decays.

    Returns
    -------
    torch.optim.Optimizer
        The optimizer.
    """
    position = list(model.encoding.parameters())
    own = {id(p) for p in position}
    others = [p for p in model.parameters() if id(p) not in own]
    pe_lr = config.lr if config.pe_lr is None else config.pe_lr
    rest = {"lr": config.lr, "base_lr": config.lr, "weight_decay": config.weight_decay}
    groups: list[dict[str, Any]] = [
        {"params": others, **rest},
        {"params": position, "lr": pe_lr, "base_lr": pe_lr, "weight_decay": config.pe_weight_decay},
    ]
    if config.optimizer == "muon":
        matrices = [p for p in model.encoder.parameters() if p.ndim == 2]
        turned = {id(p) for p in matrices}
        groups[0]["params"] = [p for p in others if id(p) not in turned]
        return Muon([*groups, {"params": matrices, "orthogonal": True, **rest}], fused=True)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, momentum=config.momentum, fused=True)
    cls = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return cls(groups, lr=config.lr, fused=True)


def rate(step: int, config: TrainConfig) -> float:
    """Return the learning rate of the next step, as a share of its full value.

    Parameters
    ----------
    step : int
        Steps done so far.
    config : TrainConfig
        Warm-up, schedule and number of steps.

    Returns
    -------
    float
        Between 0 and 1.
    """
    if step < config.warmup:
        return (step + 1) / config.warmup
    if config.schedule == "cosine":
        done = (step - config.warmup) / max(1, config.steps - config.warmup)
        return 0.5 * (1 + math.cos(math.pi * done))
    return 1.0


def batch_rows(step: int, n: int, batch_size: int, seed: int) -> Tensor:
    """Return which samples a step trains on.

    Each epoch is one shuffled pass; the shuffle depends on the seed and the epoch only.

    Parameters
    ----------
    step : int
        Steps done so far.
    n : int
        Number of training samples.
    batch_size : int
        Samples per step.
    seed : int
        Seed of the order.

    Returns
    -------
    Tensor
        Indices of samples.
    """
    size = min(batch_size, n)
    per_epoch = n // size  # the few left over sit out; another shuffle brings them back
    epoch, k = divmod(step, per_epoch)
    order = torch.randperm(n, generator=torch_stream(seed, f"order/{epoch}"))
    return order[k * size : (k + 1) * size]


@torch.no_grad()
def predict(model: Transformer, examples: Examples, positions: Positions) -> Tensor:
    """Return the outputs of a model for a whole split.

    Parameters
    ----------
    model : Transformer
        The model.
    examples : Examples
        The N samples of the split.
    positions : Positions
        The task's positions.

    Returns
    -------
    Tensor
        Outputs (N q o), without gradient.
    """
    chunks = range(0, len(examples), EVAL_BATCH)
    parts = (examples.take(slice(start, start + EVAL_BATCH)) for start in chunks)
    return torch.cat([model(part.inputs(positions)).outputs for part in parts])


def evaluate_splits(
    model: Transformer, task: Task, splits: dict[str, Examples], positions: Positions, step: int
) -> list[Row]:
    """Return loss and metrics of every split.

    Parameters
    ----------
    model : Transformer
        The model.
    task : Task
        What scores the outputs.
    splits : dict
        Name -> Examples.
    positions : Positions
        The task's positions.
    step : int
        Step to write into the rows.

    Returns
    -------
    list of Row
        One row per split and metric.
    """
    rows = []
    for split, examples in splits.items():
        outputs = predict(
            model, examples, positions
        ).cpu()  # scored in double precision, which mps has not
        examples = examples.to(outputs.device)
        scores = {"loss": float(task.loss(outputs, examples)), **task.metrics(outputs, examples)}
        rows += [Row(step, split, name, value) for name, value in scores.items()]
    return rows


def table_gradient(model: Transformer) -> float | None:
    """Return the norm of the last step's gradient of the positional encoding.

    Parameters
    ----------
    model : Transformer
        The model.

    Returns
    -------
    float or None
        None if the encoding has no gradient.
    """
    gradients = [p.grad for p in model.encoding.parameters() if p.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients)) if gradients else None


def take_snapshot(model: Transformer, places: Positions, state: State, what: str) -> None:
    """Add a copy of the table, or of all weights too, to `state.snapshots`.

    Parameters
    ----------
    model : Transformer
        The model.
    places : Positions
        The places whose rows of the table are kept.
    state : State
        Gets the copy, under its step.
    what : {"none", "table", "weights"}
        What to keep.
    """
    table = model.table(places)
    kept = {} if what == "none" or table is None else {"table": table}
    if what == "weights":
        kept |= model.state_dict()
    state.snapshots |= {
        f"{state.step:08d}/{name}": v.detach().cpu().clone() for name, v in kept.items()
    }


def fit(
    model: Transformer,
    task: Task,
    splits: dict[str, Examples],
    config: TrainConfig,
    *,
    seed: int,
    state: State,
    optimizer: torch.optim.Optimizer,
    on_evaluation: Callable[[State], None] = lambda state: None,
    on_step: Callable[[State], bool] = lambda state: True,
    compile: bool = False,
) -> Status:
    """Train from `state` to the end of `config`.

    `model`, `optimizer` and `state` are changed in place, and together are all there is to save.

    Parameters
    ----------
    model : Transformer
        The model.
    task : Task
        Makes the batches and scores the outputs.
    splits : dict
        Name -> Examples; `train` is trained on, all are evaluated.
    config : TrainConfig
        How to train.
    seed : int
        Seed of the order of the samples and of the batches.
    state : State
        Where to start.
    optimizer : torch.optim.Optimizer
        From `make_optimizer`.
    on_evaluation : callable
        Called with `state` after every evaluation.
    on_step : callable
        Called with `state` after every step; returning False interrupts.
    compile : bool
        Whether to compile the training step.

    Returns
    -------
    str
        `done`, `diverged` or `interrupted`.
    """
    device = next(model.parameters()).device
    positions, places = task.positions.to(device), task.places.to(device)
    splits = {name: examples.to(device) for name, examples in splits.items()}
    train = splits["train"]
    few = min(config.eval_train, len(train))
    # evenly over it
    scored = splits | {"train": train.take(torch.arange(few, device=device) * len(train) // few)}

    def loss_of(batch: Examples) -> Tensor:
        return task.loss(model(batch.inputs(positions)).outputs, batch)

    step_loss = torch.compile(loss_of, options=compile_options(device)) if compile else loss_of
    if state.step == 0 and not state.rows:
        state.rows += evaluate_splits(model, task, scored, positions, 0)
        take_snapshot(model, places, state, config.snapshots)
        on_evaluation(state)
    last = time.perf_counter()
    while state.step < config.steps and (config.patience is None or state.stale < config.patience):
        rows = batch_rows(state.step, len(train), config.batch_size, seed).to(device)
        batch = task.batch(train, rows, torch_stream(seed, f"batch/{state.step}"))
        for group in optimizer.param_groups:
            group["lr"] = group["base_lr"] * rate(state.step, config)
        optimizer.zero_grad()
        drawn = torch_stream(seed, f"encoding/{state.step}")
        model.encoding.begin_step(len(batch), drawn)
        loss = step_loss(batch)
        if not math.isfinite(loss.item()):
            state.rows.append(Row(state.step, "train", "loss", loss.item()))
            return "diverged"
        loss.backward()
        model.encoding.end_step()
        if config.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        state.step += 1
        now = time.perf_counter()
        state.seconds, last = state.seconds + now - last, now
        # what matters in training happens on a log scale
        power_of_two = state.step & (state.step - 1) == 0
        evaluation = state.step % config.eval_every == 0 or state.step == config.steps
        if power_of_two:
            take_snapshot(model, places, state, config.snapshots)
        if power_of_two or evaluation:
            gradient = table_gradient(model)
            if gradient is not None:
                state.rows.append(Row(state.step, "train", "table_gradient", gradient))
        if evaluation:
            new = evaluate_splits(model, task, scored, positions, state.step)
            state.rows += new
            watched = next(
                r.value for r in new if (r.split, r.name) == (config.patience_split, "loss")
            )
            state.stale = 0 if watched < state.best else state.stale + 1
            state.best = min(state.best, watched)
            on_evaluation(state)
            if not math.isfinite(
                next(r.value for r in new if (r.split, r.name) == ("train", "loss"))
            ):
                return "diverged"
        if state.step < config.steps and not on_step(state):
            return "interrupted"
    take_snapshot(model, places, state, config.snapshots)
    return "done"
