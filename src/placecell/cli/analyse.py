"""`placecell analyse`: what a sweep shows, as tables, figures and a summary."""

from __future__ import annotations

import argparse
from pathlib import Path

from placecell.cli.common import print_json, setup_torch
from placecell.command import DONE, Command
from placecell.config.values import coerce
from placecell.errors import InputError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell analyse`."""
    about = "a folder of runs; with --lazy-rich several, or runs"
    parser.add_argument("runs", type=Path, nargs="+", metavar="FOLDER", help=about)
    about = (
        "measure tangent kernels and weights: was it lazy or rich learning? "
        "(full with --snapshots weights)"
    )
    parser.add_argument("--lazy-rich", action="store_true", help=about)
    about = "test samples of a kernel (default: 128)"
    parser.add_argument("--probes", metavar="N", help=about)
    about = "training samples that a linear model of the kernel learns from (default: 384)"
    parser.add_argument("--learn", metavar="N", help=about)
    parser.add_argument("--budget", metavar="X", help="memory of a kernel in GB (default: 2)")


def run(args: argparse.Namespace) -> int:
    """Measure every finished run of a folder and say what the sweep found: tables as CSV, figures,
    a summary. With --lazy-rich: how far tangent kernel, table and weights went from where they
    began, of runs or folders of runs."""
    setup_torch(args)
    if len(args.runs) > 1 and not (args.lazy_rich and args.out):
        raise InputError(
            "several folders are measured together with --lazy-rich and --out FOLDER only; "
            "give one."
        )
    out = Path(args.out) if args.out else args.runs[0] / "analysis"
    options = {name: getattr(args, name) for name in ("probes", "learn", "budget")}
    given = {name: text for name, text in options.items() if text is not None}
    if given and not args.lazy_rich:
        raise InputError(f"--{next(iter(given))} belongs to --lazy-rich.")
    if args.lazy_rich:
        from placecell.report import analyse_lazy_rich
        from placecell.study.kernels import Sizes

        gigabytes = given.pop("budget", 2.0)
        counts = {name: coerce(text, int, f"--{name}") for name, text in given.items()}
        sizes = Sizes(**counts, budget=1e9 * coerce(gigabytes, float, "--budget"))
        written = analyse_lazy_rich(args.runs, out, sizes, quiet=args.json)
    else:
        from placecell.report import analyse

        written = analyse(args.runs[0], out, quiet=args.json)
    if args.json:
        print_json(written.facts)
    else:
        print(written.text)
        print("written: " + ", ".join(str(path) for path in written.paths))
    return DONE


COMMAND = Command(
    name="analyse",
    help="what a sweep found",
    usage="FOLDER [--lazy-rich] [--out FOLDER]",
    run=run,
    add_options=add_options,
)
