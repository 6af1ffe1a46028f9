"""The verbs that train many models: sweeps, and transplants of their tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell.config import RunConfig
from placecell.errors import InputError, unknown
from placecell.presets import base_config
from placecell.values import coerce
from placecell.verbs import DONE, FAILED, INTERRUPTED, chosen, print_json, seconds_of, setup_torch

if TYPE_CHECKING:
    from placecell.sweep.backend import MakeBackend


def sweep_verb(args: argparse.Namespace) -> int:
    """Train every combination of settings; a list such as --sigma 0.1,1,2 makes an axis. Runs already in the folder
    are reused, so that a sweep can be stopped, continued and extended."""
    base, plan = base_config(args.task, args.preset, args.config)
    axes = {key: value.split(",") for key, value in chosen(args).items()}
    if "seed" in axes:
        raise InputError("a sweep takes --seeds N (the seeds 0 to N−1), not --seed.")
    setup_torch(args)
    from placecell.sweep import grid

    seeds = coerce(args.seeds or plan.get("seeds", 1), int, "--seeds")
    configs = grid(base, plan.get("grid", []), axes, seeds)
    out = Path(args.out or f"runs/{args.task}-{args.config.stem if args.config else args.preset}")
    if args.dry_run:
        from placecell.sweep import label, varying
        from placecell.sweep.estimate import estimate
        from placecell.train.run import finished

        keys, workers = varying(configs), workers_of(args)
        done = sum(finished(out / config.name) for config in configs)
        seconds = estimate(configs, out, args.device, workers)
        if args.json:
            runs = [{"name": c.name, "seed": c.seed, "label": label(c, keys), "steps": c.train.steps} for c in configs]
            print_json({"folder": str(out), "runs": runs, "done": done, "workers": workers, "seconds": seconds})
            return DONE
        for config in configs:
            print(f"{config.name}  seed {config.seed}  {label(config, keys)}")
        print(
            f"{len(configs)} runs, {sum(c.train.steps for c in configs)} steps, in {out}, where {done} are done; "
            f"about {seconds / 60:.1f} minutes on {workers} workers of this machine; nothing was trained."
        )
        return DONE
    code = work_through(configs, out, args)
    if code == DONE and not args.json:
        print(f"Next: placecell report {out}")
    return code


def transplant_verb(args: argparse.Namespace) -> int:
    """Is it the learned table that generalises? Train fresh models with frozen tables taken from others: learned at
    small σ, the same with rows shuffled, random with the same norms, learned at large σ."""
    base, plan = base_config(args.task, args.preset, args.config)
    taken = {"seed", "encoding", "sigma", "axes", "base", "max_distance", "donor", "donor_change"} & chosen(args).keys()
    if taken:
        raise InputError(f"a transplant sets {', '.join(sorted(taken))} itself; it takes --small, --large and --seeds.")
    base = base.override(chosen(args))
    setup_torch(args)
    from placecell import analysis
    from placecell.seeds import numpy_stream
    from placecell.sweep.transplant import donors, receivers
    from placecell.train import load_result, make_task

    pairs = donors(base, args.small, args.large, coerce(args.seeds or plan.get("seeds", 1), int, "--seeds"))
    out = Path(args.out or f"runs/{args.task}-{args.config.stem if args.config else args.preset}")
    arms = [receivers(*pair) for pair in pairs]
    for round_of_runs in ([c for pair in pairs for c in pair], [c for arm in arms for c in arm.values()]):
        code = work_through(round_of_runs, out, args)
        if code != DONE:
            return code
    headline = make_task(base).headline
    values = {name: [load_result(out / arm[name].name).final("test", headline) for arm in arms] for name in arms[0]}
    first, *_ = values.values()

    def interval(of: Sequence[float], stream: str) -> dict[str, float]:
        found = analysis.bootstrap_interval(of, numpy_stream(0, stream))
        return {"mean": found.estimate, "low": found.low, "high": found.high}

    told: dict[str, dict[str, Any]] = {}
    for name, seeds in values.items():
        told[name] = interval(seeds, f"transplant/{name}") | {"seeds": seeds}
        if seeds is not first:
            less = [one - other for one, other in zip(first, seeds, strict=True)]
            told[name]["first_minus_this"] = interval(less, f"transplant/{name}/paired") | {"seeds": less}
    if args.json:
        print_json({"headline": headline, "arms": told})
        return DONE

    def words(of: dict[str, float], sign: str = "") -> str:
        between = f"  [{of['low']:{sign}.4f}, {of['high']:{sign}.4f}]" if len(pairs) > 2 else ""  # of two there is none
        return f"{of['mean']:{sign}.4f}{between}"

    print(f"test {headline} of fresh models with a frozen table ({len(pairs)} seeds); the first minus each, by seed:")
    for name, entry in told.items():
        paired = f"   {words(entry['first_minus_this'], '+')}" if "first_minus_this" in entry else ""
        print(f"  {name:<28} {words(entry)}{paired}")
    return DONE


def work_through(configs: Sequence[RunConfig], out: Path, args: argparse.Namespace) -> int:
    """Train all configurations, showing how it goes, and say how it ended."""
    from placecell.progress import SweepProgress
    from placecell.sweep import label, sweep, varying

    keys = varying(configs)

    def words(config: RunConfig) -> str:
        return f"{label(config, keys)} seed {config.seed}"

    with SweepProgress(configs, words, quiet=args.json) as progress:
        outcomes = sweep(
            configs,
            out,
            backend_of(args),
            device=args.device,
            threads=args.threads,
            checkpoint_seconds=seconds_of(args),
            retries=coerce(args.retries, int, "--retries", at_least=0),
            on_done=progress.on_done,
            on_tick=progress.on_tick,
        )
    counts = {status: sum(o.status == status for o in outcomes) for status in dict.fromkeys(o.status for o in outcomes)}
    reused = sum(o.reused for o in outcomes)
    if args.json and args.verb == "sweep":
        runs = [{"name": o.config.name, "status": o.status, "message": o.message} for o in outcomes]
        print_json({"folder": str(out), "counts": counts, "reused": reused, "runs": runs})
    elif not args.json:
        told = ", ".join(f"{n} {status}" for status, n in counts.items()) or "none ended"
        print(f"{out}: {told}; {reused} were there already")
    for o in outcomes:
        if o.status == "failed":
            print(f"placecell: {o.config.name} failed: {o.message}", file=sys.stderr)
    if not args.json:
        from placecell.report.diagnose import diagnose_results, lines

        ended = [o.result for o in outcomes if o.result is not None and o.result.status != "interrupted"]
        if ended:
            print("\n".join(lines(diagnose_results(ended, keys))) or "diagnosis: no sign of trouble")
    if len(outcomes) < len(configs) or counts.get("interrupted"):
        print("placecell: interrupted; the same command goes on from here.", file=sys.stderr)
        return INTERRUPTED
    return FAILED if counts.get("failed") else DONE


def workers_of(args: argparse.Namespace) -> int:
    default = max(1, (os.cpu_count() or 1) // args.threads)
    return coerce(default if args.workers is None else args.workers, int, "--workers", at_least=0)


def backend_of(args: argparse.Namespace) -> MakeBackend:
    """The back end that the options ask for."""
    from placecell.sweep import local

    only_ray = [f for f in ("address", "cpus_per_run", "gpus_per_run") if getattr(args, f) is not None]
    if args.backend == "local":
        if only_ray:
            raise InputError(f"--{only_ray[0].replace('_', '-')} belongs to --backend ray.")
        return local(workers_of(args))
    if args.backend != "ray":
        raise unknown("back end", args.backend, ("local", "ray"))
    from placecell.sweep.ray import on_ray

    cpus, gpus = coerce(args.cpus_per_run or args.threads, float, "--cpus-per-run"), args.gpus_per_run or 0.0
    workers = None if args.workers is None else workers_of(args)
    return on_ray(args.address, cpus, coerce(gpus, float, "--gpus-per-run"), workers)
