"""Data frames and arrays in: numbers, with codes for categories, and names of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError

Categories = dict[int, dict[Any, int]]


def to_numbers(
    x: Any, known: Categories | None
) -> tuple[Any | None, NDArray[np.bool_] | None, Categories]:
    """Turn the columns of a data frame that are not numbers into codes.

    Parameters
    ----------
    x
        A data frame, or anything else, which is left to scikit-learn.
    known : dict, optional
        Codes of categories by column, from an earlier call.

    Returns
    -------
    frame or None
        A data frame of numbers with the same names; None for what is not a data frame, or for one
        that has only numbers.
    nominal : bool array of shape (n,) or None
        Which columns have no order.
    categories : dict
        Codes of categories by column.
    """
    if not (hasattr(x, "dtypes") and hasattr(x, "columns") and hasattr(x, "iloc")):
        return None, None, {}
    import pandas as pd

    nominal = np.zeros(x.shape[1], dtype=bool)
    categories: Categories = {}
    parts = []
    for i in range(x.shape[1]):
        column = x.iloc[:, i]
        if pd.api.types.is_datetime64_any_dtype(column.dtype) or isinstance(
            column.dtype, pd.PeriodDtype
        ):
            raise InputError(
                f"column {x.columns[i]!r} holds dates, which are not variables; leave it out, or "
                "make groups of it."
            )
        if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(
            column.dtype
        ):
            parts.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered)
        values = column.astype(object).where(column.notna(), None)
        if known is not None:
            codes = known.get(i, {})
        elif isinstance(column.dtype, pd.CategoricalDtype):
            codes = {value: place for place, value in enumerate(column.dtype.categories)}
        else:
            kinds = sorted({v for v in values if v is not None}, key=str)
            codes = {value: place for place, value in enumerate(kinds)}
        categories[i] = codes
        nominal[i] = not ordered and len(codes) > 2
        parts.append(np.array([codes.get(v, np.nan) if v is not None else np.nan for v in values]))
    if not categories and known is None and all(isinstance(dtype, np.dtype) for dtype in x.dtypes):
        return None, None, {}
    frame = pd.DataFrame(np.stack(parts, axis=1), columns=x.columns, index=x.index)
    return frame, nominal, categories


def column_names(estimator: Any, n: int) -> list[str]:
    """Names of n columns: those of the data frame, or x0, x1, … as scikit-learn calls them."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(n)] if given is None else [str(name) for name in given]
