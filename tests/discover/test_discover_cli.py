"""`placecell discover`: from a file to a map, or to an honest nothing."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from placecell.cli.app import call
from placecell.discover.sample import sample_path, true_places


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("map")
    assert call(["discover", "sample", "-o", str(out), "--steps", "10", "--jobs", "1"]) == 0
    return out


def test_the_hidden_grid_is_found(written: Path) -> None:
    places = true_places()
    with (written / "columns.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["column"] for row in rows if not row["left_out"]] == sorted(places)
    right = [
        abs(places[row["column"]][0] - places[row[near]][0])
        + abs(places[row["column"]][1] - places[row[near]][1])
        == 1
        for row in rows
        if not row["left_out"]
        for near in ("nearest_1", "nearest_2")
    ]
    assert np.mean(right) > 0.95
    assert rows[0]["module"]
    assert float(rows[0]["stability"]) >= 0


def test_figures_and_page_are_there(written: Path) -> None:
    assert (written / "map.png").stat().st_size > 10_000
    assert (written / "similarity.png").stat().st_size > 10_000
    page = (written / "map.html").read_text()
    for words in ("There is an arrangement", "correlation alone", "Left out", "harbour"):
        assert words in page
    assert "http-equiv" in page


def test_nothing_is_found_in_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(120, 5))
    path = tmp_path / "noise.csv"
    pd.DataFrame(x, columns=list("abcde")).to_csv(path, index=False)
    out = tmp_path / "out"
    assert call(["discover", str(path), "-o", str(out), "--steps", "10", "--jobs", "1"]) == 0
    assert "Nothing found" in capsys.readouterr().out
    assert sorted(p.name for p in out.iterdir()) == ["map.html"]
    assert "Nothing found" in (out / "map.html").read_text()


def test_names_are_escaped(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(150, 4)).cumsum(axis=1)
    names = ["<img src=x onerror=alert(1)>", "b & c", "$x$", "d</script>"]
    path = tmp_path / "t.csv"
    pd.DataFrame(x, columns=names).to_csv(path, index=False)
    out = tmp_path / "out"
    assert call(["discover", str(path), "-o", str(out), "--steps", "5", "--jobs", "1"]) == 0
    page = (out / "map.html").read_text()
    assert "<img src=x" not in page
    assert "d</script>" not in page


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["discover", str(sample_path()), "--out", str(tmp_path / "o"), "--steps", "0", "--json"]
    assert call([*words, "--jobs", "1", "--drop", "day,lake"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["found"] is True
    assert "lake" not in said["columns"]["column"]
    assert said["p_value"] < 0.01


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nowhere.csv"], "no such file"),
        (["sample", "--columns", "harbor"], "did you mean 'harbour'"),
        (["sample", "--columns", "lake,hill"], "at least 3 columns"),
        (["sample", "--steps", "none"], "--steps"),
        (["sample", "--seed", "-1"], "--seed must be a whole number, at least 0"),
        (["sample", "--seed", "99999999999"], "--seed must be a whole number"),
        (["sample", "--columns", "lake,hill,lake"], "at least 3 columns"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(["discover", *words, "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err.strip()
    assert expected in said
    assert len(said.splitlines()) == 1


def test_names_with_commas_few_groups_and_names_given_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).normal(size=(120, 5)).cumsum(axis=1)
    given = pd.DataFrame(x, columns=["a", "b", "c", "d,e", "f,g"])
    given["city"] = ["Ulm", "Bonn", "Genf", "Linz"] * 30
    path = tmp_path / "t.csv"
    given.to_csv(path, index=False)
    words = ["discover", str(path), "--out", str(tmp_path / "o"), "--steps", "0", "--jobs", "1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        chosen = ["--columns", "a,a,b,d,e,c,f,g", "--drop", "f,g", "--groups", "city"]
        assert call([*words, *chosen]) == 0
    said = capsys.readouterr()
    assert "120 rows, 4 columns" in said.err
    assert "4 groups, of which about 13 are needed" in said.out
    assert "too few for a test" in said.out
