"""One training step (forward, backward, Adam) of our encoder, of its peers, and of the matrix
products alone.

    python benchmarks/train_step.py                  # six cases, about twenty minutes
    python benchmarks/train_step.py --case 64,4,16 --rounds 50 --json
    python benchmarks/train_step.py --case 64,4,16 --compile ours   # the peers eager only

A case is width, heads and tokens per sample. Every row of a case does the same work on one thread
in single precision: 128 samples (6 symbols plus a learnable table), 4 post-norm layers with a ReLU
MLP of ratio 4, the answer (4 classes, cross-entropy) read at one token, fused Adam. Rounds are
interleaved, so that a busy machine slows every row alike. Time is processor time.

Three limits are measured in the same rounds: the matrix products, forward and backward, of the
whole encoder (what the peers compute); those that are left in ours, where the last layer is
computed only at the token that is read, the first projects each symbol at each place once, and the
projections of attention are folded: in every layer with one head, in the last layer with several;
and the latter with every other kernel that a step needs, back to back."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

from placecell.encodings import LearnablePE, Positions
from placecell.model import Inputs
from placecell.model.encoder import Encoder, Tokens, Transformer
from placecell.train.device import compile_options
from placecell.train.memory import keep_memory

BATCH, SYMBOLS, CLASSES, DEPTH, RATIO = 128, 6, 4, 4, 4
OURS, FULL, OWN, FLOOR = (
    "placecell",
    "products, whole encoder",
    "products, ours",
    "products and kernels, ours",
)
Step = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """Width, heads and tokens per sample of a model."""

    d: int
    heads: int
    n: int

    def __str__(self) -> str:
        heads = "one head" if self.heads == 1 else f"{self.heads} heads"
        return f"width {self.d}, {heads}, {self.n} tokens"

    @classmethod
    def parse(cls, text: str) -> Case:
        width, heads, tokens = map(int, text.split(","))
        return cls(width, heads, tokens)


CASES = [
    Case(160, 1, 16),
    Case(64, 1, 16),
    Case(64, 4, 16),
    Case(160, 4, 16),
    Case(64, 1, 100),
    Case(64, 4, 100),
]


class Ours(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        d, n = case.d, case.n
        encoder = Encoder(d, DEPTH, case.heads, RATIO, norm="post", activation="relu")
        self.model = Transformer(Tokens("symbol", SYMBOLS), LearnablePE(n, d), encoder, d, CLASSES)
        self.pos = Positions.sequence(n)

    def forward(self, tokens: Tensor, read: Tensor) -> Tensor:
        return self.model(Inputs(tokens, self.pos, read[:, None])).outputs[:, 0]  # b classes


class Peer(nn.Module):
    """An encoder of another library between the same embedding, learnable table and readout."""

    def __init__(self, case: Case, encoder: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, case.d)
        self.table = nn.Parameter(0.1 * torch.randn(case.n, case.d))
        self.encoder = encoder
        self.readout = nn.Linear(case.d, CLASSES)

    def forward(self, tokens: Tensor, read: Tensor) -> Tensor:
        y = self.encoder(self.embedding(tokens) + self.table)  # b n d
        return self.readout(y[torch.arange(len(y)), read])  # b classes


def torch_encoder(case: Case) -> nn.Module:
    d = case.d
    layer = nn.TransformerEncoderLayer(d, case.heads, RATIO * d, 0.0, "relu", batch_first=True)
    return Peer(case, nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False))


def x_encoder(case: Case) -> nn.Module:
    from x_transformers import Encoder as XEncoder

    size = {"dim": case.d, "depth": DEPTH, "ff_mult": RATIO}
    size |= {"heads": case.heads, "attn_dim_head": case.d // case.heads}
    options = {"attn_flash": True, "pre_norm": False, "ff_custom_activation": nn.ReLU()}
    return Peer(case, XEncoder(**size, **options))


MODELS: dict[str, Callable[[Case], nn.Module]] = {
    OURS: Ours,
    "nn.TransformerEncoder": torch_encoder,
    "x-transformers": x_encoder,
}


def train_step(model: nn.Module, n: int, compiled: bool) -> Step:
    """A training step of `model` on a fixed batch."""
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(SYMBOLS, (BATCH, n), generator=draw)
    read = torch.randint(n, (BATCH,), generator=draw)
    target = torch.randint(CLASSES, (BATCH,), generator=draw)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def loss() -> Tensor:
        return F.cross_entropy(model(tokens, read), target)

    run = (
        torch.compile(loss, dynamic=False, options=compile_options(tokens.device))
        if compiled
        else loss
    )

    def step() -> None:
        optimizer.zero_grad()
        run().backward()
        optimizer.step()

    return step


def products(case: Case, ours: bool, attention_too: bool = True) -> Step:
    """Every matrix product of a training step and nothing else, each with operands and a result of
    its own.

    Those of the whole encoder, or ours: the last layer at the token that is read only, and
    projections folded where that saves work."""
    d, n, heads = case.d, case.n, case.heads
    rows, calls = BATCH * n, []

    def linear(m: int, i: int, o: int) -> None:
        x, w, y = (
            torch.randn(m, i),
            torch.randn(o, i),
            torch.randn(m, o),
        )  # y stands for its gradient too
        gx, gw = torch.empty(m, i), torch.empty(o, i)
        calls.append(lambda: torch.mm(x, w.t(), out=y))
        calls.append(lambda: torch.mm(y, w, out=gx))
        calls.append(lambda: torch.mm(y.t(), x, out=gw))

    def attention(queries: int, b: int, e: int) -> None:
        q, k, v, y = (torch.randn(b, m, e) for m in (queries, n, n, queries))
        gq, gk, gv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        p, gp = torch.randn(b, queries, n), torch.empty(b, queries, n)
        calls.append(lambda: torch.bmm(q, k.mT, out=p))
        calls.append(lambda: torch.bmm(p, v, out=y))
        calls.append(lambda: torch.bmm(y, v.mT, out=gp))
        calls.append(lambda: torch.bmm(p.mT, y, out=gv))
        calls.append(lambda: torch.bmm(p, k, out=gq))
        calls.append(lambda: torch.bmm(p.mT, q, out=gk))

    for layer in range(DEPTH):
        last = layer == DEPTH - 1
        m = BATCH if ours and last else rows
        projected = SYMBOLS * n if ours and layer == 0 else m  # each symbol at each place, once
        if ours and heads == 1:
            linear(d, d, d)  # W_k W_q, and below W_o W_v
            linear(d, d, d)
            linear(projected, d, d)
        elif ours and last:  # W_k q and W_v Σ a x of each head, at the token that is read
            linear(m, d, d)
            linear(m * heads, d // heads, d)
            linear(m * heads, d, d // heads)
        else:
            linear(projected if ours else rows, d, 3 * d)
        if attention_too:
            if ours and (heads == 1 or last):  # tokens themselves are keys and values
                attention(heads * m // BATCH, BATCH, d)
            else:
                attention(m // BATCH, BATCH * heads, d // heads)
        linear(m, d, d)
        linear(m, d, RATIO * d)
        linear(m, RATIO * d, d)
    linear(BATCH, d, CLASSES)

    def step() -> None:
        for call in calls:
            call()

    return step


def kernels(case: Case) -> Step:
    """What our step cannot do without besides its products, each by the kernel that torch has for
    it, with nothing between them: attention (in place of its products), layer norms, ReLU,
    residuals, gradients of biases, Adam."""
    aten, calls, d = torch.ops.aten, [], case.d

    def layer(m: int) -> None:
        x, h, weight, bias = (
            torch.randn(m, d),
            torch.randn(m, RATIO * d),
            torch.ones(d),
            torch.zeros(d),
        )
        _, mean, rstd = torch.native_layer_norm(x, [d], weight, bias, 1e-5)
        head = (BATCH, case.heads)
        q = torch.randn(*head, m // BATCH, d // case.heads)
        k, v = torch.randn(2, *head, case.n, d // case.heads)
        y, logsumexp = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        back = aten._scaled_dot_product_flash_attention_for_cpu_backward
        for _ in range(2):
            calls.append(lambda: torch.native_layer_norm(x, [d], weight, bias, 1e-5))
            calls.append(
                lambda: aten.native_layer_norm_backward(
                    x, x, [d], mean, rstd, weight, bias, [True] * 3
                )
            )
            calls.append(lambda: torch.add(x, x))  # a residual, and below its gradient
            calls.append(lambda: torch.add(x, x))
        calls.append(lambda: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v))
        calls.append(lambda: back(y, q, k, v, y, logsumexp, 0.0, False))
        calls.append(lambda: torch.relu(h))
        calls.append(lambda: aten.threshold_backward(h, h, 0))
        for width in (d, d, RATIO * d, d):
            gradient = torch.randn(m, width)
            calls.append(lambda gradient=gradient: gradient.sum(0))

    for number in range(DEPTH):
        layer(BATCH if number == DEPTH - 1 else BATCH * case.n)
    parameters = [nn.Parameter(torch.randn_like(p)) for p in Ours(case).parameters()]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.Adam(parameters, lr=1e-4, fused=True)
    alone = products(case, ours=True, attention_too=False)

    def step() -> None:
        alone()
        for call in calls:
            call()
        optimizer.step()

    return step


@dataclass
class Row:
    """One thing that is timed: seconds of processor time a step."""

    name: str
    mode: str  # eager, compiled, or a dash for the limits
    step: Step | None = None
    warm_up: float = 0.0  # seconds from nothing to the second step, by the clock on the wall
    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def warm(row: Row, make: Callable[[], Step]) -> Row:
    """Build the step and run it twice, which compiles it; what cannot run says why."""
    print(f"warming up {row.name} ({row.mode})", file=sys.stderr)
    start = time.perf_counter()
    try:
        row.step = make()
        row.step()
        row.step()
    except (
        Exception
    ) as error:  # a peer that cannot run is a row of the table, not the end of the benchmark
        row.step, row.failure = (
            None,
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        )
    row.warm_up = time.perf_counter() - start
    return row


def measure(case: Case, rounds: int, compiled: Sequence[str]) -> list[Row]:
    torch.manual_seed(0)
    # or what was compiled for another case would change what is compiled for this one
    torch._dynamo.reset()
    rows = [
        warm(Row(name, "-"), lambda own=own: products(case, own))
        for name, own in ((FULL, False), (OWN, True))
    ]
    rows.append(warm(Row(FLOOR, "-"), lambda: kernels(case)))
    for name, make in MODELS.items():
        for mode in ("eager", "compiled") if name in compiled else ("eager",):
            rows.append(
                warm(
                    Row(name, mode),
                    lambda make=make, mode=mode: train_step(make(case), case.n, mode == "compiled"),
                )
            )
    gc.disable()
    for done in range(rounds):
        if done % 10 == 0:
            print(f"{case}: round {done} of {rounds}", file=sys.stderr)
        for row in rows:
            if row.step is not None:
                start = time.process_time()
                row.step()
                row.seconds.append(time.process_time() - start)
    gc.enable()
    return rows


def report(case: Case, rows: list[Row]) -> dict[str, Any]:
    """What was measured, as plain values: quartiles in milliseconds, and medians as multiples of
    both limits."""
    limit = {row.name: median(row.seconds) for row in rows if row.name in (FULL, OWN)}
    entries: list[dict[str, Any]] = []
    for row in rows:
        entry: dict[str, Any] = {
            "name": row.name,
            "mode": row.mode,
            "warm_up_s": round(row.warm_up, 2),
        }
        if row.failure:
            entries.append(entry | {"failure": row.failure})
            continue
        low, middle, high = quantiles(row.seconds, n=4)
        entry |= {
            "ms": round(1e3 * middle, 3),
            "quartiles_ms": [round(1e3 * low, 3), round(1e3 * high, 3)],
        }
        entry |= {"x_own": round(middle / limit[OWN], 3), "x_full": round(middle / limit[FULL], 3)}
        entries.append(entry)
    timed = [
        entry for entry in entries if "ms" in entry and entry["name"] not in (FULL, OWN, FLOOR)
    ]
    best = min(
        (entry for entry in timed if entry["name"] == OURS),
        key=lambda entry: entry["ms"],
        default=None,
    )
    peer = min(
        (entry for entry in timed if entry["name"] != OURS),
        key=lambda entry: entry["ms"],
        default=None,
    )
    result: dict[str, Any] = {"case": str(case), "rows": entries}
    if best and peer:
        result["ours"], result["fastest_peer"] = (
            f"{entry['name']} {entry['mode']}" for entry in (best, peer)
        )
        result["throughput_ratio"] = round(peer["ms"] / best["ms"], 3)
    return result


def show(result: dict[str, Any], console: Console) -> None:
    table = Table(title=f"One training step: {result['case']}")
    table.add_column("")
    table.add_column("mode")
    for column in ("ms (quartiles)", "× products, ours", "× products, whole", "warm-up (s)"):
        table.add_column(column, justify="right")
    for row in result["rows"]:
        if "failure" in row:
            table.add_row(row["name"], row["mode"], f"could not run: {row['failure']}")
            continue
        low, high = row["quartiles_ms"]
        spread = f"{row['ms']:.1f} ({low:.1f}–{high:.1f})"
        table.add_row(
            row["name"],
            row["mode"],
            spread,
            f"{row['x_own']:.2f}",
            f"{row['x_full']:.2f}",
            f"{row['warm_up_s']:.1f}",
        )
    console.print(table)
    if "throughput_ratio" in result:
        ours, peer, ratio = result["ours"], result["fastest_peer"], result["throughput_ratio"]
        console.print(f"Throughput of {ours}: {ratio:.2f} × that of the fastest peer, {peer}.\n")


def machine(kept: bool) -> dict[str, Any]:
    """The kind of machine and the versions that the figures belong to."""
    info = Path("/proc/cpuinfo")
    names = (
        [line for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    try:
        peer = version("x-transformers")
    except PackageNotFoundError:
        peer = "not installed"
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "x-transformers": peer,
        "freed_memory_kept": kept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--case",
        type=Case.parse,
        nargs="+",
        default=CASES,
        metavar="WIDTH,HEADS,TOKENS",
        help="such as 64,4,16 (default: all six)",
    )
    about = "what is timed compiled too: all, ours or none (default: all)"
    parser.add_argument("--compile", choices=("all", "ours", "none"), default="all", help=about)
    parser.add_argument("--rounds", type=int, default=40, help="at least 2")
    parser.add_argument(
        "--json", action="store_true", help="plain values on stdout instead of tables"
    )
    parser.add_argument(
        "--default-malloc", action="store_true", help="leave the memory allocator as it is"
    )
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error("--rounds must be at least 2")
    torch.set_num_threads(1)
    kept = not args.default_malloc and keep_memory()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = empty  # so that the warm-up is that of a first run
        compiled = {"all": tuple(MODELS), "ours": (OURS,), "none": ()}[args.compile]
        results = [report(case, measure(case, args.rounds, compiled)) for case in args.case]
    if args.json:
        print(
            json.dumps(
                {"machine": machine(kept), "rounds": args.rounds, "results": results}, indent=2
            )
        )
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(", ".join(f"{key}: {value}" for key, value in machine(kept).items()) + "\n")
    for result in results:
        show(result, console)


if __name__ == "__main__":
    main()
