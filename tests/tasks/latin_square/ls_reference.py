"""A plain solver and classifier of order-4 puzzles, from the words of the rules: lists, sets and
loops, no bits.

It shares nothing with the library, which is compared with it. Cells are a list of 16, 0 blank.
"""

from __future__ import annotations

SYMBOLS = {1, 2, 3, 4}


def row_of(cell: int) -> list[int]:
    return [4 * (cell // 4) + i for i in range(4)]


def column_of(cell: int) -> list[int]:
    return [cell % 4 + 4 * i for i in range(4)]


def seen(cells: list[int], line: list[int]) -> set[int]:
    """The symbols in a line of cells."""
    return {cells[i] for i in line} - {0}


def can_take(cells: list[int], cell: int) -> set[int]:
    return SYMBOLS - seen(cells, row_of(cell)) - seen(cells, column_of(cell))


def completable(cells: list[int]) -> bool:
    """Whether the blanks can be filled in without a repeat, by trying."""
    if 0 not in cells:
        return True
    cell = cells.index(0)
    return any(completable([*cells[:cell], s, *cells[cell + 1 :]]) for s in can_take(cells, cell))


def solve(cells: list[int], probe: int) -> set[int]:
    """All symbols that some completion has at the probe."""
    return {
        s for s in can_take(cells, probe) if completable([*cells[:probe], s, *cells[probe + 1 :]])
    }


def settle(cells: list[int], cell: int) -> tuple[int, int] | None:
    """Number of vectors of the simplest rule that settles an empty cell, and the symbol; None if
    none does."""
    row, column = seen(cells, row_of(cell)), seen(cells, column_of(cell))
    for line in (row, column):
        if len(line) == 3:
            return 1, (SYMBOLS - line).pop()
    if len(row | column) == 3:
        return 2, (SYMBOLS - row - column).pop()
    for symbol in sorted(can_take(cells, cell)):
        for line in (row_of(cell), column_of(cell)):
            others = [i for i in line if i != cell and cells[i] == 0]
            if all(symbol not in can_take(cells, other) for other in others):
                return 3, symbol
    return None


def classify(cells: list[int], probe: int) -> tuple[int, int, bool, int]:
    """Vectors, steps, whether the answer is unique, and the answer, as in the library's
    `Classes`."""
    possible = solve(cells, probe)
    if len(possible) != 1:
        return 0, 0, False, 0
    answer = possible.pop()
    for vectors in (1, 2, 3):
        direct = settle(cells, probe)
        if direct is not None and direct[0] <= vectors:
            assert direct[1] == answer
            return vectors, 1, True, answer
        for cell in range(16):
            if cell == probe or cells[cell] != 0:
                continue
            first = settle(cells, cell)
            if first is None or first[0] > vectors:
                continue
            filled = [*cells[:cell], first[1], *cells[cell + 1 :]]
            second = settle(filled, probe)
            if second is not None and second[0] <= vectors:
                assert second[1] == answer
                return vectors, 2, True, answer
    return 0, 0, True, answer
