"""A model beside people: the scores, the command, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from placecell.cli import call
from placecell.errors import InputError
from placecell.tasks.latin_square import generate, load_items
from placecell.tasks.latin_square.generate import CONDITIONS
from placecell.tasks.latin_square.people import compare
from placecell.tasks.latin_square.task import corrupt, examples


@pytest.fixture
def items_file(tmp_path: Path) -> Path:
    """A file of the published layout, filled with puzzles of our own; row 5 has a wrong key."""
    rows = []
    for condition in CONDITIONS:
        puzzles = generate(18, 7, conditions=[condition])
        cells = puzzles.cells().astype(np.uint8)
        cells[cells == 5] = 9
        rows.append(np.concatenate([cells, puzzles.answer[:, None]], axis=1))
    table = np.concatenate([*rows, np.full((36, 17), 11, np.uint8)]).astype(np.uint8)
    table[4, 16] = table[4, 16] % 4 + 1
    path = tmp_path / "taskData.mat"
    scipy.io.savemat(path, {"taskData": table})
    return path


def certain(answers: np.ndarray) -> np.ndarray:
    return np.eye(4)[answers - 1]


def test_a_perfect_model_is_right_everywhere_but_for_the_wrong_key(items_file: Path) -> None:
    items = load_items(items_file)
    scores = compare(certain(items.puzzles.answer), items)
    assert scores.groups["all"] == {
        "items": 108,
        "model": 1.0,
        "published": pytest.approx(107 / 108),
        "people": 0.713,
    }
    assert scores.groups["1v1s"]["published"] == pytest.approx(17 / 18)
    assert scores.groups["3v2s"] == {"items": 18, "model": 1.0, "published": 1.0, "people": 0.434}
    assert scores.notes["rows_whose_published_answer_is_not_possible"] == [5]
    assert scores.notes["rows_answered_wrong"] == []
    assert scores.notes["vectors_as_published"] == scores.notes["steps_as_published"] == 108


def test_wrong_answers_are_listed_and_agreement_with_people_is_a_rank_correlation(
    items_file: Path,
) -> None:
    items = load_items(items_file)
    answers = items.puzzles.answer.copy()
    answers[[0, 107]] = answers[[0, 107]] % 4 + 1
    sure = 0.3 + 0.7 * np.linspace(
        0, 1, 108
    )  # the model is surer of later items, and so are people
    probability = np.where(certain(answers) > 0, sure[:, None], (1 - sure[:, None]) / 3)
    scores = compare(probability, items, human=np.linspace(0, 1, 108))
    assert scores.notes["rows_answered_wrong"] == [1, 108]
    assert scores.notes["rank_correlation_with_people"] > 0.9
    with pytest.raises(InputError, match="107 items; the items file has 108"):
        compare(probability, items, human=np.zeros(107))


@pytest.fixture
def trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    sizes = ["--n-train", "96", "--n-valid", "24", "--n-test", "48", "--width", "8", "--depth", "1"]
    rest = ["--steps", "4", "--warmup", "0", "--json", "--out", str(tmp_path / "runs")]
    assert call(["run", "latin_square", *sizes, *rest]) == 0
    return str(json.loads(capsys.readouterr().out)["folder"])


def test_evaluate_prints_the_model_beside_people(
    trained: str, items_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    human = tmp_path / "human.csv"
    with human.open("w", newline="") as file:
        csv.writer(file).writerows([["accuracy"], *([i / 108] for i in range(108))])
    assert (
        call(["evaluate", trained, "--items", str(items_file), "--human", str(human), "--json"])
        == 0
    )
    content = json.loads(capsys.readouterr().out)
    assert set(content["groups"]) == {*CONDITIONS, "all"}
    assert -1 <= content["notes"]["rank_correlation_with_people"] <= 1
    assert call(["evaluate", trained, "--items", str(items_file)]) == 0
    assert "0.713" in capsys.readouterr().out
    assert call(["evaluate", trained]) == 0
    assert "test/accuracy/3v2s" in capsys.readouterr().out


def test_evaluate_refuses_what_it_cannot_read(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.mat"
    scipy.io.savemat(other, {"taskData": np.zeros((10, 3))})
    assert call(["evaluate", trained, "--items", str(other)]) == 2
    assert "10 × 3" in capsys.readouterr().err
    assert call(["evaluate", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_noise_replaces_the_asked_share_of_givens_by_other_symbols() -> None:
    clean = examples(generate(2000, 3))
    noisy = corrupt(clean, 0.25, np.random.default_rng(0))
    given = (clean.tokens >= 1) & (clean.tokens <= 4)
    changed = clean.tokens != noisy.tokens
    assert not (changed & ~given).any()  # blanks and the probe stay
    assert float(changed[given].float().mean()) == pytest.approx(0.25, abs=0.01)
    assert set(noisy.tokens[changed].tolist()) <= {1, 2, 3, 4}
    assert bool((corrupt(clean, 0.0, np.random.default_rng(0)).tokens == clean.tokens).all())
