"""`placecell evaluate`: score finished runs, also on items used with people."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import add_people, check_people
from placecell.command import DONE, Command

if TYPE_CHECKING:
    import torch


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell evaluate`."""
    about = "folder of a finished run"
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=about)
    add_people(parser, "items used with people (.mat or .csv)")


def run(args: argparse.Namespace) -> int:
    """Score finished runs: by puzzle type on their own test set, or on items used with people.

    --json prints one object per run, each on a line of its own.
    """
    device = setup_torch(args)
    from placecell.tasks.optional import need_items
    from placecell.train import load_model

    check_people(args)
    for folder in args.runs:
        _, task, model = load_model(folder)
        model.to(device)
        if args.items is None:
            print_metrics(folder, metrics_by_split(task, model, device), args.json)
        else:
            scores = need_items(task, args.items).score_items(model, args.items, args.human)
            print_item_scores(folder, args.items, scores, args.json)
    return DONE


def metrics_by_split(task: Any, model: Any, device: torch.device) -> dict[str, float]:
    """Return the metrics of a model on its task's own data.

    Parameters
    ----------
    task : Any
        The task.
    model : Any
        The trained model.
    device : torch.device
        Where the model is.

    Returns
    -------
    dict
        Values by split/name.
    """
    from placecell.train import evaluate_splits

    splits = {name: examples.to(device) for name, examples in task.splits().items()}
    rows = evaluate_splits(model, task, splits, task.positions.to(device), step=0)
    return {f"{row.split}/{row.name}": row.value for row in rows}


def print_metrics(folder: Path, metrics: dict[str, float], as_json: bool) -> None:
    """Print the metrics of one run.

    Parameters
    ----------
    folder : Path
        The run.
    metrics : dict
        Values by split/name.
    as_json : bool
        Print JSON.
    """
    if as_json:
        print_json({"run": str(folder), "metrics": metrics})
        return
    print(folder)
    print("\n".join(f"  {name:<24} {value:.4f}" for name, value in metrics.items()))


def print_item_scores(folder: Path, items: Path, scores: Any, as_json: bool) -> None:
    """Print the scores of one run on items used with people, one line for each group.

    Parameters
    ----------
    folder : Path
        The run.
    items : Path
        The file of the items.
    scores : Any
        The scores.
    as_json : bool
        Print JSON.
    """
    if as_json:
        content = {"run": str(folder), "items": str(items)}
        print_json(content | {"groups": scores.groups, "notes": scores.notes})
        return
    print(f"{folder} on {items}")
    print(f"  {'':<8}{'items':>7}{'model':>9}{'published key':>15}{'people':>9}")
    for name, group in scores.groups.items():
        people = "–" if math.isnan(group["people"]) else f"{group['people']:.3f}"
        model = f"{group['items']:>7.0f}{group['model']:>9.3f}{group['published']:>15.3f}"
        print(f"  {name:<8}{model}{people:>9}")
    for name, note in scores.notes.items():
        print(f"  {name.replace('_', ' ')}: {note if note != [] else 'none'}")


COMMAND = Command(
    name="evaluate",
    help="score finished runs",
    usage="RUN ... [--items FILE] [--human FILE]",
    run=run,
    add_options=add_options,
)
