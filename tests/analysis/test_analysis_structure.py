"""Structure of tables: calibrated under the null, found where it is, and where rows end."""

from __future__ import annotations

import numpy as np
import pytest

from placecell.analysis.structure import (
    first_untrained_row,
    guess_grid,
    looks_like_grid,
    spectrum,
    structure,
)
from placecell.errors import InputError


def null_table(rng: np.random.Generator, i: int) -> np.ndarray:
    """A table as libraries draw them: normal or uniform, many sizes and scales."""
    n, d = int(rng.integers(16, 200)), int(rng.integers(8, 128))
    drawn = rng.normal(size=(n, d)) if i % 2 else rng.uniform(-1, 1, size=(n, d))
    return drawn * 10 ** rng.uniform(-3, 0.5)


@pytest.mark.slow
def test_random_tables_are_called_untrained() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for i in range(300):
        table = null_table(rng, i)
        found = structure(table, rng=rng, permutations=199)
        cut = first_untrained_row(table)
        wrong += found.structured or 0 < cut < len(table)
    assert wrong <= 3


@pytest.mark.slow
def test_p_is_calibrated() -> None:
    rng = np.random.default_rng(1)
    low = structured = 0
    for i in range(1000):
        grid = (6, 8) if i % 3 == 0 else None
        table = rng.normal(size=(48, 24)) if grid else null_table(rng, i)[:64, :32]
        found = structure(table, rng=rng, grid=grid, permutations=199)
        low, structured = low + (found.p < 0.05), structured + found.structured
    assert 0.03 <= low / 1000 <= 0.07
    assert structured == 0


def test_walks_and_waves_have_structure() -> None:
    rng = np.random.default_rng(2)
    walk = np.cumsum(rng.normal(size=(128, 32)), axis=0)
    found = structure(walk, rng=rng)
    assert found.structured
    assert found.p < 0.01
    assert found.order > 0.9
    assert found.position_r2 > 0.8
    assert found.effective_dimension < 8
    noisy = walk / walk.std() * 0.5 + rng.normal(size=walk.shape)
    assert structure(noisy, rng=rng).structured
    shuffled = structure(rng.permutation(walk), rng=rng)
    assert shuffled.effect < 0.1
    assert shuffled.rank_excess > 1.5  # few directions, though in no order


def test_a_grid_is_told_from_a_sequence() -> None:
    rng = np.random.default_rng(3)
    where = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), -1).reshape(64, 2)
    waves = np.cos(where @ rng.normal(size=(2, 48)) * 0.7 + rng.uniform(0, 6, 48))
    assert looks_like_grid(waves, (8, 8))
    assert structure(waves, rng=rng, grid=(8, 8)).structured
    assert not looks_like_grid(np.cumsum(rng.normal(size=(64, 48)), axis=0), (8, 8))
    assert not looks_like_grid(rng.normal(size=(64, 48)), (8, 8))
    assert guess_grid(197) == (1, (14, 14))
    assert guess_grid(64) == (0, (8, 8))
    assert guess_grid(512) is None


@pytest.mark.parametrize("d", [64, 512])
@pytest.mark.parametrize("cut", [30, 128, 240])
def test_rows_never_trained(cut: int, d: int) -> None:
    rng = np.random.default_rng(cut + d)
    table = 0.02 * rng.normal(size=(256, d))
    table[:cut] += 0.01 * np.cumsum(rng.normal(size=(cut, d)), axis=0)
    assert abs(first_untrained_row(table) - cut) <= 3
    table[cut:] *= 0.3  # decay of rows that get no gradient
    assert abs(first_untrained_row(table) - cut) <= 3


def test_all_or_no_rows_trained() -> None:
    rng = np.random.default_rng(4)
    assert first_untrained_row(rng.normal(size=(256, 64))) == 0
    assert first_untrained_row(np.cumsum(rng.normal(size=(256, 64)), axis=0)) == 256
    assert first_untrained_row(np.zeros((20, 16))) == 0
    grown = rng.normal(size=(256, 64))
    grown[:100] *= rng.uniform(2, 5, size=(100, 1))  # moved far, to nowhere in order
    assert abs(first_untrained_row(grown) - 100) <= 3


def test_spectrum() -> None:
    rng = np.random.default_rng(5)
    flat = rng.normal(size=(40, 1)) @ rng.normal(size=(1, 8))
    assert spectrum(flat)[0] == pytest.approx(1.0)
    assert spectrum(rng.normal(size=(40, 8))).sum() == pytest.approx(1.0)


def test_long_tables_are_thinned_out() -> None:
    rng = np.random.default_rng(6)
    found = structure(np.cumsum(rng.normal(size=(6000, 8)), axis=0), rng=rng, permutations=49)
    assert found.structured
    assert found.layout == (6000,)


def test_bad_input() -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(InputError, match="at least 3 rows"):
        structure(np.zeros((2, 4)), rng=rng)
    with pytest.raises(InputError, match="expected 12 cells"):
        structure(np.zeros((12, 4)), rng=rng, grid=(3, 3))
