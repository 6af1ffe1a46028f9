"""Columns that cannot be used are left out, each with its reason; odd ones are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
MANY_CATEGORIES = 30
FEW_VALUES = 30  # a column known in fewer rows, and not in half of them, tells only of chance
TOGETHER = 20  # rows in which two columns are known, for them to be compared
NEARLY = 0.9999  # correlation of columns that are nearly equal


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A table without the columns that cannot be used.

    Attributes
    ----------
    x : array of shape (rows, kept)
        Values; NaN is missing. Of a nominal column they are codes.
    kept : int array
        Which columns are kept.
    left_out : dict
        Columns left out, by name, and why.
    repeats : dict
        Of each column that was left out since it repeats another: which one.
    notes : list of str
    """

    x: Array
    kept: IntArray
    left_out: dict[str, str]
    repeats: dict[int, int]
    notes: list[str]


def clean_columns(x: Array, nominal: NDArray[np.bool_], names: Sequence[str]) -> Cleaned:
    """Leave out columns that are empty or nearly so, constant, equal to another, or of too many
    categories.

    Parameters
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing.
    nominal : bool array of shape (n,)
        Which columns have no order.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    Cleaned
    """
    left_out: dict[str, str] = {}
    seen: dict[bytes, int] = {}
    repeats: dict[int, int] = {}
    for i, name in enumerate(names):
        here = np.isfinite(x[:, i])
        kinds, place = np.unique(x[here, i], return_inverse=True)
        if not here.any():
            left_out[name] = "no value"
        elif here.sum() < min(FEW_VALUES, len(x) / 2):
            left_out[name] = f"known in only {int(here.sum())} of {len(x)} rows"
        elif len(kinds) == 1:
            left_out[name] = "constant" if nominal[i] else f"constant ({kinds[0]:g})"
        elif nominal[i] and len(kinds) > min(MANY_CATEGORIES, here.sum() / 3):
            left_out[name] = f"text with {len(kinds)} different values in {int(here.sum())} rows"
        else:
            ranks = np.full(len(x), -1, dtype=np.int32)
            ranks[here] = place
            first = seen.setdefault(ranks.tobytes(), i)
            if first != i:
                left_out[name] = f"the same as {names[first]}"
                repeats[i] = first
    kept = np.array([i for i, name in enumerate(names) if name not in left_out], dtype=np.int64)
    ordered = kept[~nominal[kept]]
    notes = _nearly_equal(x[:, ordered], ordered, names)
    return Cleaned(x[:, kept], kept, left_out, repeats, notes)


def _nearly_equal(x: Array, kept: IntArray, names: Sequence[str]) -> list[str]:
    """A note about columns that hardly differ."""
    from placecell.discover.readout import correlation

    if len(kept) < 2 or len(kept) > 2000:
        return []
    here = np.isfinite(x).astype(float)
    both = here.T @ here >= TOGETHER
    one, two = np.nonzero(np.triu((correlation(x) > NEARLY) & both, 1))
    if not len(one):
        return []
    pairs = [f"{names[kept[a]]} and {names[kept[b]]}" for a, b in zip(one, two, strict=True)]
    more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
    return [f"nearly equal columns: {', '.join(pairs[:3])}{more}; each tells all about the other."]
