"""Numbers as people write them: 1,234.5 or 1.234,5, with a sign of a currency, with a long minus.

Which of point and comma is the decimal sign is decided once for a column or a file, never cell by
cell: 950 and 1.234 would else be read as a large and a small number.
"""

from __future__ import annotations

import re
from numbers import Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MOSTLY = 0.9  # share of cells that must be numbers or dates for the column to be of these
POINT_GROUPS = r"[-+]?[1-9]\d{0,2}(\.\d{3})+"  # 1.234.567
COMMA_GROUPS = r"[-+]?[1-9]\d{0,2}(,\d{3})+"  # 1,234,567
POWER = r"([eE][-+]?\d+)?"


def decimal_sign(text: pd.Series[Any]) -> str:
    """Which sign stands before decimals.

    Parameters
    ----------
    text : pandas.Series
        Cells of text.

    Returns
    -------
    str
        "." or ","; "" if nothing tells, as with whole numbers and with 1.234 or 1,234 alone.
    """
    bare = _bare(text)
    point, comma = rf"[-+]?\d*\.\d+{POWER}", rf"[-+]?\d*,\d+{POWER}"
    points = bare.str.fullmatch(point) & ~bare.str.fullmatch(POINT_GROUPS)
    commas = bare.str.fullmatch(comma) & ~bare.str.fullmatch(COMMA_GROUPS)
    # what stands before several groups, or before a group and the other sign, is no decimal sign
    points |= bare.str.fullmatch(rf"{COMMA_GROUPS}(\.\d+|,\d{{3}})")
    commas |= bare.str.fullmatch(rf"{POINT_GROUPS}(,\d+|\.\d{{3}})")
    more = int(points.sum()) - int(commas.sum())
    return "." if more > 0 else "," if more < 0 or commas.any() else ""


def plain_numbers(text: pd.Series[Any], decimal: str = "") -> pd.Series[Any]:
    """Text such as 1,234.5, 1.234,5, 3,5, 12 % or € 7 as a program writes numbers.

    Parameters
    ----------
    text : pandas.Series
        Cells of text, of one column.
    decimal : str
        The decimal sign; "": the one that the column shows, or else a point.

    Returns
    -------
    pandas.Series
        Text; cells that are no numbers are no numbers here either.
    """
    bare = _bare(text)
    decimal = decimal or decimal_sign(text)
    if decimal == ",":
        groups = bare.str.fullmatch(rf"{POINT_GROUPS}(,\d+)?")
        if not groups[
            _have_points(bare)
        ].all():  # 1.5 beside 2,5: these points stand before decimals
            groups &= False
        bare = bare.mask(groups, bare.str.replace(".", "", regex=False))
    else:
        groups = bare.str.fullmatch(rf"{COMMA_GROUPS}(\.\d+)?")
        bare = bare.mask(groups, bare.str.replace(",", "", regex=False))
    return bare.str.replace(",", ".", regex=False)


def read_numbers(frame: pd.DataFrame, decimal: str) -> tuple[str, list[str]]:
    """Turn columns of text that hold numbers into numbers, in place.

    Points stand between thousands where the decimal sign is a comma. Where it is not known, they do
    if that is so in every column and in one of them whole numbers without a point would else be
    larger than those with one.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns that could not be read as numbers are text.
    decimal : str
        The decimal sign of the file, or "" if it is not known.

    Returns
    -------
    decimal : str
        The decimal sign of the file.
    notes : list of str
        What was done.
    """
    texts = {}
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if column.dtype.kind not in "iufb" and column.notna().any():
            text = column.dropna().map(_as_text).astype(object).str.strip()
            if _are_numbers(plain_numbers(text, ",")).mean() >= MOSTLY:
                texts[place] = text
    pointed = {place: text[_have_points(_bare(text))] for place, text in texts.items()}
    pointed = {place: text for place, text in pointed.items() if len(text)}
    groups = {
        place: bool(_bare(text).str.fullmatch(rf"{POINT_GROUPS}(,\d+)?").all())
        for place, text in pointed.items()
    }
    if not decimal:
        fits = all(groups.values()) and any(small_with_groups(texts[place]) for place in groups)
        decimal = "," if fits else "."
    for place, text in texts.items():
        plain = plain_numbers(text, decimal)
        plain = text.where(~_are_numbers(plain), plain)
        frame.isetitem(place, _numbers_if_all(plain).reindex(frame.index))
    grouped = [place for place in groups if decimal == "," and groups[place]]
    if not grouped:
        return decimal, []
    example, names = pointed[grouped[0]].iloc[0], [str(frame.columns[i]) for i in grouped]
    where = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return decimal, [f"points as in {example!r} were read as signs of thousands ({where})."]


def small_with_groups(text: pd.Series[Any], sign: str = ".") -> bool:
    """Whether numbers such as 1.234 would be smaller than whole ones beside them, such as 950, if
    their points stood before decimals.

    Parameters
    ----------
    text : pandas.Series
        Cells of one column.
    sign : str
        What stands before groups of three digits: a point, or a comma.

    Returns
    -------
    bool
    """
    bare = _bare(text)
    group = POINT_GROUPS if sign == "." else COMMA_GROUPS
    grouped = bare[bare.str.fullmatch(group)]
    if (grouped.str.count(re.escape(sign)) > 1).any():  # 1.234.567 can be nothing else
        return True
    whole = bare[bare.str.fullmatch(r"[-+]?\d{1,3}")].astype(float).abs()
    small = grouped.str.replace(sign, ".", regex=False).astype(float).abs()
    return bool(len(whole) and len(small) and small.median() < whole.median())


def _bare(text: pd.Series[Any]) -> pd.Series[Any]:
    """Without spaces and signs of currencies, and with a plain minus."""
    bare = text.astype(object).str.replace(r"[\s%€$£¥]", "", regex=True)
    return bare.str.replace("\N{MINUS SIGN}", "-", regex=False)


def _have_points(bare: pd.Series[Any]) -> pd.Series[Any]:
    """Which cells are numbers with a point, of any meaning."""
    return bare.str.fullmatch(rf"[-+]?\d*\.\d+{POWER}|{POINT_GROUPS}(,\d+)?").astype(bool)


def _are_numbers(plain: pd.Series[Any]) -> pd.Series[Any]:
    return plain.str.fullmatch(rf"[-+]?(\d+\.?\d*|\.\d+){POWER}").astype(bool)


def _numbers_if_all(plain: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    numbers = pd.to_numeric(plain, errors="coerce")
    return plain if numbers.isna().any() else numbers


def _as_text(cell: Any) -> str:
    """A cell as it stood in the file: of a large file, some pieces of a column may be read."""
    if isinstance(cell, Real) and not isinstance(cell, bool):
        return f"{cell:.15g}".replace(".", ",")
    return str(cell)
