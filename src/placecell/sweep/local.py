"""A sweep on this machine: one process a core, each with its own threads, the data shared between them."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.multiprocessing

from placecell import files, tasks
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.progress import Interrupt
from placecell.tasks.base import Examples
from placecell.train.memory import keep_memory
from placecell.train.run import RunResult, Watch, make_task, run


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
    interrupt: Interrupt
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

    Ctrl-C once: running runs save a checkpoint and the rest are left for the next time.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    files.make_folder(out)
    splits = {key: make_task(config).splits() for key, config in {_data_key(c): c for c in configs}.items()}
    outcomes: list[Outcome] = []
    with (
        Interrupt() as interrupt,
        ProcessPoolExecutor(
            min(workers, max(1, len(configs))),
            mp_context=torch.multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(splits, threads, device),
        ) as pool,
    ):
        pending: dict[Future[RunResult], RunConfig] = {}
        queue = iter(configs)
        for outcome in _collect(pool, queue, pending, out, workers, interrupt):
            outcomes.append(outcome)
            on_done(outcome)
    return outcomes


def _collect(
    pool: ProcessPoolExecutor,
    queue: Iterator[RunConfig],
    pending: dict[Future[RunResult], RunConfig],
    out: Path,
    workers: int,
    interrupt: Interrupt,
) -> Iterator[Outcome]:
    """Outcomes as they come; never more runs are handed out than there are workers, so that a stop is quick."""
    while True:
        while len(pending) < workers and not interrupt.asked:
            config = next(queue, None)
            if config is None:
                break
            pending[pool.submit(_work, config, out)] = config
        if not pending:
            return
        for future in wait(pending, timeout=0.5, return_when=FIRST_COMPLETED).done:
            config = pending.pop(future)
            try:
                yield Outcome(config, future.result())
            except BrokenProcessPool:
                raise InputError(
                    "a worker process was killed from outside (out of memory?); the same command goes on from here."
                ) from None
            except Exception as error:
                yield Outcome(config, None, f"{type(error).__name__}: {error}")


def _data_key(config: RunConfig) -> str:
    return json.dumps([config.task, asdict(config.data)], sort_keys=True)


def _start(splits: dict[str, dict[str, Examples]], threads: int, device: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    keep_memory()
    _worker[:] = [_Worker(splits, Interrupt().__enter__(), device)]


def _end_with_parent() -> None:
    """A worker whose parent was killed ends too: it would hold the locks of a sweep that nobody runs any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(config: RunConfig, out: Path) -> RunResult:
    worker = _worker[0]
    watch = Watch(on_step=lambda state: not worker.interrupt.asked)
    return run(config, out, device=worker.device, splits=worker.splits[_data_key(config)], watch=watch)
