"""Boards, solver and classifier against the plain reference, and under the symmetries of the
task."""

from __future__ import annotations

import itertools

import ls_reference as plain
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placecell.errors import InputError
from placecell.tasks.latin_square import (
    boards,
    canonical,
    check_puzzle,
    classify,
    decode,
    encode,
    solve,
    squares,
)


def random_puzzles(n: int, seed: int, few: float = 0.1, many: float = 0.8):
    """Cells (n, 16) of random squares with random blanks, and blank probes (n,)."""
    rng = np.random.default_rng(seed)
    cells = decode(squares()[rng.integers(576, size=n)])
    cells[rng.random(cells.shape) > rng.uniform(few, many, (n, 1))] = 0
    probe = rng.integers(16, size=n)
    cells[np.arange(n), probe] = 0
    return cells, probe


@st.composite
def puzzles(draw):
    square = decode(squares()[draw(st.integers(0, 575))]).tolist()
    kept = draw(st.lists(st.booleans(), min_size=16, max_size=16))
    probe = draw(st.integers(0, 15))
    return [
        s if k and i != probe else 0 for i, (s, k) in enumerate(zip(square, kept, strict=True))
    ], probe


def as_tuple(classes) -> tuple[int, int, bool, int]:
    return int(classes.vectors), int(classes.steps), bool(classes.unique), int(classes.answer)


def test_there_are_576_squares_and_all_are_latin():
    grids = decode(squares()).reshape(-1, 4, 4)
    assert len({g.tobytes() for g in grids}) == 576
    for lines in (grids, grids.transpose(0, 2, 1)):
        assert (np.sort(lines, axis=-1) == [1, 2, 3, 4]).all()
    assert not squares().flags.writeable


def test_bit_layout():
    cells = np.zeros(16, int)
    cells[6] = 3
    assert encode(cells) == 1 << 4 * 6 + 2
    assert (decode(encode(cells)) == cells).all()


@given(st.lists(st.integers(0, 4), min_size=48, max_size=48))
def test_decode_undoes_encode_in_every_shape(symbols):
    cells = np.array(symbols)
    for shape in ((3, 16), (3, 1, 16), (3, 4, 4)):
        decoded = decode(encode(cells.reshape(shape)))
        assert decoded.dtype == np.uint8
        assert (decoded.reshape(-1) == cells).all()


def test_bulk_agrees_with_the_reference():
    cells, probe = random_puzzles(6000, seed=1)
    classes = classify(cells, probe)
    possible = solve(encode(cells), probe)
    expected = [plain.classify(c, p) for c, p in zip(cells.tolist(), probe.tolist(), strict=True)]
    assert list(zip(*(a.tolist() for a in classes), strict=True)) == expected
    for c, p, s in zip(cells[:1500].tolist(), probe.tolist(), possible, strict=False):
        assert plain.solve(c, p) == set(np.flatnonzero(s) + 1)
    # The sample has every case: all six conditions, answers that are not unique, answers that take
    # more.
    assert {e[:3] for e in expected} == {
        *((v, s, True) for v in (1, 2, 3) for s in (1, 2)),
        (0, 0, False),
        (0, 0, True),
    }


@settings(max_examples=200, deadline=None)
@given(puzzles())
def test_any_puzzle_agrees_with_the_reference(puzzle):
    cells, probe = puzzle
    assert as_tuple(classify(cells, probe)) == plain.classify(cells, probe)
    assert set(np.flatnonzero(solve(cells, probe)) + 1) == plain.solve(cells, probe)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=15, max_size=15).map(lambda rest: [0, *rest]))
def test_arbitrary_cells_are_solved_or_refused(cells):
    lines = [
        [cells[i] for i in line(4 * k + k)]
        for k in range(4)
        for line in (plain.row_of, plain.column_of)
    ]
    repeated = any(line.count(s) > 1 for line in lines for s in (1, 2, 3, 4))
    if repeated:
        with pytest.raises(InputError, match="is repeated in"):
            classify(cells, 0)
    elif not plain.completable(cells):
        with pytest.raises(InputError, match="no Latin square agrees"):
            classify(cells, 0)
    else:
        assert as_tuple(classify(cells, 0)) == plain.classify(cells, 0)


@pytest.mark.parametrize("seed", range(5))
def test_symmetries_leave_the_class_unchanged(seed):
    cells, probe = random_puzzles(2000, seed)
    classes = classify(cells, probe)
    rng = np.random.default_rng(seed)
    grid, where = cells.reshape(-1, 4, 4), np.zeros((2000, 4, 4), bool)
    where.reshape(-1, 16)[np.arange(2000), probe] = True
    rows, columns, names = (
        rng.permutation(4),
        rng.permutation(4),
        np.array([0, *(rng.permutation(4) + 1)]),
    )
    for move in (lambda g: g.transpose(0, 2, 1), lambda g: g[:, rows], lambda g: g[:, :, columns]):
        moved = classify(move(grid), move(where).reshape(-1, 16).argmax(1))
        assert all((a == b).all() for a, b in zip(classes, moved, strict=True))
    renamed = classify(names[cells], probe)
    assert (renamed.vectors == classes.vectors).all()
    assert (renamed.steps == classes.steps).all()
    assert (renamed.answer == names[classes.answer]).all()
    assert (canonical(encode(names[cells])) == canonical(encode(cells))).all()


def test_canonical_form_is_equal_only_for_renamings():
    cells, _ = random_puzzles(300, seed=3)
    names = list(itertools.permutations(range(1, 5)))
    orbits = [min(tuple((0, *n)[s] for s in c) for n in names) for c in cells.tolist()]
    keys = canonical(encode(cells))
    assert ((keys[:, None] == keys) == [[a == b for b in orbits] for a in orbits]).all()


def test_shapes_and_chunks(monkeypatch):
    cells, probe = random_puzzles(60, seed=4)
    flat = classify(cells, probe)
    grid = classify(cells.reshape(3, 20, 4, 4), probe.reshape(3, 20))
    assert (grid.vectors == flat.vectors.reshape(3, 20)).all()
    blank = classify(np.uint64(0), np.arange(16))  # one board, every probe
    assert blank.unique.shape == (16,)
    assert not blank.unique.any()
    assert solve(cells[:0], probe[:0]).shape == (0, 4)
    monkeypatch.setattr(boards, "CHUNK", 7)
    assert all((a == b).all() for a, b in zip(classify(encode(cells), probe), flat, strict=True))
    bad = np.zeros((3, 20, 16), int)
    bad[2, 1, [0, 8]] = 2
    with pytest.raises(InputError, match=r"^row 2, 1: symbol 2 is repeated in column 1"):
        solve(bad, 5)


def puzzle(text: str) -> list[int]:
    return [{".": 0, "?": 5}.get(c) if c in ".?" else int(c) for c in text.replace(" ", "")]


def test_worked_examples():
    for text, expected in {
        "?123 .... .... ....": (1, 1, 4),
        "?12. 3... .... ....": (2, 1, 4),
        "?... .4.. ..4. ....": (0, 0, 0),
        "?... .4.. ..4. ...4": (3, 1, 4),
        "?12. ..43 ..3. ..1.": (2, 2, 3),
        "?12. .... ...1 ...4": (2, 2, 4),  # the last cell of the row is 3
        "?12. ...1 ...2 ...4": (1, 2, 4),
    }.items():
        cells = np.array(puzzle(text))
        classes = classify(np.where(cells == 5, 0, cells), int(np.argmax(cells == 5)))
        assert (int(classes.vectors), int(classes.steps), int(classes.answer)) == expected, text


def test_check_puzzle_accepts():
    board, probe, answer = check_puzzle(puzzle("?123 .... .... ...."))
    assert (board, probe, answer) == (int(encode(puzzle(".123 .... .... ...."))), 0, 4)
    assert check_puzzle(np.array(puzzle(".... 12?4 .... ....")).reshape(4, 4))[1:] == (6, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1123 ?... .... ....", "row 7: symbol 1 is repeated in row 1 of the grid"),
        ("1?23 .... 1... ....", "row 7: symbol 1 is repeated in column 1 of the grid"),
        ("?623 .... .... ....", "row 7: cell 2 holds 6"),
        (".123 .... .... ....", "row 7: a puzzle has one probe, marked 5; found none"),
        ("?12? .... .... ....", r"row 7: a puzzle has one probe, marked 5; found 2 \(cells 1, 4\)"),
        ("?12. .... .... ....", "row 7: the answer is not unique: 3, 4 are possible"),
        ("?123 4... .... ....", "row 7: no Latin square agrees with these givens"),
        ("?123 .... ....", "row 7: a puzzle has 16 cells, found 12"),
    ],
)
def test_check_puzzle_refuses(text, message):
    with pytest.raises(InputError, match=f"^{message}"):
        check_puzzle(puzzle(text), row=7)


def test_bad_arrays():
    good = np.zeros((3, 16), int)
    for cells, probe, message in [
        (np.where(np.arange(48).reshape(3, 16) == 20, 5, good), 0, "row 1: cell 5 holds 5"),
        (
            np.where(np.arange(48).reshape(3, 16) == 32, 1, good),
            0,
            "row 2: the probe, cell 1, is itself given",
        ),
        (good.astype(float), 0, "must be integers, found float64"),
        (good[:, :15], 0, "last axis of 16"),
        (good, 16, "from 0 to 15"),
        (good, 0.5, "from 0 to 15"),
        (np.array([3], np.uint64), 1, "row 0: cell 1 holds more than one symbol"),
    ]:
        with pytest.raises(InputError, match=message):
            classify(cells, probe)
    with pytest.raises(InputError, match="row 1: cell 3 holds more than one symbol"):
        decode(np.array([0, 0x300], np.uint64))
