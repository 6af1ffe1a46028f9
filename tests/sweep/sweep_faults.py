"""Faults at every operation on the disk, and a small sweep to suffer them.

In a process of its own each operation of `placecell.store.disk` is announced before it is made:

- `Recorder` keeps what the store is at that moment. That is what a kill (SIGKILL: no handler, no
  clean-up runs) leaves, no more and no less, so one sweep shows what a kill at each operation does.
  It keeps beside it what a loss of power leaves: what was not synced is gone from the disk.
- `Killed` really is killed at the n-th.
- `Full` finds no space left at the n-th, and ever after.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.store import disk
from placecell.store.files import read_json
from placecell.sweep import local, sweep
from placecell.sweep.backends import base
from placecell.sweep.backends.local import PRELOAD
from placecell.tasks.base import Examples
from placecell.tasks.latin_square.task import LatinSquare
from placecell.train import make_task

OPERATIONS = ("write", "sync", "rename", "sync_folder", "remove", "make_folder")
NEED_SPACE = ("write", "sync", "rename", "make_folder")
# forks from a process that has torch but has never trained
CONTEXT = multiprocessing.get_context("forkserver")
USED = ("filelock", "numpy.ctypeslib", "placecell.tasks.latin_square.task", "safetensors.torch")
CONTEXT.set_forkserver_preload([*PRELOAD, *USED])

PARTS = ("tokens", "read", "targets", "group")
SMALL = {
    "task": "latin_square",
    "data": {"n_train": 24, "n_valid": 12, "n_test": 12, "conditions": "1v1s"},
    "encoding": {"sigma": 0.1},
    "model": {"width": 4, "depth": 1},
    "train": {"steps": 3, "eval_every": 2, "batch_size": 8},
}

Data = dict[str, list[list]]
Outcomes = list[tuple[str, bool, str]]  # status, whether it was done before, message
Before = Callable[[str, tuple[Path, ...]], None]  # told each operation before it is made


def small_sweep() -> list[RunConfig]:
    """Two runs, the second of which diverges."""
    config = RunConfig.from_dict(SMALL)
    return [config, config.override({"lr": 1e30, "sigma": 2.0, "optimizer": "sgd"})]


def drawn() -> Data:
    """The data of the small sweep as plain lists; drawing them takes longer than all the rest of
    it."""
    splits = make_task(small_sweep()[0]).splits()
    return {name: [getattr(e, part).tolist() for part in PARTS] for name, e in splits.items()}


@dataclass
class Recorder:
    """Keeps what a kill and a loss of power before each operation leave of `store`.

    Each different state is a folder in `kept`, whose files are links to those of the store: bytes,
    times and file numbers are the same, so the sweep that goes on there cannot tell it from the
    store itself. States with the same names, bytes, times and file numbers are one folder.
    """

    store: Path
    kept: Path
    operations: list[str] = field(default_factory=list)
    # fault -> the state that it leaves before each operation
    states: dict[str, list[Path]] = field(default_factory=lambda: {"kill": [], "power": []})
    folders: dict[tuple, Path] = field(default_factory=dict)
    written: set[Path] = field(default_factory=set)  # content not synced
    # name not synced, and a link to what it was before
    renamed: list[tuple[Path, Path | None]] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)  # folders whose names are not synced

    def before(self, name: str, paths: tuple[Path, ...]) -> None:
        there = [self.store, *self.store.rglob("*")] if self.store.exists() else []
        now: dict[Path, Path | None] = {path: path for path in there}
        self.states["kill"].append(self._keep(now))
        self.states["power"].append(self._keep(self._without_power(now)))
        self.operations.append(name)
        self._remember(name, paths)

    def _remember(self, name: str, paths: tuple[Path, ...]) -> None:
        """What the power could take away once the operation is made."""
        path = paths[0]
        if name == "write":
            self.written.add(path)
        elif name == "sync":
            self.written.discard(path)
        elif name == "make_folder":
            self.made.append(path)
        elif name == "rename":
            new, before = paths[1], None
            if new.exists():
                before = self.kept / f"before-{len(self.operations)}"
                os.link(new, before)
            self.renamed.append((new, before))
            if path in self.written:
                self.written.add(new)
        elif name == "sync_folder":
            self.renamed = [(new, before) for new, before in self.renamed if new.parent != path]
            self.made = [folder for folder in self.made if folder.parent != path]

    def _without_power(self, now: dict[Path, Path | None]) -> dict[Path, Path | None]:
        """The worst that a disk may do: forget every name and every byte that it was not asked to
        keep."""
        left = {path: None if path in self.written else source for path, source in now.items()}
        for new, before in reversed(self.renamed):
            left.pop(new, None)
            if before is not None:
                left[new] = before
        return {
            path: source
            for path, source in left.items()
            if not any(path.is_relative_to(folder) for folder in self.made)
        }

    def _keep(self, state: dict[Path, Path | None]) -> Path:
        """The folder of a state: name -> where its content is, or None if it is empty."""
        names = sorted(state)
        mark = tuple((name, *self._content(state[name])) for name in names)
        if mark not in self.folders:
            folder = self.folders[mark] = self.kept / str(len(self.folders))
            for name in names:
                source, copy = state[name], folder / name.relative_to(self.store)
                if source is None:
                    copy.touch()
                elif source.is_dir():
                    copy.mkdir()
                else:
                    os.link(source, copy)
        return self.folders[mark]

    @staticmethod
    def _content(path: Path | None) -> tuple:
        """All that a sweep can read of a file."""
        if path is None:
            return (b"",)
        if path.is_dir():
            return ()
        stat = path.stat()
        return path.read_bytes(), stat.st_ino, stat.st_mtime_ns


@dataclass
class Killed:
    """Kills this process at an operation."""

    at: int
    count: int = 0

    def before(self, name: str, paths: tuple[Path, ...]) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Full:
    """Has no space left at an operation and ever after; `remove` and `sync_folder` need none."""

    at: int
    count: int = 0

    def before(self, name: str, paths: tuple[Path, ...]) -> None:
        self.count += 1
        if self.count >= self.at and name in NEED_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# ------------------------------------------------------------------ in processes of their own


def in_child(function: Callable, data: Data, *words: Any, kill_after: float | None = None):
    """Exit code of a process that calls `function`, and what that returned (None if it was
    killed)."""
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_child, args=(there, function, data, words))
    process.start()
    there.close()
    if kill_after is not None:
        time.sleep(kill_after)
        process.kill()
    try:
        report = here.recv()
    except EOFError:
        report = None
    process.join()
    here.close()
    return process.exitcode, report


def _child(pipe, function: Callable, data: Data, words: tuple) -> None:
    splits = {
        name: Examples(*(torch.tensor(part) for part in parts)) for name, parts in data.items()
    }
    LatinSquare.splits = lambda self: splits
    torch.set_num_threads(1)
    os.fsync = lambda handle: None  # a kill takes nothing from the disk, and `power` is simulated
    base.environment = cache(base.environment)  # it asks git, which takes longer than the training
    pipe.send(function(*words))


def _watch(before: Before, operations: dict[str, Callable]) -> None:
    def watched(name: str, *paths: Path) -> None:
        before(name, paths)
        operations[name](*paths)

    for name in OPERATIONS:
        setattr(disk, name, partial(watched, name))


def _sweep(out: Path) -> Outcomes:
    outcomes = sweep(small_sweep(), out, local(0), checkpoint_seconds=0)
    return [(o.status, o.reused, o.message) for o in outcomes]


def recorded(store: Path, kept: Path) -> tuple[Outcomes, list[str], dict[str, list[Path]]]:
    """The small sweep, its operations, and for each of them what a fault there leaves."""
    recorder = Recorder(store, kept)
    _watch(recorder.before, {name: getattr(disk, name) for name in OPERATIONS})
    return _sweep(store), recorder.operations, recorder.states


def killed(store: Path, at: int) -> None:
    """The small sweep, killed at an operation (at none, if it has fewer)."""
    _watch(Killed(at).before, {name: getattr(disk, name) for name in OPERATIONS})
    _sweep(store)


def full(stores: dict[int, Path]) -> dict[int, Outcomes]:
    """The small sweep for each of some operations, with no space left from there on. Where it
    refused to go on, what it said is the only outcome."""
    operations = {name: getattr(disk, name) for name in OPERATIONS}
    outcomes: dict[int, Outcomes] = {}
    for at, store in stores.items():
        _watch(Full(at).before, operations)
        try:
            outcomes[at] = _sweep(store)
        except InputError as error:
            outcomes[at] = [("refused", False, str(error))]
    return outcomes


def resumed(stores: Sequence[Path]) -> list[Outcomes]:
    """The small sweep in each of some stores, with no fault."""
    return [_sweep(store) for store in stores]


def content(out: Path) -> dict[str, bytes]:
    """What a store holds, apart from when and where it was computed: file -> bytes."""
    content_by_path = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name not in (".lock", "environment.json", "index.json"):
            content_by_path[str(path.relative_to(out))] = (
                path.read_bytes() if path.name != "status.json" else _status(path)
            )
    return content_by_path


def _status(path: Path) -> bytes:
    return repr(sorted((k, v) for k, v in read_json(path).items() if k != "seconds")).encode()


def names(out: Path) -> set[str]:
    """The names of all files and folders of a store; of half-written files without the process."""
    return {re.sub(r"\.\d+\.tmp$", ".tmp", str(path.relative_to(out))) for path in out.rglob("*")}
