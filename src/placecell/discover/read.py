"""Files in: a table of any usual kind becomes a data frame, whatever its separator or encoding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placecell.discover.text import KNOWN, MOST_CELLS, MOST_ROWS, Read, read_text
from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

TEXT = (".csv", ".tsv", ".txt", ".tab")


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
    kept = dict.fromkeys(columns or frame.columns)  # a name given twice counts once
    return frame[[name for name in kept if name not in drop]]


def split_names(text: str, known: Sequence[str]) -> list[str]:
    """Split names of columns at commas, except at those that are a part of a name.

    Parameters
    ----------
    text : str
        Names with commas between.
    known : sequence of str
        The names there are.

    Returns
    -------
    list of str
        Names, which need not exist.
    """
    if text.strip() in known:
        return [text.strip()]
    parts, names = text.split(","), []
    while parts:
        joined = (",".join(parts[:n]).strip() for n in range(1, len(parts) + 1))
        name = next((name for name in joined if name in known), parts[0].strip())
        parts = parts[name.count(",") + 1 :]
        names += [name] if name else []
    return names


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
    frame, notes = _with_index(frame)
    return _thinned(frame, notes)


def _with_index(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The index as columns if it says something: times, text, or whatever has a name."""
    index = frame.index
    if all(name is None for name in index.names) and index.dtype.kind in "iuf":
        return frame, []  # numbers of rows, perhaps of those that were left
    names = [str(name) for name in index.names if name is not None] or ["index"]
    frame = frame.reset_index(allow_duplicates=True)
    return frame, [f"the index became a column: {', '.join(names)}."]


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
