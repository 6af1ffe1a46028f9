"""What each verb of the command line does, and what they share. torch is imported inside the verbs that need it."""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell import tasks
from placecell.errors import InputError
from placecell.presets import base_config
from placecell.values import coerce

if TYPE_CHECKING:
    import torch

    from placecell.train import State

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def run_verb(args: argparse.Namespace) -> int:
    """Train one model. Its folder is named by its settings: the same command continues an interrupted run and
    does nothing for a finished one."""
    config = base_config(args.task, args.preset, args.config)[0].override(chosen(args))
    setup_torch(args)
    from placecell.progress import Interrupt, RunProgress
    from placecell.train import Watch, make_task, run

    task = make_task(config)
    with Interrupt() as interrupt, RunProgress(config.train.steps, task.headline, quiet=args.json) as progress:

        def on_step(state: State) -> bool:
            progress.on_step(state)
            return not interrupt.asked

        watch = Watch(progress.on_evaluation, on_step, seconds_of(args))
        out = Path(args.out or "runs")
        result = run(config, out, device=args.device, compile=args.compile, task=task, watch=watch)
    from placecell.report.diagnose import diagnose_result

    found = diagnose_result(result)
    last = {f"{r.split}/{r.name}": r.value for r in result.rows}
    if args.json:
        facts = {"name": result.config.name, "folder": str(result.folder), "status": result.status}
        times = {"step": result.step, "seconds": round(result.seconds, 3), "reused": result.reused}
        print_json({**facts, **times, "metrics": last, "diagnosis": asdict(found)})
    else:
        reused = " (already there, nothing was trained)" if result.reused else ""
        print(f"{result.status}{reused}: {result.folder}, {result.step} steps, {result.seconds:.0f} s")
        for name, value in last.items():
            if name.startswith("test/") or name == f"train/{task.headline}":
                print(f"  {name:<24} {value:.4f}")
        if result.status != "interrupted":
            print(f"diagnosis: {found}")
    if result.status == "interrupted":
        print("placecell: interrupted; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    if result.status == "diverged":
        print("placecell: the loss was not finite; try a lower --lr, --warmup or --clip.", file=sys.stderr)
        return FAILED
    return DONE


def evaluate_verb(args: argparse.Namespace) -> int:
    """Score finished runs: by puzzle type on their own test set, or on a file of items used with people. --json prints
    JSON lines: one object a run, each on a line of its own."""
    device = setup_torch(args)
    from placecell.train import evaluate_splits, load_model

    if args.human is not None and args.items is None:
        raise InputError("--human needs the items that people worked on: --items FILE.")
    for folder in args.runs:
        _, task, model = load_model(folder)
        model.to(device)
        if args.items is None:
            splits = {name: examples.to(device) for name, examples in task.splits().items()}
            rows = evaluate_splits(model, task, splits, task.positions.to(device), step=0)
            scores = {f"{r.split}/{r.name}": r.value for r in rows}
            if args.json:
                print_json({"run": str(folder), "metrics": scores})
            else:
                print(folder)
                print("\n".join(f"  {name:<24} {value:.4f}" for name, value in scores.items()))
            continue
        found = task.score_items(model, args.items, args.human)
        if args.json:
            print_json({"run": str(folder), "items": str(args.items), "groups": found.groups, "notes": found.notes})
            continue
        print(f"{folder} on {args.items}\n  {'':<8}{'items':>7}{'model':>9}{'published key':>15}{'people':>9}")
        for name, group in found.groups.items():
            people = "–" if math.isnan(group["people"]) else f"{group['people']:.3f}"
            print(f"  {name:<8}{group['items']:>7.0f}{group['model']:>9.3f}{group['published']:>15.3f}{people:>9}")
        for name, note in found.notes.items():
            print(f"  {name.replace('_', ' ')}: {note if note != [] else 'none'}")
    return DONE


def analyse_verb(args: argparse.Namespace) -> int:
    """Measure every finished run of a folder and say what the sweep found: tables as CSV, figures, a summary. With
    --lazy-rich: how far tangent kernel, table and weights went from where they began, of runs or folders of runs."""
    setup_torch(args)
    if len(args.runs) > 1 and not (args.lazy_rich and args.out):
        raise InputError("several folders are measured together with --lazy-rich and --out FOLDER only; give one.")
    out = Path(args.out) if args.out else args.runs[0] / "analysis"
    given = {name: value for name in ("probes", "learn", "budget") if (value := getattr(args, name)) is not None}
    if given and not args.lazy_rich:
        raise InputError(f"--{next(iter(given))} belongs to --lazy-rich.")
    if args.lazy_rich:
        from placecell.report.build import analyse_lazy_rich
        from placecell.report.lazy_rich import Sizes

        counts = {name: coerce(text, int, f"--{name}") for name, text in given.items() if name != "budget"}
        sizes = Sizes(**counts, budget=1e9 * coerce(given.get("budget", 2.0), float, "--budget"))
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


def list_verb(args: argparse.Namespace) -> int:
    """Show the encodings, the tasks and their presets."""
    from placecell import encodings

    found = {
        "encodings": {name: _first_line(cls.__doc__) for name, cls in encodings.available().items()},
        "tasks": {name: _first_line(tasks.load(name).__doc__) for name in tasks.available()},
        "presets": {
            f"{task} --preset {name}": tomllib.loads(text).get("about", "")
            for task in tasks.available()
            for name, text in tasks.presets(task).items()
        },
    }
    if args.json:
        print_json(found)
        return DONE
    for title, entries in found.items():
        print(title)
        width = max(map(len, entries), default=0)
        for name, about in entries.items():
            print(f"  {name:<{width}}  {about}")
    return DONE


def chosen(args: argparse.Namespace) -> dict[str, str]:
    """The keys that the command line sets, by their short names."""
    given = {name[4:]: value for name, value in vars(args).items() if name.startswith("key:")}
    return given | ({} if args.seed is None else {"seed": args.seed})


def setup_torch(args: argparse.Namespace) -> torch.device:
    """Threads as asked, and the device. One thread is the default: it repeats bit for bit, and these models are too
    small to gain by more."""
    import torch
    from threadpoolctl import threadpool_limits

    from placecell.train.machine import pick_device
    from placecell.train.memory import keep_memory

    args.threads = coerce(args.threads, int, "--threads", at_least=1, at_most=1024)
    torch.set_num_threads(args.threads)
    threadpool_limits(args.threads)  # NumPy's and SciPy's, which analyses use
    keep_memory()
    return pick_device(args.device)


def seconds_of(args: argparse.Namespace) -> float:
    seconds = coerce(args.checkpoint_seconds, float, "--checkpoint-seconds")
    if not seconds >= 0:
        raise InputError(f"--checkpoint-seconds must be at least 0, not {seconds}.")
    return seconds


def print_json(content: Any) -> None:
    """One line of JSON. Numbers that JSON cannot hold become null."""
    from placecell.files import finite

    print(json.dumps(finite(content), ensure_ascii=False))


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]
