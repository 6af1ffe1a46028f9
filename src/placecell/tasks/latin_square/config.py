"""The settings of the Latin Square Task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placecell.config.values import check_fields, option
from placecell.errors import unknown
from placecell.tasks.latin_square.generate import CONDITIONS, GIVENS

MOST = 10**7  # puzzles: more than there are


@dataclass(frozen=True)
class Config:
    """Which puzzles there are to learn from and to be tested on."""

    conditions: Sequence[str] = option(
        CONDITIONS, "puzzle types (vectors and steps), joined by +, in equal shares", separator="+"
    )
    n_train: int = option(3000, "training puzzles", at_least=1, at_most=MOST)
    n_valid: int = option(600, "validation puzzles", at_least=1, at_most=MOST)
    n_test: int = option(
        3000,
        "test puzzles; none equals a training puzzle, also after renaming symbols",
        at_least=1,
        at_most=MOST,
    )
    min_givens: int = option(GIVENS[0], "fewest givens of a puzzle")
    max_givens: int = option(GIVENS[1], "most givens of a puzzle; many givens make easier sets")
    split_seed: int = option(0, "seed of the draw of puzzles")
    min_distance: float = option(
        0.0,
        "least Jaccard distance of a test puzzle from every training puzzle",
        at_least=0,
        at_most=1,
    )
    noise: float = option(
        0.0, "share of the givens of test puzzles replaced by another symbol", at_least=0, at_most=1
    )

    def __post_init__(self) -> None:
        check_fields(self)
        for condition in self.conditions:
            if condition not in CONDITIONS:
                raise unknown("condition", condition, CONDITIONS)
