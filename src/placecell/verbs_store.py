"""The verbs that read a folder of runs: status and export."""

from __future__ import annotations

import argparse
import io
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from placecell.errors import InputError, unknown
from placecell.verbs import DONE, print_json

if TYPE_CHECKING:
    from placecell.sweep.store import Columns

FORMATS = ("csv", "parquet")


def status_verb(args: argparse.Namespace) -> int:
    """How the runs of a folder stand: how many are done, what is running now and how far it is, what was killed, what
    diverged or failed and why. May be asked at any time, also of a sweep on another machine that shares the folder."""
    from placecell.sweep import Store

    rows = Store(args.folder).rows()
    counts = Counter(row["status"] for row in rows)
    if args.json:
        runs = [{key: row.get(key) for key in ("name", "status", "steps", "seconds", "message")} for row in rows]
        print_json({"folder": str(args.folder), "counts": counts, "runs": runs})
        return DONE
    print(f"{args.folder}: {len(rows)} runs: {', '.join(f'{n} {status}' for status, n in counts.most_common())}")
    for row in rows:
        if row["status"] != "done":
            how = f"step {row['steps']} of {row['train.steps']}" if "steps" in row else ""
            print(f"  {row['status']:<12}{row['name']}  {how}{'  ' * bool(row['message'])}{row['message']}")
    if counts["stopped"] or counts["interrupted"] or counts["failed"]:
        print("The command that made them goes on from where they stopped.")
    elif not counts["running"]:
        print(f"Next: placecell analyse {args.folder}")
    return DONE


def export_verb(args: argparse.Namespace) -> int:
    """Write a folder of runs as two tidy tables for any other program: `runs` (one row a run: status, last metrics,
    every setting) and `points` (one row a measurement)."""
    from placecell import files
    from placecell.sweep import Store

    if args.to not in FORMATS:
        raise unknown("format", args.to, FORMATS)
    store = Store(args.folder)
    out = Path(args.out) if args.out else args.folder / "export"
    encoded = {
        out / f"{name}.{args.to}": files.csv_bytes(table) if args.to == "csv" else parquet_bytes(table)
        for name, table in (("runs", store.runs()), ("points", store.points()))
    }
    files.make_folder(out)
    for path, content in encoded.items():
        files.write_bytes(path, content)
    if args.json:
        print_json({"written": [str(path) for path in encoded]})
    else:
        print("written: " + ", ".join(map(str, encoded)))
    return DONE


def parquet_bytes(table: Columns) -> bytes:
    """A table as a parquet file. A column of values of several kinds becomes text."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError('parquet needs pyarrow: pip install "placecell[parquet]", or use --to csv.') from None

    def array(values: list[object]) -> pyarrow.Array:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            return pyarrow.array([None if value is None else str(value) for value in values])

    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({name: array(values) for name, values in table.items()}), file)
    return file.getvalue()
