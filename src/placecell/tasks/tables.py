"""Tables of numbers in text files, as people have them: with names, dates and decimal commas."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError

Array = NDArray[np.float64]
Cells = list[list[str]]
MOST_ROWS = 100_000  # volumes of more than a day of scanning; a longer table is refused early
BLANK = ("", "n/a", "na")
DECIMAL = re.compile(r"^([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)$")
DATE = re.compile(  # 2024-01-31, 31.01.2024, 1/31/2024, with or without a time
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[-+]\d{2}:?\d{2})?)?"
)


def words(path: Path) -> list[str]:
    """Read the lines of a text file, without empty lines at the end.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of str
        The lines without surrounding white space.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected the name of a file in it.")
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").rstrip().splitlines()]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file (looked for from {Path.cwd()}).") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error}).") from None


def numbers(path: Path) -> Array:
    """Read a table of numbers.

    Parameters
    ----------
    path : Path
        Values are separated by commas, tabs or spaces; the first row may contain names.

    Returns
    -------
    array of shape (rows, columns)
    """
    return read_table(path)[0]


def read_table(
    path: Path, blank: float = np.nan, counted: bool = False
) -> tuple[Array, tuple[str, ...]]:
    """Read a table of numbers and the names of its columns.

    Parameters
    ----------
    path : Path
        As `numbers` reads it.
    blank : float
        What empty and `n/a` cells become.
    counted : bool
        Whether a first row of 0, 1, 2, … or 1, 2, 3, … counts as names too, and a first column of
        dates, or an index without a name, is left out.

    Returns
    -------
    values : array of shape (rows, columns)
    names : tuple of str
        Empty if the first row has numbers.
    """
    return to_numbers(path, read_cells(path), blank, counted)


def read_cells(path: Path) -> Cells:
    """Read the cells of a table, row by row, without empty lines.

    Parameters
    ----------
    path : Path
        As `numbers` reads it.

    Returns
    -------
    list of list of str
    """
    lines = _lines(path)
    if not lines:
        raise InputError(f"{path}: an empty file; expected a table of numbers.")
    separator = next((s for s in ("\t", ";", ",") if s in lines[0]), None)
    cells = [[cell.strip() for cell in _split(line, separator)] for line in lines]
    if separator != ",":  # then a comma is a decimal point, as many languages write it
        cells = [[DECIMAL.sub(r"\1.\2", cell) for cell in row] for row in cells]
    return cells


def split_left(cells: Cells) -> tuple[list[str], Cells]:
    """Take the names of rows, if they have some, from a table.

    Parameters
    ----------
    cells : list of list of str
        Its cells.

    Returns
    -------
    left : list of str
        The first column, with the cell above the names if there is one; empty if it has numbers.
    cells : list of list of str
        All the rest.
    """
    left = [row[0] for row in cells]
    if len(cells) < 2 or any(is_number(cell) for cell in left[1:]):
        return [], cells
    corner = len(cells[0]) == len(cells[1])  # some programs leave out the cell above the names
    return left, [row[1:] if number or corner else row for number, row in enumerate(cells)]


def to_numbers(
    path: Path, cells: Cells, blank: float = np.nan, counted: bool = False
) -> tuple[Array, tuple[str, ...]]:
    """Turn the cells of a table into numbers and the names of its columns.

    Parameters
    ----------
    path : Path
        The file, for messages.
    cells : list of list of str
        Its cells.
    blank, counted
        As `read_table` takes them.

    Returns
    -------
    values : array of shape (rows, columns)
    names : tuple of str
    """
    if counted and len(cells) > 1 and all(DATE.fullmatch(row[0]) for row in cells[1:]):
        # a first column of dates says when a volume was taken, and is no region
        dated_header = not DATE.fullmatch(cells[0][0])
        cells = [row[1:] for row in cells]
        if not all(cells):
            raise InputError(f"{path}: a column of dates and no numbers.")
        if dated_header and cells[0][0] == "":
            raise InputError(f"{path}: the column after the dates has no name.")
    named = any(not is_number(cell) for cell in cells[0])
    heads = cells[0][1:] if not cells[0][0] else cells[0]
    named |= counted and heads in [[str(i + first) for i in range(len(heads))] for first in (0, 1)]
    rows = cells[1:] if named else cells
    for number, row in enumerate(rows, 1 + named):
        if len(row) != len(cells[0]):
            raise InputError(
                f"{path}: line {number} has {len(row)} cells, the first has {len(cells[0])}."
            )
        wrong = next((cell for cell in row if not is_number(cell)), None)
        if wrong is not None:
            raise InputError(f"{path}: line {number} has {wrong!r} where a number was expected.")
    if not rows:
        raise InputError(f"{path}: a row of names and no numbers.")
    matrix = np.array([[blank if c.lower() in BLANK else float(c) for c in row] for row in rows])
    if named and counted and not cells[0][0]:  # how pandas writes an index
        if not np.array_equal(matrix[:, 0], np.arange(len(matrix))):
            raise InputError(
                f"{path}: the first column has no name; name it, or leave it out if it is an index."
            )
        return matrix[:, 1:], tuple(cells[0][1:])
    return matrix, tuple(cells[0]) if named else ()


def _split(line: str, separator: str | None) -> list[str]:
    """The cells of a line; one in quotes may have the separator in it."""
    if separator and '"' in line and line.count('"') % 2 == 0:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    return line.split(separator)


def _lines(path: Path) -> list[str]:
    """The lines of a table that are not empty; a table that is far too long is not read whole."""
    lines: list[str] = []
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected the name of a file in it.")
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if line.strip():
                    lines.append(line.rstrip("\r\n"))
                if len(lines) > MOST_ROWS + 1:
                    raise InputError(
                        f"{path}: more than {MOST_ROWS} rows; expected at most as many volumes or "
                        "samples. Take fewer, or average over neighbouring ones."
                    )
    except FileNotFoundError:
        raise InputError(f"{path}: no such file (looked for from {Path.cwd()}).") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error}).") from None
    return lines


def is_number(cell: str) -> bool:
    """Say whether a cell holds a number, or nothing.

    Parameters
    ----------
    cell : str

    Returns
    -------
    bool
    """
    if cell.lower() in BLANK:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True
