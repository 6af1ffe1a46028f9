"""How long a user waits, beside the goals: small commands and the quick sweeps on two workers.

    python benchmarks/waiting.py                          # everything, about 20 minutes
    python benchmarks/waiting.py --part status list nmar  # some of it
    python benchmarks/waiting.py --beside 77fb5b4         # by turns with an earlier commit

Small commands: seconds of processor time, the middle of several, on a store of 40 small runs.
Sweeps: minutes on the clock, from a cold start into an empty folder, so nothing else may be running
on the machine. `fmri` needs `placecell fetch hcp-schaefer100` first. Of the earlier commit, whose
sweeps take an hour, a sweep's time is what its own `--dry-run` says, beside what ours says.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
OURS = ROOT / "src"
COMMANDS = {"status": 0.5, "list": 0.5, "export": 0.5}  # goals, seconds of processor time
SWEEPS = {"latin_square": 240, "nmar": 300, "fmri": 480}  # goals, seconds on the clock
SMALL = {"n-train": 24, "n-valid": 6, "n-test": 6, "width": 8, "depth": 1, "steps": 4, "warmup": 0}
STORE = {"encoding": "learnable", "sigma": "0.1,0.5,1,2", "seeds": 10, "workers": 2}


@dataclass(frozen=True)
class Ran:
    """A command of placecell that has run; processor time is its children's too."""

    clock: float
    processor: float
    said: str


def placecell(*words: str, source: Path = OURS) -> Ran:
    """Run a command of placecell, of the package in the folder `source`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "placecell", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    if done.returncode:
        sys.exit(f"placecell {' '.join(words)}: failed, see above.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(time.perf_counter() - start, processor, done.stdout)


@contextmanager
def earlier(commit: str | None) -> Iterator[Path | None]:
    """The package as it was at a commit, in a folder that goes away."""
    if commit is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", folder, commit], check=True)
        try:
            yield Path(folder) / "src"
        finally:
            subprocess.run([*git, "remove", "--force", folder], check=True)


def row(what: str, before: str, found: str, goal: str, met: bool) -> None:
    print(f"| {what} | {before} | {found} | {goal} | {'met' if met else 'missed'} |", flush=True)


def time_commands(names: list[str], rounds: int, old: Path | None) -> None:
    """The small commands, by turns with those of an earlier commit, on a store of small runs."""
    sources = [OURS] if old is None else [OURS, old]
    seconds: dict[tuple[str, Path], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--{key}={value}" for key, value in (SMALL | STORE).items()]
        for source in sources:
            out = f"{folder}/{sources.index(source)}"
            placecell("sweep", "latin_square", *options, "--out", out, source=source)
        for _ in range(rounds):
            for name in names:
                for source in sources:
                    out = f"{folder}/{sources.index(source)}"
                    words = [name] if name == "list" else [name, out]
                    spent = placecell(*words, source=source).processor
                    seconds.setdefault((name, source), []).append(spent)
    for name in names:
        spent, goal = median(seconds[name, OURS]), COMMANDS[name]
        before = "–" if old is None else f"{median(seconds[name, old]):.2f} s"
        found = f"{spent:.2f} s of processor time"
        row(f"`{name}`", before, found, f"at most {goal} s", spent <= goal)


def expected(task: str, source: Path) -> str:
    """What `--dry-run` of a quick sweep says of its time."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["sweep", task, "--workers", "2", "--out", f"{folder}/runs", "--dry-run"]
        said = placecell(*words, source=source).said
    times = re.findall(r"about ([\d.]+ \w+)", said)
    return times[-1] if times else "?"


def time_sweep(task: str, old: Path | None) -> None:
    """The quick sweep of a task, on two workers, into an empty folder."""
    before = "–"
    if old is not None:
        before = f"{expected(task, old)} expected (ours: {expected(task, OURS)})"
    with tempfile.TemporaryDirectory() as folder:
        clock = placecell("sweep", task, "--workers", "2", "--out", f"{folder}/runs").clock
    goal = SWEEPS[task]
    found = f"{clock / 60:.1f} min"
    row(f"`sweep {task}`", before, found, f"at most {goal // 60} min", clock <= goal)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = [*COMMANDS, *SWEEPS]
    parser.add_argument("--part", nargs="+", choices=parts, default=parts, help="what to time")
    parser.add_argument("--rounds", type=int, default=5, help="of the small commands")
    parser.add_argument("--beside", metavar="COMMIT", help="an earlier commit, by turns")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores; load before the start: {load:.1f}\n")
    print("| what | before | found | goal | |\n|---|---|---|---|---|", flush=True)
    with earlier(args.beside) as old:
        if commands := [name for name in COMMANDS if name in args.part]:
            time_commands(commands, args.rounds, old)
        for task in SWEEPS:
            if task in args.part:
                time_sweep(task, old)


if __name__ == "__main__":
    main()
