"""`placecell report`: one page that shows a folder of runs, as a file or live."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import add_folder, add_people, check_people
from placecell.command import DONE, Command
from placecell.config.values import coerce
from placecell.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell report`."""
    about = "the page (default: report.html in the folder of runs)"
    parser.add_argument("-o", dest="out", metavar="FILE", default=argparse.SUPPRESS, help=about)
    parser.add_argument("--title", metavar="TEXT", help="title of the page")
    add_people(parser, "items used with people, to show models beside them")
    about = "serve the page to this machine and follow the folder"
    parser.add_argument("--live", action="store_true", help=about)
    parser.add_argument("--port", metavar="N", help="port of --live (default: any that is free)")
    add_folder(parser)


def run(args: argparse.Namespace) -> int:
    """Make one self-contained, interactive page of a folder of runs; with --live serve it to this
    machine and follow a running sweep."""
    setup_torch(args)
    check_people(args)
    if args.port is not None and not args.live:
        raise InputError("--port belongs to --live.")
    options = {"title": args.title, "items": args.items, "human": args.human}
    if args.live:
        return serve(args, options)
    return write(args, options)


def write(args: argparse.Namespace, options: dict[str, Any]) -> int:
    """Write the page and print where it is.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.
    options : dict
        Further arguments of `build_page`.

    Returns
    -------
    int
        The exit code.
    """
    from placecell.report.page.build import build_page
    from placecell.store import Store
    from placecell.study.known import known_measures

    def on_run(done: int, total: int) -> None:
        if not args.json and sys.stderr.isatty():
            end = "\n" if done == total else "\r"
            print(f"measured {done} of {total} runs", end=end, file=sys.stderr, flush=True)

    runs = Store(args.folder).run_set()
    page = build_page(runs, known=known_measures(args.folder), on_run=on_run, **options)
    path: Path = page.write(args.out or args.folder / "report.html")
    unreadable = dict(runs.unreadable if page.summary is None else page.summary.left_out)
    if args.json:
        content = {
            "report": str(path.resolve()),
            "runs": len(runs.results),
            "unreadable": unreadable,
            "bytes": path.stat().st_size,
        }
        print_json(content)
    else:
        for reason in unreadable.values():
            print(f"placecell: left out: {reason}", file=sys.stderr)
        print(path.resolve())
    return DONE


def serve(args: argparse.Namespace, options: dict[str, Any]) -> int:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.
    options : dict
        Further arguments of `build_page`.

    Returns
    -------
    int
        The exit code.
    """
    from placecell.report.page.live import Live, make_server

    if args.out is not None:
        raise InputError("--live serves the page and writes no file; leave -o out.")
    live = Live(args.folder, **options)
    live.page()  # what is wrong with the folder is said here, not in a browser
    with make_server(live, coerce(args.port or 0, int, "--port")) as server:
        address = server.address
        if args.json:
            print_json({"address": address})
        else:
            print(f"{address} follows {args.folder}; Ctrl-C ends it")
        sys.stdout.flush()
        # a shell starts what is in the background without Ctrl-C
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("placecell: the page is no longer served.", file=sys.stderr)
    return DONE


COMMAND = Command(
    name="report",
    help="one page that shows it",
    usage="FOLDER [-o FILE] [--live]",
    run=run,
    add_options=add_options,
)
