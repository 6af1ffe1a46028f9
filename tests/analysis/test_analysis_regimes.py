"""Measures of lazy and rich: invariances, known values, and agreement with other
implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from placecell.analysis.regimes import (
    centred,
    choose_ridge,
    half_way,
    kernel_distance,
    kernel_ridge,
    linear_cka,
    movement,
    target_alignment,
    velocity,
)
from placecell.errors import InputError
from placecell.seeds import numpy_stream

seeds = st.integers(0, 2**20)


def gram(seed: int, n: int = 8, d: int = 5) -> np.ndarray:
    x = numpy_stream(seed, "x").normal(size=(n, d))
    return x @ x.T


@given(seeds, st.floats(1e-3, 1e3))
def test_distance_is_between_0_and_1_for_kernels_and_blind_to_scale(
    seed: int, scale: float
) -> None:
    a, b = gram(seed), gram(seed + 1)
    assert kernel_distance(a, scale * a) == pytest.approx(0, abs=1e-12)
    assert 0 < kernel_distance(a, b) < 1
    assert kernel_distance(scale * a, b) == pytest.approx(kernel_distance(b, a))


def test_orthogonal_kernels_are_at_1() -> None:
    assert kernel_distance(np.diag([1.0, 0.0]), np.diag([0.0, 2.0])) == 1.0
    with pytest.raises(InputError, match="one shape"):
        kernel_distance(np.eye(2), np.eye(3))


def test_velocity_is_distance_over_steps() -> None:
    a, b, c = gram(0), gram(1), gram(2)
    assert velocity([a, b, c], [0, 10, 14]) == [
        kernel_distance(a, b) / 10,
        kernel_distance(b, c) / 4,
    ]


@given(seeds)
def test_centring_is_that_of_the_features(seed: int) -> None:
    x = numpy_stream(seed, "x").normal(size=(7, 3))
    y = x - x.mean(0)
    np.testing.assert_allclose(centred(x @ x.T), y @ y.T, atol=1e-12)


def test_a_kernel_of_the_targets_is_aligned_with_them() -> None:
    classes = np.eye(4)[np.arange(12) % 4]
    assert target_alignment(3 * classes @ classes.T + 5, classes) == pytest.approx(1)
    assert abs(target_alignment(gram(3, n=12), classes)) < 0.6
    with pytest.raises(InputError, match="n × k"):
        target_alignment(np.eye(3), classes)


@given(seeds)
def test_cka_is_blind_to_rotation_shift_and_scale(seed: int) -> None:
    draw = numpy_stream(seed, "cka")
    x, q = draw.normal(size=(9, 4)), np.linalg.qr(draw.normal(size=(4, 4)))[0]
    assert linear_cka(x, 2.5 * x @ q + 3) == pytest.approx(1)
    assert linear_cka(x, draw.normal(size=(9, 4))) < 1


def test_movement_of_known_changes() -> None:
    before = np.ones((4, 3))
    moved = movement(before, before + np.outer([1.0, 2, 3, 4], [1.0, 0, 0]))
    assert moved.stable_rank == pytest.approx(1)
    assert moved.relative == pytest.approx(np.sqrt(30 / 12))
    assert movement(np.zeros((3, 3)), np.eye(3)).stable_rank == pytest.approx(3)
    assert np.isnan(movement(np.zeros((3, 3)), np.eye(3)).relative)
    still = movement(before, before)
    assert still.relative == 0
    assert np.isnan(still.stable_rank)
    assert movement(np.ones(3), np.ones(3) * 2).relative == pytest.approx(1)


@given(seeds)
def test_kernel_ridge_is_that_of_scikit_learn(seed: int) -> None:
    draw = numpy_stream(seed, "ridge")
    x, new, y = draw.normal(size=(10, 4)), draw.normal(size=(6, 4)), draw.normal(size=(10, 2))
    kernel, test = x @ x.T, new @ x.T
    predicted = kernel_ridge(kernel, test, y, ridge=0.1)
    other = KernelRidge(alpha=0.1 * np.trace(kernel) / 10, kernel="precomputed").fit(
        kernel, y - y.mean(0)
    )
    np.testing.assert_allclose(predicted, other.predict(test) + y.mean(0), atol=1e-8)


@given(seeds)
def test_the_ridge_chosen_leaves_the_smallest_error_out(seed: int) -> None:
    """The closed form of the leave-one-out error against leaving each sample out. Targets are
    centred on the mean of all samples in both, as the closed form has it."""
    kernel = gram(seed, n=9, d=9)
    targets = numpy_stream(seed, "y").normal(size=(9, 2))
    targets -= targets.mean(0)
    ridges, scale = (1e-2, 1e-1, 1.0, 10.0), np.trace(kernel) / 9
    errors = []
    for ridge in ridges:
        error = 0.0
        for i in range(9):
            rest = np.delete(np.arange(9), i)
            system = kernel[np.ix_(rest, rest)] + ridge * scale * np.eye(8)
            error += np.square(
                kernel[i, rest] @ np.linalg.solve(system, targets[rest]) - targets[i]
            ).sum()
        errors.append(error)
    assert choose_ridge(kernel, targets, ridges) == ridges[int(np.argmin(errors))]


def test_half_way_is_where_a_curve_has_made_half_of_its_way() -> None:
    assert half_way([0, 1, 3, 7], [0.0, 0.2, 0.4, 1.0]) == pytest.approx(
        np.exp(np.log(4) + np.log(2) / 6) - 1
    )
    assert half_way([0, 1, 3], [2.0, 1.0, 0.0]) == pytest.approx(
        1
    )  # falling counts as well as rising
    assert half_way([0, 1, 3], [0.0, 1.0, 0.9]) == pytest.approx(
        np.sqrt(2) - 1
    )  # half of the farthest
    assert np.isnan(half_way([0, 1], [1.0, 1.0]))
