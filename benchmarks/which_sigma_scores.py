"""Which σ? What a run came to, in which_sigma_scores.csv, so that tables need no runs.

    python benchmarks/which_sigma_show.py --keep  # adds the runs that are on this machine

`which_sigma.py` leaves out what is in the file already, so the study goes on on another machine.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell import analysis
from placecell.store.runs import RunResult
from placecell.train import load_snapshots

FILE = Path(__file__).with_suffix(".csv")
FLAT = 0.02  # an error that fell by less since the evaluation before has converged
PARSE: dict[Any, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": "True".__eq__,
}


@dataclass(frozen=True)
class Score:
    """What a run came to."""

    run: str
    world: str
    change: str
    encoding: str
    sigma: float
    rho: float  # before training; NaN without a learned table
    seed: int
    test: float  # the headline
    valid: float  # the same on validation data; NaN of runs that were kept without it
    train: float  # accuracy, or loss where the headline is an error
    converged: bool  # every training sample right, or a flat training loss
    moved: float  # of the learned table, in units of its initial norm
    relation: float  # correlation of the table's rows with the true relation
    early: float = math.nan  # `valid` after a third of the steps; NaN of runs kept without it

    @property
    def key(self) -> float | str:
        """σ of a learned table, or the name of another encoding."""
        return self.encoding if math.isnan(self.sigma) else self.sigma


def measured(
    one: RunResult,
    world: str,
    change: str,
    headline: str,
    square: float,
    relation: NDArray[np.generic] | None,
) -> Score:
    """Return what a run came to; `square`: mean square of its tokens, `relation`: the truth."""
    config, right = one.config, headline == "accuracy"
    learned = config.encoding.name == "learnable"
    sigma = config.encoding.sigma if learned and config.encoding.sigma is not None else math.nan
    losses = [r.value for r in one.rows if (r.split, r.name) == ("train", "loss")]
    train = one.final("train", "accuracy") if right else losses[-1]
    flat = losses[-2] - losses[-1] < FLAT * losses[-2]
    moved = shown = math.nan
    third = config.train.steps / 3
    early = next(
        r.value for r in one.rows if (r.split, r.name) == ("valid", headline) and r.step >= third
    )
    tables = load_snapshots(one.folder)
    if sigma > 0 and len(tables) > 1:
        first, last = (tables[step].double().numpy() for step in (0, max(tables)))
        moved = float(np.linalg.norm(last - first) / np.linalg.norm(first))
        if relation is not None:
            shown = analysis.relation_correlation(last, relation).value
    return Score(
        config.name,
        world,
        change,
        config.encoding.name,
        sigma,
        sigma**2 / (sigma**2 + square),
        config.seed,
        one.final("test", headline),
        one.final("valid", headline),
        train,
        train == 1.0 if right else flat,
        moved,
        shown,
        early,
    )


def kept() -> dict[str, Score]:
    """Return the scores of the file, by name of run."""
    if not FILE.exists():
        return {}
    with FILE.open(encoding="utf-8", newline="") as file:
        scores = [
            Score(**{f.name: PARSE[f.type](row.get(f.name, "nan")) for f in fields(Score)})
            for row in csv.DictReader(file)
        ]
    return {score.run: score for score in scores}


def keep(scores: list[Score]) -> None:
    """Write these scores, and those of the file that are not among them."""
    all_of_them = kept() | {score.run: score for score in scores}
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Score)])
        for score in sorted(
            all_of_them.values(),
            key=lambda s: (s.world, s.change, s.encoding, s.sigma, s.seed, s.run),
        ):
            values = asdict(score).values()
            writer.writerow([f"{v:.9g}" if isinstance(v, float) else v for v in values])
