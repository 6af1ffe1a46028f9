"""Text as dates: whether 03.04.2024 is in April or in March is decided once for a column."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from placecell.discover.numerals import MOSTLY

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = r"^\s*(\d{1,2})([./-])(\d{1,2})[./-](\d{4}|\d{2})(?!\d)[,\s]*(.*)$"
# where day, month and year stand; without any sign which it is, the first that can be is taken
ORDERS = {"month first": (1, 0, 2), "day first": (0, 1, 2), "year first": (2, 1, 0)}


@dataclass(eq=False)
class Dates:
    """A column of text as times.

    Attributes
    ----------
    times : pandas.Series
        Times, all in one zone; NaT for what is none.
    note : str
        How days, months and years were told apart, if that had to be found out; or nothing.
    """

    times: pd.Series[Any]
    note: str = ""


def read_dates(column: pd.Series[Any]) -> Dates:
    """Read text as dates and times.

    Parameters
    ----------
    column : pandas.Series
        Dates in almost any way of writing; times of several zones are brought into one, as a
        change of the clock makes two zones of one.

    Returns
    -------
    Dates
    """
    text = column.dropna().astype(str).astype(object)
    if not len(text):
        return Dates(_times(column))
    parts = text.str.extract(NUMBERS)
    if parts[0].notna().mean() < MOSTLY:
        return Dates(_times(column))
    parts = parts.dropna()
    three = parts[[0, 2, 3]].set_axis(range(3), axis=1)
    can = {name: _as_iso(three, parts[4], order) for name, order in ORDERS.items()}
    if (three[2].str.len() == 4).any():
        del can["year first"]
    name, why = _choose(can, points=bool((parts[1] == ".").all()))
    example = text[parts.index].iloc[0].strip()
    note = f"dates such as {example!r} were read with the {name}, since {why}."
    return Dates(_times(can[name]).reindex(column.index), note)


def _choose(can: dict[str, pd.Series[Any]], points: bool) -> tuple[str, str]:
    """The name of the way to read the dates, and why it is that one."""
    dates = {name: int(text.notna().sum()) for name, text in can.items()}
    left = [name for name in can if dates[name] == max(dates.values())]
    if len(left) == 1:
        return left[0], "a number above 12 is no month"
    if points:  # nobody writes the month first then
        left = [name for name in left if name != "month first"]
    if len(left) == 1:
        return left[0], "dates with points are written so"
    times = {name: _times(can[name]).dropna() for name in left}
    ordered = [
        name
        for name, when in times.items()
        if when.is_monotonic_increasing or when.is_monotonic_decreasing
    ]
    if len(ordered) == 1:
        return ordered[0], "rows are then in order"
    left = ordered or left
    equal = {name: _equal_steps(times[name]) for name in left}
    most = [name for name in left if equal[name] == max(equal.values())]
    if len(most) == 1:
        return most[0], "times are then equally far apart"
    return most[0], "nothing tells (dates written as 2024-12-31 cannot be mistaken)"


def _as_iso(three: pd.DataFrame, rest: pd.Series[Any], order: tuple[int, int, int]) -> Any:
    """Dates as 2024-12-31 and what follows; None where day or month cannot be."""
    day, month, year = (three[place] for place in order)
    late = year.astype(int) < 69  # two digits, as programs in general complete them
    year = year.where(year.str.len() == 4, np.where(late, "20", "19") + year.str.zfill(2))
    text = year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2)
    text = (text + " " + rest).str.strip()
    right = month.astype(int).between(1, 12) & day.astype(int).between(1, 31)
    return text.where(right, None)


def _equal_steps(times: pd.Series[Any]) -> tuple[float, float]:
    """Shares of the steps between different times that are as long as most are: in months or days,
    whichever is larger, and then in days."""
    when = times.drop_duplicates().sort_values()
    days = _usual_share(when.diff().dropna().to_numpy())
    if when.dt.day.nunique() > 1:
        return days, days
    months = _usual_share((12 * when.dt.year + when.dt.month).diff().dropna().to_numpy())
    return max(days, months), days


def _usual_share(steps: NDArray[Any]) -> float:
    return float(np.unique(steps, return_counts=True)[1].max() / len(steps)) if len(steps) else 0.0


def _times(column: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about formats
        return pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
