"""How a file of text is written: separator, decimal sign, and where names and values begin."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placecell.discover.numerals import COMMA_GROUPS, decimal_sign, small_with_groups
from placecell.errors import InputError

WEB_PAGE = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.I)
EXCEL = re.compile(r'"?sep=([^\w"])"?', re.I)  # a first line by which Excel is told the separator


@dataclass(frozen=True)
class Dialect:
    """How a file of text is written.

    Attributes
    ----------
    separator : str
        A space stands for any number of them.
    decimal : str
        The decimal sign; "" if the first lines do not tell.
    skip : int
        Lines before names and values.
    remarks : int
        Of these, lines that begin with #.
    named : bool
        Whether the next line has names.
    names : list of str, optional
        Names that stand in the last line skipped, after # and a space.
    width : int
        Cells of a row.
    """

    separator: str
    decimal: str
    skip: int
    remarks: int
    named: bool
    names: list[str] | None
    width: int


def find_dialect(path: Path, lines: Sequence[str]) -> Dialect:
    """Find out how a file of text is written.

    Parameters
    ----------
    path : Path
        The file, for messages.
    lines : sequence of str
        Its first lines.

    Returns
    -------
    Dialect
    """
    numbered = [(i, line.strip("\r\n")) for i, line in enumerate(lines) if line.strip()]
    told = EXCEL.fullmatch(numbered[0][1].strip(" ")) if numbered else None
    numbered = numbered[1:] if told else numbered
    if not numbered:
        raise InputError(f"{path}: an empty file; expected a table with names in its first row.")
    where, texts = [i for i, _ in numbered], [text for _, text in numbered]
    if WEB_PAGE.match(texts[0]):
        raise InputError(
            f"{path}: a web page (or XML), not a table; expected names of columns in the first "
            "line. Was a page saved in place of the file?"
        )
    plain = [text for text in texts if not text.startswith("#")] or texts
    separator = told[1] if told else _separator(plain)
    remarks, names = _remarks(texts, separator)
    rows = [cells(text, separator) for text in texts[remarks:]]
    width = _usual([len(row) for row in rows])
    _check_lines_above(path, texts[remarks:], [len(row) for row in rows], width)
    decimal = _decimal(rows if names else rows[1:], separator)
    named = names is None and _has_names(rows, decimal)
    said = remarks - (names is not None)
    return Dialect(separator, decimal, where[remarks], said, named, names, width)


def cells(line: str, separator: str) -> list[str]:
    """Return the cells of a line; of a space as separator, there may be several in a row."""
    spaces = separator == " "
    line = line.strip() if spaces else line
    reader = csv.reader(io.StringIO(line), delimiter=separator, skipinitialspace=spaces)
    return next(reader, [])


def _usual(counts: Sequence[int]) -> int:
    return max(set(counts), key=counts.count)


def _separator(head: Sequence[str]) -> str:
    """The separator by which lines fall into most cells, as many in every line."""
    best, most = ",", 1.0
    head = head[-50:]  # the first lines may be no part of the table
    for separator in (";", "\t", ",", "|", " "):
        counts = [len(cells(line, separator)) for line in head]
        usual = _usual(counts)
        share = counts.count(usual) / len(counts)
        # "1,5;2,5": a decimal comma also cuts lines evenly, so ; and tab come first
        if usual > 1 and share > 0.8 and usual * share > most * (1.0 if most == 1.0 else 3.0):
            best, most = separator, usual * share
    return best


def _remarks(texts: Sequence[str], separator: str) -> tuple[int, list[str] | None]:
    """How many lines before the table begin with #, and the names in the last of these.

    It has names if it has as many cells as rows of the table and the line after it has none.
    """
    sharps = next((i for i, text in enumerate(texts) if not text.startswith("#")), len(texts))
    if sharps in (0, len(texts)):
        return 0, None
    counts = [len(cells(text, separator)) for text in texts[sharps:]]
    last = texts[sharps - 1]
    spaced = re.match(r"#\s+", last)  # as NumPy writes names
    names = cells(last[spaced.end() :] if spaced else last, separator)
    fits = len(names) == _usual(counts)
    below = [any(map(_is_number, cells(text, separator))) for text in texts[sharps:][:2]]
    if not fits or below == [False, True]:
        return sharps, None
    return (sharps, names) if spaced else (sharps - 1, None)


def _check_lines_above(path: Path, texts: Sequence[str], counts: Sequence[int], usual: int) -> None:
    """Raise for lines that are no table, such as the name of a device, above the names."""
    above = next(i for i, count in enumerate(counts) if 2 * count > usual)
    broken = any(text.count('"') % 2 for text in texts[:above])  # a name of several lines
    if not above or usual < 3 or broken:
        return
    lines = f"the first {above} lines have" if above > 1 else "the first line has"
    raise InputError(
        f"{path}: expected names of columns in the first line, but {lines} fewer cells "
        f"({texts[0].strip()[:40]!r}) than most, which have {usual}; delete what stands above the "
        "names, or begin each of these lines with #."
    )


def _decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    import pandas as pd

    if separator == ",":
        return "."
    given = pd.Series([cell.strip() for row in rows for cell in row], dtype=object)
    sign = decimal_sign(given)
    if sign:
        return sign
    if given.str.fullmatch(COMMA_GROUPS).any():
        columns = [[row[i] for row in rows if len(row) > i] for i in range(len(rows[-1]))]
        large = any(small_with_groups(pd.Series(c, dtype=object), ",") for c in columns)
        return "." if large else ","
    # 1.234 in a file of Excel where commas are decimal signs: all columns tell, once they are read
    return "" if separator == ";" else "."


def _has_names(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first line holds names: not every cell of it is a number, or they are numbers
    that count up, such as years and wavelengths, and no row does."""
    first = [cell.strip().replace(decimal or ".", ".") for cell in rows[0]]
    if len(rows) == 1 or not all(map(_is_number, first)):
        return True
    counted = [[str(start + place) for place in range(len(first))] for start in (0, 1)]
    if len(first) > 2 and first in counted:  # as programs name columns that nobody named
        return True
    return _counts_up(rows[0], decimal) and not any(_counts_up(row, decimal) for row in rows[1:])


def _counts_up(row: Sequence[str], decimal: str) -> bool:
    """Whether cells are numbers that rise in equal steps."""
    plain = [cell.strip().replace(decimal or ".", ".") for cell in row]
    if len(plain) < 3 or not all(map(_is_number, plain)):
        return False
    values = np.array(plain, dtype=float)
    if not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    return bool(steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
