"""Simpler methods to compare a model with.

Three methods predict masked values: the training mean, ridge regression and the linear Gaussian
model. `principal_components` makes a table to compare with a learned one.

Samples have shape (b, n) and need not be standardised; `masked` of shape (b, q) lists the hidden
tokens of each sample. Predictions have shape (b, q) and are for the test samples. Hyperparameters
are chosen on the validation samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placecell.analysis.statistics import Array, finite
from placecell.errors import InputError

# After 0, each is a fifth above the one before.
SHRINKAGES = (0.0, *np.geomspace(0.003, 0.6, 30).round(4).tolist())
MOST_COMPONENTS = 50
PENALTIES = (1.0, 10.0, 100.0, 1000.0, 10000.0)
Masks = NDArray[np.int64]
Masked = tuple[ArrayLike, ArrayLike]  # samples (b, n) and their masked tokens (b, q)
CHUNK = 2**24  # matrix entries that are solved for at a time


def mean_of_training(train: ArrayLike, test: Masked) -> Array:
    """Predict each masked value as the mean of its token over the training samples.

    Parameters
    ----------
    train : array of shape (b, n)
        Training samples.
    test : tuple of arrays of shape (b, n) and (b, q)
        Test samples and their masked tokens.

    Returns
    -------
    array of shape (b, q)
        Predictions for the masked tokens of the test samples.
    """
    x, (_, masked) = finite("train", train, 2), _checked("test", test)
    predictions: Array = x.mean(axis=0)[masked]
    return predictions


def linear_gaussian(train: ArrayLike, valid: Masked, test: Masked) -> tuple[Array, float]:
    """Predict masked values as E[masked | visible] under a Gaussian fitted to the training samples.

    x̂_m = μ_m + Σ_mv Σ_vv⁻¹ (x_v − μ_v), with μ the training mean and Σ the training covariance
    after shrinkage to (1 − λ) Σ + λ diag Σ. λ is the one with the lowest validation error. This is
    the best linear prediction from the visible values, up to errors in the estimated covariance.

    Parameters
    ----------
    train : array of shape (b, n)
        Training samples.
    valid, test : tuple of arrays of shape (b, n) and (b, q)
        Samples and their masked tokens.

    Returns
    -------
    predictions : array of shape (b, q)
        Predictions for the masked tokens of the test samples.
    shrinkage : float
        The chosen λ.
    """
    x = finite("train", train, 2)
    mean, covariance = x.mean(axis=0), np.cov(x.T)
    if not (np.diag(covariance) > 0).all():
        raise InputError(
            f"train: token {int(np.argmin(np.diag(covariance)))} is constant; "
            "it cannot be predicted from"
        )

    def shrunk(shrinkage: float) -> Array:
        diagonal = np.diag(np.diag(covariance))
        estimate: Array = (1 - shrinkage) * covariance + shrinkage * diagonal
        return estimate

    samples, masked = _checked("valid", valid)
    truth = np.take_along_axis(samples, masked, axis=1)
    errors = {}
    for shrinkage in SHRINKAGES:
        try:
            predictions = _conditional(mean, shrunk(shrinkage), samples, masked)
            errors[shrinkage] = float(((predictions - truth) ** 2).mean())
        except np.linalg.LinAlgError:  # too few samples for so little shrinkage
            continue
    best = min(errors, key=lambda shrinkage: errors[shrinkage])
    return _conditional(mean, shrunk(best), *_checked("test", test)), best


def ridge(train: Masked, valid: Masked, test: Masked) -> tuple[Array, float]:
    """Predict masked values by ridge regression on the same inputs that the model sees.

    The inputs are the visible values (0 where masked) and one flag per token that says whether it
    is masked. Each token has its own regression, fitted on the samples in which it is masked. One
    linear map serves all masks, so the weight of a visible token cannot depend on which others are
    visible.

    Parameters
    ----------
    train, valid, test : tuple of arrays of shape (b, n) and (b, q)
        Samples and their masked tokens.

    Returns
    -------
    predictions : array of shape (b, q)
        Predictions for the masked tokens of the test samples.
    penalty : float
        The penalty with the lowest validation error.
    """
    samples, masked = _checked("train", train)
    n = samples.shape[1]
    features, hidden = _features(samples, masked)
    grams = [
        (features[rows].T @ features[rows], features[rows].T @ samples[rows, token])
        for token, rows in enumerate(hidden.T)
    ]

    def predict(penalty: float, given: Masked) -> Array:
        diagonal = penalty * np.eye(2 * n + 1)
        diagonal[-1, -1] = 0.0  # the intercept is not penalised
        solutions = [np.linalg.solve(gram + diagonal, y) for gram, y in grams]
        maps = np.stack(solutions, axis=1)  # 2n+1 n
        values, tokens = _checked("valid", given)
        return np.take_along_axis(_features(values, tokens)[0] @ maps, tokens, axis=1)

    values, tokens = _checked("valid", valid)
    truth = np.take_along_axis(values, tokens, axis=1)

    def validation_error(penalty: float) -> float:
        return float(((predict(penalty, valid) - truth) ** 2).mean())

    best = min(PENALTIES, key=validation_error)
    return predict(best, test), best


def principal_components(train: ArrayLike, valid: ArrayLike) -> Array:
    """Make the table of a linear method: loadings of the tokens on principal components.

    The number of components k is the one that gives the validation samples the highest likelihood
    under probabilistic PCA (Tipping and Bishop 1999).

    Parameters
    ----------
    train, valid : array of shape (b, n)
        Samples.

    Returns
    -------
    array of shape (n, k)
        Loadings on the first k components of the training samples, in the units of the samples.
    """
    from sklearn.decomposition import PCA  # here: it takes a second

    x, validation = finite("train", train, 2), finite("valid", valid, 2)
    best, likelihood = None, -np.inf
    for k in range(1, min(MOST_COMPONENTS, x.shape[1] - 1, len(x) - 1) + 1):
        model = PCA(k, svd_solver="covariance_eigh").fit(x)
        value = float(model.score(validation))
        if best is None or value > likelihood:
            best, likelihood = model, value
    if best is None:
        raise InputError(f"train: expected two samples and two tokens at least, found {x.shape}")
    loadings: Array = best.components_.T * np.sqrt(best.explained_variance_)
    return loadings


def _features(samples: Array, masked: Masks) -> tuple[Array, NDArray[np.bool_]]:
    """Inputs of the ridge regression (b, 2n + 1), and which tokens are masked (b, n).

    The inputs are the visible values, the mask flags and a constant.
    """
    hidden = np.zeros(samples.shape, dtype=bool)
    np.put_along_axis(hidden, masked, True, axis=1)
    visible = np.where(hidden, 0.0, samples)
    return np.concatenate([visible, hidden, np.ones((len(samples), 1))], axis=1), hidden


def _conditional(mean: Array, covariance: Array, samples: Array, masked: Masks) -> Array:
    """Conditional mean (b, q) of the masked tokens given the visible ones."""
    b, n = samples.shape
    hidden = np.zeros((b, n), dtype=bool)
    np.put_along_axis(hidden, masked, True, axis=1)
    visible = np.argsort(hidden, axis=1, kind="stable")[:, : n - masked.shape[1]]  # b v
    predictions = np.empty(masked.shape)
    size = max(1, CHUNK // n**2)
    for start in range(0, b, size):
        part = slice(start, start + size)
        v, m = visible[part], masked[part]
        deviation = np.take_along_axis(samples[part] - mean, v, axis=1)
        visible_covariance = covariance[v[:, :, None], v[:, None, :]]  # b v v
        weighted = np.linalg.solve(visible_covariance, deviation[..., None])  # b v 1
        predictions[part] = mean[m] + (covariance[m[:, :, None], v[:, None, :]] @ weighted)[..., 0]
    return predictions


def _checked(name: str, given: Masked) -> tuple[Array, Masks]:
    samples, masked = finite(name, given[0], 2), np.asarray(given[1], dtype=np.int64)
    fits = masked.ndim == 2 and len(masked) == len(samples)
    if not fits or not 0 < masked.shape[1] < samples.shape[1]:
        raise InputError(
            f"{name}: expected masked tokens for {len(samples)} samples, found shape {masked.shape}"
        )
    return samples, masked
