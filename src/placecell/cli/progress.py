"""What a person sees while runs train: bars and the time left in a terminal, else plain lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from placecell.config import RunConfig
from placecell.sweep.interrupt import say
from placecell.train.loop import State

if TYPE_CHECKING:
    from placecell.sweep import Outcome, Tally


SETTLED = 3.0  # seconds of training, before which its speed says little


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
        shown = console.is_terminal and not quiet
        self.bar = Progress(*columns, console=console) if shown else None
        self.job = self.bar.add_task("", total=steps) if self.bar else None

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar:
            self.bar.stop()

    def on_step(self, state: State) -> None:
        """Show the step of a run."""
        if self.bar and self.job is not None:
            self.bar.update(self.job, completed=state.step)

    def on_evaluation(self, state: State) -> None:
        """Show the scores of an evaluation."""
        if self.quiet:
            return
        now = {(r.split, r.name): r.value for r in state.rows[-100:] if r.step == state.step}
        shown = {
            "loss": ("train", "loss"),
            "train": ("train", self.headline),
            "test": ("test", self.headline),
        }
        text = ", ".join(f"{word} {now[key]:.3f}" for word, key in shown.items() if key in now)
        if self.bar and self.job is not None:
            self.bar.update(self.job, completed=state.step, description=text)
        else:
            rate = f", {state.seconds:.0f} s" if state.step else ""
            say(f"step {state.step} of {self.steps}{rate}: {text}")


class SweepProgress:
    """Follows a sweep on standard error: a line for every run that ends and, in a terminal, a live
    table of those that are running, with the time left."""

    stays = False  # whether the live table is still there at the end

    def __init__(
        self, configs: Sequence[RunConfig], label: Callable[[RunConfig], str], quiet: bool = False
    ) -> None:
        self.total, self.label, self.quiet = len(configs), label, quiet
        # steps of the runs that have not ended
        self.left = sum(config.train.steps for config in configs)
        self.done, self.trained = 0, 0  # runs that have ended; steps that were made for them here
        self.begun: dict[str, int] = {}  # the step at which a running one was first seen
        self.steps: dict[str, int] = {}  # and where it is now
        self.start = time.monotonic()
        # when the first step was seen: what comes before it is not training
        self.since: float | None = None
        self.console = Console(stderr=True)
        shown = self.console.is_terminal and not quiet
        self.live = Live(console=self.console, transient=not self.stays) if shown else None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
            self.live.update(Text("drawing the data and starting workers …"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.live:
            self.live.stop()

    def on_done(self, outcome: Outcome) -> None:
        """Count a run that has ended and show its score."""
        self.done += 1
        self.left -= outcome.config.train.steps
        if not outcome.reused and outcome.result is not None:
            self.trained += outcome.result.step - self.begun.pop(outcome.config.name, 0)
        self.steps.pop(outcome.config.name, None)
        if self.quiet:
            return
        headline, count = outcome.headline, f"[{self.done}/{self.total}]"
        score = f" ({outcome.message})" if headline is None else f", test {headline:.4f}"
        how = "reused" if outcome.reused else outcome.status
        self._print(f"{count} {self.label(outcome.config)}: {how}{score}{self._times()}")

    def _print(self, text: str) -> None:
        if self.live:
            self.live.console.print(text, highlight=False, markup=False)
        else:
            say(text)

    def on_tick(self, tally: Tally) -> None:
        """Show which runs are being trained."""
        self.steps = dict(tally.steps)
        if self.steps and self.since is None:
            self.since = time.monotonic()
        for name, step in tally.steps.items():
            self.begun.setdefault(name, step)
        if self.live is None:
            return
        counts = Counter("reused" if o.reused else o.status for o in tally.outcomes)
        running = len(tally.running)
        waiting = self.total - self.done - running
        words = [f"{n} {status}" for status, n in counts.items()]
        words += [f"{running} running", f"{waiting} waiting{self._times()}"]
        self.live.update(Group(self._table(tally), Text(", ".join(words))))

    def _table(self, tally: Tally) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name, config in tally.running.items():
            step, steps = tally.steps.get(name, 0), config.train.steps
            table.add_row(
                self.label(config),
                ProgressBar(total=steps, completed=step, width=24),
                f"{step}/{steps}",
            )
        return table

    def _times(self) -> str:
        now, left = time.monotonic(), self.left - sum(self.steps.values())
        trained = self.trained + sum(step - self.begun[name] for name, step in self.steps.items())
        training = 0.0 if self.since is None else now - self.since
        times = f"{now - self.start:.0f} s"
        if self.done < self.total and trained > 0 and training >= SETTLED:
            times += f", about {training / trained * left:.0f} s left"
        return f" ({times})"


class ResultTable(SweepProgress):
    """Follows a small sweep: in a terminal, a table that fills with scores and stays at the end.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs.
    row : callable
        What a configuration is called; runs that differ in their seed alone share a row.
    score : callable
        How a score is written.
    title : str
        What the scores are.
    quiet : bool
        Show nothing.
    """

    stays = True

    def __init__(
        self,
        configs: Sequence[RunConfig],
        row: Callable[[RunConfig], str],
        score: Callable[[float], str],
        title: str,
        quiet: bool = False,
    ) -> None:
        super().__init__(configs, lambda config: f"{row(config)}, seed {config.seed}", quiet)
        self.rows = list(dict.fromkeys(row(config) for config in configs))
        self.seeds = sorted({config.seed for config in configs})
        self.cell = {config.name: (row(config), config.seed) for config in configs}
        self.score, self.heading = score, title

    def _print(self, text: str) -> None:
        if not self.live:  # else the table has it
            say(text)

    def _table(self, tally: Tally) -> RenderableType:
        cells: dict[tuple[str, int], RenderableType] = {}
        for name, config in tally.running.items():
            step, steps = tally.steps.get(name, 0), config.train.steps
            cells[self.cell[name]] = ProgressBar(total=steps, completed=step, width=8)
        for outcome in tally.outcomes:
            headline = outcome.headline if outcome.status == "done" else None
            cells[self.cell[outcome.config.name]] = (
                outcome.status if headline is None else Text(self.score(headline), style="bold")
            )
        table = Table(self.heading, *(f"seed {seed}" for seed in self.seeds), box=SIMPLE_HEAD)
        for row in self.rows:
            table.add_row(row, *(cells.get((row, seed), Text("·")) for seed in self.seeds))
        return table
