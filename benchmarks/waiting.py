"""How long a user waits, beside the goals: small commands and the quick sweeps on two workers.

    python benchmarks/waiting.py                          # everything, about 20 minutes
    python benchmarks/waiting.py --part status list nmar  # some of it

Small commands: seconds of processor time, the middle of several, on a store of 40 small runs.
Sweeps: minutes on the clock, from a cold start into an empty folder, so nothing else may be running
on the machine. `fmri` needs `placecell fetch hcp-schaefer100` first.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

COMMANDS = {"status": 0.5, "list": 0.5, "export": 0.5}  # goals, seconds of processor time
SWEEPS = {"latin_square": 240, "nmar": 300, "fmri": 480}  # goals, seconds on the clock
SMALL = {"n-train": 24, "n-valid": 6, "n-test": 6, "width": 8, "depth": 1, "steps": 4, "warmup": 0}
STORE = {"encoding": "learnable", "sigma": "0.1,0.5,1,2", "seeds": 10, "workers": 2}


def placecell(*words: str) -> tuple[float, float]:
    """Run a command of placecell: seconds on the clock and of processor time, children's too."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "placecell", *words], stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"placecell {' '.join(words)}: failed, see above.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, processor


def row(what: str, found: str, goal: str, met: bool) -> None:
    print(f"| {what} | {found} | {goal} | {'met' if met else 'missed'} |", flush=True)


def time_commands(names: list[str], rounds: int) -> None:
    """The small commands, by turns, on a store of small runs."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "runs")
        options = [f"--{key}={value}" for key, value in (SMALL | STORE).items()]
        placecell("sweep", "latin_square", *options, "--out", store)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                words = [name] if name == "list" else [name, store]
                seconds[name].append(placecell(*words)[1])
    for name in names:
        spent, goal = median(seconds[name]), COMMANDS[name]
        row(f"`{name}`", f"{spent:.2f} s of processor time", f"at most {goal} s", spent <= goal)


def time_sweep(task: str) -> None:
    """The quick sweep of a task, on two workers, into an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        clock, _ = placecell("sweep", task, "--workers", "2", "--out", f"{folder}/runs")
    goal = SWEEPS[task]
    row(f"`sweep {task}`", f"{clock / 60:.1f} min", f"at most {goal // 60} min", clock <= goal)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = [*COMMANDS, *SWEEPS]
    parser.add_argument("--part", nargs="+", choices=parts, default=parts, help="what to time")
    parser.add_argument("--rounds", type=int, default=5, help="of the small commands")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores; load before the start: {load:.1f}\n")
    print("| what | found | goal | |\n|---|---|---|---|", flush=True)
    if commands := [name for name in COMMANDS if name in args.part]:
        time_commands(commands, args.rounds)
    for task in SWEEPS:
        if task in args.part:
            time_sweep(task)


if __name__ == "__main__":
    main()
