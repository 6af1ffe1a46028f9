"""Order-4 puzzles as 64-bit boards: all squares, a solver, and classification by vectors and steps.

Cells are numbered 0..15 row by row. Symbol s (1..4) in cell i is bit ``4 * i + s - 1``, so that a
cell is one hexadecimal digit (1, 2, 4 or 8; 0 if blank), a row is 16 bits, and a set of givens is
one ``uint64``. Bits belong together in groups of four of three kinds: the symbols of a cell (1 bit
apart), a symbol along a row (4 bits apart) and a symbol down a column (16 bits apart). `_any` and
`_once` work on all three kinds, for all 16 cells of a whole array of puzzles at once.

Functions that take puzzles read an array of dtype ``uint64`` as boards and any other integers as
cells, with a last axis of 16 or last axes 4, 4, and 0 for a blank. In error messages rows are
counted from 0, like the array, and cells from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.errors import InputError

Boards = NDArray[np.uint64]
PROBE = 5  # marks the probe among cells; 0 is a blank and 1..4 are symbols
CHUNK = 16384  # puzzles per batch: enough to hide NumPy's overhead, few enough for the cache


class Classes(NamedTuple):
    """Result of `classify`; every field has the shape of the puzzles.

    ``vectors`` and ``steps`` are both 0 in two cases: the answer is not unique (then ``unique`` is
    false and ``answer`` is 0), or it takes more than three vectors or two steps (then ``unique`` is
    true and ``answer`` is known).

    Attributes
    ----------
    vectors, steps : uint8 array
        The fewest vectors that settle the probe, and the fewest steps with that many vectors.
    unique : bool array
        Whether only one symbol is possible at the probe.
    answer : uint8 array
        That symbol (1..4), or 0.
    """

    vectors: NDArray[np.uint8]
    steps: NDArray[np.uint8]
    unique: NDArray[np.bool_]
    answer: NDArray[np.uint8]


@cache
def squares() -> Boards:
    """List all 576 Latin squares of order 4.

    Returns
    -------
    uint64 array of shape (576,)
        Read-only boards.
    """
    rows = np.array(
        [sum(1 << 4 * i + s for i, s in enumerate(p)) for p in permutations(range(4))], np.uint64
    )
    a, b, c, d = np.ix_(rows, rows, rows, rows)
    # Four rows fill all 16 (column, symbol) places only if no column repeats a symbol.
    boards: Boards = (a | b << 16 | c << 32 | d << 48)[(a | b | c | d) == 0xFFFF]
    boards.flags.writeable = False
    return boards


def encode(cells: ArrayLike) -> Boards:
    """Encode cells as boards.

    Parameters
    ----------
    cells : int array of shape (..., 16) or (..., 4, 4)
        0 for a blank, 1..4 for a symbol.

    Returns
    -------
    uint64 array of shape (...)

    Examples
    --------
    >>> hex(encode([[1, 2, 0, 0], [0] * 4, [0] * 4, [0, 0, 0, 4]]))
    '0x8000000000000021'
    """
    grid = np.asarray(cells)
    if not np.issubdtype(grid.dtype, np.integer):
        raise InputError(f"cells must be integers, found {grid.dtype}")
    if grid.shape[-2:] == (4, 4):
        grid = grid.reshape(*grid.shape[:-2], 16)
    if grid.shape[-1:] != (16,):
        raise InputError(
            f"cells must have a last axis of 16 or last axes 4, 4; found shape {grid.shape}"
        )
    wrong = np.argwhere((grid < 0) | (grid > 4))
    if len(wrong):
        *row, cell = wrong[0]
        symbol = grid[tuple(wrong[0])]
        raise InputError(
            f"{_name(row)}cell {cell + 1} holds {symbol}; a symbol is 1 to 4, a blank 0"
        )
    digits = np.array([0, 1, 2, 4, 8], np.uint64)[grid]
    return np.asarray(np.bitwise_or.reduce(digits << _starts(), axis=-1))


def decode(boards: ArrayLike) -> NDArray[np.uint8]:
    """Decode boards to cells.

    Parameters
    ----------
    boards : uint64 array of shape (...)

    Returns
    -------
    uint8 array of shape (..., 16)
        0 for a blank, 1..4 for a symbol.
    """
    symbol = np.full(16, 255, np.uint8)  # by hexadecimal digit
    symbol[[0, 1, 2, 4, 8]] = range(5)
    cells: NDArray[np.uint8] = symbol[np.asarray(boards, np.uint64)[..., None] >> _starts() & 15]
    wrong = np.argwhere(cells == 255)
    if len(wrong):
        *row, cell = wrong[0]
        raise InputError(f"{_name(row)}cell {cell + 1} holds more than one symbol")
    return cells


def canonical(boards: Boards) -> Boards:
    """Rename symbols by first appearance, so that puzzles that differ only in names become equal.

    Parameters
    ----------
    boards : uint64 array of shape (n,)

    Returns
    -------
    uint64 array of shape (n,)
    """
    planes = [boards >> np.uint64(s) & CELL.lowest for s in range(4)]
    # First appearance of each symbol; for an absent symbol it is the largest word and comes last.
    first = [(plane & -plane) - 1 for plane in planes]
    renamed = np.zeros_like(boards)
    for plane, appearance in zip(planes, first, strict=True):
        rank = np.sum([earlier < appearance for earlier in first], axis=0, dtype=np.uint64)
        renamed |= plane << rank
    return renamed


def solve(givens: ArrayLike, probe: ArrayLike) -> NDArray[np.bool_]:
    """Find the symbols that are possible at the probe.

    Parameters
    ----------
    givens : uint64 array of shape (...), or integer array of shape (..., 16) or (..., 4, 4)
        The puzzles, as boards or as cells.
    probe : int array that broadcasts with the puzzles
        The cell (0..15) that is asked for; it must be blank.

    Returns
    -------
    bool array of shape (..., 4)
        For each symbol 1..4, whether some square agrees with the givens and has it at the probe.

    Examples
    --------
    >>> cells = [0, 1, 2, 3] + 12 * [0]
    >>> solve(cells, 0).tolist()
    [False, False, False, True]
    """
    boards, cell, shape = _puzzles(givens, probe)
    digit = np.zeros_like(boards)
    for part in _chunks(len(boards)):
        digit[part] = _possible(boards[part], shape, part.start) >> 4 * cell[part] & 15
    return (digit[:, None] >> np.arange(4, dtype=np.uint64) & 1).astype(bool).reshape(*shape, 4)


def classify(givens: ArrayLike, probe: ArrayLike) -> Classes:
    """Classify puzzles by the vectors and steps that settle the probe.

    The number of vectors is the smallest that settles the probe in at most two steps; the number of
    steps is the smallest with that many vectors.

    Parameters
    ----------
    givens : uint64 array of shape (...), or integer array of shape (..., 16) or (..., 4, 4)
        The puzzles, as boards or as cells.
    probe : int array that broadcasts with the puzzles
        The cell (0..15) that is asked for; it must be blank.

    Returns
    -------
    Classes
    """
    boards, cell, shape = _puzzles(givens, probe)
    # From the hexadecimal digit of the possible symbols to the symbol, if there is only one.
    only = np.zeros(16, np.uint8)
    only[[1, 2, 4, 8]] = range(1, 5)
    classes: NDArray[np.uint8] = np.zeros((3, len(boards)), np.uint8)
    vectors, steps, answer = classes
    for part in _chunks(len(boards)):
        answer[part] = only[_possible(boards[part], shape, part.start) >> 4 * cell[part] & 15]
        vectors[part], steps[part] = rules(boards[part], cell[part])
    vectors, steps, answer = classes.reshape(3, *shape)
    return Classes(vectors, steps, answer > 0, answer)


def check_puzzle(
    cells: ArrayLike, *, mark: int = PROBE, row: object = None
) -> tuple[int, int, int]:
    """Check one puzzle and solve it.

    Parameters
    ----------
    cells : int array of 16 cells
        0 for a blank, 1..4 for a symbol, and ``mark`` for the probe.
    mark : int
        The mark of the probe.
    row : object, optional
        What error messages call the puzzle's row.

    Returns
    -------
    givens : int
        The board.
    probe : int
        The cell that is asked for, 0..15.
    answer : int
        The only possible symbol there, 1..4.

    Raises
    ------
    InputError
        For a symbol out of range, no probe or several, a symbol repeated in a row or column, givens
        that no square agrees with, or an answer that is not unique.
    """
    where = "" if row is None else f"row {row}: "
    grid = np.array(cells).reshape(-1)
    if len(grid) != 16:
        raise InputError(f"{where}a puzzle has 16 cells, found {len(grid)}")
    probes = np.flatnonzero(grid == mark)
    if len(probes) != 1:
        cells_marked = ", ".join(str(i + 1) for i in probes)
        count = f"{len(probes)} (cells {cells_marked})" if len(probes) else "none"
        raise InputError(f"{where}a puzzle has one probe, marked {mark}; found {count}")
    try:
        board = encode(np.where(grid == mark, 0, grid))
        symbols = np.flatnonzero(solve(board, probes[0])) + 1
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    if len(symbols) > 1:
        raise InputError(
            f"{where}the answer is not unique: {', '.join(map(str, symbols))} are possible"
        )
    return int(board), int(probes[0]), int(symbols[0])


def rules(boards: Boards, cell: Boards) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Classify boards by the three rules without checking them.

    Some square must agree with each board, and the probe must be blank.

    Parameters
    ----------
    boards, cell : uint64 array of shape (n,)
        The givens and the probe cell.

    Returns
    -------
    vectors, steps : uint8 array of shape (n,)
        Both 0 for a puzzle that takes more than three vectors or two steps.
    """
    vectors, steps = np.zeros(len(boards), np.uint8), np.zeros(len(boards), np.uint8)
    probe = np.uint64(15) << 4 * cell
    rest = np.arange(len(boards))
    for v in (1, 2, 3):
        first = _settled(boards[rest], v)
        at_once = first & probe[rest] != 0
        vectors[rest[at_once]], steps[rest[at_once]] = v, 1
        rest, first = rest[~at_once], first[~at_once]
        in_two = _settled_after(boards[rest], first, probe[rest], v)
        vectors[rest[in_two]], steps[rest[in_two]] = v, 2
        rest = rest[~in_two]
    return vectors, steps


class _Group(NamedTuple):
    """Four bits that belong together."""

    apart: np.uint64
    lowest: np.uint64  # the lowest bit of every group
    spread: np.uint64  # a factor that copies the lowest bit to all four


CELL = _Group(np.uint64(1), np.uint64(0x1111_1111_1111_1111), np.uint64(0xF))
ROW = _Group(np.uint64(4), np.uint64(0x000F_000F_000F_000F), np.uint64(0x1111))
COLUMN = _Group(np.uint64(16), np.uint64(0x0000_0000_0000_FFFF), np.uint64(0x0001_0001_0001_0001))


def _any(x: Boards, group: _Group) -> Boards:
    """Set all four bits of every group in which some bit is set."""
    pair = x | x >> group.apart
    lowest: Boards = (pair | pair >> 2 * group.apart) & group.lowest
    return lowest * group.spread


def _once(x: Boards, group: _Group) -> Boards:
    """Keep only the bits that are alone in their group."""
    neighbour = x >> group.apart
    # In each pair of bits: whether exactly one is set, and whether at least one is.
    odd, some = x ^ neighbour, x | neighbour
    single: Boards = (odd & ~(some >> 2 * group.apart)) | (~some & odd >> 2 * group.apart)
    return x & (single & group.lowest) * group.spread


def _settled(boards: Boards, vectors: int) -> Boards:
    """The (cell, symbol) bits of empty cells that a rule of at most so many vectors fills in."""
    empty = ~_any(boards, CELL)
    row_lacks, column_lacks = ~_any(boards, ROW), ~_any(boards, COLUMN)
    if vectors == 1:
        return empty & (_once(row_lacks, CELL) | _once(column_lacks, CELL))
    can_take = empty & row_lacks & column_lacks
    settled = _once(can_take, CELL)  # contains what one vector settles
    if vectors == 3:
        settled |= _once(can_take, ROW) | _once(can_take, COLUMN)
    return settled


def _settled_after(boards: Boards, first: Boards, probe: Boards, vectors: int) -> NDArray[np.bool_]:
    """Whether filling in one cell of ``first`` lets a rule of so many vectors settle the probe."""
    settled = np.zeros(len(boards), bool)
    rest, left = np.flatnonzero(first), first[first != 0]
    while len(rest):
        fill = left & -left  # the lowest bit: the next cell to try
        hit = _settled(boards[rest] | fill, vectors) & probe[rest] != 0
        settled[rest[hit]] = True
        more = ~hit & (left != fill)
        rest, left = rest[more], (left ^ fill)[more]
    return settled


def _possible(boards: Boards, shape: tuple[int, ...], start: int) -> Boards:
    """The union (n,) of the squares that agree with each board; raises an error if none does."""
    union = np.zeros_like(boards)
    for square in squares():
        np.bitwise_or(union, square, out=union, where=(boards & ~square) == 0)
    for bad in np.flatnonzero(union == 0):
        raise InputError(_name(np.unravel_index(start + bad, shape)) + _contradiction(boards[bad]))
    return union


def _contradiction(board: np.uint64) -> str:
    """Say what is wrong with givens that no square agrees with."""
    try:
        cells = decode(board).reshape(4, 4)
    except InputError as error:
        return str(error)
    for line, grid in (("row", cells), ("column", cells.T)):
        for number, symbols in enumerate(grid, start=1):
            for symbol in np.flatnonzero(np.bincount(symbols)[1:] > 1):
                return f"symbol {symbol + 1} is repeated in {line} {number} of the grid"
    return "no Latin square agrees with these givens"


def _puzzles(givens: ArrayLike, probe: ArrayLike) -> tuple[Boards, Boards, tuple[int, ...]]:
    """Boards (n,) and probe cells (n,) as uint64, and the shape they came in."""
    boards, cell = np.asarray(givens), np.asarray(probe)
    if boards.dtype != np.uint64:
        boards = encode(boards)
    if not np.issubdtype(cell.dtype, np.integer) or (cell < 0).any() or (cell > 15).any():
        raise InputError("the probe must be a cell number, an integer from 0 to 15")
    boards, cell = np.broadcast_arrays(boards, cell.astype(np.uint64))
    for row in np.argwhere(boards >> 4 * cell & 15):
        raise InputError(f"{_name(row)}the probe, cell {cell[tuple(row)] + 1}, is itself given")
    return boards.reshape(-1), cell.reshape(-1), boards.shape


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


def _starts() -> Boards:
    """The lowest bit of each of the 16 cells."""
    return np.arange(0, 64, 4, dtype=np.uint64)


def _name(row: Sequence[Any] | NDArray[np.intp]) -> str:
    """Name a puzzle of an array in an error message; a single puzzle needs no name."""
    return f"row {', '.join(str(i) for i in row)}: " if len(row) else ""
