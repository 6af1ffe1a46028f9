"""`placecell status`: how the runs of a folder stand."""

from __future__ import annotations

import argparse
from collections import Counter

from placecell.cli.common import print_json
from placecell.cli.options import add_folder
from placecell.command import DONE, Command

SHOWN = ("name", "status", "steps", "seconds", "message")  # of each run, with --json


def run(args: argparse.Namespace) -> int:
    """How the runs of a folder stand: how many are done, what is running now and how far it is,
    what was killed, what diverged or failed and why. May be asked at any time, also of a sweep on
    another machine that shares the folder."""
    from placecell.store import Store

    rows = Store(args.folder).rows()
    counts = Counter(row["status"] for row in rows)
    if args.json:
        runs = [{key: row.get(key) for key in SHOWN} for row in rows]
        print_json({"folder": str(args.folder), "counts": counts, "runs": runs})
        return DONE
    statuses = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    print(f"{args.folder}: {len(rows)} runs: {statuses}")
    for row in rows:
        if row["status"] != "done":
            step = f"step {row['steps']} of {row['train.steps']}" if "steps" in row else ""
            message = f"  {row['message']}" if row["message"] else ""
            print(f"  {row['status']:<12}{row['name']}  {step}{message}")
    if counts["stopped"] or counts["interrupted"] or counts["failed"]:
        print("The command that made them goes on from where they stopped.")
    elif not counts["running"]:
        print(f"Next: placecell analyse {args.folder}")
    return DONE


COMMAND = Command(
    name="status",
    help="how a sweep stands",
    usage="FOLDER [--json]",
    run=run,
    add_options=add_folder,
)
