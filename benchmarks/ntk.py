"""The trace kernel of 256 inputs: `placecell.analysis.ntk` against the plain `torch.func` recipe, time and memory.

    python benchmarks/ntk.py                 # width 160, 4 layers, 16 tokens; about three minutes
    python benchmarks/ntk.py --inputs 64 --width 64

The plain recipe: `vmap` of `jacrev` over the samples gives every Jacobian, then one contraction for each parameter.
It gets the Jacobians once, for rows and columns. Each way runs in processes of its own, by turns, so that the peak of
memory is that way's alone; what the interpreter and the model take before is shown too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from statistics import median

import torch
from torch.func import functional_call, jacrev, vmap

from placecell.analysis.ntk import Inputs, ntk
from placecell.model import Transformer
from placecell.train import make_model, make_task
from placecell.verbs import base_config


def plain(model: Transformer, inputs: Inputs) -> torch.Tensor:
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def function(values: dict[str, torch.Tensor], tokens: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        args = (tokens[None], inputs.positions, read[None])
        return functional_call(model, values, args, {"maps": True}).outputs.flatten()

    rows = vmap(jacrev(function), (None, 0, 0))(parameters, inputs.tokens, inputs.read)
    return sum(torch.einsum("naf,maf->nm", j, j) for j in (row.flatten(2) for row in rows.values()))


def peak() -> float:
    """Most memory that this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def once(way: str, width: int, count: int, threads: int) -> None:
    """One process: the kernel once, its time, peak and a number that both ways must agree on."""
    torch.set_num_threads(threads)
    config = base_config("latin_square")[0].override({"width": width, "mlp_ratio": 4.0, "depth": 4})
    task = make_task(config)
    model, examples = make_model(config, task), task.splits()["test"].take(slice(0, count))
    inputs = Inputs(examples.tokens, task.positions, examples.read)
    before, start = peak(), time.perf_counter()
    kernel = ntk(model, inputs).total if way == "placecell" else plain(model, inputs)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": peak(), "before": before, "norm": float(kernel.norm())}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--inputs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        once(args.once, args.width, args.inputs, args.threads)
        return
    found: dict[str, list[dict[str, float]]] = {"placecell": [], "plain": []}
    for _ in range(args.rounds):
        for way, results in found.items():
            command = [sys.executable, __file__, "--once", way, "--width", str(args.width)]
            command += ["--inputs", str(args.inputs), "--threads", str(args.threads)]
            results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            print(f"{way}: {results[-1]['seconds']:.1f} s", file=sys.stderr)
    shown = {way: {key: median(r[key] for r in results) for key in results[0]} for way, results in found.items()}
    for way, one in shown.items():
        print(f"{way:<10} {one['seconds']:6.1f} s   peak {one['peak']:.2f} GB (before {one['before']:.2f} GB)")
    ours, theirs = shown["placecell"], shown["plain"]
    memory = ours["peak"] / theirs["peak"]
    print(f"{theirs['seconds'] / ours['seconds']:.1f} times faster, {memory:.2f} of the memory at its peak")
    print(f"kernels agree to {abs(ours['norm'] / theirs['norm'] - 1):.0e}")


if __name__ == "__main__":
    main()
