"""Which columns are variables, which rows go together, and what is said of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from placecell.discover.read import choose_columns
from placecell.discover.variables import find_variables
from placecell.errors import InputError


def frame(rows: int = 40, n: int = 4) -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=(rows, n)).cumsum(axis=1)
    return pd.DataFrame(x, columns=list("abcdefgh")[:n])


def test_what_is_no_variable_is_left_out_and_named() -> None:
    given = frame(60)
    given["id"] = np.arange(60) * 7 + 3
    given["row"] = np.arange(60)
    given["code"] = [f"x{i}" for i in range(60)]
    given["when"] = pd.date_range("2020-01-01", periods=60).astype(str)
    given["stamp"] = pd.date_range("2020-01-01", periods=60)
    given["same"] = 5.0
    given["void"] = np.nan
    given["words"] = [f"about {i % 35}" for i in range(60)]
    found = find_variables(given)
    assert list(found.frame.columns) == ["a", "b", "c", "d"]
    why = found.left_out
    assert "id" in why["id"]
    assert "counts the rows" in why["row"]
    assert "different in every row" in why["code"]
    assert why["when"] == why["stamp"] == "dates"
    assert why["same"] == "constant (5)"
    assert why["void"] == "no value"
    assert "35 different values" in why["words"]
    assert any("--time when" in note for note in found.notes)


def test_infinities_and_stray_text_are_missing_and_said() -> None:
    given = frame(60)
    given.loc[3, "a"] = np.inf
    given["b"] = given["b"].astype(str)
    given.loc[5, "b"] = "broken"
    found = find_variables(given)
    assert np.isnan(found.frame["a"][3])
    assert np.isnan(found.frame["b"][5])
    assert any("1 infinite" in note for note in found.notes)
    assert any("'broken'" in note for note in found.notes)


def test_text_of_few_kinds_is_a_category() -> None:
    given = frame(60)
    given["kind"] = ["cat", "ape", "dog"] * 20
    assert isinstance(find_variables(given).frame["kind"].dtype, pd.CategoricalDtype)


def test_time_sorts_rows_and_makes_blocks() -> None:
    given = frame(100)
    given["t"] = np.random.default_rng(0).permutation(100) * 0.5
    found = find_variables(given, time="t")
    assert "t" not in found.frame
    first = given.sort_values("t")["a"].iloc[0]
    assert found.frame["a"].iloc[0] == first
    assert (np.diff(found.groups) >= 0).all()
    assert len(set(found.groups)) == 20


def test_blocks_of_time_are_longer_where_rows_hang_together() -> None:
    noise = np.random.default_rng(0).normal(size=(400, 4))
    slow = noise.copy()
    for t in range(1, 400):
        slow[t] = 0.9 * slow[t - 1] + noise[t]
    blocks = [
        len(
            set(
                find_variables(
                    pd.DataFrame(x, columns=list("abcd")).assign(t=range(400)), "t"
                ).groups
            )
        )
        for x in (noise, slow)
    ]
    assert blocks[0] == 40
    assert blocks[1] < 30


def test_groups_are_no_variable() -> None:
    given = frame(60)
    given["person"] = np.arange(60) // 6
    found = find_variables(given, groups="person")
    assert "person" not in found.frame
    assert len(set(found.groups)) == 10


def test_rows_without_a_value_are_left_out() -> None:
    given = frame(60)
    given.iloc[4] = np.nan
    found = find_variables(given)
    assert len(found.frame) == 59
    assert any("1 rows without any value" in note for note in found.notes)


@pytest.mark.parametrize(
    ("given", "expected"), [(frame(60, 2), "at least 3 columns"), (frame(29), "at least 30 rows")]
)
def test_too_small(given: pd.DataFrame, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        find_variables(given)


def test_unknown_columns() -> None:
    with pytest.raises(InputError, match="unknown column 'aa'"):
        choose_columns(frame(), ["aa"], [])
    with pytest.raises(InputError, match="unknown column 'when'"):
        find_variables(frame(), time="when")
    assert list(choose_columns(frame(), ["b", "a"], ["a"]).columns) == ["b"]
    assert list(choose_columns(frame(), ["b", "a", "b"], []).columns) == ["b", "a"]


def test_time_and_groups_exclude_each_other() -> None:
    with pytest.raises(InputError, match="exclude each other"):
        find_variables(frame(), time="a", groups="b")


def test_few_groups_are_noted() -> None:
    given = frame(60).assign(city=["Ulm", "Bonn", "Genf", "Linz"] * 15)
    assert "4 groups, of which about 13 are needed" in find_variables(given, groups="city").notes[0]


@pytest.mark.parametrize("cell", ["<0.5", "(1,234)", "21.3 °C"])
def test_a_column_left_out_as_text_has_an_example(cell: str) -> None:
    given = frame(60).assign(e=[f"{i}.5" if i % 3 else cell for i in range(60)])
    assert find_variables(given).left_out["e"].endswith(f"such as {cell!r}")


def test_text_that_may_be_a_name_is_not_shown() -> None:
    given = frame(60).assign(e=[f"Ann {i}" for i in range(60)], f=[f"{i}@b.org" for i in range(60)])
    assert not any("such as" in why for why in find_variables(given).left_out.values())
