from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from placecell.analysis import bootstrap_interval, paired_difference, spearman_interval
from placecell.analysis.statistics import permutation_p
from placecell.errors import InputError


def test_p_counts_the_observed_and_ties():
    assert permutation_p(2.0, np.array([1.0, 2.0 - 1e-13, 3.0])) == pytest.approx(3 / 4)
    assert permutation_p([5.0, 0.0], np.ones((3, 2))) == pytest.approx([1 / 4, 1])
    assert np.isnan(permutation_p(1.0, np.empty(0)))


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    intervals = [
        bootstrap_interval(rng.normal(3.0, 2.0, size=20), rng, level=0.9) for _ in range(200)
    ]
    assert {f.method for f in intervals} == {"BCa"}
    assert np.mean([f.low <= 3 <= f.high for f in intervals]) == pytest.approx(0.88, abs=0.06)
    assert all(f.low < f.estimate < f.high for f in intervals)


@given(values=st.lists(st.floats(0, 1), min_size=3, max_size=6), seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_an_interval_lies_within_the_values(values, seed):
    interval = bootstrap_interval(values, np.random.default_rng(seed))
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert interval.estimate == pytest.approx(np.mean(values))


def test_where_there_is_no_bootstrap():
    rng = np.random.default_rng(0)
    same = bootstrap_interval([0.7] * 5, rng)
    assert (same.low, same.high, same.method) == (same.estimate, same.estimate, "constant")
    few = bootstrap_interval([0.6, 0.8], rng)
    assert few.estimate == pytest.approx(0.7)
    assert np.isnan([few.low, few.high]).all()
    assert few.method == "too few values"


def test_paired_p_is_the_exact_sign_flip_test():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.5, 1, size=7), rng.normal(size=7)
    difference = paired_difference(a, b, rng)
    flipped = np.array([np.mean(np.array(signs) * (a - b)) for signs in product([1, -1], repeat=7)])
    assert difference.p == pytest.approx(np.mean(np.abs(flipped) >= abs(np.mean(a - b)) - 1e-12))
    assert difference.interval.estimate == pytest.approx(np.mean(a - b))


def test_pairing_sees_what_two_groups_would_not():
    rng = np.random.default_rng(2)
    seed_effect = rng.normal(0, 10, size=10)
    difference = paired_difference(seed_effect + 1 + 0.1 * rng.normal(size=10), seed_effect, rng)
    assert 0.9 < difference.interval.low < difference.interval.high < 1.1
    assert difference.p == pytest.approx(2 / 2**10)


def test_one_pair_says_nothing():
    difference = paired_difference([1.0], [0.0], np.random.default_rng(0))
    assert difference.p == 1
    assert difference.interval.method == "too few values"


@given(seed=st.integers(0, 10**6), seeds=st.integers(3, 6))
@settings(max_examples=15, deadline=None)
def test_spearman_over_sigma_is_scipy_s_of_the_means(seed, seeds):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 6, seeds))
    interval = spearman_interval(x, y, rng)
    assert interval.estimate == pytest.approx(spearmanr(x.mean(axis=1), y.mean(axis=1)).statistic)
    assert -1 <= interval.low <= interval.high <= 1


def test_the_spearman_interval_narrows_when_seeds_agree():
    rng = np.random.default_rng(3)
    effect = np.arange(6.0)[:, None]
    agree = spearman_interval(
        effect + 0.01 * rng.normal(size=(6, 5)), effect + 0.01 * rng.normal(size=(6, 5)), rng
    )
    assert (agree.estimate, agree.low, agree.high) == pytest.approx((1, 1, 1))
    noisy = spearman_interval(
        effect + 5 * rng.normal(size=(6, 5)), effect + 5 * rng.normal(size=(6, 5)), rng
    )
    assert noisy.high - noisy.low > 0.3


def test_seeds_are_drawn_for_both_together():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(5, 4))
    interval = spearman_interval(
        x, 20 * x + 2, rng
    )  # the same in every draw only if the seeds stay paired
    assert (interval.low, interval.high) == pytest.approx((1, 1))


def test_a_flat_curve_has_no_rank_correlation():
    interval = spearman_interval(
        np.ones((6, 3)), np.random.default_rng(0).normal(size=(6, 3)), np.random.default_rng(0)
    )
    assert interval.method == "undefined"
    assert np.isnan(interval.estimate)
    few = spearman_interval(
        np.arange(6.0)[:, None], np.arange(6.0)[:, None], np.random.default_rng(0)
    )
    assert few.estimate == pytest.approx(1)
    assert few.method == "too few values"


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(
        InputError, match=r"values: expected a non-empty array with 1 axes, found shape \(0,\)"
    ):
        bootstrap_interval([], rng)
    with pytest.raises(
        InputError, match="values: expected finite numbers, found 1 NaN or infinite of 3"
    ):
        bootstrap_interval([1.0, np.nan, 2.0], rng)
    with pytest.raises(InputError, match="level: expected a number between 0 and 1, found 95"):
        bootstrap_interval([1.0, 2.0, 4.0], rng, level=95)
    with pytest.raises(InputError, match="b: expected 3 values to pair with a, found 2"):
        paired_difference([1, 2, 3], [1, 2], rng)
    with pytest.raises(InputError, match=r"at least 3 σ, found \(6, 3\) and \(6, 2\)"):
        spearman_interval(np.ones((6, 3)), np.ones((6, 2)), rng)
