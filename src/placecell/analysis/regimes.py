"""Lazy or rich? How far a kernel, a table and other weights have moved from where they started.

A network in the lazy regime keeps its tangent kernel while it learns (Chizat et al., arXiv
1812.07956); a network in the rich regime changes it towards the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from placecell.errors import InputError

Array = NDArray[np.float64]
RIDGES = tuple(10.0**k for k in range(-6, 2))


def kernel_distance(before: Array, after: Array) -> float:
    """Compute the cosine distance of two kernels, 1 − ⟨K₀, Kₜ⟩ / (‖K₀‖ ‖Kₜ‖).

    Source: Fort et al., arXiv 2010.15110.

    Parameters
    ----------
    before, after : array of shape (n, n), or any one shape
        The two kernels.

    Returns
    -------
    float
        0 for kernels that are equal up to scale, 1 for orthogonal kernels.

    Examples
    --------
    >>> kernel_distance(np.eye(2), np.ones((2, 2)) - np.eye(2))
    1.0
    """
    _same_shape(before, after)
    return float(1 - np.vdot(before, after) / (np.linalg.norm(before) * np.linalg.norm(after)))


def velocity(kernels: list[Array], steps: list[int]) -> list[float]:
    """Compute the kernel distance between successive snapshots, per training step.

    Parameters
    ----------
    kernels : list of arrays of shape (n, n)
        The snapshots.
    steps : list of int
        The training step of each snapshot.

    Returns
    -------
    list of float
        One value per pair of successive snapshots.
    """
    pairs = zip(kernels, kernels[1:], steps, steps[1:], strict=False)
    return [kernel_distance(a, b) / (end - start) for a, b, start, end in pairs]


def centred(kernel: Array) -> Array:
    """Centre a kernel: H K H with H = I − 1/n.

    This is the kernel of features whose mean over the samples is zero.

    Parameters
    ----------
    kernel : array of shape (n, n)

    Returns
    -------
    array of shape (n, n)
    """
    rows = kernel - kernel.mean(0, keepdims=True)
    return rows - rows.mean(1, keepdims=True)


def target_alignment(kernel: Array, targets: Array) -> float:
    """Compute the centred alignment of a kernel with the kernel of the targets.

    Source: Cortes et al., Journal of Machine Learning Research 13 (2012).

    Parameters
    ----------
    kernel : array of shape (n, n)
    targets : array of shape (n, k)
        One-hot classes, or values.

    Returns
    -------
    float
        1 if, up to scale and centring, the kernel equals that of the targets.
    """
    if targets.ndim != 2 or len(targets) != len(kernel):
        raise InputError(
            f"targets must be n × k for a kernel of {len(kernel)} samples, not {targets.shape}."
        )
    return 1 - kernel_distance(centred(kernel), centred(targets @ targets.T))


def linear_cka(a: Array, b: Array) -> float:
    """Compute the linear centred kernel alignment (CKA) of two tables.

    Source: Kornblith et al., arXiv 1905.00414.

    Parameters
    ----------
    a : array of shape (n, d)
    b : array of shape (n, d')

    Returns
    -------
    float
        1 if one table is a rotation of the other up to scale.
    """
    return 1 - kernel_distance(centred(a @ a.T), centred(b @ b.T))


@dataclass(frozen=True)
class Movement:
    """How weights changed by Δ from their initial value W₀.

    Attributes
    ----------
    relative : float
        ‖Δ‖ / ‖W₀‖; NaN if W₀ is zero.
    stable_rank : float
        ‖Δ‖²_F / ‖Δ‖²₂ of the change of a matrix; NaN if nothing moved.
    """

    relative: float
    stable_rank: float


def movement(before: Array, after: Array) -> Movement:
    """Measure how weights moved.

    Parameters
    ----------
    before, after : arrays of the same shape
        The weights at the start and at the end.

    Returns
    -------
    Movement
    """
    _same_shape(before, after)
    change, start = after - before, float(np.linalg.norm(before))
    moved = float(np.linalg.norm(change))
    largest = float(np.linalg.norm(change, 2)) if change.ndim == 2 else moved
    relative = moved / start if start else float("nan")
    return Movement(relative, (moved / largest) ** 2 if largest else float("nan"))


def kernel_ridge(train: Array, test: Array, targets: Array, ridge: float) -> Array:
    """Predict test targets by kernel ridge regression.

    Parameters
    ----------
    train : array of shape (n, n)
        Kernel between training samples.
    test : array of shape (m, n)
        Kernel between test and training samples.
    targets : array of shape (n, k)
        Targets of the training samples.
    ridge : float
        Penalty, as a fraction of the mean diagonal of the kernel, so that kernels of different
        scales can be compared.

    Returns
    -------
    array of shape (m, k)
    """
    n = len(train)
    mean = targets.mean(0)
    system = train + ridge * np.trace(train) / n * np.eye(n)
    return test @ linalg.solve(system, targets - mean, assume_a="pos") + mean


def choose_ridge(train: Array, targets: Array, ridges: Sequence[float] = RIDGES) -> float:
    """Choose the ridge with the smallest leave-one-out error.

    The error is Σ (α_i / [(K + λ)⁻¹]_ii)², with α the coefficients.

    Parameters
    ----------
    train : array of shape (n, n)
        Kernel between training samples.
    targets : array of shape (n, k)
    ridges : sequence of float
        The candidates, as in `kernel_ridge`.

    Returns
    -------
    float
    """
    n = len(train)
    values, vectors = linalg.eigh((train + train.T) / 2)
    rotated = vectors.T @ (targets - targets.mean(0))

    def error(ridge: float) -> float:
        inverse = 1 / (np.maximum(values, 0) + ridge * np.trace(train) / n)
        coefficients = vectors @ (inverse[:, None] * rotated)
        return float(np.square(coefficients / ((vectors**2) @ inverse)[:, None]).sum())

    return min(ridges, key=error)


def half_way(steps: Sequence[int], values: Sequence[float]) -> float:
    """Find the step at which a curve is half way from its first to its farthest value.

    Between two recorded steps the curve is interpolated on a logarithmic scale of 1 + step.

    Parameters
    ----------
    steps : sequence of int
        Training steps at which the curve was recorded.
    values : sequence of float
        The curve.

    Returns
    -------
    float
        The step; NaN for a constant curve.

    Examples
    --------
    >>> round(half_way([0, 3, 15], [0.0, 1.0, 2.0]), 6)
    3.0
    """
    curve = np.asarray(values, float) - values[0]
    curve /= curve[np.abs(curve).argmax()] or np.nan
    reached = np.flatnonzero(curve >= 0.5)
    if not len(reached):
        return float("nan")
    i = int(reached[0])
    fraction = (0.5 - curve[i - 1]) / (curve[i] - curve[i - 1])
    logs = np.log1p(np.asarray(steps, float))
    return float(np.expm1(logs[i - 1] + fraction * (logs[i] - logs[i - 1])))


def _same_shape(before: Array, after: Array) -> None:
    if before.shape != after.shape:
        raise InputError(f"the two must have one shape, not {before.shape} and {after.shape}.")
