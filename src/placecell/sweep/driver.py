"""A sweep: runs handed out to a back end until all have ended, also if workers die."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from placecell import tasks
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.plugins import plugins
from placecell.store import files
from placecell.store.index import Store
from placecell.store.runs import RunResult, finished, mark_failed, reuse
from placecell.sweep.backends.base import Backend, Busy, Ended, Job, MakeBackend, Step, data_key
from placecell.sweep.backends.local import end_if_imported
from placecell.sweep.interrupt import Interrupt
from placecell.tasks.base import Examples, check_splits
from placecell.train.device import pick_device
from placecell.train.run import make_task

TICK = 0.5  # seconds between checks of what has happened


@dataclass(frozen=True)
class Outcome:
    """How one run of a sweep went.

    Parameters
    ----------
    config : RunConfig
        The run.
    result : RunResult or None
        Its result; None if it failed.
    message : str
        Why it failed.
    """

    config: RunConfig
    result: RunResult | None
    message: str = ""

    @property
    def status(self) -> str:
        """The status of the run; `failed` if it has no result."""
        return self.result.status if self.result else "failed"

    @property
    def reused(self) -> bool:
        """Whether the run was done before."""
        return self.result is not None and self.result.reused

    @property
    def headline(self) -> float | None:
        """The task's headline metric on the test set."""
        if self.result is None:
            return None
        name = tasks.load(self.config.task).headline_for(self.config.data)
        return self.result.final("test", name)


@dataclass
class Tally:
    """Progress of a sweep, for those who show it.

    Parameters
    ----------
    total : int
        Number of runs.
    outcomes : list of Outcome
        The runs that have ended.
    running : dict
        Name -> configuration of the runs in work.
    steps : dict
        Name -> training steps done, of the runs in work.
    """

    total: int
    outcomes: list[Outcome] = field(default_factory=list)
    running: dict[str, RunConfig] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)  # how far each running one has come


def sweep(
    configs: Sequence[RunConfig],
    out: Path | str,
    make_backend: MakeBackend,
    *,
    device: str = "auto",
    threads: int = 1,
    checkpoint_seconds: float = 30.0,
    retries: int = 2,
    compiled: frozenset[str] = frozenset(),
    on_done: Callable[[Outcome], None] = lambda outcome: None,
    on_tick: Callable[[Tally], None] = lambda tally: None,
) -> list[Outcome]:
    """Train many configurations; `placecell.sweep` without its defaults.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs.
    out : Path or str
        The folder of the runs.
    make_backend : callable
        Makes the back end of a `Job`.
    compiled : frozenset of str
        Names of the runs whose training step is compiled.
    device, threads, checkpoint_seconds, retries, on_done, on_tick
        As in `placecell.sweep`.

    Returns
    -------
    list of Outcome
        In the order in which the runs ended.
    """
    end_if_imported()
    pick_device(device)
    out = Path(out)
    tally = Tally(len(configs))

    def done(outcome: Outcome) -> None:
        tally.outcomes.append(outcome)
        on_done(outcome)

    waiting: list[RunConfig] = []
    for config in configs:
        if finished(out / config.name):
            done(Outcome(config, reuse(out / config.name)))
        else:
            waiting.append(config)
    if waiting:
        splits = {key: _splits(config) for key, config in {data_key(c): c for c in waiting}.items()}
        modules = {module for c in waiting for module in plugins(c.task, c.encoding.name)}
        job = Job(
            out.absolute(),
            splits,
            device,
            threads,
            checkpoint_seconds,
            compiled,
            tuple(sorted(modules)),
        )
        files.make_folder(out)  # not before: data that cannot be used leave nothing
        with Interrupt() as interrupt, make_backend(job, lambda: interrupt.asked) as backend:
            try:
                _drive(
                    backend, waiting, out, tally, lambda: interrupt.asked, retries, done, on_tick
                )
            except InputError as error:  # no worker can do anything
                ended = {outcome.config.name for outcome in tally.outcomes}
                for config in waiting:
                    if config.name not in ended:
                        mark_failed(out, config, str(error))
                raise InputError(str(error)) from None
    if any(outcome.result for outcome in tally.outcomes):
        Store(out).rows()  # brings the index up to date
    return tally.outcomes


def _splits(config: RunConfig) -> dict[str, Examples]:
    """The data of a run, refused here rather than in every worker if no model can be right about
    it."""
    task = make_task(config)
    splits = task.splits()
    check_splits(task, splits)
    return splits


def _drive(
    backend: Backend,
    waiting: Sequence[RunConfig],
    out: Path,
    tally: Tally,
    asked: Callable[[], bool],
    retries: int,
    done: Callable[[Outcome], None],
    on_tick: Callable[[Tally], None],
) -> None:
    """Never more runs are handed out than there are workers, so that a stop is quick."""
    queue, lost = deque(waiting), Counter[str]()
    later: dict[str, float] = {}  # runs of other processes, and when to check them again
    while tally.running or (queue and not asked()):
        for _ in range(len(queue)):
            if len(tally.running) >= backend.slots or asked():
                break
            config = queue.popleft()
            if later.get(config.name, 0.0) > time.monotonic():
                queue.append(config)
                continue
            tally.running[config.name] = config
            backend.start(config)
        for event in backend.wait(TICK):
            if isinstance(event, Step):
                tally.steps[event.name] = event.step
                continue
            config = tally.running.pop(event.name)
            tally.steps.pop(event.name, None)
            if isinstance(event, Ended):
                if event.result is None:
                    mark_failed(out, config, event.message)
                done(Outcome(config, event.result, event.message))
            elif isinstance(event, Busy):
                later[event.name] = time.monotonic() + 2 * TICK
                queue.append(config)
            elif lost[event.name] < retries:
                lost[event.name] += 1
                queue.appendleft(config)
            else:
                message = f"{event.message}, {lost[event.name] + 1} times in a row"
                mark_failed(out, config, message)
                done(Outcome(config, None, message))
        if (
            not tally.running
            and queue
            and all(later.get(c.name, 0.0) > time.monotonic() for c in queue)
        ):
            time.sleep(TICK / 5)  # all that is left belongs to others
        on_tick(tally)
