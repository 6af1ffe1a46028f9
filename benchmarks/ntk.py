"""The trace kernel of 256 inputs: `placecell.analysis.ntk` against the plain `torch.func` recipe,
time and memory.

    python benchmarks/ntk.py                 # width 160, 4 layers, 16 tokens; about three minutes
    python benchmarks/ntk.py --inputs 64 --width 64

The plain recipe: `vmap` of `jacrev` over the samples gives every Jacobian, then one contraction for
each parameter. PyTorch's tutorial on tangent kernels makes one Jacobian for the rows and one for
the columns (`documented`); where both are the same inputs, one will do (`once`). Each way runs in
processes of its own, by turns, so that the peak of memory is that way's alone; what the interpreter
and the model take before is shown too. Threads that wait give up their core (OMP_WAIT_POLICY), so
that the processor time counts work alone: other work on the machine stretches the time more."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from statistics import median

import torch
from torch.func import functional_call, jacrev, vmap

from placecell.analysis.ntk import ntk
from placecell.config.presets import base_config
from placecell.model import Inputs, Transformer
from placecell.train import make_model, make_task

WAYS = {
    "placecell": "placecell",
    "once": "plain, Jacobians made once",
    "documented": "plain, as documented",
}


def plain(model: Transformer, inputs: Inputs, again: bool) -> torch.Tensor:
    """The recipe, with Jacobians made again for the columns or not."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def function(
        values: dict[str, torch.Tensor], tokens: torch.Tensor, read: torch.Tensor
    ) -> torch.Tensor:
        args = (Inputs(tokens[None], inputs.positions, read[None]),)
        return functional_call(model, values, args, {"maps": True}).outputs.flatten()

    def jacobians() -> list[torch.Tensor]:
        found = vmap(jacrev(function), (None, 0, 0))(parameters, inputs.tokens, inputs.read)
        return [row.flatten(2) for row in found.values()]

    rows = jacobians()
    columns = jacobians() if again else rows
    return sum(torch.einsum("naf,maf->nm", x, y) for x, y in zip(rows, columns, strict=True))


def peak() -> float:
    """Most memory that this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def once(way: str, width: int, count: int, threads: int) -> None:
    """One process: the kernel once, its time, peak and a number that all ways must agree on."""
    torch.set_num_threads(threads)
    config = base_config("latin_square")[0].override({"width": width, "mlp_ratio": 4.0, "depth": 4})
    task = make_task(config)
    model, examples = make_model(config, task), task.splits()["test"].take(slice(0, count))
    inputs = Inputs(examples.tokens, task.positions, examples.read)
    before, start, worked = peak(), time.perf_counter(), time.process_time()
    kernel = (
        ntk(model, inputs).total
        if way == "placecell"
        else plain(model, inputs, way == "documented")
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - worked
    found = {
        "seconds": seconds,
        "cpu": cpu,
        "peak": peak(),
        "before": before,
        "norm": float(kernel.norm()),
    }
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--inputs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        once(args.once, args.width, args.inputs, args.threads)
        return
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, results in found.items():
            command = [sys.executable, __file__, "--once", way, "--width", str(args.width)]
            command += ["--inputs", str(args.inputs), "--threads", str(args.threads)]
            env = os.environ | {"OMP_WAIT_POLICY": "passive"}
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            results.append(json.loads(run.stdout))
            print(f"{way}: {results[-1]['seconds']:.1f} s", file=sys.stderr)
    shown = {
        way: {key: median(r[key] for r in results) for key in results[0]}
        for way, results in found.items()
    }
    ours = shown["placecell"]
    print(
        "| | time | processor time | peak memory | time / ours | processor time / ours | our "
        "memory / its |"
    )
    print("|---" * 7 + "|")
    for way, one in shown.items():
        cells = [f"{one['seconds']:.1f} s", f"{one['cpu']:.1f} s", f"{one['peak']:.2f} GB"]
        cells += [f"{one[key] / ours[key]:.1f}" for key in ("seconds", "cpu")] + [
            f"{ours['peak'] / one['peak']:.2f}"
        ]
        print(f"| {WAYS[way]} | " + " | ".join(cells) + " |")
    print(f"{ours['before']:.2f} GB of each peak were taken before the kernel")
    print(
        f"kernels agree to {max(abs(one['norm'] / ours['norm'] - 1) for one in shown.values()):.0e}"
    )


if __name__ == "__main__":
    main()
