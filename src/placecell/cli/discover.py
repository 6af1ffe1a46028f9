"""`placecell discover`: the hidden map of your own table."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from placecell.cli.common import print_json, setup_torch
from placecell.command import DONE, INTERRUPTED, Command
from placecell.config.values import coerce

SAMPLE = "sample"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options.

    Parameters
    ----------
    parser : ArgumentParser
        The parser.
    """
    about = "the table: csv, tsv, parquet, feather, npy, npz, mat, xlsx; or `sample`, which is ours"
    parser.add_argument("data", metavar="FILE", help=about)
    parser.add_argument("-o", dest="out", metavar="FOLDER", default=argparse.SUPPRESS,
                        help="where results go (default: FILE's name and -map)")  # fmt: skip
    for flag, about in (
        ("--columns", "columns to use, with commas between (default: all that can be used)"),
        ("--drop", "columns to leave out"),
    ):
        parser.add_argument(flag, metavar="NAMES", default="", help=about)
    about = "column of times: rows are split in blocks of time, which stay together"
    parser.add_argument("--time", metavar="NAME", help=about)
    about = "column that names the group of each row (a person, say), which stays together"
    parser.add_argument("--groups", metavar="NAME", help=about)
    about = "training steps of a network (default: 500; 0: none, which takes seconds)"
    parser.add_argument("--steps", metavar="N", default="500", help=about)
    about = "networks trained at a time (default: 2, or 1 if there is one core)"
    parser.add_argument("--jobs", metavar="N", help=about)


def run(args: argparse.Namespace) -> int:
    """Find the hidden arrangement of a table's columns: which lie next to which, a map, modules;
    or say that there is nothing to find."""
    setup_torch(args)
    from placecell.discover import PlaceMap, read_table, write_map
    from placecell.discover.frames import to_numbers
    from placecell.discover.page import advice, answer
    from placecell.discover.read import choose_columns, split_names
    from placecell.discover.sample import sample_path
    from placecell.discover.variables import check_columns, find_variables
    from placecell.discover.write import check_folder

    path = sample_path() if args.data == SAMPLE else Path(args.data)
    out = Path(args.out) if args.out else Path(f"{path.stem}-map")
    steps = coerce(args.steps, int, "--steps", at_least=0, at_most=100_000)
    jobs = coerce(args.jobs or min(2, os.cpu_count() or 1), int, "--jobs", at_least=1, at_most=64)
    seed = coerce(args.seed or 0, int, "--seed", at_least=0, at_most=2**32 - 1)
    read = read_table(path)
    check_folder(out, path)  # before the work, not after it
    known = [str(name) for name in read.frame.columns]
    chosen = [split_names(text, known) for text in (args.columns, args.drop)]
    extra = [name for name in (args.time, args.groups) if name]
    if chosen[0]:
        chosen[0] += [name for name in extra if name not in chosen[0]]
    frame = choose_columns(read.frame, *chosen)
    variables = find_variables(frame, args.time, args.groups)
    told = not args.json
    found = PlaceMap(
        steps=steps,
        random_state=seed,
        n_jobs=jobs,
        device=args.device,
        verbose=told,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* too few for a test")  # it is one of the notes, too
        found.fit(variables.frame, groups=variables.groups)
    found.left_out_ = variables.left_out | found.left_out_
    check_columns(int((found.labels_ >= 0).sum()), found.left_out_)
    found.notes_ = read.notes + variables.notes + found.notes_
    written = write_map(found, out, path.name, _correlations(found, variables.frame, to_numbers))
    if args.json:
        print_json(_summary(found, written.paths))
    else:
        _print(found, [answer(found), *found.notes_, *advice(found)], written.paths)
    return INTERRUPTED if found.partial_ else DONE


def _correlations(found: Any, frame: Any, to_numbers: Any) -> Any:
    """Absolute correlations of the columns that were used."""
    import numpy as np

    from placecell.discover.readout import correlation

    numbers = to_numbers(frame, None)[0]
    values = np.asarray(frame if numbers is None else numbers, dtype=float)
    return correlation(values[:, found.labels_ >= 0])


def _summary(found: Any, paths: Any) -> dict[str, Any]:
    return {
        "found": found.found_,
        "gain": found.gain_,
        "p_value": found.p_value_,
        "readout": found.readout_,
        "n_dimensions": found.n_dimensions_,
        "columns": found.columns() if found.found_ else {},
        "left_out": found.left_out_,
        "notes": found.notes_,
        "partial": found.partial_,
        "files": [str(path) for path in paths],
    }


def _print(found: Any, sentences: list[str], paths: Any) -> None:
    print(sentences[0])
    if found.left_out_:
        listed = "; ".join(f"{name}: {why}" for name, why in list(found.left_out_.items())[:12])
        more = f"; and {len(found.left_out_) - 12} more" if len(found.left_out_) > 12 else ""
        print(f"left out: {listed}{more}")
    if found.found_:
        shown = list(found.neighbours_.items())[:8]
        print("nearest:", "; ".join(f"{name}: {', '.join(near)}" for name, near in shown), "…")
    for sentence in sentences[1:]:
        print(sentence)
    for path in paths:
        print(path)
    sys.stdout.flush()


COMMAND = Command(
    name="discover",
    help="the hidden map of your own table",
    usage="FILE [-o FOLDER] [--columns NAMES] [--drop NAMES] [--time NAME | --groups NAME]",
    run=run,
    add_options=add_options,
)
