"""`placecell figures`: the paper's panels, each in a file of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import add_folder
from placecell.command import DONE, Command

FORMATS = ("pdf", "svg", "png")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell figures`."""
    about = "format (default: pdf)"
    parser.add_argument("--to", choices=FORMATS, default="pdf", help=about)
    add_folder(parser)


def run(args: argparse.Namespace) -> int:
    """Draw the paper's panels from a folder of runs, each in a file of its own, sized for a
    column."""
    setup_torch(args)
    from placecell.report import paper_figures

    out = Path(args.out) if args.out else args.folder / "figures"
    written = paper_figures(args.folder, out, args.to)
    if args.json:
        print_json({"figures": [str(path) for path in written]})
    else:
        print("\n".join(str(path) for path in written))
    return DONE


COMMAND = Command(
    name="figures",
    help="figures for a paper",
    usage="FOLDER [--to pdf|svg|png]",
    run=run,
    add_options=add_options,
)
