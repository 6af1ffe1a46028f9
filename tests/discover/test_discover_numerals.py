"""Numbers and dates as people write them: what stands for what is decided once for a column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from placecell.discover import read_table
from placecell.discover.dates import read_dates
from placecell.discover.variables import find_variables


def frame() -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=(40, 4)).cumsum(axis=1)
    return pd.DataFrame(x, columns=list("abcd"))


def test_numbers_as_people_write_them_are_numbers() -> None:
    written = frame().assign(
        grouped=[f"{1000 + 37 * i:,.1f}" for i in range(40)],
        share=[f"{i / 2} %" for i in range(40)],
        price=[f"€ {i},5" for i in range(40)],
    )
    found = find_variables(written)
    assert not found.left_out
    assert found.frame["grouped"].iloc[1] == 1037.0
    assert found.frame["share"].iloc[3] == 1.5
    assert found.frame["price"].iloc[2] == 2.5


def german(x: float, places: int) -> str:
    """A number with points between thousands and a decimal comma."""
    return f"{x:,.{places}f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize("places", [0, 2])
@pytest.mark.parametrize("date", [False, True])
def test_points_between_thousands(tmp_path: Path, places: int, date: bool) -> None:
    given = (1000 + 40 * frame()).round(places)
    text = given.map(lambda x: german(x, places))
    if date:
        text.insert(0, "day", pd.date_range("2023-10-01", periods=40).strftime("%d.%m.%Y"))
    text.to_csv(tmp_path / "t.csv", sep=";", index=False)
    read = read_table(tmp_path / "t.csv")
    np.testing.assert_allclose(read.frame[list("abcd")].to_numpy(), given.to_numpy())
    assert any("signs of thousands" in note for note in read.notes)
    assert find_variables(read.frame).left_out == ({"day": "dates"} if date else {})


def test_whole_numbers_with_points_beside_decimal_commas(tmp_path: Path) -> None:
    given = frame().round(2).assign(people=np.arange(900, 1300, 10))
    text = given.map(lambda x: german(x, 2)).assign(people=given["people"].map("{:_}".format))
    text["people"] = text["people"].str.replace("_", ".")
    text.to_csv(tmp_path / "t.csv", sep=";", index=False)
    read = read_table(tmp_path / "t.csv")
    np.testing.assert_allclose(read.frame.to_numpy(), given.to_numpy())
    assert any("people" in note for note in read.notes)


@pytest.mark.parametrize("sign", [".", ","])
def test_three_decimals_are_no_thousands(tmp_path: Path, sign: str) -> None:
    given = 1 + frame().abs()
    text = given.map(lambda x: f"{x:.3f}".replace(".", sign))
    text.to_csv(tmp_path / "t.csv", sep=";", index=False)
    read = read_table(tmp_path / "t.csv")
    np.testing.assert_allclose(read.frame.to_numpy(), given.round(3).to_numpy())
    assert not any("thousands" in note for note in read.notes)


def test_decimal_points_of_one_column_are_those_of_all(tmp_path: Path) -> None:
    given = frame().assign(a=[7, 8, 1.125, 1.375] * 10)
    given.to_csv(tmp_path / "t.csv", sep=";", index=False)
    np.testing.assert_allclose(read_table(tmp_path / "t.csv").frame["a"], given["a"])


def test_commas_between_thousands_in_a_file_of_tabs(tmp_path: Path) -> None:
    given = pd.DataFrame({name: np.arange(900, 1300, 10) + i for i, name in enumerate("abc")})
    given.map("{:,}".format).to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    found = find_variables(read_table(tmp_path / "t.tsv").frame)
    assert found.frame["a"].tolist() == given["a"].tolist()


def test_a_cell_such_as_1_234_is_read_as_its_column_is() -> None:
    text = ["1,234", "0,5", "12,25", "€ 3,5"] * 10
    found = find_variables(frame().assign(e=text)).frame
    assert found["e"][:4].tolist() == [1.234, 0.5, 12.25, 3.5]


def test_a_long_minus_is_a_minus() -> None:
    given = frame()
    text = given.map(lambda x: f"{x:.6f}".replace("-", "\N{MINUS SIGN}"))
    np.testing.assert_allclose(find_variables(text).frame.to_numpy(), given.to_numpy(), atol=1e-6)


HOURS = pd.date_range("2023-11-20", periods=300, freq="7h")
FEW = pd.date_range("2024-01-01", periods=12)
MONTHS = pd.date_range("2020-01-01", periods=40, freq="MS")
SHUFFLED = pd.DatetimeIndex(np.random.default_rng(0).permutation(FEW))


@pytest.mark.parametrize("when", [HOURS, FEW, MONTHS, SHUFFLED])
@pytest.mark.parametrize(
    "form",
    ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%y", "%d.%m.%Y %H:%M", "%m/%d/%y %I:%M %p"],
)
def test_days_and_months_are_told_apart(when: pd.DatetimeIndex, form: str) -> None:
    dates = read_dates(pd.Series(when.strftime(form)))
    assert (dates.times.dt.date == pd.Series(when).dt.date).all()
    assert f"the {'month' if form.startswith('%m') else 'day'} first" in dates.note


def test_month_first_if_nothing_tells() -> None:
    dates = read_dates(pd.Series(["03/04/2024"] * 3))
    assert dates.times[0] == pd.Timestamp("2024-03-04", tz="UTC")
    assert "nothing tells" in dates.note


def test_what_is_no_date_is_missing() -> None:
    dates = read_dates(pd.Series(["13/13/2024", None, *["13/02/2024"] * 20]))
    assert dates.times.isna().tolist() == [True, True, *[False] * 20]


def test_rows_are_ordered_by_dates_with_the_day_first() -> None:
    when = pd.date_range("2024-01-01", periods=40)
    given = frame().assign(day=when.strftime("%d.%m.%Y"))
    found = find_variables(given[::-1].reset_index(drop=True), time="day")
    np.testing.assert_array_equal(found.frame["a"], given["a"])
    assert any("day: dates such as '09.02.2024' were read with the day" in n for n in found.notes)


def test_clocks_may_change() -> None:
    when = pd.date_range("2024-03-30 10:00", periods=40, freq="h", tz="Europe/Berlin").astype(str)
    given = frame().assign(when=when)
    assert find_variables(given).left_out == {"when": "dates"}
    found = find_variables(given[::-1].reset_index(drop=True), time="when").frame
    np.testing.assert_array_equal(found["a"], given["a"])
