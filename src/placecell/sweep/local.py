"""A sweep on this machine: one process a core, each with its own threads, the data shared between them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
import torch.multiprocessing

from placecell import files, tasks
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.progress import Interrupt
from placecell.tasks.base import Examples
from placecell.train.memory import keep_memory
from placecell.train.run import RunResult, Watch, make_task, pick_device, run


@dataclass(frozen=True)
class Outcome:
    """How one run of a sweep went: its result, or the message of its failure."""

    config: RunConfig
    result: RunResult | None
    message: str = ""

    @property
    def status(self) -> str:
        return self.result.status if self.result else "failed"

    @property
    def headline(self) -> float | None:
        """The task's headline metric on the test set."""
        return None if self.result is None else self.result.final("test", tasks.load(self.config.task).headline)


@dataclass
class _Worker:
    """What a worker process keeps from run to run."""

    splits: dict[str, dict[str, Examples]]
    stop: Event
    device: str


_worker: list[_Worker] = []  # filled once a process by `_start`; empty in the parent


def sweep(
    configs: Sequence[RunConfig],
    out: Path,
    *,
    workers: int,
    threads: int = 1,
    device: str = "auto",
    on_done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run all configurations under `out`. Those already done are reused; one that fails does not stop the others.

    Ctrl-C (or SIGTERM) once: running runs save a checkpoint and the rest are left for the next time. Twice: the
    workers are ended at once, and what they saved before is there.
    """
    pick_device(device)
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    files.make_folder(out)
    splits = {key: make_task(config).splits() for key, config in {_data_key(c): c for c in configs}.items()}
    context = torch.multiprocessing.get_context("spawn")
    stop = context.Event()
    outcomes: list[Outcome] = []
    with (
        Interrupt() as interrupt,
        ProcessPoolExecutor(
            min(workers, max(1, len(configs))),
            mp_context=context,
            initializer=_start,
            initargs=(splits, threads, device, stop),
        ) as pool,
    ):
        try:
            for outcome in _collect(pool, iter(configs), out, workers, interrupt, stop):
                outcomes.append(outcome)
                on_done(outcome)
        except KeyboardInterrupt:
            for process in list(pool._processes.values()):
                process.kill()
            raise
    return outcomes


def _collect(
    pool: ProcessPoolExecutor,
    queue: Iterator[RunConfig],
    out: Path,
    workers: int,
    interrupt: Interrupt,
    stop: Event,
) -> Iterator[Outcome]:
    """Outcomes as they come; never more runs are handed out than there are workers, so that a stop is quick."""
    pending: dict[Future[RunResult], RunConfig] = {}
    try:
        while True:
            while len(pending) < workers and not interrupt.asked:
                config = next(queue, None)
                if config is None:
                    break
                pending[pool.submit(_work, config, out)] = config
            if not pending:
                return
            if interrupt.asked:
                stop.set()
            for future in wait(pending, timeout=0.5, return_when=FIRST_COMPLETED).done:
                config = pending.pop(future)
                try:
                    yield Outcome(config, future.result())
                except BrokenProcessPool:
                    raise
                except Exception as error:
                    yield Outcome(config, None, f"{type(error).__name__}: {error}")
    except BrokenProcessPool:
        if interrupt.asked:  # Ctrl-C reached a worker that was still starting
            return
        raise InputError(
            "a worker process was killed from outside (out of memory?); the same command goes on from here."
        ) from None


def _data_key(config: RunConfig) -> str:
    return json.dumps([config.task, asdict(config.data)], sort_keys=True)


def _start(splits: dict[str, dict[str, Examples]], threads: int, device: str, stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    keep_memory()
    _worker[:] = [_Worker(splits, stop, device)]


def _end_with_parent() -> None:
    """A worker whose parent was killed ends too: it would hold the locks of a sweep that nobody runs any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(config: RunConfig, out: Path) -> RunResult:
    worker = _worker[0]
    watch = Watch(on_step=lambda state: not worker.stop.is_set())
    return run(config, out, device=worker.device, splits=worker.splits[_data_key(config)], watch=watch)
