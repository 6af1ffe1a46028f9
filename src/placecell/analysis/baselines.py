"""What simpler methods predict of masked values (the training mean, ridge regression, the linear Gaussian model), and
the table that principal components make.

Samples are (b, n), standardised or not; `masked` (b, q) lists the hidden tokens of each. Every prediction is (b, q) for
the test samples; whatever has to be chosen is chosen on the validation samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from placecell.analysis.statistics import Array, finite
from placecell.errors import InputError

SHRINKAGES = (0.0, *np.geomspace(0.003, 0.6, 30).round(4).tolist())  # each a fifth above the one before
MOST_COMPONENTS = 50
PENALTIES = (1.0, 10.0, 100.0, 1000.0, 10000.0)
Masks = NDArray[np.int64]
Masked = tuple[ArrayLike, ArrayLike]  # samples (b, n) and their masked tokens (b, q)
CHUNK = 2**24  # numbers of the matrices solved at once


def mean_of_training(train: ArrayLike, test: Masked) -> Array:
    """Each masked value as the mean of its token in the training samples."""
    x, (_, masked) = finite("train", train, 2), _checked("test", test)
    found: Array = x.mean(axis=0)[masked]
    return found


def linear_gaussian(train: ArrayLike, valid: Masked, test: Masked) -> tuple[Array, float]:
    """E[masked | visible] of a Gaussian with the training mean μ and covariance Σ, and the shrinkage λ it used.

    x̂_m = μ_m + Σ_mv Σ_vv⁻¹ (x_v − μ_v), with (1 − λ) Σ + λ diag Σ for Σ and λ of the lowest validation error.
    The best linear prediction from the values seen, but for what the covariance is wrong by.
    """
    x = finite("train", train, 2)
    mean, covariance = x.mean(axis=0), np.cov(x.T)
    if not (np.diag(covariance) > 0).all():
        raise InputError(f"train: token {int(np.argmin(np.diag(covariance)))} is constant; it cannot be predicted from")

    def shrunk(share: float) -> Array:
        found: Array = (1 - share) * covariance + share * np.diag(np.diag(covariance))
        return found

    samples, masked = _checked("valid", valid)
    truth = np.take_along_axis(samples, masked, axis=1)
    errors = {}
    for share in SHRINKAGES:
        try:
            errors[share] = float(((_conditional(mean, shrunk(share), samples, masked) - truth) ** 2).mean())
        except np.linalg.LinAlgError:  # too few samples for so little shrinkage
            continue
    best = min(errors, key=lambda share: errors[share])
    return _conditional(mean, shrunk(best), *_checked("test", test)), best


def ridge(train: Masked, valid: Masked, test: Masked) -> tuple[Array, float]:
    """A ridge regression from what the model sees (visible values, 0 where masked, and the mask's flags) to every
    token's value, fitted at the masked ones; and the penalty it used, the one of the lowest validation error.

    One linear map for all masks: it cannot weigh a visible token by which others are visible.
    """
    samples, masked = _checked("train", train)
    n = samples.shape[1]
    seen, hidden = _seen(samples, masked)
    grams = [(seen[rows].T @ seen[rows], seen[rows].T @ samples[rows, token]) for token, rows in enumerate(hidden.T)]

    def predict(penalty: float, given: Masked) -> Array:
        eye = penalty * np.eye(2 * n + 1)
        eye[-1, -1] = 0.0  # the constant is free
        maps = np.stack([np.linalg.solve(gram + eye, target) for gram, target in grams], axis=1)  # 2n+1 n
        values, tokens = _checked("valid", given)
        return np.take_along_axis(_seen(values, tokens)[0] @ maps, tokens, axis=1)

    values, tokens = _checked("valid", valid)
    truth = np.take_along_axis(values, tokens, axis=1)
    best = min(PENALTIES, key=lambda penalty: float(((predict(penalty, valid) - truth) ** 2).mean()))
    return predict(best, test), best


def principal_components(train: ArrayLike, valid: ArrayLike) -> Array:
    """The loadings (n, k) of the tokens on the first k principal components of the training samples, in their units.

    The table of a linear method: k is the one under which the validation samples (b, n) are most likely by
    probabilistic PCA (Tipping and Bishop 1999).
    """
    x, held = finite("train", train, 2), finite("valid", valid, 2)
    best, likelihood = None, -np.inf
    for k in range(1, min(MOST_COMPONENTS, x.shape[1] - 1, len(x) - 1) + 1):
        model = PCA(k, svd_solver="covariance_eigh").fit(x)
        value = float(model.score(held))
        if best is None or value > likelihood:
            best, likelihood = model, value
    if best is None:
        raise InputError(f"train: expected two samples and two tokens at least, found {x.shape}")
    found: Array = best.components_.T * np.sqrt(best.explained_variance_)
    return found


def _seen(samples: Array, masked: Masks) -> tuple[Array, NDArray[np.bool_]]:
    """Visible values, flags and a constant (b, 2n + 1), and which tokens are masked (b, n)."""
    hidden = np.zeros(samples.shape, dtype=bool)
    np.put_along_axis(hidden, masked, True, axis=1)
    return np.concatenate([np.where(hidden, 0.0, samples), hidden, np.ones((len(samples), 1))], axis=1), hidden


def _conditional(mean: Array, covariance: Array, samples: Array, masked: Masks) -> Array:
    b, n = samples.shape
    hidden = np.zeros((b, n), dtype=bool)
    np.put_along_axis(hidden, masked, True, axis=1)
    visible = np.argsort(hidden, axis=1, kind="stable")[:, : n - masked.shape[1]]  # b v
    found = np.empty(masked.shape)
    size = max(1, CHUNK // n**2)
    for start in range(0, b, size):
        part = slice(start, start + size)
        v, m = visible[part], masked[part]
        deviation = np.take_along_axis(samples[part] - mean, v, axis=1)
        weighted = np.linalg.solve(covariance[v[:, :, None], v[:, None, :]], deviation[..., None])  # b v 1
        found[part] = mean[m] + (covariance[m[:, :, None], v[:, None, :]] @ weighted)[..., 0]
    return found


def _checked(name: str, given: Masked) -> tuple[Array, Masks]:
    samples, masked = finite(name, given[0], 2), np.asarray(given[1], dtype=np.int64)
    if masked.ndim != 2 or len(masked) != len(samples) or not 0 < masked.shape[1] < samples.shape[1]:
        raise InputError(f"{name}: expected masked tokens for {len(samples)} samples, found shape {masked.shape}")
    return samples, masked
