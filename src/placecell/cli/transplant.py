"""`placecell transplant`: is it the learned table that generalises?"""

from __future__ import annotations

import argparse

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import add_many_runs, chosen, folder_of_runs, seeds, starting_point
from placecell.cli.sweep import print_end, train_all
from placecell.command import DONE, Command
from placecell.errors import InputError

SET_BY_TRANSPLANT = {
    "seed",
    "encoding",
    "sigma",
    "rho",
    "axes",
    "base",
    "max_distance",
    "donor",
    "donor_change",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell transplant`."""
    about = "σ of the first donor (default: 0.1)"
    parser.add_argument("--small", type=float, default=0.1, metavar="X", help=about)
    about = "σ of the second (default: 2)"
    parser.add_argument("--large", type=float, default=2.0, metavar="X", help=about)
    add_many_runs(parser)


def run(args: argparse.Namespace) -> int:
    """Is it the learned table that generalises? Train fresh models with frozen tables taken from
    others: learned at small σ, the same with rows shuffled, random with the same norms, learned
    at large σ."""
    base, plan = starting_point(args)
    taken = ", ".join(sorted(SET_BY_TRANSPLANT & chosen(args).keys()))
    if taken:
        raise InputError(
            f"a transplant sets {taken} itself; it takes --small, --large and --seeds."
        )
    base = base.override(chosen(args), "command line")
    setup_torch(args)
    from placecell.study.transplant import compare_transplants, plan_transplant

    planned = plan_transplant(base, args.small, args.large, seeds(args, plan))
    out = folder_of_runs(args)
    groups = [
        (planned.donors, {c.name: f"donors at σ={c.encoding.sigma}" for c in planned.donors}),
        (planned.receivers, {c.name: name for arms in planned.arms for name, c in arms.items()}),
    ]
    for configs, labels in groups:
        code = print_end(train_all(configs, out, args), configs, args, labels)
        if code != DONE:
            return code
    comparison = compare_transplants(out, planned.pairs, planned.arms)
    if args.json:
        print_json(comparison.to_dict())
    else:
        print(comparison)
    return DONE


COMMAND = Command(
    name="transplant",
    help="the causal check",
    usage="TASK [--preset NAME] [--small σ] [--large σ]",
    run=run,
    add_options=add_options,
    configured=True,
)
