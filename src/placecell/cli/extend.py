"""`placecell extend`: finished runs on other samples, with only new rows of the encoding tuned."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import add_folder
from placecell.command import DONE, Command
from placecell.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell extend`."""
    about = "a setting of the task and its new value, such as train_orders=6; once for each setting"
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=about)
    about = "steps of tuning (default: 100)"
    parser.add_argument("--steps", type=int, default=100, metavar="N", help=about)
    about = "learning rate of tuning (default: 0.01)"
    parser.add_argument("--lr", type=float, default=1e-2, metavar="X", help=about)
    add_folder(parser)


def run(args: argparse.Namespace) -> int:
    """Score the finished runs of a folder on other samples of their task (--set), and again after
    tuning only those entries of the encoding that their own training never used: means over seeds
    with 95 % intervals, the gain paired by seed. --out takes runs.csv and intervals.csv."""
    setup_torch(args)
    from placecell.store import files, load_store
    from placecell.study.new_rows import Tuning, extend, table_of_means

    if args.steps < 1 or not args.lr > 0:
        raise InputError("extend needs --steps of at least 1 and --lr above 0.")
    changes = dict(_pair(text) for text in args.set)
    if not changes:
        raise InputError("extend needs --set KEY=VALUE, such as --set train_orders=6.")
    table = extend(load_store(args.folder), changes, Tuning(args.steps, args.lr))
    means = table_of_means(table)
    if args.out:
        out = Path(args.out)
        files.make_folder(out)
        files.write_bytes(out / "runs.csv", files.csv_bytes(table))
        files.write_bytes(out / "intervals.csv", files.csv_bytes(means))
    if args.json:
        print_json({"runs": table.rows(), "intervals": files.finite(means.rows())})
        return DONE
    entries = dict(zip(table["label"], table["new"], strict=True))
    print("| encoding | entries tuned | measure | before | after | gain |\n|" + "---|" * 6)
    by_measure = {(row["label"], row["measure"]): row for row in means.rows()}
    for label, measure in by_measure:
        when, _, name = measure.partition("/")
        if when == "before" and not name.endswith("loss"):
            cells = [_cell(by_measure[label, f"{w}/{name}"]) for w in ("before", "after", "gain")]
            print(f"| {label} | {entries[label]} | {name} | {' | '.join(cells)} |")
    return DONE


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip() or not value.strip():
        raise InputError(f"--set takes KEY=VALUE, not {text!r}.")
    return key.strip().replace("-", "_"), value.strip()


def _cell(row: dict[str, Any]) -> str:
    """A mean, and its interval if there are seeds enough for one."""
    between = f" ({row['low']:.3f} to {row['high']:.3f})" if row["low"] == row["low"] else ""
    return f"{row['mean']:.3f}{between}"


COMMAND = Command(
    name="extend",
    help="new rows of an encoding, tuned alone",
    usage="FOLDER --set KEY=VALUE [--steps N] [--out FOLDER]",
    run=run,
    add_options=add_options,
)
