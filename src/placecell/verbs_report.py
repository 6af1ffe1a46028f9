"""The verbs that show what runs found: the page, alone or live, and figures for a paper."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from placecell.errors import InputError
from placecell.values import coerce
from placecell.verbs import DONE, print_json, setup_torch


def report_verb(args: argparse.Namespace) -> int:
    """Make one self-contained, interactive page of a folder of runs; with --live serve it to this machine and follow a
    running sweep."""
    setup_torch(args)
    if args.human is not None and args.items is None:
        raise InputError("--human needs the items that people worked on: --items FILE.")
    if args.port is not None and not args.live:
        raise InputError("--port belongs to --live.")
    options = {"title": args.title, "items": args.items, "human": args.human}
    if args.live:
        return serve(args, options)
    from placecell.report.page import build_page
    from placecell.report.store import known_measures, read_store

    def on_run(done: int, total: int) -> None:
        if not args.json and sys.stderr.isatty():
            print(f"measured {done} of {total} runs", end="\n" if done == total else "\r", file=sys.stderr, flush=True)

    store = read_store(args.folder)
    page = build_page(store, known=known_measures(args.folder), on_run=on_run, **options)
    path = page.write(args.out or args.folder / "report.html")
    if args.json:
        told = {"runs": len(store.results), "unreadable": dict(store.unreadable), "bytes": path.stat().st_size}
        print_json({"report": str(path.resolve())} | told)
    else:
        print(path.resolve())
    return DONE


def serve(args: argparse.Namespace, options: dict[str, Any]) -> int:
    """Serve the page until Ctrl-C."""
    from placecell.report.live import Live, make_server

    if args.out is not None:
        raise InputError("--live serves the page and writes no file; leave -o out.")
    live = Live(args.folder, **options)
    live.page()  # what is wrong with the folder is said here, not in a browser
    with make_server(live, coerce(args.port or 0, int, "--port")) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        if args.json:
            print_json({"address": address})
        else:
            print(f"{address} follows {args.folder}; Ctrl-C ends it")
        sys.stdout.flush()
        for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what is in the background without Ctrl-C
            signal.signal(number, signal.default_int_handler)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print("placecell: the page is no longer served.", file=sys.stderr)
    return DONE


def figures_verb(args: argparse.Namespace) -> int:
    """Draw the paper's panels from a folder of runs, each in a file of its own, sized for a column."""
    setup_torch(args)
    from placecell.report.build import paper_figures

    written = paper_figures(args.folder, Path(args.out) if args.out else args.folder / "figures", args.to)
    if args.json:
        print_json({"figures": [str(path) for path in written]})
    else:
        print("\n".join(str(path) for path in written))
    return DONE
