"""`placecell run`: train one model."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import (
    add_checkpoint_seconds,
    checkpoint_seconds,
    chosen,
    refuse_lists,
    starting_point,
)
from placecell.command import DONE, FAILED, INTERRUPTED, Command

if TYPE_CHECKING:
    from placecell.config import RunConfig
    from placecell.tasks.base import Task
    from placecell.train import State


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell run`."""
    about = "compile the training step first: half a minute, pays on long runs"
    parser.add_argument("--compile", action="store_true", help=about)
    add_checkpoint_seconds(parser)


def run(args: argparse.Namespace) -> int:
    """Train one model. Its folder is named by its settings: the same command continues an
    interrupted run and does nothing for a finished one."""
    refuse_lists(args)
    config = starting_point(args)[0].override(chosen(args), "command line")
    setup_torch(args)
    from placecell import train
    from placecell.cli.progress import RunProgress
    from placecell.study.diagnosis import diagnose_result
    from placecell.sweep.interrupt import Interrupt

    task = train.make_task(config)
    with (
        Interrupt() as interrupt,
        RunProgress(config.train.steps, task.headline, quiet=args.json) as progress,
    ):

        def on_step(state: State) -> bool:
            progress.on_step(state)
            return not interrupt.asked

        def on_evaluation(state: State) -> None:
            if state.step == 0 and not args.json:
                _say_share(config, task)
            progress.on_evaluation(state)

        watch = train.Watch(on_evaluation, on_step, checkpoint_seconds(args))
        result = train.run(
            config,
            Path(args.out or "runs"),
            device=args.device,
            compile=args.compile,
            task=task,
            watch=watch,
        )
    diagnosis = diagnose_result(result)
    metrics = {f"{row.split}/{row.name}": row.value for row in result.rows}
    if args.json:
        content = {
            "name": result.config.name,
            "folder": str(result.folder),
            "status": result.status,
            "step": result.step,
            "seconds": round(result.seconds, 3),
            "reused": result.reused,
            "metrics": metrics,
            "diagnosis": asdict(diagnosis),
        }
        print_json(content)
    else:
        reused = " (already there, nothing was trained)" if result.reused else ""
        how = f"{result.step} steps, {result.seconds:.0f} s"
        print(f"{result.status}{reused}: {result.folder}, {how}")
        for name, value in metrics.items():
            if name.startswith("test/") or name == f"train/{task.headline}":
                print(f"  {name:<24} {value:.4f}")
        if result.status != "interrupted":
            print(f"diagnosis: {diagnosis}")
    if result.status == "interrupted":
        print("placecell: interrupted; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    if result.status == "diverged":
        advice = "try a lower --lr, --warmup or --clip."
        print(f"placecell: the loss was not finite; {advice}", file=sys.stderr)
        return FAILED
    return DONE


def _say_share(config: RunConfig, task: Task) -> None:
    """Say which σ a run begins with, and which share ρ of its input positions make."""
    from placecell.sweep.interrupt import say
    from placecell.train.run import complete, make_model
    from placecell.train.share import initial_share, token_mean_square

    config = complete(config, task)
    table = make_model(config, task).table(task.places)
    rho = initial_share(config, table, token_mean_square(task, 1.0))
    if math.isfinite(rho):
        sigma = config.encoding.sigma
        table_of = "the table" if sigma is None else f"a table of σ {sigma:g}"
        say(f"{table_of} makes the share ρ {rho:.3g} of the input")


COMMAND = Command(
    name="run",
    help="train one model",
    usage="TASK [--preset NAME] [--KEY VALUE ...]",
    run=run,
    add_options=add_options,
    configured=True,
)
