"""What must not be found, what must be, and whose files are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from placecell import PlaceMap
from placecell.cli.app import call
from placecell.discover import layout
from placecell.discover.columns import Ranks, learn_coding, rank_categories
from placecell.discover.copula import covariance
from placecell.discover.write import NAMES, check_folder
from placecell.errors import InputError


def quick(frame: object, seed: int = 0) -> PlaceMap:
    return PlaceMap(steps=0, random_state=seed).fit(frame)


def ring(rows: int, n: int, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(rows, n))
    return noise + np.roll(noise, 1, axis=1)


def test_categories_of_noise_are_not_found() -> None:
    """Their order follows the other columns, so it must not follow those of the rows tested."""
    alarms = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        texts = {f"t{i}": pd.Categorical(rng.choice(list("abcdefghijkl"), 60)) for i in range(4)}
        frame = pd.DataFrame({**texts, **{f"n{i}": rng.normal(size=60) for i in range(4)}})
        alarms += quick(frame).found_
    assert alarms <= 2


def test_a_category_that_was_never_seen_is_missing() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 200).astype(float)
    x = np.column_stack([np.array([2.0, 0, 1])[code.astype(int)] + rng.normal(size=200), code])
    ranks = Ranks(rank_categories(x, [False, True]))
    found = ranks.apply(np.array([[0.0, 0], [0, 1], [0, 2], [0, 3], [0, np.nan]]))[:, 1]
    assert found[[1, 2, 0]].tolist() in ([0, 1, 2], [2, 1, 0])
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize(("rows", "columns"), [(200, 200), (90, 150)])
def test_modules_of_more_columns_than_rows_are_found(rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    true = np.arange(columns) % 5
    found = quick(rng.normal(size=(rows, 5))[:, true] + rng.normal(size=(rows, columns)))
    assert found.found_
    assert adjusted_rand_score(true, found.labels_) > 0.9


def test_shrinkage_of_many_columns_is_the_one_that_predicts() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 4))[:, np.arange(100) % 4] + rng.normal(size=(700, 100))
    _, scores = learn_coding(x).encode(x)
    here = np.ones((100, 100), dtype=bool)
    shrunk, amount = covariance(scores[:100], here, np.ones(100))
    assert amount > 0.2

    def told(matrix: np.ndarray) -> float:
        precision = np.linalg.inv(matrix)
        left = scores[100:] @ precision / np.diag(precision)
        return -float((left**2).mean())

    raw = np.corrcoef(scores[:100].T)
    assert told(shrunk) > told(0.9 * raw + 0.1 * np.eye(100)) + 0.05


def test_a_column_that_hardly_any_row_has_is_left_out() -> None:
    frame = pd.DataFrame(ring(300, 6), columns=list("abcdef"))
    frame["rare"] = np.nan
    frame.loc[[10, 20], "rare"] = [1.0, 2.0]
    for seed in range(3):
        found = quick(frame, seed)
        assert found.left_out_ == {"rare": "known in only 2 of 300 rows"}
        assert set(found.neighbours_["a"][:2]) == {"b", "f"}


def test_a_column_without_values_in_some_rows_is_coded() -> None:
    """A sensor that was added late: the training rows may have none of its values."""
    coding = learn_coding(np.column_stack([np.arange(9.0), np.full(9, np.nan)]))
    bins, scores = coding.encode(np.array([[3.0, 7.0]]))
    assert bins[0, 1] == 0
    assert scores[0, 1] == 0


def test_what_all_columns_share_is_one_module() -> None:
    rng = np.random.default_rng(0)
    for noise in (1.0, 0.3):
        found = quick(rng.normal(size=(400, 1)) + noise * rng.normal(size=(400, 20)))
        assert found.found_
        assert set(found.labels_) == {0}


def test_parts_that_hardly_touch_are_drawn_side_by_side() -> None:
    rng = np.random.default_rng(0)
    part = np.arange(12) // 4
    x = rng.normal(size=(300, 3))[:, part] + 0.7 * rng.normal(size=(300, 12))
    at = layout.lay_out(np.abs(np.corrcoef(x.T)), 2)
    apart = np.linalg.norm(at[:, None] - at, axis=-1)
    same = part[:, None] == part
    inside = apart[same & ~np.eye(12, dtype=bool)].mean()
    assert 3 * inside < apart[~same].mean() < 60 * inside


def test_neither_the_table_nor_files_of_others_are_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "columns.csv"
    pd.DataFrame(ring(60, 5)).to_csv(table, index=False)
    before = table.read_bytes()
    words = ["discover", str(table), "--steps", "0", "-o"]
    assert call([*words, str(tmp_path)]) == 2
    assert "the table would be overwritten" in capsys.readouterr().err
    other = tmp_path / "other"
    other.mkdir()
    (other / "map.png").write_text("mine")
    assert call([*words, str(other)]) == 2
    assert "not written by placecell" in capsys.readouterr().err
    assert (other / "map.png").read_text() == "mine"
    assert table.read_bytes() == before
    for _ in range(2):  # our own files are replaced
        assert call([*words, str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(NAMES)
    with pytest.raises(InputError, match="choose another"):
        check_folder(tmp_path / "out", tmp_path / "out" / "columns.csv")
