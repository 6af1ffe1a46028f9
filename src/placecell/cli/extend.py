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
    tuning only those entries of the encoding that their own training never used."""
    setup_torch(args)
    from placecell.store import files, load_store
    from placecell.study.new_rows import Tuning, extend

    if args.steps < 1 or not args.lr > 0:
        raise InputError("extend needs --steps of at least 1 and --lr above 0.")
    changes = dict(_pair(text) for text in args.set)
    if not changes:
        raise InputError("extend needs --set KEY=VALUE, such as --set train_orders=6.")
    table = extend(load_store(args.folder), changes, Tuning(args.steps, args.lr))
    if args.out:
        files.write_bytes(Path(args.out), files.csv_bytes(table))
    rows = table.rows()
    if args.json:
        print_json({"runs": rows})
        return DONE
    shown = [name for name in rows[0] if not name.endswith("/loss")]
    print("| " + " | ".join(shown) + " |\n|" + "---|" * len(shown))
    for row in rows:
        print("| " + " | ".join(_cell(row.get(name)) for name in shown) + " |")
    return DONE


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip() or not value.strip():
        raise InputError(f"--set takes KEY=VALUE, not {text!r}.")
    return key.strip().replace("-", "_"), value.strip()


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


COMMAND = Command(
    name="extend",
    help="new rows of an encoding, tuned alone",
    usage="FOLDER --set KEY=VALUE [--steps N] [--out FILE]",
    run=run,
    add_options=add_options,
)
