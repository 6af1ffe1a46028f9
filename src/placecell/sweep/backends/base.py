"""What a back end is: a place where runs are worked on, told what to start and asked what has
happened."""

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
from placecell.store.files import Busy as LockedError
from placecell.store.runs import RunResult
from placecell.tasks.base import Examples, Task
from placecell.train.device import environment, pick_device
from placecell.train.loop import State
from placecell.train.run import Watch, make_task, run


@dataclass(frozen=True)
class Job:
    """What every run of a sweep shares: where it goes, the data (by `data_key`), and how it is
    computed."""

    out: Path
    splits: Mapping[str, dict[str, Examples]]
    device: str = "auto"
    threads: int = 1
    checkpoint_seconds: float = 30.0
    plugins: tuple[str, ...] = ()  # modules outside this package that registered what is run


@dataclass(frozen=True)
class Step:
    """A run has come to this step."""

    name: str
    step: int


@dataclass(frozen=True)
class Ended:
    """A run has ended: its result, or the message of its failure."""

    name: str
    result: RunResult | None
    message: str = ""


@dataclass(frozen=True)
class Busy:
    """Another process is working on the run."""

    name: str


@dataclass(frozen=True)
class Lost:
    """Whoever worked on the run died in the middle of it."""

    name: str
    message: str


Event = Step | Ended | Busy | Lost


class Backend(ABC):
    """Made with a `Job` and `asked`, which says whether a stop has been asked for: runs then save
    and end.

    Leaving it by an exception ends the workers at once.
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
        """How many runs can be worked on at a time."""

    @abstractmethod
    def start(self, config: RunConfig) -> None:
        """Begin a run; at most `slots` at a time."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Event]:
        """What has happened since the last call, waiting for something for at most so long."""


MakeBackend = Callable[[Job, Callable[[], bool]], Backend]


def data_key(config: RunConfig) -> str:
    """Runs with the same key have the same task and data."""
    return json.dumps([config.task, asdict(config.data)], sort_keys=True)


@dataclass
class Worker:
    """Does one run after another, and keeps from one to the next what does not change."""

    job: Job
    facts: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.facts = environment(pick_device(self.job.device))

    def work(
        self, config: RunConfig, on_step: Callable[[State], bool], on_event: Callable[[Event], None]
    ) -> Event:
        """Train one run of the sweep. `on_step` returning False interrupts it."""
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

        try:
            result = run(
                config,
                self.job.out,
                device=self.job.device,
                task=self.tasks[key],
                splits=self.job.splits[key],
                watch=Watch(on_step=step, checkpoint_seconds=self.job.checkpoint_seconds),
                facts=self.facts,
            )
        except LockedError:
            return Busy(config.name)
        except Exception as error:  # one that runs out of memory among them; the others go on
            return Ended(config.name, None, f"{type(error).__name__}: {error}")
        return Ended(config.name, result)


class Inline(Backend):
    """Runs in this process, one at a time: for debuggers and notebooks, and for tests that count
    operations."""

    slots = 1

    def __init__(self, job: Job, asked: Callable[[], bool]) -> None:
        torch.set_num_threads(job.threads)
        self.worker, self.asked = Worker(job), asked
        self.events: list[Event] = []

    def __exit__(self, *exception: object) -> None:
        pass

    def start(self, config: RunConfig) -> None:
        self.events.append(
            self.worker.work(config, lambda state: not self.asked(), self.events.append)
        )

    def wait(self, seconds: float) -> list[Event]:
        events, self.events = self.events, []
        return events
