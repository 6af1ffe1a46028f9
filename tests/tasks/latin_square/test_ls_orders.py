"""Squares and puzzles of other orders, against counting and against order 4's boards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placecell.errors import InputError
from placecell.tasks.latin_square import (
    decode,
    generate_order,
    random_square,
    solve,
    solve_order,
    squares,
)


def all_squares(order: int) -> list[tuple[int, ...]]:
    """Every Latin square, by trying all ways to stack permutations."""
    rows = list(itertools.permutations(range(1, order + 1)))
    partial = [()]
    for _ in range(order):
        partial = [
            (*square, row)
            for square in partial
            for row in rows
            if all(len({*column}) == len(column) for column in zip(*square, row, strict=True))
        ]
    return [tuple(itertools.chain(*square)) for square in partial]


@pytest.mark.parametrize("order", range(2, 9))
def test_random_squares_are_latin(order):
    rng = np.random.default_rng(0)
    for _ in range(5):
        grid = random_square(order, rng).reshape(order, order)
        for lines in (grid, grid.T):
            assert (np.sort(lines, axis=1) == np.arange(1, order + 1)).all()


@pytest.mark.parametrize(("order", "number"), [(2, 2), (3, 12), (4, 576)])
def test_every_square_comes(order, number):
    rng = np.random.default_rng(1)
    drawn = {tuple(random_square(order, rng).tolist()) for _ in range(12 * number)}
    known = set(all_squares(order))
    assert len(known) == number
    assert drawn == known


def test_order_three_against_all_squares():
    known = all_squares(3)
    rng = np.random.default_rng(2)
    for _ in range(300):
        square = np.array(known[rng.integers(12)])
        cells = np.where(rng.random(9) < rng.random(), square, 0)
        probe = int(rng.integers(9))
        cells[probe] = 0
        agree = [s for s in known if all(c in (0, t) for c, t in zip(cells, s, strict=True))]
        assert set(np.flatnonzero(solve_order(cells, probe)) + 1) == {s[probe] for s in agree}


def test_order_four_agrees_with_the_boards():
    rng = np.random.default_rng(3)
    cells = decode(squares()[rng.integers(576, size=300)])
    cells[rng.random(cells.shape) < 0.6] = 0
    cells[:, 9] = 0
    assert (np.array([solve_order(c, 9) for c in cells]) == solve(cells, 9)).all()


@pytest.mark.parametrize("order", [3, 4, 5, 6])
def test_puzzles(order):
    n = 4 * order**2 + 1
    drawn = generate_order(n, order, 5, givens=(0.3, 0.8))
    assert len(drawn) == n
    for cells, probe, answer in zip(drawn.givens, drawn.probe.tolist(), drawn.answer, strict=True):
        assert cells[probe] == 0
        assert (np.flatnonzero(solve_order(cells, probe)) + 1).tolist() == [answer]
    for values, size in ((drawn.answer - 1, order), (drawn.probe, order**2)):
        counts = np.bincount(values, minlength=size)
        assert counts.max() - counts.min() <= 1
    cells = drawn.cells()
    assert ((cells == order + 1).sum(axis=1) == 1).all()
    if order < 5:
        namings = [(0, *p, order + 1) for p in itertools.permutations(range(1, order + 1))]
        assert len({min(tuple(p[s] for s in c) for p in namings) for c in cells.tolist()}) == n
    assert (
        generate_order(n, order, np.random.default_rng(5), givens=(0.3, 0.8)).cells() == cells
    ).all()
    assert (generate_order(n, order, 6).cells() != cells).any()


def test_numbers_of_givens_follow_the_wish():
    few = (generate_order(20, 6, 0, givens=(0.2, 0.3)).givens > 0).mean()
    many = (generate_order(20, 6, 0, givens=(0.8, 0.9)).givens > 0).mean()
    assert few < 0.45 < 0.75 < many


def test_bad_input():
    rng = np.random.default_rng(0)
    for call, message in [
        (lambda: random_square(1, rng), "from 2 to 15, found 1"),
        (lambda: solve_order([0] * 8, 0), r"n × n integers"),
        (lambda: solve_order(np.zeros(9), 0), r"n × n integers, found float64"),
        (lambda: solve_order([4, *[0] * 8], 1), "cell 1 holds 4; a symbol is 1 to 3"),
        (lambda: solve_order([1, *[0] * 8], 0), "a blank cell from 0 to 8, found 0"),
        (lambda: solve_order([0] * 9, 9), "a blank cell from 0 to 8, found 9"),
        (lambda: solve_order([1, 1, *[0] * 7], 8), "no Latin square agrees"),
        (lambda: solve_order([0, 1, 2, 3, *[0] * 5], 8), "no Latin square agrees"),
        (lambda: generate_order(5, 3, 0, givens=(0.9, 0.1)), "two shares from 0 to 1"),
        (lambda: generate_order(-1, 3, 0), "must not be negative"),
        (lambda: generate_order(50, 2, 0), "different puzzles of order 2 were found"),
    ]:
        with pytest.raises(InputError, match=message):
            call()
