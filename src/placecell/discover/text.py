"""Tables in files of text, with any separator, decimal comma and encoding."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placecell.discover.dialect import Dialect, find_dialect
from placecell.discover.numerals import read_numbers
from placecell.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 10**7  # more are not read: rows are then taken evenly from the whole file
MOST_ROWS = 10**5  # nor more rows: they would tell little more
PIECE = 2 * 10**7  # cells read at a time of a large file
KNOWN = "csv, tsv, parquet, feather, npy, npz, mat or xlsx"
MISSING = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "?", "-", ".", "#N/A"]


@dataclass(eq=False)
class Read:
    """A table as read.

    Attributes
    ----------
    frame : pandas.DataFrame
    notes : list of str
        What was worked out or done: separator, encoding, rows left out.
    """

    frame: pd.DataFrame
    notes: list[str] = field(default_factory=list)


def read_text(path: Path) -> Read:
    """Read text with any separator, decimal comma and encoding.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Read
    """
    import pandas as pd

    encoding = _encoding(path)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        lines = [file.readline() for _ in range(200)]
    dialect = find_dialect(path, lines)
    step = _step(path, [line for line in lines if line.strip()][-1], dialect.width)
    frame, notes = _read(path, step, dialect, encoding)
    if dialect.remarks:
        notes.insert(0, f"{dialect.remarks} lines of remarks before the table were skipped.")
    if dialect.names is not None:
        names = [*dialect.names, *[""] * frame.shape[1]]
        frame.columns = pd.Index(names[: frame.shape[1]])
    elif not dialect.named:
        frame.columns = pd.Index([f"column_{i + 1}" for i in range(frame.shape[1])])
    decimal = dialect.decimal
    if decimal != ".":
        decimal, said = read_numbers(frame, decimal)
        notes += said
    if dialect.separator != "," or decimal != "." or encoding not in ("utf-8", "utf-8-sig"):
        shown = {"\t": "tab", " ": "space"}.get(dialect.separator, dialect.separator)
        notes.append(f"read with separator {shown!r}, decimal {decimal!r}, encoding {encoding}.")
    if not dialect.named and dialect.names is None:
        notes.append("the first row holds numbers: columns were named column_1, column_2, …")
    if step > 1:
        notes.append(f"a large file: one row in {step} was read, {len(frame)} rows.")
    return Read(frame, notes)


def _read(path: Path, step: int, dialect: Dialect, encoding: str) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a file, and what was left out."""
    import pandas as pd

    options: dict[str, Any] = {
        "sep": r"\s+" if dialect.separator == " " else dialect.separator,
        # what is not known yet is read so that all numbers with points stay text
        "decimal": dialect.decimal or ",",
        "encoding": encoding,
        "encoding_errors": "replace",
        "na_values": MISSING,
        "header": 0 if dialect.named else None,
        "skipinitialspace": True,
        "low_memory": False,
        "skiprows": dialect.skip,
        "chunksize": max(1, PIECE // dialect.width),
    }
    notes = []
    try:
        try:
            frame, extra = _frame(path, step, options)
        except pd.errors.ParserError:  # rows with more cells than there are columns
            options["on_bad_lines"] = "skip"
            frame, extra = _frame(path, step, options)
            notes.append("rows with more cells than there are columns were left out.")
        # names of rows that count 0, 1, … are not told from rows without names
        more = extra or max(0, dialect.width - frame.shape[1])
        if more and frame.iloc[:, -more:].isna().all(axis=None):
            # every row ends with a separator; else names would belong to the column after theirs
            frame, extra = _frame(path, step, options | {"index_col": False})
            notes.append("rows end with a separator that the names lack: it was not read.")
    except (ValueError, csv.Error, pd.errors.ParserError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: cannot be read as a table ({first}).") from None
    return frame.reset_index(drop=not extra), notes


def _frame(path: Path, step: int, options: Mapping[str, Any]) -> tuple[pd.DataFrame, int]:
    """Every `step`th row of a file of text, read in pieces if that is not every one; and how many
    cells rows have more than there are names, which pandas takes as names of the rows."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # cells that are not read
        if step == 1:
            frame = pd.read_csv(path, **{k: v for k, v in options.items() if k != "chunksize"})
            return frame, 0 if isinstance(frame.index, pd.RangeIndex) else frame.index.nlevels
        start, extra, kept = 0, 0, []
        for piece in pd.read_csv(path, **options):
            extra = 0 if isinstance(piece.index, pd.RangeIndex) else piece.index.nlevels
            kept.append(piece[(start + np.arange(len(piece))) % step == 0])
            start += len(piece)
    return pd.concat(kept), extra


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(1 << 20)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if start[:3] == b"\xef\xbb\xbf":
        return "utf-8-sig"
    if b"\0" in start:
        raise InputError(f"{path}: not text; expected a table ({KNOWN}).")
    for encoding in ("utf-8", "cp1252"):
        try:
            start[:-4].decode(encoding)  # the last bytes may be a part of a letter
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _step(path: Path, line: str, cells: int) -> int:
    """Every which row is read so that a large file stays in memory."""
    rows = path.stat().st_size / max(1, len(line))
    return max(1, int(np.ceil(rows * cells / MOST_CELLS)), int(np.ceil(rows / MOST_ROWS)))
