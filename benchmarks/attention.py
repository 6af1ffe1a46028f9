"""Compiled attention: torch's fused kernel, or written out.

    python benchmarks/attention.py                   # about three minutes, most of it compiling
    python benchmarks/attention.py --heads 4 --tokens 16 32 48 100

With one head the tokens are their own keys and values. Projections, attention, a residual and a
layer norm, forward and backward, on one thread in single precision. Rows are interleaved; time is
processor time. `MAX_WRITTEN_OUT` and `MAX_WRITTEN_OUT_BY_HEAD` of placecell.model.attend are set by
this."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn

from placecell.encodings import NoPE, Positions
from placecell.model import attend
from placecell.model.attention import Attention
from placecell.train.device import compile_options
from placecell.train.memory import keep_memory

TOKENS = 2048  # a batch, in samples of n


class Block(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(d, heads), nn.LayerNorm(d)

    def forward(self, x: Tensor, pos: Positions) -> Tensor:
        y, _ = self.attention(x, x, NoPE(), pos, pos)
        return self.norm(x + y).square().sum()


def compiled_steps(n: int, d: int, heads: int) -> list[Callable[[], None]]:
    """Two steps: with the fused kernel, and with what is written out."""
    torch._dynamo.reset()
    x = torch.randn(max(1, TOKENS // n), n, d, requires_grad=True)
    pos = Positions.sequence(n)
    loss = torch.compile(Block(d, heads), dynamic=False, options=compile_options(x.device))

    def step(few: int) -> None:
        attend.MAX_WRITTEN_OUT = attend.MAX_WRITTEN_OUT_BY_HEAD = few  # code is kept for each
        loss(x, pos).backward()

    return [partial(step, 0), partial(step, n)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 32, 64, 128, 256, 360])
    parser.add_argument("--width", type=int, nargs="+", default=[64, 160])
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    print("width  tokens  fused (ms)  written out (ms)  ratio")
    for d in args.width:
        for n in args.tokens:
            steps = compiled_steps(n, d, args.heads)
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
