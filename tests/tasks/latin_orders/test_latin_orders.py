"""Latin squares that change size: where puzzles stand, what is absent, and orders out of range."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from placecell.config import EncodingConfig, ModelConfig
from placecell.errors import InputError
from placecell.model import build_model
from placecell.tasks.latin_orders.config import Config
from placecell.tasks.latin_orders.task import NEW, PROBE, SIDE, LatinOrders
from placecell.tasks.latin_square import solve_order

SMALL = {"n_train": 40, "n_valid": 12, "n_test": 40}


def boards(examples) -> list[tuple[np.ndarray, int, int, int]]:
    """Every sample as (cells k k, probe in it, answer, its first row and column)."""
    found = []
    for tokens, present, read, target in zip(
        examples.tokens, examples.present, examples.read, examples.targets, strict=True
    ):
        rows, columns = np.nonzero(present.view(SIDE, SIDE).numpy())
        k = rows.max() - rows.min() + 1
        assert columns.max() - columns.min() + 1 == k
        assert len(rows) == k * k, "a whole square"
        top, left = int(rows.min()), int(columns.min())
        grid = tokens.view(SIDE, SIDE).numpy()[top : top + k, left : left + k]
        row, column = divmod(int(read), SIDE)
        found.append((grid, (row - top) * k + column - left, int(target) + 1, (top, left)))
    return found


def test_every_puzzle_has_the_one_answer_that_is_asked_for() -> None:
    task = LatinOrders(Config(train_orders=(3, 4), test_orders=(3, 4, 5), **SMALL))
    for split, examples in task.splits().items():
        orders = set()
        for (grid, probe, answer, corner), group in zip(
            boards(examples), examples.group.tolist(), strict=True
        ):
            assert corner == (0, 0)
            assert task.groups[group] == f"order {len(grid)}"
            orders.add(len(grid))
            cells = grid.flatten().copy()
            assert cells[probe] == PROBE
            cells[probe] = 0
            possible = solve_order(cells, probe)
            assert np.flatnonzero(possible).tolist() == [answer - 1]
        assert orders == ({3, 4, 5} if split == "test" else {3, 4})
        assert not examples.tokens[~examples.present].any()


def test_the_test_puzzles_do_not_hang_on_what_is_trained() -> None:
    """So that a run can be scored on the same puzzles after tuning on another order."""
    one, two = (
        LatinOrders(Config(train_orders=orders, test_orders=(3, 5), **SMALL)).splits()["test"]
        for orders in ((3, 4), (5,))
    )
    same = {tuple(row) for row in one.tokens.tolist()} == {tuple(r) for r in two.tokens.tolist()}
    assert same


def test_along_the_diagonal_and_beside_it() -> None:
    task = LatinOrders(
        Config(placement="diagonal", train_orders=(3, 4), test_orders=(3, 4), **SMALL)
    )
    assert task.groups == ("order 3", "order 4", NEW)
    seen = np.zeros(SIDE**2, bool)
    for split in ("train", "valid"):
        examples = task.splits()[split]
        seen |= examples.present.any(0).numpy()
        assert all(top == left for *_, (top, left) in boards(examples))
    test = task.splits()["test"]
    new = test.group == task.groups.index(NEW)
    assert int(new.sum()) == 20
    assert (test.present[new].numpy() & ~seen).any(1).all(), "each has cells that no one trained"
    rows, columns = seen.reshape(SIDE, SIDE).any(1), seen.reshape(SIDE, SIDE).any(0)
    assert rows.all()
    assert columns.all(), "but every row and every column was trained"


def test_absent_cells_change_nothing() -> None:
    task = LatinOrders(Config(**SMALL))
    model = build_model(
        task.tokens,
        task.places,
        task.n_outputs,
        ModelConfig(width=24, depth=2),
        EncodingConfig("learnable", sigma=0.5),
        weights=torch.Generator().manual_seed(0),
        pe=torch.Generator().manual_seed(1),
    )
    examples = task.splits()["test"]
    before = model(examples.inputs(task.positions)).outputs
    examples.tokens[~examples.present] = 5
    after = model(examples.inputs(task.positions)).outputs
    torch.testing.assert_close(before, after, rtol=0, atol=1e-6)


def test_symmetries_are_those_of_the_rows_in_every_puzzle() -> None:
    corner = LatinOrders(Config(**SMALL)).truth().symmetries
    assert len(corner.words) == 2 * 6 * 6
    assert len({tuple(order) for order in corner.permutations.tolist()}) == 72
    diagonal = LatinOrders(Config(placement="diagonal", **SMALL)).truth().symmetries
    assert diagonal.words == ("identity", "transposed")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"train_orders": (3, 7)}, "train_orders: an order is 3 to 6, found 7"),
        ({"test_orders": (2,)}, "test_orders: an order is 3 to 6, found 2"),
        ({"train_orders": (3, 3)}, "each order once, found 3"),
        ({"min_givens": 0.9, "max_givens": 0.5}, "must not be above max_givens"),
        ({"train_orders": (3,), "n_train": 10**5}, "different puzzles of order 3 were found"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LatinOrders(Config(**{"test_orders": (3,)} | settings)).splits()
