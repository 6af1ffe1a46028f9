"""Squares and puzzles of any order n, by constraint search.

For order 4 all squares can be listed; for order 6 there are 812 851 200.

A search stores, for every row and column, the symbols that are still missing as the bits of an
integer (symbol s is bit s - 1). The cell to fill next is always one with the fewest possible
symbols, which are tried in random order if a generator is given. Cells are numbered 0..n*n-1 row by
row; 0 is a blank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.errors import InputError

TRIES = 1000  # give up after so many puzzles in a row that repeat an earlier one


@dataclass(frozen=True, eq=False)
class OrderPuzzles:
    """Puzzles of order n with one possible answer each.

    Attributes
    ----------
    givens : uint8 array of shape (b, n * n)
        0 for a blank, 1..n for a given symbol.
    probe : uint8 array of shape (b,)
        The cell that is asked for.
    answer : uint8 array of shape (b,)
        The symbol there, 1..n.
    order : int
        The order n.
    """

    givens: NDArray[np.uint8]  # (b, n * n)
    probe: NDArray[np.uint8]  # (b,)
    answer: NDArray[np.uint8]  # (b,)
    order: int

    def __len__(self) -> int:
        return len(self.givens)

    def cells(self) -> NDArray[np.uint8]:
        """Return the cells: 0 is a blank, 1..n a given symbol, n + 1 the probe.

        Returns
        -------
        ndarray
            Cells (b, n * n).
        """
        cells = self.givens.copy()
        cells[np.arange(len(self)), self.probe] = self.order + 1
        return cells


def random_square(order: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw a random Latin square.

    Every square can be drawn, but not all are equally likely.

    Parameters
    ----------
    order : int
        The order n, from 2 to 15.
    rng : numpy.random.Generator

    Returns
    -------
    uint8 array of shape (n * n,)
        Symbols 1..n, row by row.
    """
    _check_order(order)
    search = _Search([0] * order**2, order, rng)
    if not search.complete():
        raise AssertionError("an empty grid can always be completed")
    return np.array(search.cells, np.uint8)


def solve_order(cells: ArrayLike, probe: int) -> NDArray[np.bool_]:
    """Find the symbols that are possible at the probe of one puzzle.

    Parameters
    ----------
    cells : int array of shape (n * n,) or (n, n)
        0 for a blank, 1..n for a given symbol.
    probe : int
        A blank cell.

    Returns
    -------
    bool array of shape (n,)
        For each symbol 1..n, whether it is possible.

    Examples
    --------
    >>> solve_order([[0, 1, 2], [0, 0, 0], [0, 0, 0]], 0).tolist()
    [False, False, True]
    """
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
    """Draw different puzzles of one order, balanced over answers and probe cells.

    Every puzzle has a unique answer, and no two are equal, even after renaming symbols.

    Parameters
    ----------
    n_puzzles : int
    order : int
        The order n, from 2 to 15.
    rng : numpy.random.Generator or int
        A generator or a seed.
    givens : tuple of float
        Smallest and largest fraction of cells that are given. Each puzzle draws its fraction
        uniformly from this range, and has more givens if its answer would not be unique otherwise.

    Returns
    -------
    OrderPuzzles
    """
    _check_order(order)
    if n_puzzles < 0:
        raise InputError(f"the number of puzzles must not be negative, found {n_puzzles}")
    if not 0 <= givens[0] <= givens[1] <= 1:
        raise InputError(f"givens must be two shares from 0 to 1 in order, found {tuple(givens)}")
    rng = np.random.default_rng(rng)
    cells = order**2
    # Answers and probes both cycle. To get every combination equally often, the probe is shifted by
    # one after each round.
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
                f"only {row} of {n_puzzles} different puzzles of order {order} were found "
                f"with shares of {givens} given"
            )
        seen.add(key)
        boards[row] = board
    return OrderPuzzles(boards, probes.astype(np.uint8), answers.astype(np.uint8), order)


def _puzzle(
    order: int, probe: int, answer: int, fraction: float, rng: np.random.Generator
) -> list[int]:
    """Blank out cells of a random square one by one, as long as the answer stays unique.

    Stop when only a `fraction` of the cells is given.
    """
    square = random_square(order, rng)
    names = np.arange(order + 1)
    names[[square[probe], answer]] = answer, square[probe]
    board = [int(s) for s in names[square]]
    board[probe] = 0
    given = order**2 - 1
    for cell in rng.permutation([c for c in range(order**2) if c != probe]):
        if given <= fraction * order**2:
            break
        symbol, board[cell] = board[cell], 0
        if any(
            _Search(board, order).can_hold(probe, s) for s in range(1, order + 1) if s != answer
        ):
            board[cell] = symbol
        else:
            given -= 1
    return board


def _renamed(board: Sequence[int]) -> list[int]:
    """Rename symbols by first appearance."""
    names = {0: 0}
    return [names.setdefault(symbol, len(names)) for symbol in board]


class _Search:
    """A partly filled grid that can be completed by backtracking."""

    def __init__(
        self, cells: Sequence[int], order: int, rng: np.random.Generator | None = None
    ) -> None:
        self.order, self.rng = order, rng
        self.cells = [0] * order**2
        self.row_lacks = [(1 << order) - 1] * order
        self.column_lacks = [(1 << order) - 1] * order
        self.empty = set(range(order**2))
        self.consistent = all(self.put(cell, symbol) for cell, symbol in enumerate(cells) if symbol)

    def possible(self, cell: int) -> int:
        """The symbols, as bits, that are in neither the row nor the column of an empty cell."""
        row, column = divmod(cell, self.order)
        return self.row_lacks[row] & self.column_lacks[column]

    def put(self, cell: int, symbol: int) -> bool:
        """Fill an empty cell; do nothing and return false if its row or column has the symbol."""
        bit = 1 << symbol - 1
        if not self.possible(cell) & bit:
            return False
        self._flip(cell, bit)
        self.cells[cell] = symbol
        self.empty.remove(cell)
        return True

    def take_back(self, cell: int) -> None:
        """Empty a cell again."""
        self._flip(cell, 1 << self.cells[cell] - 1)
        self.cells[cell] = 0
        self.empty.add(cell)

    def can_hold(self, cell: int, symbol: int) -> bool:
        """Whether some square agrees with the grid and has the symbol in this empty cell.

        The grid cannot be used afterwards.
        """
        return self.consistent and self.put(cell, symbol) and self.complete()

    def complete(self) -> bool:
        """Fill all empty cells; do nothing and return false if that is impossible."""
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
