"""Which columns of a data frame are variables: not dates, not ids, not free text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placecell.discover.clean import MANY_CATEGORIES
from placecell.discover.dates import read_dates
from placecell.discover.numerals import MOSTLY, plain_numbers
from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd

BLOCKS = 15, 40  # of time, at least and at most
BLOCK_ROWS = 5  # of a block, if there are enough rows
ALIKE = 0.2  # correlation of rows below which they count as independent
FEW_GROUPS = 13  # of equal size: fewer leave less than the three that a test needs in its part
LONGEST = 30  # letters of a cell shown as an example
LIKE_NUMBER = r"[-+<>≤≥~≈±(\N{MINUS SIGN}]*\s?[€$£¥]?\s?\d[\d.,]*\s?[^\d\s@]{0,6}"
LEAST_COLUMNS, LEAST_ROWS = 3, 30
ID_NAME = re.compile(r"(^|[\W_])(id|index|idx|key|uuid|guid|row|nr|no|number)($|[\W_])", re.I)


@dataclass(eq=False)
class Variables:
    """The variables of a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns of numbers, booleans and categories.
    groups : array of shape (rows,), optional
        Groups of rows that stay together.
    left_out : dict
        Columns left out, by name, and why.
    notes : list of str
    """

    frame: pd.DataFrame
    groups: NDArray[Any] | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_variables(
    frame: pd.DataFrame, time: str | None = None, groups: str | None = None
) -> Variables:
    """Find the variables of a data frame, and the groups of its rows.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table with different names of columns.
    time : str, optional
        Column of times: rows are put in its order and cut into blocks, which are the groups.
    groups : str, optional
        Column that names the group of each row.

    Returns
    -------
    Variables
    """
    for name in (time, groups):
        if name is not None and name not in frame.columns:
            raise unknown("column", name, map(str, frame.columns))
    if time is not None and groups is not None:
        raise InputError("--time and --groups exclude each other: both say which rows go together.")
    found = Variables(frame)
    empty = frame.isna().all(axis=1)
    if empty.any():
        found.notes.append(f"{int(empty.sum())} rows without any value were left out.")
        found.frame = frame = frame[~empty].reset_index(drop=True)
    if groups is not None:
        found.groups = frame[groups].astype(str).to_numpy()
        found.notes.append(_about_groups(groups, len(set(found.groups))))
    if time is not None:
        found.frame = frame = _in_order(frame, time, found.notes)
        numbers = frame.drop(columns=time).select_dtypes("number").to_numpy(dtype=float)
        found.groups = _blocks(len(frame), _rows_alike(numbers))
        found.notes.append(f"{len(set(found.groups))} blocks of time (by {time}) stay together.")
    parts: dict[str, Any] = {}
    for name in frame.columns:
        if name in (time, groups):
            continue
        column, why = _variable(frame[name], str(name), found.notes)
        if why is None:
            parts[str(name)] = column
        else:
            found.left_out[str(name)] = why
    if time is None and any(why.startswith("dates") for why in found.left_out.values()):
        dated = next(n for n, why in found.left_out.items() if why.startswith("dates"))
        found.notes.append(
            f"rows have dates: if neighbouring rows are alike, say --time {dated}, or the test "
            "counts them as independent."
        )
    import pandas as pd

    found.frame = pd.DataFrame(parts, index=frame.index)
    check_size(found)
    return found


def check_size(found: Variables) -> None:
    """Raise `InputError` for fewer than 3 variables or 30 rows."""
    rows, n = found.frame.shape
    check_columns(n, found.left_out)
    if rows < LEAST_ROWS:
        raise InputError(f"expected at least {LEAST_ROWS} rows, found {rows}.")


def check_columns(n: int, left_out: Mapping[str, str]) -> None:
    """Raise `InputError` for fewer than 3 columns, and say which were left out."""
    if n < LEAST_COLUMNS:
        why = "; ".join(f"{k}: {v}" for k, v in list(left_out.items())[:6])
        raise InputError(
            f"expected at least {LEAST_COLUMNS} columns to arrange, found {n}"
            + (f" (left out: {why})." if why else ".")
        )


def _about_groups(name: str, count: int) -> str:
    note = f"rows of one {name} stay together: {count} groups"
    if count < FEW_GROUPS:
        note += f", of which about {FEW_GROUPS} are needed for a test (it uses a fifth of them)"
    return f"{note}."


def _in_order(frame: pd.DataFrame, time: str, notes: list[str]) -> pd.DataFrame:
    import pandas as pd

    when = frame[time]
    if not (pd.api.types.is_numeric_dtype(when.dtype) or when.dtype.kind in "mM"):
        dates = read_dates(when)
        when = dates.times
        notes += [f"{time}: {dates.note}"] if dates.note else []
    if when.isna().mean() > 1 - MOSTLY:
        raise InputError(f"--time {time}: expected dates or numbers, which most cells are not.")
    return frame.loc[when.sort_values(kind="stable").index].reset_index(drop=True)


def _blocks(rows: int, alike: int) -> NDArray[np.int64]:
    """Blocks of rows, each twice as long as rows are alike: else what one block shares with the
    next would look like something that holds on new rows."""
    count = int(np.clip(rows // max(BLOCK_ROWS, 2 * alike), *BLOCKS))
    return (np.arange(rows) * count // rows).astype(np.int64)


def _rows_alike(x: NDArray[np.float64]) -> int:
    """How many rows apart the values of a column are no longer alike, in the mean over columns."""
    x = np.where(np.isfinite(x), x, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without a value, or constant
        z = (x - np.nanmean(x, 0)) / np.nanstd(x, 0)
        most = max(1, len(x) // BLOCKS[0])
        for lag in np.unique(np.geomspace(1, most, 40).astype(int)):
            if not np.nanmean(np.nanmean(z[lag:] * z[:-lag], 0)) >= ALIKE:
                return int(lag)
    return most


def _variable(column: pd.Series[Any], name: str, notes: list[str]) -> tuple[Any, str | None]:
    """The column as a variable, or why it is none."""
    import pandas as pd

    kind = column.dtype
    filled = column.dropna()
    if not len(filled):
        return None, "no value"
    if pd.api.types.is_datetime64_any_dtype(kind) or isinstance(kind, pd.PeriodDtype):
        return None, "dates"
    if pd.api.types.is_timedelta64_dtype(kind):
        return None, "lengths of time"
    if isinstance(kind, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(kind):
        return column, None
    if not pd.api.types.is_numeric_dtype(kind):
        text = filled.astype(str).str.strip()
        numbers = pd.to_numeric(plain_numbers(text), errors="coerce")
        if numbers.notna().mean() >= MOSTLY:
            lost = text[numbers.isna()]
            if len(lost):
                notes.append(f"{name}: {len(lost)} cells such as {lost.iloc[0]!r} are no numbers.")
            column = numbers.reindex(column.index)
        else:
            return _text_variable(column, text, _example(text, text[numbers.isna()]))
    return _number_variable(column.astype(float), name, notes)


def _example(text: pd.Series[Any], odd: pd.Series[Any]) -> str:
    """What to add to why a column is left out if its cells are much like numbers: one that is none,
    such as <0.5 or 21.3 °C. Other text, which may be somebody's name, is not shown."""
    if text.str.fullmatch(LIKE_NUMBER).mean() < 0.5:
        return ""
    cell = str(odd.iloc[0])
    return f", such as {cell if len(cell) <= LONGEST else cell[:LONGEST] + '…'!r}"


def _text_variable(
    column: pd.Series[Any], text: pd.Series[Any], example: str
) -> tuple[Any, str | None]:
    import pandas as pd

    digits = text.str.contains(r"\d").mean() >= MOSTLY
    if digits and read_dates(text).times.notna().mean() >= MOSTLY:
        return None, "dates"
    kinds = text.nunique()
    if kinds == 1:
        return None, f"constant ({text.iloc[0]!r})"
    if kinds == len(text) and kinds > MANY_CATEGORIES:
        return None, f"text that is different in every row, as an id is{example}"
    if kinds > MANY_CATEGORIES or kinds > len(text) / 3:
        return None, f"text with {kinds} different values{example}"
    return pd.Categorical(text.reindex(column.index)), None


def _number_variable(column: pd.Series[Any], name: str, notes: list[str]) -> tuple[Any, str | None]:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        notes.append(f"{name}: {int(infinite.sum())} infinite values count as missing.")
        values = np.where(infinite, np.nan, values)
    here = values[np.isfinite(values)]
    if not len(here):
        return None, "no finite value"
    if (here == here[0]).all():
        return None, f"constant ({here[0]:g})"
    different = len(here) == len(values) and len(np.unique(here)) == len(here)
    if different and (here == here.round()).all():
        counted = here.max() - here.min() == len(here) - 1
        if counted:
            return None, "counts the rows, as an id does"
        if ID_NAME.search(name):
            return None, "different in every row and named like an id"
    return values, None
