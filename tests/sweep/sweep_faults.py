"""Faults at the n-th operation on the disk, and a small sweep to suffer them.

`placecell.store.disk` is replaced, in a process of its own, by one that counts its operations and
at the n-th of them

- `kill`: is killed (SIGKILL: no handler, no clean-up runs);
- `full`: finds no space left, there and ever after;
- `power`: loses the power: what was not synced is gone from the disk, then the process is killed.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from placecell.config import RunConfig
from placecell.store import disk
from placecell.store.files import read_json
from placecell.sweep import local, sweep
from placecell.sweep.backends.local import PRELOAD
from placecell.tasks.base import Examples
from placecell.tasks.latin_square.task import LatinSquare
from placecell.train import make_task

OPERATIONS = ("write", "sync", "rename", "sync_folder", "remove", "make_folder")
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


def small_sweep() -> list[RunConfig]:
    """Two runs, the second of which diverges."""
    config = RunConfig.from_dict(SMALL)
    return [config, config.override({"lr": 1e30, "sigma": 2.0, "optimizer": "sgd"})]


@dataclass
class Faulty:
    """Counts the operations of `placecell.store.disk` and does to the n-th what `fault` says."""

    fault: str
    at: int
    count: int = 0
    written: set[Path] = field(default_factory=set)  # content not synced
    # name not synced, and its content before
    renamed: list[tuple[Path, bytes | None]] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)  # folders whose names are not synced

    def install(self) -> None:
        for name in OPERATIONS:
            setattr(disk, name, self._counted(name, getattr(disk, name)))

    def _counted(self, name, real):
        def operation(*paths):
            self.count += 1
            if self.count == self.at or (self.fault == "full" and self.count > self.at > 0):
                if self.fault == "full" and name in ("write", "sync", "rename", "make_folder"):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if self.fault == "power":
                    self._lose()
                if self.fault in ("kill", "power"):
                    os.kill(os.getpid(), signal.SIGKILL)
            self._remember(name, paths)
            return real(*paths)

        return operation

    def _remember(self, name: str, paths: tuple) -> None:
        """What the power could take away, before the operation is made."""
        path = paths[0]
        if name == "write":
            self.written.add(path)
        elif name == "sync":
            self.written.discard(path)
        elif name == "make_folder":
            self.made.append(path)
        elif name == "rename":
            new = paths[1]
            self.renamed.append((new, new.read_bytes() if new.exists() else None))
            if path in self.written:
                self.written.add(new)
        elif name == "sync_folder":
            self.renamed = [(new, before) for new, before in self.renamed if new.parent != path]
            self.made = [folder for folder in self.made if folder.parent != path]

    def _lose(self) -> None:
        """The worst that a disk may do: forget every name and every byte that it was not asked to
        keep."""
        for path in self.written:
            if path.exists():
                path.write_bytes(b"")
        for new, before in reversed(self.renamed):
            new.unlink(missing_ok=True)
            if before is not None:
                new.write_bytes(before)
        for folder in self.made:
            shutil.rmtree(folder, ignore_errors=True)


def drawn() -> dict[str, list[list]]:
    """The data of the small sweep as plain lists; drawing them takes longer than all the rest of
    it."""
    splits = make_task(small_sweep()[0]).splits()
    return {name: [getattr(e, part).tolist() for part in PARTS] for name, e in splits.items()}


def sweep_here(out: Path, data: dict[str, list[list]], fault: str, at: int, pipe) -> None:
    """The small sweep in this process, with a fault; how many operations there were goes into
    `pipe`."""
    splits = {
        name: Examples(*(torch.tensor(part) for part in parts)) for name, parts in data.items()
    }
    LatinSquare.splits = lambda self: splits
    torch.set_num_threads(1)
    os.fsync = lambda handle: None  # a kill takes nothing from the disk, and `power` is simulated
    faulty = Faulty(fault, at)
    faulty.install()
    outcomes = sweep(small_sweep(), out, local(0), checkpoint_seconds=0)
    pipe.send((faulty.count, [(o.status, o.reused, o.message) for o in outcomes]))


def sweep_in_child(
    out: Path, data, fault: str = "none", at: int = 0, kill_after: float | None = None
):
    """Exit code of the process, and what it reported (None if it was killed)."""
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=sweep_here, args=(out, data, fault, at, there))
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
