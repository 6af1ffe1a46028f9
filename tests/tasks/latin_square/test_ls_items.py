"""Loading the items used with people. The real file is not here: one of the same layout is made
up."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.io import savemat

from placecell.errors import InputError
from placecell.tasks.latin_square import (
    CONDITIONS,
    HUMAN_ACCURACY,
    HUMAN_OVERALL,
    generate,
    load_human,
    load_items,
)

HEADER = ",".join([*(f"c{i}" for i in range(1, 17)), "answer"])
GOOD = "?,1,2,3" + ",0" * 12 + ",4"


@pytest.fixture(scope="module")
def task_data():
    """144 × 17: 18 puzzles of each condition with 9 for the probe, then catch trials with 11."""
    blocks = [generate(18, seed, conditions=[name]) for seed, name in enumerate(CONDITIONS)]
    rows = np.concatenate([np.column_stack([p.cells(), p.answer]) for p in blocks])
    rows[:, :16][rows[:, :16] == 5] = 9
    catch = np.zeros((36, 17), np.uint8)
    catch[:, 3] = 11
    return np.concatenate([rows, catch]).astype(np.uint8)


def save(path, data, name="taskData"):
    savemat(path, {name: data})
    return path


@pytest.mark.parametrize("rows", [144, 108])
def test_mat(tmp_path, task_data, rows):
    data = task_data[:rows].copy()
    data[[4, 100], 16] = data[[4, 100], 16] % 4 + 1  # two wrong keys
    items = load_items(save(tmp_path / "taskData.mat", data))
    assert len(items) == 108
    assert items.disagree == [5, 101]
    assert (items.published_answer == data[:108, 16]).all()
    assert (items.puzzles.answer == task_data[:108, 16]).all()
    assert (items.published_condition == np.repeat(range(6), 18)).all()
    assert (items.puzzles.condition == items.published_condition).all()
    assert (np.where(items.puzzles.cells() == 5, 9, items.puzzles.cells()) == data[:108, :16]).all()


def test_csv(tmp_path, task_data):
    path = tmp_path / "items.csv"
    lines = [",".join(map(str, row)) for row in task_data[:108].tolist()]
    path.write_text("\n".join([HEADER, *lines]))
    plain = load_items(path)
    assert plain.disagree == []
    assert (plain.published_condition == -1).all()
    assert (plain.puzzles.condition == np.repeat(range(6), 18)).all()
    path.write_text(
        f"{HEADER},vectors,steps\n{GOOD},1,1\n\n{GOOD.replace('0', '').replace('4', '3')},3,2\n"
    )
    items = load_items(str(path))
    assert items.puzzles.answer.tolist() == [4, 4]
    assert items.disagree == [2]
    assert items.published_vectors.tolist() == [1, 3]
    assert items.published_steps.tolist() == [1, 2]
    assert items.published_condition.tolist() == [0, 5]


def test_boards_with_the_highest_bit_survive(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n{'0,' * 12}9,1,2,4,3\n")
    assert load_items(path).puzzles.cells()[:, [0, 15]].tolist() == [[5, 0], [0, 4]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((36, 17), np.uint8), "taskData must be 144 × 17 or 108 × 17, found 36 × 17"),
        (np.zeros((108, 16), np.uint8), "found 108 × 16"),
        (np.full((108, 17), 0.5), "whole numbers"),
        (np.full((108, 17), np.nan), "whole numbers"),
        (np.full((108, 17), 1e300), "whole numbers"),
        (np.full((108, 17), "a"), "taskData must be|whole numbers"),
        (np.full((108, 17), 1, np.uint8), "row 1: a puzzle has one probe, marked 9; found none"),
    ],
)
def test_bad_mat(tmp_path, data, message):
    path = save(tmp_path / "bad.mat", data)
    with pytest.raises(InputError, match=message) as caught:
        load_items(path)
    assert str(path) in str(caught.value)


def test_other_files_are_refused(tmp_path, task_data):
    with pytest.raises(InputError, match="variable taskData was expected"):
        load_items(save(tmp_path / "other.mat", task_data, "somethingElse"))
    with pytest.raises(InputError, match="no such file"):
        load_items(tmp_path / "absent.mat")
    for name, content, message in [
        ("items.mat", pickle.dumps(list(range(100))), "not a MATLAB file"),
        ("empty.mat", b"", "not a MATLAB file"),
        ("items.pkl", pickle.dumps(1), r"read from .mat or .csv, found '.pkl'"),
        ("items.csv", pickle.dumps([1.5]), "not a CSV file|the header must be"),
        ("empty.csv", b"", "the header must be"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=message):
            load_items(tmp_path / name)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("?", "0"), "row 2: a puzzle has one probe, marked 9; found none"),
        (GOOD.replace("0", "9", 1), "row 2: a puzzle has one probe, marked 9; found 2"),
        (GOOD.replace("2", "1"), "row 2: symbol 1 is repeated in row 1"),
        (GOOD.replace("2", "7"), "row 2: cell 3 holds 7"),
        (GOOD.replace("2", "0"), "row 2: the answer is not unique: 2, 4 are possible"),
        (GOOD[:-1] + "5", "row 2: the answer is 1 to 4, found 5"),
        (GOOD[:-1] + "?", "row 2: answer is no symbol or number: '\\?'"),
        (GOOD.replace("2", "x"), "row 2: c3 is no symbol or number: 'x'"),
        (GOOD.replace("2", "-1"), "row 2: c3 is no symbol or number: '-1'"),
        (GOOD + ",1", "row 2: 17 values were expected, found 18"),
    ],
)
def test_bad_csv_rows(tmp_path, line, message):
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_items(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2", "the header must be"),
        (HEADER, "no items follow"),
        (
            f"{HEADER},vectors,steps\n{GOOD},4,1",
            "row 1: vectors are 1 to 3 and steps 1 or 2, found 4 and 1",
        ),
    ],
)
def test_bad_csv(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_items(path)


def test_people():
    assert len(HUMAN_ACCURACY) == len(CONDITIONS)
    assert abs(np.mean(HUMAN_ACCURACY) - HUMAN_OVERALL) < 0.001


def test_human(tmp_path):
    path = tmp_path / "human.csv"
    shares = np.linspace(0, 1, 108)
    for text in (
        "\n".join(f"{x}" for x in shares),
        "\n".join(["correct", *(f"{x}" for x in shares)]),
        "\n".join(["item,Accuracy", *(f"{i},{100 * x}" for i, x in enumerate(shares))]),
    ):
        path.write_text(text)
        assert np.allclose(load_human(path), shares)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0.5"] * 107, "108 rows of accuracies were expected, found 107"),
        ([], "found 0"),
        (
            ["0.5"] * 50 + ["many"] + ["0.5"] * 57,
            "row 51: an accuracy is 0 to 1 or 0 to 100, found 'many'",
        ),
        (["0.5"] * 50 + ["nan"] + ["0.5"] * 57, "row 51: .* found 'nan'"),
        (["0.5"] * 107 + ["101"], "row 108: .* found '101'"),
        (["0.5"] * 107 + ["-0.1"], "row 108: .* found '-0.1'"),
        (["1,0.5"] * 108, "2 columns without a header"),
        (
            ["item,correct"] + ["1,0.5"] * 108,
            "one named 'accuracy', was expected; found item, correct",
        ),
        (["item,accuracy"] + ["1"] * 108, "row 1: .* found ''"),
    ],
)
def test_bad_human(tmp_path, lines, message):
    path = tmp_path / "human.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message) as caught:
        load_human(path)
    assert str(path) in str(caught.value)
