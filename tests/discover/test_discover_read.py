"""Files of many kinds, and everything that can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from placecell.discover import read_table
from placecell.discover import text as text_module
from placecell.discover.read import split_names
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


@pytest.mark.parametrize("names", [range(2010, 2014), range(400, 408, 2), [0.1, 0.2, 0.3, 0.4]])
def test_names_that_rise_in_equal_steps_are_names(tmp_path: Path, names: list[float]) -> None:
    frame().set_axis(list(names), axis=1).to_csv(tmp_path / "t.csv", index=False)
    assert list(read_table(tmp_path / "t.csv").frame.columns) == [str(name) for name in names]


def test_values_that_rise_as_the_first_row_does_are_values(tmp_path: Path) -> None:
    answers = np.random.default_rng(0).integers(1, 6, size=(100, 3))
    answers[[0, 50]] = [2, 3, 4], [1, 3, 5]
    np.savetxt(tmp_path / "t.csv", answers, delimiter=",", fmt="%d")
    assert len(read_table(tmp_path / "t.csv").frame) == 100


def test_repeated_and_empty_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a,,b\n" + "1,2,3,4\n" * 3)
    read = read_table(path)
    assert len(set(read.frame.columns)) == 4
    assert "column_3" in read.frame.columns
    assert any("got a number" in note for note in read.notes)


def test_a_large_file_is_read_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MOST_CELLS", 400)
    path = tmp_path / "t.csv"
    frame(1000).to_csv(path, index=False)
    read = read_table(path)
    assert 50 <= len(read.frame) <= 150
    assert "one row in" in read.notes[0]


def test_pieces_of_a_large_file_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = pd.DataFrame({"a": [*range(1, 500), *range(500, 2500)], "b": 0.5, "c": 7})
    text = given.assign(a=[f"{value:,}".replace(",", ".") for value in given["a"]])
    text.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    monkeypatch.setattr(text_module, "MOST_ROWS", 500)
    monkeypatch.setattr(text_module, "PIECE", 300)
    read = read_table(tmp_path / "t.csv").frame
    assert set(np.diff(read["a"])) == {read["a"][1] - 1}
    assert read["a"].max() > 2400


@pytest.mark.parametrize("space", [False, True])
def test_rows_of_a_large_file_may_have_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, space: bool
) -> None:
    given = frame(1000).rename(index=lambda i: f"row {i}")
    text = given.to_csv(sep=" " if space else ",")
    (tmp_path / "t.csv").write_text(text.removeprefix('""').lstrip(" ,"))
    monkeypatch.setattr(text_module, "MOST_ROWS", 500)
    read = read_table(tmp_path / "t.csv").frame
    assert list(read.columns[1:]) == list("abcd")
    assert read["a"][1] in given["a"][1:5].to_numpy()
    assert read.iloc[1, 0].startswith("row ")


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
        ("t.csv", b"\n<!DOCTYPE html>\n<p>a, b, c</p>\n", "a web page"),
        ("t.csv", b"From a lab\nSeen: X\n\na,b,c\n" + b"1,2,3\n" * 20, "the first 2 lines have"),
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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a,b"]),
        ("c, a,b,a", ["c", "a,b", "a"]),
        ("a, c,", ["a", "c"]),
        ("z,c", ["z", "c"]),
        ("", []),
    ],
)
def test_names_with_commas_are_found(text: str, names: list[str]) -> None:
    assert split_names(text, ["a,b", "c"]) == names


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


def test_names_that_numpy_writes_have_no_sharp(tmp_path: Path) -> None:
    for separator in (",", " "):
        path = tmp_path / "t.txt"
        names = separator.join("abcd")
        np.savetxt(path, frame(), delimiter=separator, header=f"made by us\n{names}")
        read = read_table(path)
        assert list(read.frame.columns) == ["a", "b", "c", "d"]
        assert len(read.frame) == 40
        assert "1 lines of remarks" in read.notes[0]


def test_a_remark_with_as_many_words_as_columns_is_no_row_of_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("# in, the, same, units\n" + frame().to_csv(index=False))
    assert list(read_table(path).frame.columns) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("first", [0.5, 0])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_separator_at_the_end_of_rows_shifts_no_names(
    tmp_path: Path, separator: str, first: float
) -> None:
    given = frame().assign(a=first + np.arange(40))
    lines = given.to_csv(index=False, sep=separator).splitlines()
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(f"{t}{separator}" for t in lines[1:])]))
    read = read_table(tmp_path / "t.csv")
    np.testing.assert_allclose(read.frame.to_numpy(), given.to_numpy())
    assert list(read.frame.columns) == ["a", "b", "c", "d"]
    assert any("end with a separator" in note for note in read.notes)


def test_rows_of_r_have_names(tmp_path: Path) -> None:
    lines = frame().rename(index=lambda i: f"row {i}").to_csv(sep=" ").splitlines()
    (tmp_path / "t.txt").write_text("\n".join([lines[0].removeprefix('"" ').strip(), *lines[1:]]))
    read = read_table(tmp_path / "t.txt").frame
    assert list(read.columns[-4:]) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(read["a"], frame()["a"])


def test_a_line_that_tells_excel_the_separator_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sep=;\n" + frame().to_csv(index=False, sep=";"))
    read = read_table(tmp_path / "t.csv").frame
    assert list(read.columns) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(read.to_numpy(), frame().to_numpy())


def test_columns_may_be_aligned_by_spaces(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(frame().to_string(index=False))
    read = read_table(tmp_path / "t.txt").frame
    assert list(read.columns) == ["a", "b", "c", "d"]
    np.testing.assert_allclose(read.to_numpy(), frame().to_numpy(), atol=1e-5)


def test_a_name_may_have_several_lines(tmp_path: Path) -> None:
    given = frame().rename(columns={"a": "a\n(in °C)"})
    given.to_csv(tmp_path / "t.csv", index=False)
    assert list(read_table(tmp_path / "t.csv").frame.columns) == list(given.columns)


@pytest.mark.parametrize("name", ["when", None])
def test_times_in_the_index_are_a_column(tmp_path: Path, name: str | None) -> None:
    when = pd.date_range("2024-01-01", periods=40, name=name)
    frame().set_index(when).to_parquet(tmp_path / "t.parquet")
    read = read_table(tmp_path / "t.parquet")
    assert list(read.frame.columns) == [name or "index", "a", "b", "c", "d"]
    assert find_variables(read.frame).left_out == {name or "index": "dates"}
    assert len(set(find_variables(read.frame, time=name or "index").groups)) > 1


def test_numbers_of_rows_in_the_index_are_no_column(tmp_path: Path) -> None:
    frame()[::2].to_parquet(tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet").frame.columns) == ["a", "b", "c", "d"]
