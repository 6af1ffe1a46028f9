"""What the machinery of a sweep costs, and whether packing seeds into one batched model pays.

    python benchmarks/sweep.py                 # about six minutes
    python benchmarks/sweep.py --json

1. The same sweep with one worker and with two, by turns, each from a cold start: the ratio of the
times.
2. Where the time of a run in a warm worker goes: before its first step (start-up), in training,
after it.
3. Several seeds of one configuration as one model with batched weights (`torch.func`), against one
after the other."""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from placecell.config import RunConfig
from placecell.config.presets import base_config
from placecell.model import Inputs
from placecell.sweep import grid, local, sweep
from placecell.train import make_model, make_task
from placecell.train.memory import keep_memory
from placecell.train.run import fit, run

SEEDS = (1, 2, 4)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def small_sweep(steps: int) -> list[RunConfig]:
    """Eight runs of the quick preset, cut short."""
    base = base_config("latin_square")[0].override(
        {"steps": steps, "warmup": 0, "eval_every": steps}
    )
    return grid(base, [{"encoding": "learnable"}], {"sigma": [0.1, 0.5, 1.0, 2.0]}, seeds=2)


def workers(steps: int, rounds: int) -> dict[str, Any]:
    """Wall time of the sweep with one and with two workers, by turns, each in a store of its
    own."""
    configs, seconds = small_sweep(steps), {1: [], 2: []}
    for number in range(rounds):
        for count in seconds:
            note(f"round {number + 1} of {rounds}: {count} workers")
            with tempfile.TemporaryDirectory() as out:
                start = time.perf_counter()
                sweep(configs, Path(out), local(count))
                seconds[count].append(time.perf_counter() - start)
    one, two = median(seconds[1]), median(seconds[2])
    return {"runs": len(configs), "steps": steps, "one_s": one, "two_s": two, "ratio": two / one}


def overhead(steps: int) -> dict[str, Any]:
    """Medians over the runs of a sweep in this process, whose first run warms up and is left
    out."""
    spans: list[tuple[float, float]] = []  # of training
    calls: list[tuple[float, float]] = []  # of whole runs

    def timed(real: Callable[..., Any], into: list[tuple[float, float]]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            found = real(*args, **kwargs)
            into.append((start, time.perf_counter()))
            return found

        return call

    with (
        tempfile.TemporaryDirectory() as out,
        patch("placecell.train.run.fit", timed(fit, spans)),
        patch("placecell.sweep.backends.base.run", timed(run, calls)),
    ):
        sweep(small_sweep(steps), Path(out), local(0))
    spans, calls = spans[1:], calls[1:]
    between = [later[0] - sooner[1] for sooner, later in pairwise(calls)]
    found = {
        "start_up_ms": 1e3
        * median(inner[0] - call[0] for inner, call in zip(spans, calls, strict=True)),
        "after_ms": 1e3
        * median(call[1] - inner[1] for inner, call in zip(spans, calls, strict=True)),
        "between_ms": 1e3 * median(between),
        "training_s": median(end - start for start, end in spans),
    }
    lost = found["start_up_ms"] + found["after_ms"] + found["between_ms"]
    return found | {"share": lost / 1e3 / found["training_s"]}


def packed(width: int, rounds: int) -> dict[str, Any]:
    """Time of a forward and backward pass for each seed, alone and packed, as a ratio (below 1:
    packing pays)."""
    config = base_config("latin_square")[0].override({"width": width})
    task = make_task(config)
    data = task.splits()["train"]
    models = [make_model(config.override({"seed": seed}), task) for seed in range(max(SEEDS))]
    skeleton = copy.deepcopy(models[0])
    batches = [data.take(torch.arange(k * 64, (k + 1) * 64)) for k in range(max(SEEDS))]
    tokens, read, targets = (
        torch.stack([getattr(b, part) for b in batches]) for part in ("tokens", "read", "targets")
    )

    def loss(
        parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, at: Tensor, y: Tensor
    ) -> Tensor:
        outputs = functional_call(
            skeleton, (parameters, buffers), (Inputs(x, task.positions, at),)
        ).outputs
        return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), y.flatten())

    def alone(count: int) -> None:
        for model, batch in zip(models[:count], batches, strict=False):
            for parameter in model.parameters():
                parameter.grad = None
            task.loss(
                model(Inputs(batch.tokens, task.positions, batch.read)).outputs, batch
            ).backward()

    steps: dict[tuple[str, int], Callable[[], Any]] = {}
    for count in SEEDS:
        parameters, buffers = stack_module_state(models[:count])
        together = vmap(grad(loss))
        args = (parameters, buffers, tokens[:count], read[:count], targets[:count])
        steps["alone", count] = lambda count=count: alone(count)
        steps["packed", count] = lambda together=together, args=args: together(*args)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in steps}
    for number in range(rounds + 2):
        for key, step in steps.items():
            # torch.func has no batched form of the fused attention
            with sdpa_kernel(SDPBackend.MATH) if key[0] == "packed" else contextlib.nullcontext():
                start = time.process_time()
                step()
            if number >= 2:
                seconds[key].append(time.process_time() - start)
    ratio = {n: median(seconds["packed", n]) / median(seconds["alone", n]) for n in SEEDS}
    return {"width": width, "packed_over_alone": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=300, help="of each run of the sweep")
    parser.add_argument("--rounds", type=int, default=2, help="of one worker against two")
    parser.add_argument(
        "--json", action="store_true", help="plain values on stdout instead of text"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    found: dict[str, Any] = {"cores": os.cpu_count(), "torch": torch.__version__}
    found["packing"] = [packed(width, 12) for width in (64, 160)]
    note("packing done")
    found["overhead"] = overhead(args.steps)
    found["workers"] = workers(args.steps, args.rounds)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    two, cost = found["workers"], found["overhead"]
    print(
        f"{two['runs']} runs of {two['steps']} steps: one worker {two['one_s']:.1f} s, two "
        f"{two['two_s']:.1f} s,"
    )
    print(f"  ratio {two['ratio']:.2f} on {found['cores']} cores")
    print(
        f"a run in a warm worker: {cost['start_up_ms']:.0f} ms before its first step, "
        f"{cost['training_s']:.1f} s"
    )
    print(
        f"  of training, {cost['after_ms']:.0f} ms after it, {cost['between_ms']:.0f} ms to the "
        f"next:"
    )
    print(f"  {100 * cost['share']:.2f} % of the training time")
    for one in found["packing"]:
        words = ", ".join(f"{n} seeds {ratio:.2f}" for n, ratio in one["packed_over_alone"].items())
        print(f"width {one['width']}, packed over one after the other: {words}")


if __name__ == "__main__":
    main()
