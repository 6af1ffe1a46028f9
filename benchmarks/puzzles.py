"""How many Latin Square puzzles a second are checked and classified, beside a plain Python
classifier.

Both get the same random puzzles in the same run, on one core, and must agree. The plain one is the
reference of the tests: lists, sets and loops. The goal is 100 000 a second."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from placecell.tasks.latin_square import classify, decode, generate, squares

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tasks" / "latin_square"))
import ls_reference

GOAL = 100_000


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boards (n,) of random squares with any share of their cells given, and blank probes (n,)."""
    rng = np.random.default_rng(seed)
    probe = rng.integers(16, size=n)
    kept = rng.random((n, 16)) < rng.uniform(0.2, 0.8, (n, 1))
    kept[np.arange(n), probe] = False
    mask = np.bitwise_or.reduce(
        kept * np.uint64(15) << np.arange(0, 64, 4, dtype=np.uint64), axis=1
    )
    return squares()[rng.integers(576, size=n)] & mask, probe


def seconds(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The shortest time of a few runs, and what the last returned."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--n", type=int, default=200_000, help="puzzles for the vectorised classifier"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    boards, probe = draw(arguments.n, seed=0)
    few = min(arguments.n, 3000)
    cells = decode(boards[:few]).tolist()
    squares()  # listed once per process; not part of the work
    fast, found = seconds(lambda: classify(boards, probe), repeats=3)
    slow, expected = seconds(
        lambda: [ls_reference.classify(c, int(p)) for c, p in zip(cells, probe, strict=False)]
    )
    if expected != list(zip(*(array[:few].tolist() for array in found), strict=True)):
        raise SystemExit("the two classifiers disagree")
    first, _ = seconds(lambda: generate(15_000, 0))
    again, _ = seconds(lambda: generate(15_000, 1))
    result = {
        "puzzles": arguments.n,
        "classify_per_second": round(arguments.n / fast),
        "reference_per_second": round(few / slow),
        "ratio": round(arguments.n / fast / (few / slow), 1),
        "goal_per_second": GOAL,
        "generate_15000_first_seconds": round(first, 2),
        "generate_15000_again_seconds": round(again, 2),
    }
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name.replace('_', ' '):32s}{value:>12,}")


if __name__ == "__main__":
    main()
