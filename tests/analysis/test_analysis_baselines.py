"""Baselines against closed forms and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from placecell import analysis
from placecell.analysis import baselines
from placecell.errors import InputError


def drawn(n: int = 6, samples: int = 400, seed: int = 0):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n, n))
    x = rng.normal(size=(samples, n)) @ mixing + rng.normal(size=n)
    masks = rng.random((samples, n)).argsort(1)[:, : n // 2]
    return x, masks


def test_linear_gaussian_by_the_precision_matrix() -> None:
    """E[m | v] = μ_m − Λ_mm⁻¹ Λ_mv (x_v − μ_v), with Λ the inverse of the whole covariance: another
    road."""
    x, masks = drawn()
    predicted, shrinkage = analysis.linear_gaussian(
        x[:200], (x[200:300], masks[200:300]), (x[300:], masks[300:])
    )
    mean, covariance = x[:200].mean(0), np.cov(x[:200].T)
    covariance = (1 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))
    precision = np.linalg.inv(covariance)
    for sample, m, one in zip(x[300:], masks[300:], predicted, strict=True):
        v = np.setdiff1d(np.arange(6), m)
        other = mean[m] - np.linalg.solve(
            precision[np.ix_(m, m)], precision[np.ix_(m, v)] @ (sample - mean)[v]
        )
        assert one == pytest.approx(other, abs=1e-8)


def test_linear_gaussian_reaches_what_theory_says() -> None:
    """Two tokens of correlation ρ: the error left over is 1 − ρ²."""
    rng, rho = np.random.default_rng(1), 0.8
    x = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=12_000)
    masks = rng.integers(0, 2, (12_000, 1))
    predicted, shrinkage = analysis.linear_gaussian(
        x[:8000], (x[8000:9000], masks[8000:9000]), (x[9000:], masks[9000:])
    )
    error = ((predicted - np.take_along_axis(x[9000:], masks[9000:], 1)) ** 2).mean()
    assert error == pytest.approx(1 - rho**2, rel=0.06)
    assert shrinkage <= 0.03


def test_shrinkage_is_chosen_where_samples_are_few() -> None:
    x, masks = drawn(n=30, samples=400)
    few = x[:25]  # fewer samples than tokens: the covariance has no inverse
    predicted, shrinkage = analysis.linear_gaussian(
        few, (x[200:300], masks[200:300]), (x[300:], masks[300:])
    )
    assert shrinkage > 0
    truth = np.take_along_axis(x[300:], masks[300:], 1)
    assert ((predicted - truth) ** 2).mean() < (
        (analysis.mean_of_training(few, (x[300:], masks[300:])) - truth) ** 2
    ).mean()


def test_ridge_is_scikit_learns_one_token_at_a_time() -> None:
    x, masks = drawn()
    train, valid, test = ((x[a:b], masks[a:b]) for a, b in ((0, 200), (200, 300), (300, 400)))
    predicted, penalty = analysis.ridge(train, valid, test)
    assert penalty in baselines.PENALTIES

    def seen(part):
        hidden = np.zeros(part[0].shape, dtype=bool)
        np.put_along_axis(hidden, part[1], True, 1)
        return np.concatenate([np.where(hidden, 0, part[0]), hidden], axis=1), hidden

    inputs, hidden = seen(train)
    tests, _ = seen(test)
    for token in range(6):
        model = Ridge(penalty).fit(inputs[hidden[:, token]], train[0][hidden[:, token], token])
        rows, columns = np.nonzero(test[1] == token)
        assert predicted[rows, columns] == pytest.approx(model.predict(tests[rows]), abs=1e-6)


def test_the_mean() -> None:
    x, masks = drawn()
    predicted = analysis.mean_of_training(x[:100], (x[100:], masks[100:]))
    assert predicted[0].tolist() == x[:100].mean(0)[masks[100]].tolist()


def test_masks_that_do_not_fit_are_refused() -> None:
    x, masks = drawn()
    for wrong in (masks[:5], np.tile(np.arange(6), (400, 1)), masks[:, 0]):
        with pytest.raises(InputError, match="masked"):
            analysis.mean_of_training(x, (x, wrong))


def test_principal_components_find_how_many_there_are() -> None:
    """Three sources in ten tokens, and noise: the loadings are those of the covariance's own
    vectors, up to sign."""
    rng = np.random.default_rng(5)
    mixing = rng.normal(size=(3, 10))
    x = rng.normal(size=(3000, 3)) @ mixing + 0.3 * rng.normal(size=(3000, 10))
    components = analysis.principal_components(x[:2000], x[2000:])
    values, vectors = np.linalg.eigh(np.cov(x[:2000].T))
    expected = (vectors * np.sqrt(values))[:, ::-1][:, :3]
    assert np.abs(components) == pytest.approx(np.abs(expected), rel=1e-6)


def test_a_constant_token_is_refused() -> None:
    x, masks = drawn()
    x[:, 2] = 1.0
    with pytest.raises(InputError, match="token 2 is constant"):
        analysis.linear_gaussian(x, (x, masks), (x, masks))
