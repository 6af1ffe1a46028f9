"""`placecell export`: a folder of runs as tidy tables."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

from placecell.cli.common import print_json
from placecell.cli.options import add_folder
from placecell.command import DONE, Command
from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    from placecell.store import Table

FORMATS = ("csv", "parquet")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell export`."""
    about = "csv or parquet (default: csv)"
    parser.add_argument("--to", default="csv", metavar="FORMAT", help=about)
    add_folder(parser)


def run(args: argparse.Namespace) -> int:
    """Write a folder of runs as two tidy tables for other programs.

    `runs` has one row per run (status, last metrics, every setting), `points` one row per
    measurement.
    """
    from placecell.store import Store, files

    if args.to not in FORMATS:
        raise unknown("format", args.to, FORMATS)
    encode = files.csv_bytes if args.to == "csv" else parquet_bytes
    store = Store(args.folder)
    unreadable = [row for row in store.rows() if row["status"] == "unreadable"]
    out = Path(args.out) if args.out else args.folder / "export"
    encoded = {
        out / f"{name}.{args.to}": encode(table)
        for name, table in (("runs", store.runs()), ("points", store.points()))
    }
    files.make_folder(out)
    for path, content in encoded.items():
        files.write_bytes(path, content)
    if args.json:
        names = [row["name"] for row in unreadable]
        print_json({"written": [str(path) for path in encoded], "unreadable": names})
    else:
        print("written: " + ", ".join(map(str, encoded)))
        for row in unreadable:
            print(f"its measurements are left out: {row['message']}")
    return DONE


def parquet_bytes(table: Table) -> bytes:
    """Return a table as a parquet file. A column of mixed types becomes text.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    bytes
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        install = 'pip install "placecell[parquet]"'
        raise InputError(f"parquet needs pyarrow: {install}, or use --to csv.") from None

    def array(values: list[object]) -> pyarrow.Array:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            return pyarrow.array([None if value is None else str(value) for value in values])

    columns = {name: array(values) for name, values in table.items()}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


COMMAND = Command(
    name="export",
    help="runs as tidy tables",
    usage="FOLDER [--to csv|parquet] [--out FOLDER]",
    run=run,
    add_options=add_options,
)
