"""Squares and puzzles of any order n, by constraint search: order 4 can list its squares, order 6 has 812 851 200.

A search keeps, for every row and column, the symbols still missing as the bits of an integer (symbol s is bit
s - 1), always fills an empty cell with the fewest possible symbols next, and tries those in random order if
it is given a generator. Cells are numbered 0..n*n-1 row by row; 0 is a blank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.errors import InputError

TRIES = 1000  # puzzles in a row that repeat an earlier one, before giving up


@dataclass(frozen=True, eq=False)
class OrderPuzzles:
    """Puzzles of order n with one possible answer each."""

    givens: NDArray[np.uint8]  # (b, n * n): 0 blank, 1..n a given symbol
    probe: NDArray[np.uint8]  # (b,): cell
    answer: NDArray[np.uint8]  # (b,): 1..n
    order: int

    def __len__(self) -> int:
        return len(self.givens)

    def cells(self) -> NDArray[np.uint8]:
        """Cells (b, n * n): 0 blank, 1..n a given symbol, n + 1 the probe."""
        cells = self.givens.copy()
        cells[np.arange(len(self)), self.probe] = self.order + 1
        return cells


def random_square(order: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A Latin square (n * n,) of this order; every square can come, though not all equally often."""
    _check_order(order)
    search = _Search([0] * order**2, order, rng)
    if not search.complete():
        raise AssertionError("an empty grid can always be completed")
    return np.array(search.cells, np.uint8)


def solve_order(cells: ArrayLike, probe: int) -> NDArray[np.bool_]:
    """Which symbols 1..n are possible at the probe of one puzzle (n * n,) or (n, n): bool (n,)."""
    grid = np.asarray(cells)
    order = round(grid.size**0.5)
    if not np.issubdtype(grid.dtype, np.integer) or order**2 != grid.size:
        raise InputError(f"a puzzle is n × n integers, found {grid.dtype} of shape {grid.shape}")
    _check_order(order)
    flat = [int(s) for s in grid.reshape(-1)]
    for cell, symbol in enumerate(flat):
        if not 0 <= symbol <= order:
            raise InputError(f"cell {cell + 1} holds {symbol}; a symbol is 1 to {order}, a blank 0")
    if not 0 <= probe < order**2 or flat[probe]:
        raise InputError(f"the probe must be a blank cell from 0 to {order**2 - 1}, found {probe}")
    possible = np.array([_Search(flat, order).can_hold(probe, s) for s in range(1, order + 1)])
    if not possible.any():
        raise InputError("no Latin square agrees with these givens")
    return possible


def generate_order(
    n_puzzles: int,
    order: int,
    rng: np.random.Generator | int,
    *,
    givens: tuple[float, float] = (0.3, 0.7),
) -> OrderPuzzles:
    """Draw different puzzles of one order with a unique answer, balanced over answers and probe cells.

    Each has a share of its cells given that is drawn evenly from ``givens``, or more where its answer would
    not be unique otherwise. No two are equal, also not after renaming symbols. ``rng`` is a generator or a
    seed.
    """
    _check_order(order)
    if n_puzzles < 0:
        raise InputError(f"the number of puzzles must not be negative, found {n_puzzles}")
    if not 0 <= givens[0] <= givens[1] <= 1:
        raise InputError(f"givens must be two shares from 0 to 1 in order, found {tuple(givens)}")
    rng = np.random.default_rng(rng)
    cells = order**2
    # Answer and probe, counted up together, meet in every combination once if the probe slips a step each round.
    place = np.arange(n_puzzles)
    answers = rng.permutation(order)[place % order] + 1
    probes = rng.permutation(cells)[(place + place // cells) % cells]
    boards = np.zeros((n_puzzles, cells), np.uint8)
    seen: set[bytes] = set()
    for row, (probe, answer) in enumerate(zip(probes.tolist(), answers.tolist(), strict=True)):
        for _ in range(TRIES):
            board = _puzzle(order, probe, answer, rng.uniform(*givens), rng)
            key = bytes([probe, *_renamed(board)])
            if key not in seen:
                break
        else:
            raise InputError(
                f"only {row} of {n_puzzles} different puzzles of order {order} were found with shares of {givens} given"
            )
        seen.add(key)
        boards[row] = board
    return OrderPuzzles(boards, probes.astype(np.uint8), answers.astype(np.uint8), order)


def _puzzle(order: int, probe: int, answer: int, share: float, rng: np.random.Generator) -> list[int]:
    """Blank out cells of a random square one by one, as long as the answer stays unique, down to a share of givens."""
    square = random_square(order, rng)
    names = np.arange(order + 1)
    names[[square[probe], answer]] = answer, square[probe]
    board = [int(s) for s in names[square]]
    board[probe] = 0
    given = order**2 - 1
    for cell in rng.permutation([c for c in range(order**2) if c != probe]):
        if given <= share * order**2:
            break
        symbol, board[cell] = board[cell], 0
        if any(_Search(board, order).can_hold(probe, s) for s in range(1, order + 1) if s != answer):
            board[cell] = symbol
        else:
            given -= 1
    return board


def _renamed(board: Sequence[int]) -> list[int]:
    """The board with symbols renamed by first appearance."""
    names = {0: 0}
    return [names.setdefault(symbol, len(names)) for symbol in board]


class _Search:
    """A partly filled grid that can be completed by backtracking."""

    def __init__(self, cells: Sequence[int], order: int, rng: np.random.Generator | None = None) -> None:
        self.order, self.rng = order, rng
        self.cells = [0] * order**2
        self.row_lacks = [(1 << order) - 1] * order
        self.column_lacks = [(1 << order) - 1] * order
        self.empty = set(range(order**2))
        self.consistent = all(self.put(cell, symbol) for cell, symbol in enumerate(cells) if symbol)

    def possible(self, cell: int) -> int:
        """The symbols, as bits, that neither the row nor the column of an empty cell has."""
        row, column = divmod(cell, self.order)
        return self.row_lacks[row] & self.column_lacks[column]

    def put(self, cell: int, symbol: int) -> bool:
        """Fill an empty cell; false, and nothing done, if its row or column has the symbol."""
        bit = 1 << symbol - 1
        if not self.possible(cell) & bit:
            return False
        self._flip(cell, bit)
        self.cells[cell] = symbol
        self.empty.remove(cell)
        return True

    def take_back(self, cell: int) -> None:
        self._flip(cell, 1 << self.cells[cell] - 1)
        self.cells[cell] = 0
        self.empty.add(cell)

    def can_hold(self, cell: int, symbol: int) -> bool:
        """Whether some square agrees with the grid and has the symbol in this empty cell; uses the grid up."""
        return self.consistent and self.put(cell, symbol) and self.complete()

    def complete(self) -> bool:
        """Fill all empty cells; false, and nothing done, if that is impossible."""
        if not self.empty:
            return True
        cell = min(self.empty, key=lambda c: self.possible(c).bit_count())
        symbols = [s for s in range(1, self.order + 1) if self.possible(cell) & 1 << s - 1]
        for symbol in symbols if self.rng is None else self.rng.permutation(symbols):
            self.put(cell, int(symbol))
            if self.complete():
                return True
            self.take_back(cell)
        return False

    def _flip(self, cell: int, bit: int) -> None:
        row, column = divmod(cell, self.order)
        self.row_lacks[row] ^= bit
        self.column_lacks[column] ^= bit


def _check_order(order: int) -> None:
    if not 2 <= order <= 15:
        raise InputError(f"the order of a square must be from 2 to 15, found {order}")
