"""Compiled attention over tokens that are their own keys and values: torch's fused kernel, or
written out.

    python benchmarks/attention.py                   # about three minutes, most of it compiling

A query projection, attention, an output projection, a residual and a layer norm, forward and
backward, on one thread in single precision. Rows are interleaved; time is processor time.
`MAX_WRITTEN_OUT` of placecell.model.attention is set by this."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from placecell.model import attention
from placecell.train.device import compile_options
from placecell.train.memory import keep_memory

TOKENS = 2048  # a batch, in samples of n


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.q, self.out, self.norm = nn.Linear(d, d), nn.Linear(d, d), nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.out(attention.attend(self.q(x), x))).square().sum()


def compiled_steps(n: int, d: int) -> list[Callable[[], None]]:
    """Two steps: with the fused kernel, and with what is written out."""
    torch._dynamo.reset()
    x = torch.randn(max(1, TOKENS // n), n, d, requires_grad=True)
    loss = torch.compile(Block(d), dynamic=False, options=compile_options(x.device))

    def step(few: int) -> None:
        attention.MAX_WRITTEN_OUT = few  # compiled code is kept for each value
        loss(x).backward()

    return [partial(step, 0), partial(step, n)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 32, 64, 128, 256, 360])
    parser.add_argument("--width", type=int, nargs="+", default=[64, 160])
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    print("width  tokens  fused (ms)  written out (ms)  ratio")
    for d in args.width:
        for n in args.tokens:
            steps = compiled_steps(n, d)
            for step in steps:
                step()
            seconds: list[list[float]] = [[], []]
            for _ in range(args.rounds):
                for step, row in zip(steps, seconds, strict=True):
                    start = time.process_time()
                    step()
                    row.append(time.process_time() - start)
            fused, out = (1e3 * median(row) for row in seconds)
            print(f"{d:5}  {n:6}  {fused:10.2f}  {out:16.2f}  {out / fused:5.2f}", flush=True)


if __name__ == "__main__":
    main()
