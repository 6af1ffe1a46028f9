"""Latin squares of several orders on the library's interface: absent cells make them small."""

from __future__ import annotations

from functools import cached_property
from itertools import permutations, product

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.analysis import Symmetries
from placecell.encodings.positions import Positions
from placecell.model import Tokens
from placecell.seeds import numpy_stream
from placecell.tasks.base import Examples, Truth, counted
from placecell.tasks.classification import Classification
from placecell.tasks.latin_orders.config import ORDERS, Config
from placecell.tasks.latin_square.orders import OrderPuzzles, generate_order

SIDE = ORDERS[1]  # of the largest grid
PROBE = SIDE + 1  # the symbol that marks the probe; 0 is a blank
NEW = "new combinations"


class LatinOrders(Classification):
    """Which symbol goes where the probe is? Puzzles of orders 3 to 6 share one grid of 6 × 6 cells.

    A puzzle of order k takes k × k of the cells; the others are absent. With the placement
    `diagonal`, the group `new combinations` has puzzles whose rows and columns were trained, but
    stand beside the diagonal, where cells were not.
    """

    shown: tuple[str, ...] = ("table/relation", "table/distance", "attention/relation")
    n_outputs = SIDE

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tokens = Tokens("symbol", SIDE + 2)
        grid = Positions.grid(SIDE, SIDE)
        graph = torch.from_numpy(_together()).float()
        self.places = Positions(grid.index, grid.coords, graph=graph)

    @property
    def groups(self) -> tuple[str, ...]:  # type: ignore[override]
        """The orders, and the puzzles in new places if there are some."""
        orders = sorted({*self.config.train_orders, *self.config.test_orders})
        new = (NEW,) if self._offsets(new=True) else ()
        return (*(f"order {order}" for order in orders), *new)

    @cached_property
    def _puzzles(self) -> dict[str, dict[int, OrderPuzzles]]:
        """The puzzles of each split by order: one draw for each order, cut into splits.

        The test puzzles come first, so they are the same whatever orders are trained on.
        """
        c = self.config
        asked = {
            "test": _shares(c.n_test, tuple(c.test_orders)),
            "valid": _shares(c.n_valid, tuple(c.train_orders)),
            "train": _shares(c.n_train, tuple(c.train_orders)),
        }
        puzzles: dict[str, dict[int, OrderPuzzles]] = {s: {} for s in ("train", "valid", "test")}
        for order in sorted({*c.train_orders, *c.test_orders}):
            ends = np.cumsum([0, *(counts.get(order, 0) for counts in asked.values())])
            drawn = generate_order(
                int(ends[-1]),
                order,
                numpy_stream(c.split_seed, f"order {order}"),
                givens=(c.min_givens, c.max_givens),
            )
            for i, split in enumerate(asked):
                puzzles[split][order] = _some(drawn, slice(ends[i], ends[i + 1]))
        return puzzles

    def splits(self) -> dict[str, Examples]:
        """Puzzles of every order, at their places on the largest grid."""
        made = {}
        for split, by_order in self._puzzles.items():
            rng = numpy_stream(self.config.split_seed, f"places/{split}")
            parts = [
                self._examples(puzzles, split == "test", rng)
                for puzzles in by_order.values()
                if len(puzzles)
            ]
            whole = parts[0]
            for part in parts[1:]:
                whole = whole.join(part)
            order = torch.from_numpy(rng.permutation(len(whole)))
            made[split] = whole.take(order)
        return made

    def _examples(self, puzzles: OrderPuzzles, test: bool, rng: np.random.Generator) -> Examples:
        k, b = puzzles.order, len(puzzles)
        known, new = self._at(k, new=False), self._at(k, new=True) if test else []
        corners = np.array(known)[rng.integers(len(known), size=b)]  # b 2: the first row and column
        group = np.full(b, self.groups.index(f"order {k}"))
        if new:  # every second one
            moved = np.arange(b) % 2 == 1
            corners[moved] = np.array(new)[rng.integers(len(new), size=b)][moved]
            group[moved] = self.groups.index(NEW)
        row, column = np.divmod(np.arange(k * k), k)
        cells = (corners[:, :1] + row) * SIDE + corners[:, 1:] + column  # b k²
        symbols = puzzles.givens.astype(np.int64)
        symbols[np.arange(b), puzzles.probe] = PROBE
        tokens, present = np.zeros((b, SIDE**2), np.int64), np.zeros((b, SIDE**2), bool)
        np.put_along_axis(tokens, cells, symbols, axis=1)
        np.put_along_axis(present, cells, True, axis=1)
        probe = np.take_along_axis(cells, puzzles.probe.astype(np.int64)[:, None], axis=1)
        return Examples(
            torch.from_numpy(tokens),
            torch.from_numpy(probe),
            torch.from_numpy(puzzles.answer.astype(np.int64) - 1)[:, None],
            torch.from_numpy(group),
            present=torch.from_numpy(present),
        )

    def _at(self, order: int, new: bool) -> list[tuple[int, int]]:
        """First row and column of the places of a puzzle; the new ones are beside the diagonal."""
        most = SIDE - order
        if self.config.placement == "corner":
            return [] if new else [(0, 0)]
        if not new:
            return [(at, at) for at in range(most + 1)]
        return [(0, most), (most, 0)] if most and order in self.config.train_orders else []

    def _offsets(self, new: bool) -> list[tuple[int, int]]:
        return [at for order in self.config.test_orders for at in self._at(order, new)]

    def truth(self) -> Truth:
        """Two cells belong together when they share a row or a column."""
        row, column = np.divmod(np.arange(SIDE**2), SIDE)
        return Truth(
            _together(),
            {"row": row, "column": column},
            self._symmetries(),
            together="share a row or a column",
            value_names={"row": counted(row), "column": counted(column)},
        )

    def _symmetries(self) -> Symmetries:
        """Reorderings of the rows, and of the columns, that stand in every puzzle; transposes."""
        corner = self.config.placement == "corner"
        same = min(self.config.train_orders) if corner else 1
        grid = np.arange(SIDE**2).reshape(SIDE, SIDE)
        rest = list(range(same, SIDE))
        orders, words = [], []
        for rows, columns in product(permutations(range(same)), repeat=2):
            turned = grid[np.ix_([*rows, *rest], [*columns, *rest])]
            moved = (rows, columns) != (tuple(range(same)),) * 2
            orders += [turned.flatten(), turned.T.flatten()]
            words += ["reordered" if moved else "identity", "transposed" + ", reordered" * moved]
        return Symmetries(np.array(orders, dtype=np.intp), tuple(words))

    def names(self) -> list[str]:
        """Return row and column of each cell, counted from 1."""
        return [f"row {r + 1}, column {c + 1}" for r, c in np.ndindex(SIDE, SIDE)]


TASK = LatinOrders


def _together() -> NDArray[np.float64]:
    """1 where two different cells share a row or a column (n n)."""
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    together = (row[:, None] == row) | (column[:, None] == column)
    np.fill_diagonal(together, False)
    return together.astype(np.float64)


def _shares(count: int, orders: tuple[int, ...]) -> dict[int, int]:
    """A number of puzzles in equal shares; the first orders take what is left over."""
    each, more = divmod(count, len(orders))
    return {order: each + (place < more) for place, order in enumerate(sorted(orders))}


def _some(puzzles: OrderPuzzles, rows: slice) -> OrderPuzzles:
    return OrderPuzzles(
        puzzles.givens[rows], puzzles.probe[rows], puzzles.answer[rows], puzzles.order
    )
