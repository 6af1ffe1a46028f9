"""The order recovered from a table, against tables whose order is known."""

from __future__ import annotations

import numpy as np
import pytest

from placecell import analysis
from placecell.errors import InputError


def bumps(order: np.ndarray, width: float) -> np.ndarray:
    """A table of place cells along a line."""
    n = len(order)
    return np.exp(-((order[:, None] - np.arange(n)) ** 2) / (2 * width**2))


def test_bumps_along_a_line_are_put_in_order() -> None:
    order = np.random.default_rng(0).permutation(30)
    table = bumps(order, 2.0)
    recovered = np.argsort(np.argsort(analysis.recover_order(table)))
    assert np.array_equal(recovered, order) or np.array_equal(29 - recovered, order)
    assert analysis.order_correlation(table, 29 - order) == pytest.approx(1)
    assert analysis.order_correlation(table, np.random.default_rng(1).permutation(30)) < 0.5


@pytest.mark.parametrize(("width", "least"), [(1.0, 0.9), (2.0, 0.99), (3.0, 0.99)])
def test_bumps_at_random_angles_are_put_in_order(width: float, least: float) -> None:
    values = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        order = rng.permutation(30)
        table = bumps(order, width) @ rng.normal(size=(30, 64))
        values.append(analysis.order_correlation(table, order))
    assert np.mean(values) > least


def test_rows_must_be_three_and_fit_the_order() -> None:
    with pytest.raises(InputError, match="at least 3 rows"):
        analysis.recover_order(np.eye(2))
    with pytest.raises(InputError, match="one position for each of 4 rows"):
        analysis.order_correlation(np.eye(4), [0, 1, 2])


def test_turns_and_flips_of_a_grid_keep_its_distances() -> None:
    for rows, cols, count in ((4, 4, 8), (2, 3, 4)):
        group = analysis.rectangle_symmetries(rows, cols)
        coords = np.array(list(np.ndindex(rows, cols)), dtype=float)
        apart = np.linalg.norm(coords[:, None] - coords, axis=-1)
        assert len({tuple(order) for order in group.permutations.tolist()}) == count
        for order in group.permutations:
            np.testing.assert_allclose(apart[np.ix_(order, order)], apart)
        cells = np.random.default_rng(0).permutation(rows * cols)
        moved = analysis.renumbered(group, cells)
        own = apart[np.ix_(cells, cells)]
        for order in moved.permutations:
            np.testing.assert_allclose(own[np.ix_(order, order)], own)
        assert np.array_equal(moved.permutations[0], np.arange(rows * cols))
    with pytest.raises(InputError, match="at least one row"):
        analysis.rectangle_symmetries(0, 3)
