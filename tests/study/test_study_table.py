"""Tables: a dict of columns that shows itself as text, in a notebook and as a data frame."""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

import pandas
import pytest

from placecell.errors import InputError
from placecell.store import Store, Table, files, table
from placecell.store.table import MOST_ROWS

EVIL = "<script>alert(1)</script>"


def test_a_table_is_a_dict_of_columns() -> None:
    made = Table.from_rows([{"a": 1, "b": "x"}, {"b": "y", "c": 0.5}])
    assert made == {"a": [1, None], "b": ["x", "y"], "c": [None, 0.5]}
    assert made.n_rows == 2
    assert made.rows() == [{"a": 1, "b": "x", "c": None}, {"a": None, "b": "y", "c": 0.5}]
    assert files.csv_bytes(made) == b"a,b,c\n1,x,\n,y,0.5\n"
    assert (Table.from_rows([]), Table().n_rows, str(Table())) == ({}, 0, "")


def test_the_example_of_its_docstring() -> None:
    assert doctest.testmod(table).attempted >= 3
    assert doctest.testmod(table).failed == 0


def test_text_is_aligned_and_html_is_escaped() -> None:
    made = Table.from_rows([{"name": "a\nb", "σ<": 0.123456}, {"name": EVIL, "σ<": float("nan")}])
    head, first, second = str(made).splitlines()
    assert head.index("σ<") == first.index("0.1235") == second.index("–")
    html = made._repr_html_()
    assert EVIL not in html
    assert "&lt;script&gt;" in html
    assert "<th>σ&lt;</th>" in html


def test_a_long_table_is_cut_where_it_is_shown() -> None:
    made = Table(value=list(range(MOST_ROWS + 7)))
    assert str(made).splitlines()[-1] == "… and 7 more rows"
    assert len(str(made).splitlines()) == 1 + MOST_ROWS + 1
    assert "7 more rows" in made._repr_html_()


def test_a_store_gives_data_frames(store: Path) -> None:
    runs, points = Store(store).runs().to_frame(), Store(store).points().to_frame()
    assert isinstance(runs, pandas.DataFrame)
    assert len(runs) == 6
    assert sorted(runs["encoding.sigma"].unique()) == [0.1, 0.5, 2.0]
    assert list(points) == ["run", "step", "split", "name", "value"]
    assert points["value"].dtype == float


def test_without_pandas_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        Table(a=[1]).to_frame()
