"""Text: windows, masks, the order, the n-gram model, and input that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from placecell import analysis
from placecell.errors import InputError
from placecell.tasks.optional import Learned
from placecell.tasks.text import NGram, generate_text
from placecell.tasks.text.config import Config
from placecell.tasks.text.task import Text

SMALL = {"characters": 4000, "window": 12, "n_train": 60, "n_valid": 20, "n_test": 30}


@pytest.fixture(scope="module")
def task() -> Text:
    return Text(Config(**SMALL))


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_window_is_text_at_shuffled_places(task: Text) -> None:
    for split, examples in task.splits().items():
        whole = examples.tokens.scatter(1, examples.read, examples.targets).numpy()
        text = task._texts[split]
        for row in whole[:10]:
            in_order = np.empty_like(row)
            in_order[task.order] = row  # the token at place i is character order[i]
            assert "".join(task.symbols[s] for s in in_order) in text
        hidden = examples.tokens.gather(1, examples.read)
        assert (hidden == len(task.symbols)).all()
        assert int((examples.tokens == len(task.symbols)).sum()) == examples.read.numel()
    assert not np.array_equal(task.order, np.arange(12))


def test_batches_draw_other_masks_of_the_same_windows(task: Text) -> None:
    train, rows = task.splits()["train"], torch.arange(20)
    one, two = (task.batch(train, rows, torch.Generator().manual_seed(s)) for s in (0, 1))
    assert not torch.equal(one.read, two.read)
    whole = [e.tokens.scatter(1, e.read, e.targets) for e in (one, two)]
    assert torch.equal(*whole)


def test_the_truth_is_the_order_up_to_reversal(task: Text) -> None:
    truth, coords = task.truth(), task.places.coords[:, 0].numpy()
    assert np.array_equal(coords, task.order)
    for i, j in np.ndindex(truth.relation.shape):
        assert truth.relation[i, j] == (abs(coords[i] - coords[j]) == 1)
    reversal = truth.symmetries.permutations[1]
    assert np.array_equal(task.order[reversal], 11 - task.order)


def test_the_order_is_found_in_a_table_that_has_it(task: Text) -> None:
    table = np.exp(-((task.order[:, None] - np.arange(12)) ** 2) / 4)  # a bump for each place
    noise = np.random.default_rng(0).normal(size=(12, 2))
    rng, maps = np.random.default_rng(0), np.zeros((1, 12, 12))
    values = task.measure(Learned(table, noise, maps), rng)
    assert values["table/order"] == pytest.approx(1)
    assert values["untrained/order"] < 0.9
    assert task.measure(Learned(None, None, maps), rng) == {}


def test_order_correlation_is_small_by_chance() -> None:
    rng = np.random.default_rng(0)
    by_chance = [
        analysis.order_correlation(rng.normal(size=(24, 64)), np.arange(24)) for _ in range(200)
    ]
    assert np.mean(by_chance) == pytest.approx(0.17, abs=0.03)


def test_generated_text_closes_its_quotation_marks_and_agrees() -> None:
    text = generate_text(20_000, np.random.default_rng(0))
    assert len(text) == 20_000
    for sentence in text.split(". ")[:-1]:
        assert sentence.count('"') % 2 == 0 or sentence.endswith('"')
        if sentence.startswith("when "):
            assert sentence.split()[4].rstrip(",") == sentence.split()[-1]
    assert text == generate_text(20_000, np.random.default_rng(0))


def test_ngram_is_the_count_worked_out_by_hand() -> None:
    """In a b a b a c: after `a` come b, b, c; before `b` comes a always."""
    model = NGram(np.array([0, 1, 0, 1, 0, 2]), 3, 2)
    unigram = np.array([4, 3, 2]) / 9  # counts plus one
    after_a = (np.array([0, 2, 1]) + 2 * unigram) / 5  # three seen, two different (Witten–Bell)
    before_b = (np.array([2, 0, 0]) + 1 * unigram) / 3
    np.testing.assert_allclose(model._given(0, (0,)), after_a)
    np.testing.assert_allclose(model._given(1, (1,)), before_b)
    both = after_a * before_b / unigram
    found = model.predict(np.array([[0, 9, 1]]), np.array([[1]]))
    np.testing.assert_allclose(found[0, 0], both / both.sum())


def test_ngram_sees_no_masked_character(task: Text) -> None:
    model = NGram(task._coded["train"], task.n_outputs, 3)
    windows = task._windows["test"][:5]
    masked = np.array([[2, 3, 7]] * 5)
    changed = windows.copy()
    np.put_along_axis(changed, masked, 0, axis=1)
    np.testing.assert_array_equal(model.predict(windows, masked), model.predict(changed, masked))


def test_baselines_beat_frequencies(task: Text) -> None:
    scores = task.baselines()
    assert next(iter(scores)) == "frequencies"
    best = list(scores)[1]
    assert "-gram of both sides" in best
    assert scores[best]["test/cross_entropy"] < scores["frequencies"]["test/cross_entropy"]


def test_a_text_of_ones_own(tmp_path: Path) -> None:
    text = generate_text(5000, np.random.default_rng(1))
    path = written(tmp_path / "mine.txt", text)
    task = Text(Config(text=path, window=12, n_train=100, n_valid=20, n_test=20))
    assert task.config.contents is not None
    assert task._texts["train"] == text[:4000]
    assert len(task.splits()["test"]) == 20
    written(tmp_path / "mine.txt", text + "more")
    with pytest.raises(InputError, match="has changed"):
        Text(task.config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("too short a text", "train part has 12 characters, shorter than a window of 24"),
        ("ab" * 200 + "z", "test part has the character 'z', which its training part"),
        ("a" * 500, "one character only"),
    ],
)
def test_texts_that_cannot_be_used(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        Text(Config(text=written(tmp_path / "bad.txt", text)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt: cannot be read"):
        Text(Config(text=str(tmp_path / "nowhere.txt")))
    (tmp_path / "bytes.txt").write_bytes(b"abc\xff\xfe")
    with pytest.raises(InputError, match="not a text in UTF-8 \\(byte 4\\)"):
        Text(Config(text=str(tmp_path / "bytes.txt")))
    with pytest.raises(InputError, match="mask must be"):
        Config(mask=1.0)
