"""Generated puzzles: balanced, right, reproducible; splits without leaks."""

from __future__ import annotations

import itertools

import ls_reference as plain
import numpy as np
import pytest

from placecell.errors import InputError
from placecell.tasks.latin_square import CONDITIONS, encode, generate, nearest, split


def pairs(cells: list[int]) -> set[tuple[int, int]]:
    return {(i, s) for i, s in enumerate(cells) if 1 <= s <= 4}


def least_name(cells: list[int]) -> tuple[int, ...]:
    """The smallest of all 24 namings of a puzzle; the probe, 5, keeps its mark."""
    return min(tuple((0, *n, 5)[s] for s in cells) for n in itertools.permutations(range(1, 5)))


def counts(values, n: int) -> list[int]:
    return np.bincount(values, minlength=n).tolist()


def differ(values) -> int:
    return max(values) - min(values)


@pytest.fixture(scope="module")
def drawn():
    return generate(2400, 7)


def test_the_reference_agrees(drawn):
    drawn_kinds = zip(
        drawn.vectors.tolist(), drawn.steps.tolist(), itertools.repeat(True), drawn.answer.tolist()
    )
    givens = [[0 if s == 5 else s for s in c] for c in drawn.cells().tolist()]
    assert [
        plain.classify(c, p) for c, p in zip(givens, drawn.probe.tolist(), strict=True)
    ] == list(drawn_kinds)


def test_cells_mark_the_probe(drawn):
    cells = drawn.cells()
    assert ((cells == 5).sum(axis=1) == 1).all()
    assert (cells.argmax(axis=1) == drawn.probe).all()
    assert (encode(np.where(cells == 5, 0, cells)) == drawn.givens).all()


def test_balance(drawn):
    assert counts(drawn.condition, 6) == [400] * 6
    assert counts(4 * drawn.condition.astype(int) + drawn.answer - 1, 24) == [100] * 24
    assert differ(counts(drawn.probe, 16)) <= 6  # at most one for each condition
    number = np.bitwise_count(drawn.givens)
    for c, name in enumerate(CONDITIONS):
        shares = counts(number[drawn.condition == c], 12)
        assert shares[:4] == [0] * 4
        possible = shares[5:] if name == "1v2s" else shares[4:]  # no 1v2s puzzle has four givens
        assert differ(possible) <= 1
        assert differ(counts(drawn.probe[drawn.condition == c], 16)) <= 1
        for k in range(5, 12):
            assert differ(counts(drawn.probe[(drawn.condition == c) & (number == k)], 16)) <= 1


@pytest.mark.parametrize("n", [0, 1, 7, 25, 59])
@pytest.mark.parametrize(
    "conditions", [CONDITIONS, CONDITIONS[::2], CONDITIONS[3:4], CONDITIONS[:5]]
)
def test_balance_up_to_rounding(n, conditions):
    drawn = generate(n, 0, conditions=conditions)
    index = [CONDITIONS.index(name) for name in conditions]
    assert len(drawn) == n
    by_condition = [counts(drawn.condition, 6)[i] for i in index]
    assert sum(by_condition) == n
    assert differ(by_condition) <= 1
    assert differ(counts(drawn.answer, 5)[1:]) <= 1
    assert all(differ(counts(drawn.answer[drawn.condition == i], 5)[1:]) <= 1 for i in index)


def test_no_duplicates_after_renaming(drawn):
    names = {least_name(c) for c in drawn.cells().tolist()}
    assert len(names) == len(drawn) == len(np.unique(drawn.keys()))


def test_reproducible(drawn):
    again = generate(2400, np.random.default_rng(7))
    assert (again.cells() == drawn.cells()).all()
    assert (again.answer == drawn.answer).all()
    assert (generate(2400, 8).cells() != drawn.cells()).any()


def test_the_draw_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    generate(24, 0)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_all_symbols_and_cells_are_used_evenly(drawn):
    cells = drawn.cells()
    for s in range(1, 5):
        assert abs((cells == s).sum() / ((cells >= 1) & (cells <= 4)).sum() - 0.25) < 0.01
    given = ((cells >= 1) & (cells <= 4)).mean(axis=0)
    assert given.max() - given.min() < 0.05


def test_take(drawn):
    some = drawn.take(np.array([5, 3]))
    assert (some.cells() == drawn.cells()[[5, 3]]).all()
    assert len(drawn.take(drawn.condition == 2)) == 400


def test_splits_do_not_leak():
    sets = split({"train": 1200, "valid": 300, "test": 601}, 3)
    assert {name: len(s) for name, s in sets.items()} == {"train": 1200, "valid": 300, "test": 601}
    names = [least_name(c) for s in sets.values() for c in s.cells().tolist()]
    assert len(set(names)) == 2101
    assert all(
        differ(counts(s.condition, 6)) <= 1 and differ(counts(s.answer, 5)[1:]) <= 1
        for s in sets.values()
    )


def test_the_training_set_does_not_depend_on_later_sets():
    a = split({"train": 120, "test": 60}, 3, min_distance=0.5)
    b = split({"train": 120, "other": 10}, 3)
    assert (a["train"].cells() == b["train"].cells()).all()


def test_rare_kinds_are_kept_for_later_sets():
    # Only 36 × 16 puzzles of 1v2s have five givens.
    sets = split({"train": 280, "test": 140}, 0, conditions=["1v2s"], givens=(5, 5))
    assert (np.bitwise_count(sets["test"].givens) == 5).all()
    with pytest.raises(
        InputError, match=r"'train': 300 puzzles of 1v2s wanted, at most 288 can be dealt"
    ):
        split({"train": 300}, 0, conditions=["1v2s"], givens=(5, 5))


def test_min_distance_holds_by_brute_force():
    sets = split({"train": 300, "valid": 60, "test": 60}, 5, min_distance=0.6)
    train = [pairs(c) for c in sets["train"].cells().tolist()]
    for name in ("valid", "test"):
        later = [pairs(c) for c in sets[name].cells().tolist()]
        distances = [min(1 - len(a & b) / len(a | b) for b in train) for a in later]
        assert min(distances) >= 0.6 - 1e-9
        assert np.allclose(distances, nearest(sets[name].givens, sets["train"].givens))
        assert counts(sets[name].condition, 6) == [10] * 6
        assert counts(sets[name].answer, 5)[1:] == [15] * 4
    assert (
        min(nearest(generate(60, 1).givens, sets["train"].givens)) < 0.6
    )  # it would not hold by itself


def test_nearest_of_none_and_of_empty_boards():
    empty = np.zeros(2, np.uint64)
    assert nearest(empty, empty[:0]).tolist() == [1, 1]
    assert nearest(empty, empty).tolist() == [0, 0]


def test_a_distance_out_of_reach_is_an_error():
    with pytest.raises(
        InputError, match=r"'test': only \d+ of 60 puzzles were found at a distance of 0.9"
    ):
        split({"train": 600, "test": 60}, 0, min_distance=0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"conditions": ["1v3s"]}, "unknown condition '1v3s'"),
        ({"conditions": []}, "at least one"),
        ({"conditions": ["1v1s", "1v1s"]}, "must be different"),
        ({"givens": (8, 4)}, "givens must be a range"),
        ({"givens": (12, 15), "conditions": ["3v2s"]}, "30 puzzles of 3v2s wanted, at most 0"),
        ({"min_distance": 1.5}, "min_distance must be from 0 to 1"),
        ({"sizes": {"train": -1}}, "the size of 'train' must not be negative"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        split(arguments.pop("sizes", {"train": 30}), 0, **arguments)
