"""What a back end is: a place where runs are trained; it starts runs and reports what happened."""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from placecell.config import RunConfig
from placecell.store.locks import Busy as LockedError
from placecell.store.runs import RunResult
from placecell.tasks.base import Examples, Task
from placecell.train.device import environment, pick_device
from placecell.train.loop import State
from placecell.train.run import NotCompiled, Watch, make_task, run


@dataclass(frozen=True)
class Job:
    """What every run of a sweep shares.

    Parameters
    ----------
    out : Path
        The folder of the runs.
    splits : mapping
        `data_key` -> the data of these runs.
    device : str
        As in `placecell.sweep`.
    threads : int
        Threads of each run.
    checkpoint_seconds : float
        Seconds between checkpoints of a run.
    compiled : frozenset of str
        Names of the runs whose training step is compiled, if it can be.
    plugins : tuple of str
        Modules outside this package that registered a task or an encoding of the runs.
    """

    out: Path
    splits: Mapping[str, dict[str, Examples]]
    device: str = "auto"
    threads: int = 1
    checkpoint_seconds: float = 30.0
    compiled: frozenset[str] = frozenset()
    plugins: tuple[str, ...] = ()  # modules outside this package that registered what is run


@dataclass(frozen=True)
class Step:
    """A run has come to a step.

    Parameters
    ----------
    name : str
        Name of the run.
    step : int
        Training steps done.
    """

    name: str
    step: int


@dataclass(frozen=True)
class Ended:
    """A run has ended.

    Parameters
    ----------
    name : str
        Name of the run.
    result : RunResult or None
        Its result; None if it failed.
    message : str
        Why it failed.
    """

    name: str
    result: RunResult | None
    message: str = ""


@dataclass(frozen=True)
class Busy:
    """Another process is working on the run.

    Parameters
    ----------
    name : str
        Name of the run.
    """

    name: str


@dataclass(frozen=True)
class Lost:
    """The worker of a run died.

    Parameters
    ----------
    name : str
        Name of the run.
    message : str
        How it died.
    """

    name: str
    message: str


Event = Step | Ended | Busy | Lost


class Backend(ABC):
    """Base class of back ends; a context manager.

    A back end is made with a `Job` and a function `asked`, which says whether a stop was requested:
    running runs then save a checkpoint and end. Leaving the context by an exception ends the
    workers at once.
    """

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the workers."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Number of runs that can be worked on at a time."""

    @abstractmethod
    def start(self, config: RunConfig) -> None:
        """Begin a run; at most `slots` at a time.

        Parameters
        ----------
        config : RunConfig
            The run.
        """

    @abstractmethod
    def wait(self, seconds: float) -> list[Event]:
        """Return what has happened since the last call.

        Parameters
        ----------
        seconds : float
            How long to wait, at most, if nothing has happened.

        Returns
        -------
        list of Event
            `Step`, `Ended`, `Busy` and `Lost` objects.
        """


MakeBackend = Callable[[Job, Callable[[], bool]], Backend]


def data_key(config: RunConfig) -> str:
    """Return a key that runs with the same task and data share.

    Parameters
    ----------
    config : RunConfig
        The run.

    Returns
    -------
    str
        The key.
    """
    return json.dumps([config.task, asdict(config.data)], sort_keys=True)


@dataclass
class Worker:
    """Trains one run after another, and keeps what they share.

    Parameters
    ----------
    job : Job
        What the runs share.
    """

    job: Job
    facts: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.facts = environment(pick_device(self.job.device))

    def work(
        self, config: RunConfig, on_step: Callable[[State], bool], on_event: Callable[[Event], None]
    ) -> Event:
        """Train one run of the sweep.

        Parameters
        ----------
        config : RunConfig
            The run.
        on_step : callable
            Called with the `State` after every step; returning False interrupts the run.
        on_event : callable
            Called with a `Step`, at most twice a second.

        Returns
        -------
        Event
            `Ended`, or `Busy` if another process is working on the run.
        """
        # the first step is reported at once: it says where a resumed run goes on
        key, reported = data_key(config), -math.inf
        if key not in self.tasks:
            self.tasks[key] = make_task(config)

        def step(state: State) -> bool:
            nonlocal reported
            if time.monotonic() - reported > 0.5:
                reported = time.monotonic()
                on_event(Step(config.name, state.step))
            return on_step(state)

        def train(compile: bool) -> RunResult:
            return run(
                config,
                self.job.out,
                device=self.job.device,
                compile=compile,
                task=self.tasks[key],
                splits=self.job.splits[key],
                watch=Watch(on_step=step, checkpoint_seconds=self.job.checkpoint_seconds),
                facts=self.facts,
            )

        try:
            try:
                result = train(config.name in self.job.compiled)
            except NotCompiled:  # no C++ compiler, say: it is only a matter of time
                result = train(compile=False)
        except LockedError:
            return Busy(config.name)
        except Exception as error:  # one that runs out of memory among them; the others go on
            return Ended(config.name, None, f"{type(error).__name__}: {error}")
        return Ended(config.name, result)


class Inline(Backend):
    """Runs in this process, one at a time: for debuggers, notebooks and tests."""

    slots = 1

    def __init__(self, job: Job, asked: Callable[[], bool]) -> None:
        torch.set_num_threads(job.threads)
        self.worker, self.asked = Worker(job), asked
        self.events: list[Event] = []

    def __exit__(self, *exception: object) -> None:
        pass

    def start(self, config: RunConfig) -> None:
        """Train a run to its end."""
        self.events.append(
            self.worker.work(config, lambda state: not self.asked(), self.events.append)
        )

    def wait(self, seconds: float) -> list[Event]:
        """Return the events of the runs started since the last call."""
        events, self.events = self.events, []
        return events
