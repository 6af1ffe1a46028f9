import numpy as np
import pytest

from placecell.analysis import grid_symmetries
from placecell.analysis.symmetry import distinct, first_best, group_for, match, shuffles
from placecell.errors import InputError


def row_and_column_relation(rows, cols):
    r, c = np.divmod(np.arange(rows * cols), cols)
    return ((r[:, None] == r) | (c[:, None] == c)) & ~np.eye(rows * cols, dtype=bool)


@pytest.mark.parametrize(
    ("rows", "cols", "size"), [(4, 4, 1152), (2, 3, 12), (3, 2, 12), (2, 2, 8), (1, 3, 6)]
)
def test_a_grid_has_all_its_symmetries_once(rows, cols, size):
    group = grid_symmetries(rows, cols)
    members = {tuple(p) for p in group.permutations.tolist()}
    assert len(members) == len(group.permutations) == len(group.words) == size
    assert group.permutations[0].tolist() == list(range(rows * cols))
    assert group.words.count("identity") == 1


def test_the_grid_s_symmetries_are_a_group():
    group = grid_symmetries(3, 3)
    members = {tuple(p) for p in group.permutations.tolist()}
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = group.permutations[rng.integers(len(group.permutations), size=2)]
        assert tuple(a[b]) in members
        assert tuple(np.argsort(a)) in members


def test_exactly_the_grid_s_symmetries_keep_the_row_and_column_relation():
    from itertools import permutations

    relation = row_and_column_relation(2, 3)
    keeping = {p for p in permutations(range(6)) if (relation[np.ix_(p, p)] == relation).all()}
    assert keeping == {tuple(p) for p in grid_symmetries(2, 3).permutations.tolist()}
    relation = row_and_column_relation(4, 4)
    for p in grid_symmetries(4, 4).permutations[::37]:
        assert (relation[np.ix_(p, p)] == relation).all()


def test_words_name_what_was_done():
    group = grid_symmetries(3, 3)
    words = {tuple(p): w for p, w in zip(group.permutations.tolist(), group.words, strict=True)}
    grid = np.arange(9).reshape(3, 3)
    assert words[tuple(grid.T.ravel())] == "transposed"
    assert words[tuple(grid[[2, 1, 0]].ravel())] == "rows reordered"
    assert words[tuple(grid[:, [1, 2, 0]].ravel())] == "columns reordered"
    assert (
        words[tuple(grid[[1, 0, 2]][:, [0, 2, 1]].T.ravel())]
        == "transposed, rows reordered, columns reordered"
    )


def test_a_reference_s_own_symmetries_are_searched_once():
    group = grid_symmetries(4, 4)
    coords = np.stack(np.divmod(np.arange(16), 4), axis=1)
    distances = np.linalg.norm(coords[:, None] - coords[None], axis=-1)
    assert (
        len(distinct(distances[None], group)) == 144
    )  # 1152 / (2 flips of rows × 2 of columns × transpose)
    assert distinct(row_and_column_relation(4, 4)[None].astype(float), group).tolist() == [0]


def test_match_equals_a_plain_loop():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3, 6, 6))
    group, orders = grid_symmetries(2, 3), shuffles(6, 20, rng)

    def slow(x):
        products = [(x * y[:, p][:, :, p]).sum(axis=(1, 2)) for p in group.permutations]
        return max(zip(products, group.words, strict=True), key=lambda pair: pair[0].mean())

    values, alignment, null = match(x, y, group, orders)
    assert values == pytest.approx(slow(x)[0])
    assert alignment.words == slow(x)[1]
    assert null == pytest.approx(np.array([slow(x[:, o][:, :, o])[0] for o in orders]))


def test_ties_go_to_the_first():
    assert first_best(np.array([[1.0, 3.0, 3.0 + 1e-13], [2.0, 0.0, 1.0]])).tolist() == [1, 0]


def test_bad_input():
    with pytest.raises(InputError, match=r"at least one row.*0 × 3"):
        grid_symmetries(0, 3)
    with pytest.raises(InputError, match="found 1036800 for 6 × 6"):
        grid_symmetries(6, 6)
    with pytest.raises(InputError, match="expected 9 tokens, found 6"):
        group_for(9, grid_symmetries(2, 3))
    with pytest.raises(InputError, match="found -1"):
        shuffles(4, -1, None)
