"""Files in: a table of any usual kind becomes a data frame, whatever its separator or encoding."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 10**7  # more are not read: rows are then taken evenly from the whole file
MOST_ROWS = 10**5  # nor more rows: they would tell little more
TEXT = (".csv", ".tsv", ".txt", ".tab")
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


def read_table(path: Path | str) -> Read:
    """Read a table of samples × variables.

    Parameters
    ----------
    path : Path or str
        A file: csv, tsv, parquet, feather, npy, npz, mat, or Excel if openpyxl is installed.

    Returns
    -------
    Read
        With repeated and empty names of columns made different, and said so.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected a file ({KNOWN}).")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: an empty file; expected a table with names in its first row.")
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        raise InputError("reading tables needs pandas: pip install 'placecell[pandas]'") from None
    kind = path.suffix.lower()
    if kind in TEXT:
        read = read_text(path)
    elif kind in (".parquet", ".feather", ".xlsx", ".xls"):
        read = _with_pandas(path, kind)
    elif kind in (".npy", ".npz", ".mat"):
        read = _matrix(path, kind)
    else:
        raise InputError(f"{path}: not a kind of file that is known here; expected {KNOWN}.")
    if not len(read.frame.columns) or not len(read.frame):
        raise InputError(f"{path}: a table without rows; expected names and then values.")
    read.notes += name_columns(read.frame)
    return read


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
        head = [line for line in (file.readline() for _ in range(200)) if line.strip()]
    if not head:
        raise InputError(f"{path}: an empty file; expected a table with names in its first row.")
    separator = _separator([line for line in head if not line.startswith("#")] or head)
    remarks = _remarks(head, separator)
    head = head[remarks:]
    decimal = _decimal(head, separator)
    step = _step(path, head)
    named = _has_names(head, separator, decimal)
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": decimal,
        "encoding": encoding,
        "encoding_errors": "replace",
        "na_values": MISSING,
        "header": 0 if named else None,
        "skipinitialspace": True,
        "low_memory": False,
        "skiprows": remarks,
    }
    notes = [f"{remarks} lines of remarks before the table were skipped."] if remarks else []
    try:
        try:
            frame = _frame(path, step, options)
        except pd.errors.ParserError:  # rows with more cells than there are columns
            frame = _frame(path, step, options | {"on_bad_lines": "skip"})
            notes.append("rows with more cells than there are columns were left out.")
    except (ValueError, csv.Error, pd.errors.ParserError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: cannot be read as a table ({first}).") from None
    if isinstance(frame.index, pd.MultiIndex) or not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index() if step == 1 else frame
    frame = frame.reset_index(drop=True)
    if not named:
        frame.columns = pd.Index([f"column_{i + 1}" for i in range(frame.shape[1])])
    if separator != "," or decimal != "." or encoding not in ("utf-8", "utf-8-sig"):
        shown = {"\t": "tab", " ": "space"}.get(separator, separator)
        notes.append(f"read with separator {shown!r}, decimal {decimal!r}, encoding {encoding}.")
    if not named:
        notes.append("the first row holds numbers: columns were named column_1, column_2, …")
    if step > 1:
        notes.append(f"a large file: one row in {step} was read, {len(frame)} rows.")
    return Read(frame, notes)


def _frame(path: Path, step: int, options: Mapping[str, Any]) -> pd.DataFrame:
    """Every `step`th row of a file of text, read in pieces if that is not every one."""
    import pandas as pd

    if step == 1:
        return pd.read_csv(path, **options)
    pieces = pd.read_csv(path, chunksize=200_000, **options)
    return pd.concat([piece[piece.index % step == 0] for piece in pieces])


def _remarks(head: Sequence[str], separator: str) -> int:
    """How many lines before the table begin with # and have not as many cells as its rows."""
    counts = [len(_cells(line.strip("\r\n"), separator)) for line in head]
    usual = max(set(counts), key=counts.count)
    for place, (line, count) in enumerate(zip(head, counts, strict=True)):
        if not line.startswith("#") or count == usual:
            return place
    return 0


def name_columns(frame: pd.DataFrame) -> list[str]:
    """Give empty and repeated names of columns a number, in place; return what was done."""
    names, taken, changed = [], set(), []
    for place, given in enumerate(frame.columns):
        text = str(given).strip()
        empty = not text or re.fullmatch(r"Unnamed: \d+", text)
        text = f"column_{place + 1}" if empty else text
        name, count = text, 1
        while name in taken:
            count += 1
            name = f"{text}_{count}"
        if (
            empty
            or name != text
            or (re.fullmatch(r".*\.\d+", text) and text.rsplit(".", 1)[0] in taken)
        ):
            changed.append(name)
        names.append(name)
        taken.add(name)
    frame.columns = names
    if not changed:
        return []
    return [f"empty or repeated names of columns got a number: {', '.join(changed[:5])}."]


def choose_columns(
    frame: pd.DataFrame, columns: Sequence[str], drop: Sequence[str]
) -> pd.DataFrame:
    """Keep and leave out columns by name.

    Parameters
    ----------
    frame : pandas.DataFrame
    columns : sequence of str
        Columns to keep; none: all.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    pandas.DataFrame
    """
    for name in (*columns, *drop):
        if name not in frame.columns:
            raise unknown("column", name, map(str, frame.columns))
    kept = list(columns) or list(frame.columns)
    return frame[[name for name in kept if name not in drop]]


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


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader(io.StringIO(line), delimiter=separator), [])


def _separator(head: Sequence[str]) -> str:
    """The separator by which lines fall into most cells, as many in every line."""
    best, most = ",", 1.0
    for separator in (";", "\t", ",", "|", " "):
        counts = [len(_cells(line.strip("\r\n"), separator)) for line in head[:50]]
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(counts)
        # "1,5;2,5": a decimal comma also cuts lines evenly, so ; and tab come first
        if usual > 1 and share > 0.8 and usual * share > most * (1.0 if most == 1.0 else 3.0):
            best, most = separator, usual * share
    return best


def _decimal(head: Sequence[str], separator: str) -> str:
    cells = [cell.strip() for line in head[1:] for cell in _cells(line.strip("\r\n"), separator)]
    commas = sum(bool(re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", cell)) for cell in cells)
    return "," if separator != "," and commas > points else "."


def _has_names(head: Sequence[str], separator: str, decimal: str) -> bool:
    """Whether the first line holds names: not every cell of it is a number, or they count up from
    0 or 1, as programs name columns that nobody named."""
    cells = [
        cell.strip().replace(decimal, ".") for cell in _cells(head[0].strip("\r\n"), separator)
    ]
    counted = [[str(start + place) for place in range(len(cells))] for start in (0, 1)]
    counts = len(cells) > 2 and cells in counted
    return counts or not all(_is_number(cell) for cell in cells) or len(head) == 1


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _step(path: Path, head: Sequence[str]) -> int:
    """Every which row is read so that a large file stays in memory."""
    width = len(head[-1])
    rows = path.stat().st_size / max(1, width)
    cells = max(1, max(head[-1].count(s) for s in ",;\t| ") + 1)
    return max(1, int(np.ceil(rows * cells / MOST_CELLS)), int(np.ceil(rows / MOST_ROWS)))


def _with_pandas(path: Path, kind: str) -> Read:
    import pandas as pd

    reader = {".parquet": pd.read_parquet, ".feather": pd.read_feather}.get(kind, pd.read_excel)
    need = {".parquet": "pyarrow", ".feather": "pyarrow"}.get(kind, "openpyxl")
    try:
        frame = reader(path)
    except ImportError:
        raise InputError(f"{path}: reading it needs {need}: pip install {need}") from None
    except Exception as error:  # every reader fails in its own way
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: cannot be read ({first}).") from None
    return _thinned(frame, [])


def _thinned(frame: pd.DataFrame, notes: list[str]) -> Read:
    """As many rows, evenly over the table, as are of use."""
    rows = min(MOST_ROWS, max(1, MOST_CELLS // max(1, frame.shape[1])))
    step = -(-len(frame) // rows)
    if step > 1:
        notes.append(f"a large file: one row in {step} was used, of {len(frame)}.")
        frame = frame.iloc[::step]
    return Read(frame.reset_index(drop=True), notes)


def _matrix(path: Path, kind: str) -> Read:
    import pandas as pd

    from placecell.tasks.fmri import loaders

    content = loaders._matlab(path) if kind == ".mat" else loaders._numpy(path)
    if isinstance(content, np.ndarray):
        content = {"": content}
    matrices = {
        name: value
        for name, value in content.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiub"
    }
    if not matrices:
        raise InputError(f"{path}: no matrix of numbers (rows × columns) in it.")
    name = max(matrices, key=lambda key: matrices[key].size)
    matrix = matrices[name].astype(float)
    notes = [f"the largest matrix, {name!r}, was taken."] if len(matrices) > 1 else []
    names = [f"column_{i + 1}" for i in range(matrix.shape[1])]
    return _thinned(pd.DataFrame(matrix, columns=names), notes)
