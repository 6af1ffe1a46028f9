"""A sweep on this machine: one process per core, each with its own threads and the same data."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event as Flag
from types import ModuleType
from typing import Any

import torch
import torch.multiprocessing

from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.registry import NO_MODULE
from placecell.sweep.backends.base import (
    Backend,
    Event,
    Inline,
    Job,
    Lost,
    MakeBackend,
    Step,
    Worker,
)
from placecell.train.memory import keep_memory

FORK_SERVER = "forkserver"
NO_GUARD = 86  # exit code of a worker whose script begins a sweep when it is imported
# the second is imported by the first optimizer step
PRELOAD = ["placecell.sweep.backends.local", "torch._dynamo"]


@dataclass
class _Process:
    """A worker process, the pipe to it, and the run that it is on."""

    process: BaseProcess
    pipe: Connection
    name: str | None = None


def local(workers: int) -> MakeBackend:
    """Return the back end of this machine.

    Parameters
    ----------
    workers : int
        Number of processes; 0 trains in this process itself.

    Returns
    -------
    callable
        What `placecell.sweep` takes as `backend`.
    """
    if workers < 0:
        raise InputError(
            f"workers must be at least 1, or 0 for this process itself, not {workers}."
        )
    return partial(Local, workers=workers) if workers else Inline


class Local(Backend):
    """Worker processes that train one run after another; one that dies is replaced."""

    def __init__(self, job: Job, asked: Callable[[], bool], workers: int) -> None:
        self.job, self.asked, self.workers = job, asked, workers
        script = getattr(sys.modules["__main__"], "__file__", None) or ""
        self.needs_main = NO_MODULE[0] in job.plugins  # the script itself registered something
        if self.needs_main and not os.path.exists(script):
            raise InputError(
                "an encoding or a task was registered in a notebook, at a prompt or from standard "
                "input, which worker processes cannot import; put it into a file and import that, "
                "or sweep with 0 workers."
            )
        # A server imports all once and forks: a worker is there at once, with no threads or locks
        # of the parent. Windows has no fork: each worker imports all itself.
        can_fork = FORK_SERVER in multiprocessing.get_all_start_methods()
        self.context: Any = torch.multiprocessing.get_context(FORK_SERVER if can_fork else "spawn")
        if can_fork:
            self.context.set_forkserver_preload(PRELOAD)
        self.flag = self.context.Event()
        self.processes: list[_Process] = []

    @property
    def slots(self) -> int:
        """Number of processes."""
        return self.workers

    def start(self, config: RunConfig) -> None:
        """Give a run to an idle process, or to a new one."""
        idle = next((p for p in self.processes if p.name is None), None)
        if idle is None:
            idle = self._new()
        idle.name = config.name
        with contextlib.suppress(OSError):  # it died while it was idle; `wait` will see
            idle.pipe.send(config)

    def wait(self, seconds: float) -> list[Event]:
        """Return what the processes have reported."""
        if self.asked():
            self.flag.set()
        events: list[Event] = []
        ready = wait([p.pipe for p in self.processes], timeout=seconds)
        for one in [p for p in self.processes if p.pipe in ready]:
            try:
                event = one.pipe.recv()
            except (EOFError, OSError):
                events += self._remove_dead(one)
                continue
            if not isinstance(event, Step):
                one.name = None
            events.append(event)
        return events

    def _new(self) -> _Process:
        if self.context.get_start_method() == FORK_SERVER:
            _start_server()
        here, there = self.context.Pipe()
        process = self.context.Process(
            target=_serve, args=(there, self.job, self.flag), daemon=True
        )
        with contextlib.nullcontext() if self.needs_main else _hidden_main():
            process.start()
        there.close()  # or the end of the worker would not be seen on `here`
        self.processes.append(_Process(process, here))
        return self.processes[-1]

    def _remove_dead(self, dead: _Process) -> list[Event]:
        self.processes.remove(dead)
        dead.process.join()
        dead.pipe.close()
        if dead.name is None:
            return []
        code = dead.process.exitcode or 0
        if code == NO_GUARD:
            script = getattr(sys.modules["__main__"], "__file__", "")
            raise InputError(
                f"{script}: worker processes import this script, because it registers an encoding "
                'or a task; put its sweep below `if __name__ == "__main__":`.'
            )
        name = signal.Signals(-code).name if code < 0 else ""
        how = f"was killed by {name}" if name else f"ended with exit code {code}"
        memory = " (out of memory?)" if name == "SIGKILL" else ""
        return [Lost(dead.name, f"its process {how}{memory}")]

    def __exit__(self, *exception: object) -> None:
        for one in self.processes:
            if exception[0] is not None:
                one.process.kill()
            one.pipe.close()  # which an idle worker takes as its end
        for one in self.processes:
            one.process.join()


def end_if_imported() -> None:
    """End this process if it is a worker that imports a script which has no guard.

    The script would begin its sweep again in every worker. Its output is dropped, and the parent,
    which knows the exit code, says what to do.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(NO_GUARD)


@contextlib.contextmanager
def _hidden_main() -> Iterator[None]:
    """Start a process that does not import the script of this one, which may have no guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start_server() -> None:
    """Start the server that workers fork from, deaf to Ctrl-C, which would end it among its
    imports. A Ctrl-C that comes meanwhile is kept for the parent."""
    import multiprocessing.forkserver  # which Windows does not have

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, job: Job, flag: Flag) -> None:
    """The life of a worker process."""
    # a terminal sends Ctrl-C to all; the parent decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(job.threads)
    keep_memory()
    for module in job.plugins:
        # a script has been imported again already, to find this function's arguments
        if module not in NO_MODULE:
            importlib.import_module(module)
    worker = Worker(job)
    while True:
        try:
            config = pipe.recv()
        except EOFError:
            return
        pipe.send(worker.work(config, lambda state: not flag.is_set(), pipe.send))


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would keep the locks of a sweep that is over."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
