"""Bins, normal scores, and the linear base against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata

from placecell.discover.clean import clean_columns
from placecell.discover.columns import N_BINS, learn_coding, rank_categories
from placecell.discover.copula import Copula, covariance


def test_scores_are_normal_quantiles_of_mid_ranks() -> None:
    x = np.random.default_rng(0).normal(size=(200, 1)).round(1)  # with ties
    _, scores = learn_coding(x).encode(x)
    expected = norm.ppf((rankdata(x[:, 0]) - 0.5) / 200)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-9)


def test_bins_have_equal_counts_and_few_values_a_bin_each() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.permutation(800), rng.integers(0, 3, 800)]).astype(float)
    coding = learn_coding(x)
    bins, _ = coding.encode(x)
    assert np.bincount(bins[:, 0]).tolist() == [100] * N_BINS
    np.testing.assert_array_equal(bins[:, 1], x[:, 1])
    shares = np.bincount(bins[:, 1]) / 800
    np.testing.assert_allclose(np.exp(coding.log_share[1, :3]), shares, atol=2e-3)


def test_scores_do_not_depend_on_units() -> None:
    x = np.random.default_rng(1).normal(size=(100, 3))
    _, one = learn_coding(x).encode(x)
    _, two = learn_coding(np.exp(3 * x) + 7).encode(np.exp(3 * x) + 7)
    np.testing.assert_allclose(one, two)


def test_missing_and_new_values() -> None:
    x = np.array([[1.0], [2.0], [np.nan], [4.0]])
    coding = learn_coding(x)
    bins, scores = coding.encode(np.array([[np.nan], [3.9], [-100.0]]))
    assert bins[:, 0].tolist() == [-1, 2, 0]
    assert scores[0, 0] == 0


def test_categories_are_ranked_by_the_other_columns() -> None:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=400)
    others = hidden[:, None] + 0.3 * rng.normal(size=(400, 3))
    place = np.digitize(hidden, [-0.7, 0.7])  # low, middle, high
    code = np.array([2, 0, 1])[place]  # in no order
    ranks = rank_categories(np.column_stack([others, code]), [False, False, False, True])[3]
    assert ranks[[2, 0, 1]].tolist() in ([0, 1, 2], [2, 1, 0])


def test_copula_is_the_conditional_normal() -> None:
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(5, 5))
    x = rng.normal(size=(2000, 5)) @ mixed
    coding = learn_coding(x)
    _, scores = coding.encode(x)
    copula = Copula.fit(coding, scores, np.ones(x.shape, dtype=bool), np.ones(len(x)))
    hidden, seen = [1, 3], [0, 2, 4]
    row = torch.from_numpy(scores[:1]).float()
    index, real = torch.tensor([hidden]), torch.ones(1, 2, dtype=torch.bool)
    said = copula.logits(row, index, real)[0].exp().numpy()
    sigma, _ = covariance(scores, np.ones(x.shape, dtype=bool), np.ones(len(x)))
    spread = copula.spread.numpy()
    sigma = sigma * np.outer(spread, spread)
    gain = sigma[np.ix_(hidden, seen)] @ np.linalg.inv(sigma[np.ix_(seen, seen)])
    mean = gain @ scores[0, seen]
    left = sigma[np.ix_(hidden, hidden)] - gain @ sigma[np.ix_(seen, hidden)]
    deviation = np.sqrt(np.diag(left) + 1 - spread[hidden] ** 2)
    for k, i in enumerate(hidden):
        below = norm.cdf((coding.edges[i] - mean[k]) / deviation[k])
        np.testing.assert_allclose(said[k], np.diff(below), atol=2e-5)


def test_what_fills_a_row_up_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)).cumsum(1)
    coding = learn_coding(x)
    _, scores = coding.encode(x)
    copula = Copula.fit(coding, scores, np.ones(x.shape, dtype=bool), np.ones(len(x)))
    row = torch.from_numpy(scores[:1]).float()
    plain = copula.logits(row, torch.tensor([[2]]), torch.tensor([[True]]))
    filled = copula.logits(row, torch.tensor([[2, 0]]), torch.tensor([[True, False]]))
    torch.testing.assert_close(plain[:, 0], filled[:, 0])


def test_columns_that_cannot_be_used_are_named() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=50)
    x = np.column_stack([a, np.full(50, np.nan), np.ones(50), np.exp(a), rng.normal(size=50)])
    cleaned = clean_columns(x, np.zeros(5, dtype=bool), list("abcde"))
    assert cleaned.left_out == {"b": "no value", "c": "constant (1)", "d": "the same as a"}
    assert cleaned.kept.tolist() == [0, 4]


@pytest.mark.parametrize("noise", [1e-4, 1.0])
def test_nearly_equal_columns_are_noted(noise: float) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    x = np.column_stack([a, a + noise * rng.normal(size=200), rng.normal(size=200)])
    notes = clean_columns(x, np.zeros(3, dtype=bool), list("abc")).notes
    assert bool(notes) == (noise < 0.1)
    assert noise > 0.1 or "a and b" in notes[0]
