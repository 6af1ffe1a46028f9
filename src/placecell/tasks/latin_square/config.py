"""The settings of the Latin Square Task."""

from __future__ import annotations

from dataclasses import dataclass

from placecell.config import option
from placecell.errors import InputError, unknown
from placecell.tasks.latin_square.generate import CONDITIONS, GIVENS


@dataclass(frozen=True)
class Config:
    """Which puzzles there are to learn from and to be tested on."""

    conditions: str = option("+".join(CONDITIONS), "puzzle types (vectors and steps), joined by +, in equal shares")
    n_train: int = option(3000, "training puzzles")
    n_valid: int = option(600, "validation puzzles")
    n_test: int = option(3000, "test puzzles; none equals a training puzzle, also after renaming symbols")
    min_givens: int = option(GIVENS[0], "fewest givens of a puzzle")
    max_givens: int = option(GIVENS[1], "most givens of a puzzle; many givens make easier sets")
    split_seed: int = option(0, "seed of the draw of puzzles")
    min_distance: float = option(0.0, "least Jaccard distance of a test puzzle from every training puzzle")
    noise: float = option(0.0, "share of the givens of test puzzles replaced by another symbol")

    def __post_init__(self) -> None:
        for condition in self.conditions.split("+"):
            if condition not in CONDITIONS:
                raise unknown("condition", condition, CONDITIONS)
        for key in ("n_train", "n_valid", "n_test"):
            if getattr(self, key) < 1:
                raise InputError(f"{key} must be at least 1, not {getattr(self, key)}.")
        for key in ("min_distance", "noise"):
            if not 0 <= getattr(self, key) <= 1:
                raise InputError(f"{key} must lie between 0 and 1, not {getattr(self, key)}.")
