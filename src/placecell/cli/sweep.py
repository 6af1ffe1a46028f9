"""`placecell sweep`: train every combination of settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from placecell.cli.common import print_json, setup_torch
from placecell.cli.options import (
    add_many_runs,
    backend,
    checkpoint_seconds,
    chosen,
    folder_of_runs,
    seeds,
    starting_point,
    workers,
)
from placecell.command import DONE, FAILED, INTERRUPTED, Command
from placecell.config import RunConfig
from placecell.config.values import coerce
from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    from placecell.sweep import Outcomes


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell sweep`."""
    parser.add_argument("--dry-run", action="store_true", help="list the runs and train none")
    about = "compile training steps: never, always, or auto, where it pays (default: never)"
    parser.add_argument("--compile", default="never", metavar="WHEN", help=about)
    add_many_runs(parser)


def run(args: argparse.Namespace) -> int:
    """Train every combination of settings; a list such as --sigma 0.1,1,2 makes an axis. Runs
    already in the folder are reused, so that a sweep can be stopped, continued and extended."""
    base, plan = starting_point(args)
    axes = {key: text.split(",") for key, text in chosen(args).items()}
    if "seed" in axes:
        raise InputError("a sweep takes --seeds N (the seeds 0 to N−1), not --seed.")
    setup_torch(args)
    from placecell.sweep import grid

    configs = grid(base, plan.get("grid", []), axes, seeds(args, plan))
    out = folder_of_runs(args)
    if args.dry_run:
        print_plan(configs, out, args)
        return DONE
    outcomes = train_all(configs, out, args)
    if args.json:
        print_json(outcomes.to_dict())
    code = print_end(outcomes, configs, args)
    if code == DONE and not args.json:
        print(f"Next: placecell report {out}")
    return code


def print_plan(configs: Sequence[RunConfig], out: Path, args: argparse.Namespace) -> None:
    """Print what a sweep would train, and how long that takes. Nothing changes on disk.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs.
    out : Path
        Their folder.
    args : Namespace
        The parsed arguments.
    """
    from placecell.config.labels import label, varying
    from placecell.store.runs import finished
    from placecell.sweep.estimate import estimate

    keys, processes = varying(configs), workers(args)
    done = sum(finished(out / config.name) for config in configs)
    seconds = estimate(configs, out, args.device, processes)
    if args.json:
        runs = [
            {"name": c.name, "seed": c.seed, "label": label(c, keys), "steps": c.train.steps}
            for c in configs
        ]
        content = {"folder": str(out), "runs": runs, "done": done}
        print_json(content | {"workers": processes, "seconds": seconds})
        return
    for config in configs:
        print(f"{config.name}  seed {config.seed}  {label(config, keys)}")
    steps = sum(config.train.steps for config in configs)
    print(
        f"{len(configs)} runs, {steps} steps, in {out}, where {done} are done; "
        f"about {seconds / 60:.1f} minutes on {processes} workers of this machine; "
        "nothing was trained."
    )


def train_all(configs: Sequence[RunConfig], out: Path, args: argparse.Namespace) -> Outcomes:
    """Train all configurations, showing progress on standard error.

    Parameters
    ----------
    configs : sequence of RunConfig
        The runs.
    out : Path
        Their folder.
    args : Namespace
        The parsed arguments.

    Returns
    -------
    Outcomes
    """
    from placecell.cli.progress import SweepProgress
    from placecell.config.labels import label, varying
    from placecell.sweep import sweep

    keys = varying(configs)

    def words(config: RunConfig) -> str:
        return f"{label(config, keys)} seed {config.seed}"

    with SweepProgress(configs, words, quiet=args.json) as progress:
        return sweep(
            configs,
            out,
            backend(args),
            device=args.device,
            threads=args.threads,
            checkpoint_seconds=checkpoint_seconds(args),
            retries=coerce(args.retries, int, "--retries", at_least=0),
            compile=when_to_compile(args),
            on_done=progress.on_done,
            on_tick=progress.on_tick,
        )


def when_to_compile(args: argparse.Namespace) -> bool | Literal["auto"]:
    """Return what `placecell.sweep` takes as `compile`.

    Parameters
    ----------
    args : Namespace
        The parsed arguments; a command without --compile compiles nothing.

    Returns
    -------
    bool or "auto"
    """
    modes: dict[str, bool | Literal["auto"]] = {"never": False, "always": True, "auto": "auto"}
    text = getattr(args, "compile", "never")
    if text not in modes:
        raise unknown("value of --compile", text, modes)
    return modes[text]


def print_end(
    outcomes: Outcomes,
    configs: Sequence[RunConfig],
    args: argparse.Namespace,
    labels: Mapping[str, str] | None = None,
) -> int:
    """Print how a sweep ended and, without --json, a diagnosis.

    Parameters
    ----------
    outcomes : Outcomes
        How the runs ended.
    configs : sequence of RunConfig
        All runs that were planned.
    args : Namespace
        The parsed arguments.
    labels : mapping, optional
        Name of a run to the group that the diagnosis counts it in; None groups by what varies.

    Returns
    -------
    int
        The exit code.
    """
    counts = outcomes.counts
    if not args.json:
        print(outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            sentence = f"{outcome.config.name} failed: {outcome.message}"
            print(f"placecell: {sentence}", file=sys.stderr)
    if not args.json:
        from placecell.config.labels import varying
        from placecell.study.diagnosis import diagnose

        if counts.get("done") or counts.get("diverged"):
            diagnoses = diagnose(outcomes, keys=varying(configs))
            print(diagnoses if labels is None else diagnoses.grouped(labels))
    if len(outcomes) < len(configs) or counts.get("interrupted"):
        print("placecell: interrupted; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    return FAILED if counts.get("failed") else DONE


COMMAND = Command(
    name="sweep",
    help="train many",
    usage="TASK [--preset NAME] [--KEY VALUE,VALUE ...] [--seeds N]",
    run=run,
    add_options=add_options,
    configured=True,
)
