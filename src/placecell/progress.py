"""What a person sees while a run trains: a bar with the time left in a terminal, plain lines elsewhere."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from placecell.train.loop import State

if TYPE_CHECKING:
    from placecell.sweep import Outcome


class RunProgress:
    """Follows one run on standard error."""

    def __init__(self, steps: int, headline: str, quiet: bool = False) -> None:
        self.steps, self.headline, self.quiet = steps, headline, quiet
        columns = (
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        )
        console = Console(stderr=True)
        self.bar = Progress(*columns, console=console) if console.is_terminal and not quiet else None
        self.job = self.bar.add_task("", total=steps) if self.bar else None

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar:
            self.bar.stop()

    def on_step(self, state: State) -> None:
        if self.bar and self.job is not None:
            self.bar.update(self.job, completed=state.step)

    def on_evaluation(self, state: State) -> None:
        if self.quiet:
            return
        now = {(r.split, r.name): r.value for r in state.rows[-100:] if r.step == state.step}
        shown = {"loss": ("train", "loss"), "train": ("train", self.headline), "test": ("test", self.headline)}
        text = ", ".join(f"{word} {now[key]:.3f}" for word, key in shown.items() if key in now)
        if self.bar and self.job is not None:
            self.bar.update(self.job, completed=state.step, description=text)
        else:
            rate = f", {state.seconds:.0f} s" if state.step else ""
            print(f"step {state.step} of {self.steps}{rate}: {text}", file=sys.stderr, flush=True)


class Interrupt:
    """Ctrl-C once asks to stop cleanly (`asked`); twice stops at once. So does a polite kill (SIGTERM)."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("\nstopping as soon as all is saved; once more stops at once", file=sys.stderr, flush=True)


class SweepProgress:
    """Follows a sweep on standard error: a line for every run that ends, and how long the rest will take."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total, self.quiet, self.done, self.trained = total, quiet, 0, 0
        self.start = time.monotonic()

    def on_done(self, outcome: Outcome, label: str) -> None:
        self.done += 1
        reused = outcome.result is not None and outcome.result.reused
        self.trained += not reused
        if self.quiet:
            return
        elapsed = time.monotonic() - self.start
        left = elapsed / max(1, self.trained) * (self.total - self.done)
        score = f", test {outcome.headline:.4f}" if outcome.headline is not None else ""
        how = "reused" if reused else outcome.status
        text = f"[{self.done}/{self.total}] {label}: {how}{score}"
        text += f" ({elapsed:.0f} s, about {left:.0f} s left)" if self.done < self.total else f" ({elapsed:.0f} s)"
        print(text, file=sys.stderr, flush=True)
