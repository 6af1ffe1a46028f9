"""One run from its configuration to its folder."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import Tensor

from placecell import tasks
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.model import Transformer, build_model, resolve
from placecell.plugins import sources
from placecell.registry import ENCODINGS
from placecell.seeds import torch_stream
from placecell.store import files, locks
from placecell.store.runs import (
    RunResult,
    finished,
    load_config,
    metrics_csv,
    not_known,
    read_status,
    reuse,
    write_status,
)
from placecell.tasks.base import Examples, Task, check_splits
from placecell.train import checkpoint
from placecell.train.device import environment, not_compilable, pick_device
from placecell.train.donor import take_table
from placecell.train.loop import State, fit, make_optimizer
from placecell.train.share import with_sigma


class NotCompiled(InputError):
    """The training step could not be compiled."""


@dataclass(frozen=True)
class Watch:
    """Functions that a run calls while it trains.

    Parameters
    ----------
    on_evaluation : callable
        Called with the `State` after every evaluation.
    on_step : callable
        Called with the `State` after every step; returning False interrupts the run.
    checkpoint_seconds : float
        Seconds between checkpoints.
    """

    on_evaluation: Callable[[State], None] = lambda state: None
    on_step: Callable[[State], bool] = lambda state: True
    checkpoint_seconds: float = 30.0


def complete(config: RunConfig, task: Task) -> RunConfig:
    """Return a configuration with all settings of task and encoding resolved.

    Parameters
    ----------
    config : RunConfig
        The configuration.
    task : Task
        Its task.

    Returns
    -------
    RunConfig
        The configuration as it is hashed and saved.
    """
    config = with_sigma(config, task)
    return replace(config, data=task.config, encoding=resolve(config.encoding, task.places.axes))


def make_task(config: RunConfig) -> Task:
    """Return the task of a configuration.

    Parameters
    ----------
    config : RunConfig
        The configuration.

    Returns
    -------
    Task
        The task; it may have read files.
    """
    return tasks.load(config.task)(config.data)


def make_model(config: RunConfig, task: Task) -> Transformer:
    """Return the model of a run at step 0.

    Parameters
    ----------
    config : RunConfig
        The configuration.
    task : Task
        Its task.

    Returns
    -------
    Transformer
        The model, on the CPU.
    """
    return build_model(
        task.tokens,
        task.places,
        task.n_outputs,
        config.model,
        config.encoding,
        weights=torch_stream(config.seed_of("weights"), "weights"),
        pe=torch_stream(config.seed_of("pe"), "pe"),
    )


def run(
    config: RunConfig | Mapping[str, Any],
    out: Path | str,
    *,
    device: str = "auto",
    compile: bool = False,
    task: Task | None = None,
    splits: dict[str, Examples] | None = None,
    watch: Watch | None = None,
    facts: dict[str, Any] | None = None,
) -> RunResult:
    """Train a configuration in its own folder under `out`.

    It starts anew or from its checkpoint; a run that is done already is only read back.

    Parameters
    ----------
    config : RunConfig or mapping
        What to train: a configuration, or a dict that `RunConfig.of` takes.
    out : Path or str
        The folder of the runs.
    device : str
        `auto`, `cpu`, `cuda` or `mps`.
    compile : bool
        Whether to compile the training step.
    task : Task, optional
        The task of `config.data`, to share it between runs.
    splits : dict, optional
        Its data (name -> Examples), to share them between runs.
    watch : Watch, optional
        Functions to call while it trains.
    facts : dict, optional
        The `environment`, to share it between runs.

    Returns
    -------
    RunResult
        How it ended and what was measured.

    Examples
    --------
    >>> config = placecell.preset("latin_square").override({"sigma": 0.1})  # doctest: +SKIP
    >>> placecell.run(config, "runs/mine").final("test", "accuracy")  # doctest: +SKIP
    0.93
    """
    config, out, watch = RunConfig.of(config), Path(out), watch or Watch()
    where = pick_device(device)
    task = task or make_task(config)
    config = complete(config, task)
    # before the folder is made: a bad configuration leaves nothing
    model = make_model(config, task)
    folder = out / config.name
    if finished(folder):
        return reuse(folder)
    if config.donor is not None:
        take_table(
            model,
            out / config.donor,
            config.donor_change,
            torch_stream(config.seed_of("pe"), "transplant"),
        )
    model.to(where)
    splits = splits or task.splits()
    check_splits(task, splits)
    files.make_folder(folder)
    with locks.lock(folder):
        if finished(folder):  # by another process, in the meantime
            return reuse(folder)
        files.remove_left_over(folder)
        optimizer = make_optimizer(model, config.train)
        state = State()
        saved = folder / "checkpoint.safetensors"
        if saved.exists():
            try:
                state = checkpoint.load(saved, model, optimizer, folder.name)
            except InputError as error:
                raise InputError(f"{error} Remove it to start this run again.") from None
        facts = facts or environment(where)
        plugins = sources(config.task, config.encoding.name)
        facts = facts | ({"plugins": plugins} if plugins else {})
        attempt = _attempt(folder, state, compile, facts)  # all is read before anything is written
        files.write_text(folder / "config.toml", config.to_toml())
        files.write_json(folder / "environment.json", attempt)
        write_status(folder, "running", state.step, state.seconds)
        written = time.monotonic()

        def save() -> None:
            checkpoint.save(saved, model, optimizer, state, folder.name)
            files.write_text(folder / "metrics.csv", metrics_csv(state.rows))
            write_status(folder, "running", state.step, state.seconds)

        def on_step(state: State) -> bool:
            nonlocal written
            if time.monotonic() - written >= watch.checkpoint_seconds:
                save()
                written = time.monotonic()
            return watch.on_step(state)

        try:
            status = fit(
                model,
                task,
                splits,
                config.train,
                seed=config.seed_of("data"),
                state=state,
                optimizer=optimizer,
                on_evaluation=watch.on_evaluation,
                on_step=on_step,
                compile=compile,
            )
        except Exception as error:
            not_compiled = compile and not_compilable(error)
            if not_compiled and not watch.on_step(state):
                status = "interrupted"  # Ctrl-C goes to the C++ compiler as well, which dies of it
            else:
                # of a full disk, say, which is then the error that counts
                with contextlib.suppress(InputError):
                    write_status(
                        folder,
                        "failed",
                        state.step,
                        state.seconds,
                        f"{type(error).__name__}: {error}",
                    )
                if not_compiled:
                    raise NotCompiled(
                        "the training step could not be compiled; see that there is a C++ "
                        "compiler (g++), or train without compile "
                        f"({str(error).partition(chr(10))[0]})."
                    ) from None
                raise
        if status == "interrupted":
            save()
        else:
            files.write_tensors(folder / "weights.safetensors", model.state_dict())
            if state.snapshots:
                files.write_tensors(folder / "snapshots.safetensors", state.snapshots)
            files.write_text(folder / "metrics.csv", metrics_csv(state.rows))
        write_status(folder, status, state.step, state.seconds)
        if status != "interrupted":
            files.remove(saved)
    return RunResult(config, folder, status, state.step, state.seconds, tuple(state.rows))


def _attempt(folder: Path, state: State, compile: bool, facts: dict[str, Any]) -> dict[str, Any]:
    """The environment of this attempt at a run, and when, where and from which step this and
    earlier ones began."""
    path = folder / "environment.json"
    written = files.read_json(path) if path.exists() else {}
    before = written.get("attempts", []) if isinstance(written, dict) else None
    if not isinstance(before, list):
        raise InputError(f"{path}: not the environment of a run; remove it to go on.")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    this = {"started": now, "host": platform.node(), "from_step": state.step, "compiled": compile}
    return facts | {"attempts": [*before, this]}


def load_model(folder: Path | str) -> tuple[RunConfig, Task, Transformer]:
    """Return the trained model of a finished run.

    Parameters
    ----------
    folder : Path or str
        Folder of the run.

    Returns
    -------
    RunConfig
        The configuration of the run.
    Task
        Its task.
    Transformer
        The model, on the CPU.
    """
    folder = Path(folder)
    if not (folder / "config.toml").exists():
        raise InputError(f"{folder}: not a run's folder (it has no config.toml).")
    config = load_config(folder)
    if config.encoding.name not in ENCODINGS.names():
        raise not_known(folder, ENCODINGS.kind, config.encoding.name)
    task = make_task(config)
    model = make_model(config, task)
    path = folder / "weights.safetensors"
    if not path.exists():
        raise InputError(
            f"{folder}: no weights yet (the run is not done); run it to the end first."
        )
    checkpoint.load_weights(model, files.read_tensors(path)[0], path)
    return config, task, model


def load_weights_along(folder: Path | str) -> dict[int, dict[str, Tensor]]:
    """Return all weights of a finished run at several steps.

    Parameters
    ----------
    folder : Path or str
        Folder of the run.

    Returns
    -------
    dict
        Step -> weights by name: at the start (drawn again), at every snapshot of weights, at the
        end.
    """
    folder = Path(folder)
    config, _, model = load_model(folder)
    last = read_status(folder)["step"]
    weights_by_step = {0: make_model(config, make_task(config)).state_dict()}
    if config.train.snapshots == "weights":
        kept = files.read_tensors(folder / "snapshots.safetensors")[0]
        for key, tensor in sorted(kept.items()):
            step, _, name = key.partition("/")
            if name != "table":
                weights_by_step.setdefault(int(step), {})[name] = tensor
    return weights_by_step | {last: model.state_dict()}


def load_snapshots(folder: Path | str, name: str = "table") -> dict[int, Tensor]:
    """Return the table, or one weight, of a run at several steps.

    Parameters
    ----------
    folder : Path or str
        Folder of the run.
    name : str
        `table`, or the name of a weight.

    Returns
    -------
    dict
        Step -> tensor; empty if the run kept none.
    """
    path = Path(folder) / "snapshots.safetensors"
    if not path.exists():
        return {}
    kept = [(key.partition("/"), tensor) for key, tensor in files.read_tensors(path)[0].items()]
    return {
        int(step): tensor
        for (step, _, of), tensor in sorted(kept, key=lambda one: one[0])
        if of == name
    }
