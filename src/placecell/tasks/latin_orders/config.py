"""The settings of Latin squares that change size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from placecell.config.values import check_fields, option
from placecell.errors import InputError

MOST = 10**6  # puzzles
ORDERS = (3, 6)  # smallest and largest


@dataclass(frozen=True)
class Config:
    """Which orders there are to learn from and to be tested on, and where their puzzles stand."""

    train_orders: Sequence[int] = option(
        (3, 4, 5, 6), "orders of the training puzzles, joined by +, in equal shares"
    )
    test_orders: Sequence[int] = option((3, 4, 5, 6), "orders of the test puzzles, likewise")
    placement: Literal["corner", "diagonal"] = option(
        "corner",
        "where a puzzle stands on the largest grid: its first rows and columns, or anywhere along "
        "the diagonal (tested beside it as well: known rows and columns in new combinations)",
    )
    min_givens: float = option(
        0.5, "smallest share of the cells that is given", at_least=0, at_most=1
    )
    max_givens: float = option(
        0.9, "largest share of the cells that is given", at_least=0, at_most=1
    )
    n_train: int = option(6000, "training puzzles", at_least=2, at_most=MOST)
    n_valid: int = option(
        600, "validation puzzles, of the training orders", at_least=1, at_most=MOST
    )
    n_test: int = option(
        2000,
        "test puzzles; none equals a training puzzle, also after renaming symbols",
        at_least=1,
        at_most=MOST,
    )
    split_seed: int = option(0, "seed of the draw of puzzles")

    def __post_init__(self) -> None:
        check_fields(self)
        low, high = ORDERS
        for key in ("train_orders", "test_orders"):
            orders = getattr(self, key)
            wrong = [order for order in orders if not low <= order <= high]
            if wrong:
                raise InputError(f"{key}: an order is {low} to {high}, found {wrong[0]}.")
            if len(set(orders)) < len(orders):
                raise InputError(f"{key}: each order once, found {'+'.join(map(str, orders))}.")
        if self.min_givens > self.max_givens:
            raise InputError(
                f"min_givens ({self.min_givens:g}) must not be above max_givens "
                f"({self.max_givens:g})."
            )
