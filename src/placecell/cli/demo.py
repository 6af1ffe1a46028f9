"""`placecell demo`: the finding in about two minutes, results as they come, a page at the end."""

from __future__ import annotations

import argparse
import contextlib
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placecell import __version__
from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import workers
from placecell.command import DONE, FAILED, INTERRUPTED, Command
from placecell.config import RunConfig
from placecell.config.presets import base_config
from placecell.errors import InputError

if TYPE_CHECKING:
    from placecell.report.page.growing import GrowingPage
    from placecell.sweep import Outcomes

TASK, PRESET = "latin_square", "demo"
ABOUT = """\
{runs} small transformers learn 4 × 4 Latin squares: which symbol belongs in the cell that is asked
for? Where a cell lies they have to find out: every cell has a row of numbers, drawn at random with
the standard deviation σ and learned with the rest. Does σ matter? (Some are told where cells lie,
to compare.) Ctrl-C stops; the same command goes on from there."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell demo`."""
    about = "processes (default: one per core; 0: this process itself)"
    parser.add_argument("--workers", metavar="N", help=about)


def run(args: argparse.Namespace) -> int:
    """Train a few small models on Latin squares, some with positions that begin small and some that
    begin large; show results as they come, and end with a page and what was seen in plain words.
    Runs already there are reused, so that it can be stopped and continued."""
    if args.seed is not None:
        raise InputError("the demo has seeds of its own; `placecell sweep` takes --seeds.")
    setup_torch(args)
    return show(planned(), Path(args.out or "runs/demo"), args)


def planned() -> list[RunConfig]:
    """Return the runs of the demo.

    Returns
    -------
    list of RunConfig
    """
    from placecell.sweep import grid

    base, plan = base_config(TASK, PRESET)
    return grid(base, plan["grid"], {}, plan["seeds"])


def show(configs: Sequence[RunConfig], out: Path, args: argparse.Namespace) -> int:
    """Train, show results as they come, write the page and say what was seen.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs.
    out : Path
        Their folder.
    args : Namespace
        The parsed arguments.

    Returns
    -------
    int
        The exit code.
    """
    from placecell.cli.progress import ResultTable
    from placecell.report.page.growing import GrowingPage
    from placecell.report.plain_words import percent
    from placecell.sweep import Outcome, Tally, local, sweep
    from placecell.sweep.interrupt import say

    page = GrowingPage(out, out / "report.html")
    if not args.json:
        say(ABOUT.format(runs=len(configs)))
        say(f"The page, from the first result on: {page.path.resolve()}")
    progress = ResultTable(configs, name, percent, "new puzzles solved", quiet=args.json)

    def on_done(outcome: Outcome) -> None:
        progress.on_done(outcome)
        if not outcome.reused:
            page.news()

    with progress, page:
        outcomes = sweep(
            configs,
            out,
            local(workers(args)),
            device=args.device,
            threads=args.threads,
            on_done=on_done,
            on_tick=progress.on_tick,
        )
        progress.on_tick(Tally(len(configs), outcomes))
    for outcome in outcomes:
        if outcome.status == "failed":
            say(f"placecell: {outcome.config.name} failed: {outcome.message}")
    interrupted = len(outcomes) < len(configs) or bool(outcomes.counts.get("interrupted"))
    seen = finish(page, outcomes, interrupted)
    if args.json:
        print_json(outcomes.to_dict() | {"report": str(page.path.resolve()), "seen": seen})
    elif seen:
        print("What was seen:")
        for number, sentence in enumerate(seen, start=1):
            print(textwrap.fill(f"{number}. {sentence}", 88, subsequent_indent="   "))
        print(f"The page, for any browser: {page.path.resolve()}")
        print("All encodings and more σ, in a few minutes: placecell sweep latin_square")
    if interrupted:
        say("placecell: interrupted; the same command goes on from here.")
        return INTERRUPTED
    return FAILED if outcomes.counts.get("failed") else DONE


def finish(page: GrowingPage, outcomes: Outcomes, interrupted: bool) -> list[str]:
    """Write the page as it stays, unless it is there already.

    Parameters
    ----------
    page : GrowingPage
        The page.
    outcomes : Outcomes
        How the runs ended.
    interrupted : bool
        Whether some have not ended.

    Returns
    -------
    list of str
        What was seen in the runs; nothing if there is too little to say.
    """
    from placecell.report.plain_words import what_was_seen
    from placecell.store import files

    kept = page.folder / "seen.json"  # so that a second call need not measure all again
    if outcomes.reused == len(outcomes) and not interrupted and page.path.exists():
        with contextlib.suppress(InputError):
            told = files.read_json(kept)
            if isinstance(told, dict) and told.get("version") == __version__:
                return list(told["seen"])
    if not any(outcome.status in ("done", "diverged") for outcome in outcomes):
        return []
    summary = page.finish().summary
    if summary is None or interrupted:
        return []
    seen = what_was_seen(summary)
    files.write_json(kept, {"version": __version__, "seen": seen})
    return seen


def name(config: RunConfig) -> str:
    """Return what the table of results calls a configuration.

    Parameters
    ----------
    config : RunConfig
        The configuration.

    Returns
    -------
    str
    """
    encoding = config.encoding
    if encoding.name == "learnable":
        return f"learned, from σ = {encoding.sigma:g}"
    return f"given: {encoding.axes}D {encoding.name}"


COMMAND = Command(
    name="demo",
    help="the finding in about two minutes",
    usage="[--workers N] [--out FOLDER]",
    run=run,
    add_options=add_options,
)
