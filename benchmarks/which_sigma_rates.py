"""Which σ? SGD beside Adam, and numbers of heads, each at a learning rate of its own.

    python benchmarks/which_sigma_rates.py sgd    # Latin squares, preset adam, very small σ
    python benchmarks/which_sigma_rates.py heads  # Latin squares, preset quick

Rates are chosen by validation accuracy, one seed, puzzles of split seed 1; then three seeds on
puzzles of split seed 21. Ordinary sweeps into runs/which_sigma/rates: stopped ones go on with the
same command. Prints the tables of docs/lazy_or_rich.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import placecell
from placecell import analysis
from placecell.config import RunConfig
from placecell.seeds import numpy_stream
from placecell.store.runs import RunResult, load_result
from placecell.sweep import grid, local, sweep

FOLDER = Path("runs/which_sigma/rates")
CHOOSE, REPORT, SEEDS = 1, 21, 3  # split seed that a rate is chosen on, and of what is reported
RATES = {"sgd": [0.02, 0.05, 0.1], "adam": [1e-3, 2e-3, 4e-3]}
NAMES = {"sgd": "SGD", "adam": "Adam"}
TINY = [0.01, 0.02, 0.1]
HEADS, HEAD_RATES, ENDS = [1, 2, 4], [3e-3, 6e-3, 1.2e-2], [0.1, 2.0]
Settings = dict[str, Any]


def trained(settings: Settings, base: RunConfig, seeds: int, workers: int) -> list[RunResult]:
    """Return finished runs of a grid, in the order of the grid; trains those that are missing."""
    configs = grid(base, [{"encoding": "learnable"} | settings], {}, seeds)
    if len(sweep(configs, FOLDER, local(workers))) < len(configs):
        raise SystemExit("stopped; the same command goes on")
    return [load_result(FOLDER / config.name) for config in configs]


def accuracy(runs: Sequence[RunResult], split: str) -> list[float]:
    """Return the accuracy of each run, in per cent."""
    return [100 * run.final(split, "accuracy") for run in runs]


def spread(values: Sequence[float] | np.ndarray, name: str) -> str:
    """Return a mean with its interval over seeds."""
    interval = analysis.bootstrap_interval(np.array(values), numpy_stream(0, f"rates/{name}"))
    return f"{np.mean(values):.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def whole(runs: Sequence[RunResult]) -> str:
    """Return how many learned every training puzzle that is scored."""
    right = sum(run.final("train", "accuracy") == 1.0 for run in runs)
    return f"{right} of {len(runs)}"


def best_rate(settings: Settings, rates: list[float], base: RunConfig, workers: int) -> float:
    """Return the rate with the best validation accuracy; goes on where the best is the last."""
    found: dict[float, float] = {}
    while True:
        for rate in (rate for rate in rates if rate not in found):
            runs = trained(settings | {"lr": rate}, base, 1, workers)
            found[rate] = float(np.mean(accuracy(runs, "valid")))
        best = max(found, key=lambda rate: found[rate])
        rates = [min(found) / 2] if best == min(found) else [max(found) * 2]
        if min(found) < best < max(found):
            text = ", ".join(f"{rate:g}: {found[rate]:.1f}" for rate in sorted(found))
            print(f"  {settings}: {text}", flush=True)
            return best


def sgd(workers: int) -> None:
    """Print SGD and Adam at very small σ, each pair at its own rate."""
    preset = placecell.preset("latin_square", "adam")
    choose, report = (preset.override({"split_seed": seed}) for seed in (CHOOSE, REPORT))
    print("validation accuracy by rate")
    runs = {}
    for name, rates in RATES.items():
        for sigma in TINY:
            settings = {"optimizer": name, "sigma": sigma}
            settings |= {"lr": best_rate(settings, rates, choose, workers)}
            runs[name, sigma] = trained(settings, report, SEEDS, workers)
    print("| σ | optimizer | rate | new puzzles | by seed | converged | Adam minus SGD |")
    for sigma in TINY:
        for name in RATES:
            some = runs[name, sigma]
            test = accuracy(some, "test")
            gap = np.subtract(accuracy(runs["adam", sigma], "test"), test)
            cells = [f"{sigma:g}", NAMES[name], f"{some[0].config.train.lr:g}"]
            cells += [spread(test, "test"), ", ".join(f"{v:.1f}" for v in test), whole(some)]
            cells += [spread(gap, "gap") if name == "sgd" else ""]
            print("| " + " | ".join(cells) + " |")


def heads(workers: int) -> None:
    """Print σ 0.1 and 2 for each number of heads, each number at its own rate."""
    preset = placecell.preset("latin_square")
    choose, report = (preset.override({"split_seed": seed}) for seed in (CHOOSE, REPORT))
    print("validation accuracy by rate, mean of both σ")
    rows = []
    for number in HEADS:
        means = {}
        for rate in HEAD_RATES:
            some = {"heads": number, "sigma": ENDS, "lr": rate}
            means[rate] = float(np.mean(accuracy(trained(some, choose, 1, workers), "valid")))
        best = max(means, key=lambda rate: means[rate])
        print(f"  {number}: " + ", ".join(f"{r:g}: {v:.1f}" for r, v in means.items()), flush=True)
        small, large = (
            trained({"heads": number, "sigma": s, "lr": best}, report, SEEDS, workers) for s in ENDS
        )
        one, other = accuracy(small, "test"), accuracy(large, "test")
        cells = [str(number), f"{best:g}", spread(one, "test"), spread(other, "test")]
        cells += [spread(np.subtract(one, other), "gap")]
        rows.append([*cells, f"{whole(small)}, {whole(large)}"])
    print("| heads | rate | σ = 0.1 | σ = 2 | difference, paired | converged |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("sgd", "heads"))
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    {"sgd": sgd, "heads": heads}[given.part](given.workers)


if __name__ == "__main__":
    main()
