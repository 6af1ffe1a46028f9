"""A table as a dict of columns, shown as text, in a notebook or as a pandas data frame."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from placecell.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 60  # rows that are shown; the table itself has them all


class Table(dict[str, list[Any]]):
    """Columns by name, each a list with one value per row; None where a row has no value.

    A plain dict in every other way, so `pandas.DataFrame`, `polars.DataFrame` and `pyarrow.table`
    take it as it is.

    Examples
    --------
    >>> table = Table.from_rows([{"run": "a", "accuracy": 0.5}, {"run": "b"}])
    >>> table["accuracy"]
    [0.5, None]
    >>> print(table)
    run  accuracy
    a    0.5
    b    –
    """

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Make a table of rows.

        Parameters
        ----------
        rows
            One mapping of column name to value per row. Columns are in the order in which their
            names first appear.

        Returns
        -------
        Table
            With None where a row does not have a column.
        """
        rows = list(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls({name: [row.get(name) for row in rows] for name in names})

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values()), ()))

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows, each with every column."""
        return [dict(zip(self, values, strict=True)) for values in zip(*self.values(), strict=True)]

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a pandas data frame.

        Raises
        ------
        InputError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise InputError(
                "a data frame needs pandas; install it with: pip install pandas"
            ) from None
        return pandas.DataFrame(dict(self))

    def __str__(self) -> str:
        lines = [list(self), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(aligned + self._rest())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
            for line in self._cells()
        )
        rest = "".join(f"<p>{line}</p>" for line in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _cells(self) -> list[list[str]]:
        columns = [[_cell(value) for value in values[:MOST_ROWS]] for values in self.values()]
        return [list(line) for line in zip(*columns, strict=True)]

    def _rest(self) -> list[str]:
        more = self.n_rows - MOST_ROWS
        return [f"… and {more} more rows"] if more > 0 else []


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return " ".join(str(value).split())
