"""Files of many kinds, and everything that can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from placecell.discover import read as read_module
from placecell.discover import read_table
from placecell.discover.read import choose_columns
from placecell.discover.variables import find_variables
from placecell.errors import InputError


def frame(rows: int = 40, n: int = 4) -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=(rows, n)).cumsum(axis=1)
    return pd.DataFrame(x, columns=list("abcdefgh")[:n])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_separators_and_encodings(tmp_path: Path, separator: str, encoding: str) -> None:
    given = frame().rename(columns={"b": "größe"})
    path = tmp_path / "t.csv"
    given.to_csv(path, sep=separator, encoding=encoding, index=False)
    read = read_table(path)
    assert list(read.frame.columns) == ["a", "größe", "c", "d"]
    np.testing.assert_allclose(read.frame.to_numpy(), given.to_numpy())


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "t.csv"
    frame().round(3).to_csv(path, sep=separator, decimal=",", index=False)
    read = read_table(path)
    np.testing.assert_allclose(read.frame.to_numpy(), frame().round(3).to_numpy())
    assert "decimal ','" in read.notes[0]


@pytest.mark.parametrize("kind", ["parquet", "feather", "npy", "npz", "mat", "tsv"])
def test_other_kinds_of_files(tmp_path: Path, kind: str) -> None:
    path, given = tmp_path / f"t.{kind}", frame()
    x = given.to_numpy()
    write = {
        "parquet": lambda: given.to_parquet(path),
        "feather": lambda: given.to_feather(path),
        "npy": lambda: np.save(path, x),
        "npz": lambda: np.savez(path, x=x, small=np.ones(3)),
        "mat": lambda: savemat(path, {"x": x}),
        "tsv": lambda: given.to_csv(path, sep="\t", index=False),
    }
    write[kind]()
    np.testing.assert_allclose(read_table(path).frame.to_numpy(), x)


def test_a_table_without_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame().to_csv(path, header=False, index=False)
    read = read_table(path)
    assert list(read.frame.columns) == [f"column_{i}" for i in range(1, 5)]
    assert len(read.frame) == 40


@pytest.mark.parametrize("start", [0, 1])
def test_names_that_count_are_names(tmp_path: Path, start: int) -> None:
    given = frame().round(3).set_axis([start + i for i in range(4)], axis=1)
    given.to_csv(tmp_path / "t.csv", index=False)
    read = read_table(tmp_path / "t.csv").frame
    assert list(read.columns) == [str(start + i) for i in range(4)]
    np.testing.assert_allclose(read.to_numpy(), given.to_numpy())


def test_repeated_and_empty_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a,,b\n" + "1,2,3,4\n" * 3)
    read = read_table(path)
    assert len(set(read.frame.columns)) == 4
    assert "column_3" in read.frame.columns
    assert any("got a number" in note for note in read.notes)


def test_a_large_file_is_read_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_module, "MOST_CELLS", 400)
    path = tmp_path / "t.csv"
    frame(1000).to_csv(path, index=False)
    read = read_table(path)
    assert 50 <= len(read.frame) <= 150
    assert "one row in" in read.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", b"", "an empty file"),
        ("t.csv", b"\n\n \n", "an empty file"),
        ("t.csv", b"a,b,c\n", "without rows"),
        ("t.csv", b"\x00\x01\x02" * 50, "not text"),
        ("t.parquet", b"nonsense", "cannot be read"),
        ("t.npy", b"\x80\x04abc", "pickle"),
        ("t.mat", b"nonsense", "MATLAB"),
        ("t.docx", b"x", "not a kind of file"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected):
        read_table(path)


def test_no_such_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a folder"):
        read_table(tmp_path)


def test_excel_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(InputError, match=r"openpyxl|cannot be read"):
        read_table(path)


def test_excel(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="reading Excel needs openpyxl")
    given = frame()
    given["kind"] = ["up", "down"] * (len(given) // 2)
    given.to_excel(tmp_path / "t.xlsx", index=False)
    read = read_table(tmp_path / "t.xlsx").frame
    pd.testing.assert_frame_equal(read, given, check_dtype=False)


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


def test_time_and_groups_exclude_each_other() -> None:
    with pytest.raises(InputError, match="exclude each other"):
        find_variables(frame(), time="a", groups="b")


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


def test_rows_with_too_many_cells_are_left_out_and_said(tmp_path: Path) -> None:
    lines = frame().to_csv(index=False).splitlines()
    lines[7] += ",9,9"
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    read = read_table(path)
    assert len(read.frame) == 39
    assert any("more cells" in note for note in read.notes)


def test_remarks_before_the_table_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("# made by a machine\n# in metres\n" + frame().to_csv(index=False))
    read = read_table(path)
    assert list(read.frame.columns) == ["a", "b", "c", "d"]
    assert any("2 lines of remarks" in note for note in read.notes)


def test_names_may_begin_with_a_sharp(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("#" + frame().to_csv(index=False))
    assert list(read_table(path).frame.columns) == ["#a", "b", "c", "d"]
