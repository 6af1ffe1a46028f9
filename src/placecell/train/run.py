"""One run from its configuration to its folder."""

from __future__ import annotations

import contextlib
import csv
import io
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import Tensor

from placecell import files, tasks
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.model import Transformer, build_model, resolve
from placecell.seeds import torch_stream
from placecell.tasks.base import Examples, Task
from placecell.train import checkpoint
from placecell.train.loop import Row, State, Status, fit, make_optimizer
from placecell.train.machine import environment, not_compilable, pick_device
from placecell.train.transplant import take_table
from placecell.values import held

ENDED = ("done", "diverged")


@dataclass(frozen=True)
class RunResult:
    """A finished (or interrupted) run: how it ended and what was measured. The rest is in its folder."""

    config: RunConfig
    folder: Path
    status: Status
    step: int
    seconds: float
    rows: tuple[Row, ...]
    reused: bool = False

    def final(self, split: str, name: str) -> float:
        """The last value of a metric; NaN if it was never measured."""
        return next((r.value for r in reversed(self.rows) if (r.split, r.name) == (split, name)), float("nan"))


@dataclass(frozen=True)
class Watch:
    """Who looks on while a run trains: told of every evaluation and step; `on_step` returning False interrupts."""

    on_evaluation: Callable[[State], None] = lambda state: None
    on_step: Callable[[State], bool] = lambda state: True
    checkpoint_seconds: float = 30.0


def complete(config: RunConfig, task: Task) -> RunConfig:
    """The configuration with the task's and the encoding's settings resolved, as it is hashed and saved."""
    return replace(config, data=task.config, encoding=resolve(config.encoding, task.positions.axes))


def make_task(config: RunConfig) -> Task:
    """The task of a configuration."""
    return tasks.load(config.task)(config.data)


def make_model(config: RunConfig, task: Task) -> Transformer:
    """The model of a run at step 0."""
    return build_model(
        task.tokens,
        task.positions,
        task.n_outputs,
        config.model,
        config.encoding,
        weights=torch_stream(config.seed_of("weights"), "weights"),
        pe=torch_stream(config.seed_of("pe"), "pe"),
    )


def run(
    config: RunConfig,
    out: Path | str,
    *,
    device: str = "auto",
    compile: bool = False,
    task: Task | None = None,
    splits: dict[str, Examples] | None = None,
    watch: Watch | None = None,
    facts: dict[str, Any] | None = None,
) -> RunResult:
    """Train a configuration in its own folder under `out`: anew, from its checkpoint, or not at all if it is done.

    `task`, `splits` and `facts` (the `environment`) may be handed in to share them between runs; the first two must
    be those of `config.data`.
    """
    out, watch = Path(out), watch or Watch()
    where = pick_device(device)
    task = task or make_task(config)
    config = complete(config, task)
    model = make_model(config, task)  # before the folder is made: a bad configuration leaves nothing
    folder = out / config.name
    if finished(folder):
        return replace(load_result(folder), reused=True)
    if config.donor is not None:
        take_table(model, out / config.donor, config.donor_change, torch_stream(config.seed_of("pe"), "transplant"))
    model.to(where)
    splits = splits or task.splits()
    files.make_folder(folder)
    with files.lock(folder):
        if finished(folder):  # by another process, in the meantime
            return replace(load_result(folder), reused=True)
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
        attempt = _attempt(folder, state, compile, facts)  # all is read before anything is written
        files.write_text(folder / "config.toml", config.to_toml())
        files.write_json(folder / "environment.json", attempt)
        _write_status(folder, "running", state)
        written = time.monotonic()

        def save() -> None:
            checkpoint.save(saved, model, optimizer, state, folder.name)
            files.write_text(folder / "metrics.csv", metrics_csv(state.rows))
            _write_status(folder, "running", state)

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
                with contextlib.suppress(InputError):  # of a full disk, say, which is then the error that counts
                    _write_status(folder, "failed", state, f"{type(error).__name__}: {error}")
                if not_compiled:
                    raise InputError(
                        "the training step could not be compiled; see that there is a C++ compiler (g++), or leave "
                        f"--compile out ({str(error).partition(chr(10))[0]})."
                    ) from None
                raise
        if status == "interrupted":
            save()
        else:
            files.write_tensors(folder / "weights.safetensors", model.state_dict())
            if state.snapshots:
                files.write_tensors(folder / "snapshots.safetensors", state.snapshots)
            files.write_text(folder / "metrics.csv", metrics_csv(state.rows))
        _write_status(folder, status, state)
        if status != "interrupted":
            files.remove(saved)
    return RunResult(config, folder, status, state.step, state.seconds, tuple(state.rows))


def finished(folder: Path) -> bool:
    """Whether the run of this folder is done (or diverged). What a kill just before the end left there is cleared."""
    if not (folder / "status.json").exists() or read_status(folder)["status"] not in ENDED:
        return False
    with contextlib.suppress(OSError):
        files.remove(folder / "checkpoint.safetensors")
    return True


def mark_failed(folder: Path, message: str) -> None:
    """Say in its folder that a run's process died, if that can still be said there. Its checkpoint stays."""
    with contextlib.suppress(InputError), files.lock(folder):
        if not finished(folder):
            _write_status(folder, "failed", State(**{k: read_status(folder)[k] for k in ("step", "seconds")}), message)


def _attempt(folder: Path, state: State, compile: bool, facts: dict[str, Any]) -> dict[str, Any]:
    """The environment of this attempt at a run, and when, where and from which step this and earlier ones began."""
    path = folder / "environment.json"
    found = files.read_json(path) if path.exists() else {}
    before = found.get("attempts", []) if isinstance(found, dict) else None
    if not isinstance(before, list):
        raise InputError(f"{path}: not the environment of a run; remove it to go on.")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    this = {"started": now, "host": platform.node(), "from_step": state.step, "compiled": compile}
    return facts | {"attempts": [*before, this]}


def read_status(folder: Path) -> dict[str, Any]:
    path = folder / "status.json"
    found = files.read_json(path)
    try:
        step, seconds = (held(found[key], kind, key, at_least=0) for key, kind in (("step", int), ("seconds", float)))
        status, message = held(found["status"], Status, "status"), held(found.get("message", ""), str, "message")
    except (KeyError, TypeError, InputError):
        raise InputError(f"{path}: not the status of a run.") from None
    return {"status": status, "step": step, "seconds": seconds, "message": message}


def _write_status(folder: Path, status: Status, state: State, message: str = "") -> None:
    message = message.partition("\n")[0][:500]  # a compiler may say pages
    content = {"status": status, "step": state.step, "seconds": round(state.seconds, 3), "message": message}
    files.write_json(folder / "status.json", content)


def metrics_csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows((r.step, r.split, r.name, repr(float(r.value))) for r in rows)
    return text.getvalue()


def load_result(folder: Path | str) -> RunResult:
    """A run read back from its folder."""
    folder = Path(folder)
    config = RunConfig.from_toml(folder / "config.toml")
    task, _, digits = folder.name.rpartition("-")
    named = task in tasks.available() and re.fullmatch("[0-9a-f]{12}", digits)  # a copy may be called anything
    if named and folder.name != config.name:
        raise InputError(f"{folder}: its config.toml is that of {config.name}: of another run, or another version.")
    status = read_status(folder)
    ended = status["status"] in ENDED
    path = folder / "metrics.csv"
    rows: list[Row] = []
    try:
        with path.open(newline="") as file:
            header, *lines = [line for line in csv.reader(file) if line] or [[]]
        if header != list(Row._fields) or (ended and not lines):
            raise ValueError(f"found {len(lines)} lines below {','.join(header)!r}")
        rows = [Row(int(step), split, name, float(value)) for step, split, name, value in lines]
    except FileNotFoundError:
        if ended:
            raise InputError(f"{path}: missing, of a run that is {status['status']}; remove its folder.") from None
    except (ValueError, OSError, csv.Error) as error:
        raise InputError(f"{path}: not a metrics file (expected step,split,name,value): {error}.") from None
    return RunResult(config, folder, status["status"], status["step"], status["seconds"], tuple(rows))


def load_model(folder: Path | str) -> tuple[RunConfig, Task, Transformer]:
    """The trained model of a finished run, with its task."""
    folder = Path(folder)
    if not (folder / "config.toml").exists():
        raise InputError(f"{folder}: not a run's folder (it has no config.toml).")
    config = RunConfig.from_toml(folder / "config.toml")
    task = make_task(config)
    model = make_model(config, task)
    path = folder / "weights.safetensors"
    if not path.exists():
        raise InputError(f"{folder}: no weights yet (the run is not done); run it to the end first.")
    checkpoint.load_weights(model, files.read_tensors(path)[0], path)
    return config, task, model


def load_weights_along(folder: Path | str) -> dict[int, dict[str, Tensor]]:
    """Step -> all weights of a finished run: at its start (drawn again), at every snapshot of them, at its end."""
    folder = Path(folder)
    config, _, model = load_model(folder)
    last = read_status(folder)["step"]
    found = {0: make_model(config, make_task(config)).state_dict()}
    if config.train.snapshots == "weights":
        kept = files.read_tensors(folder / "snapshots.safetensors")[0]
        for key, tensor in sorted(kept.items()):
            step, _, name = key.partition("/")
            if name != "table":
                found.setdefault(int(step), {})[name] = tensor
    return found | {last: model.state_dict()}


def load_snapshots(folder: Path | str, name: str = "table") -> dict[int, Tensor]:
    """Step -> the table (or the weight of that name) as it was then; empty if the run kept none."""
    path = Path(folder) / "snapshots.safetensors"
    if not path.exists():
        return {}
    kept = [(key.partition("/"), tensor) for key, tensor in files.read_tensors(path)[0].items()]
    return {int(step): tensor for (step, _, of), tensor in sorted(kept, key=lambda one: one[0]) if of == name}
