"""Lazy or rich? Measures of how far a kernel, a table and other weights have gone from where they began.

A network in the lazy regime keeps its tangent kernel while it learns (Chizat et al., arXiv 1812.07956); one in the rich
regime bends it towards the task.
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
    """1 − ⟨K₀, Kₜ⟩ / (‖K₀‖ ‖Kₜ‖): 0 for the same kernel up to its scale, 1 for orthogonal ones.
    Source: Fort et al., arXiv 2010.15110."""
    _same_shape(before, after)
    return float(1 - np.vdot(before, after) / (np.linalg.norm(before) * np.linalg.norm(after)))


def velocity(kernels: list[Array], steps: list[int]) -> list[float]:
    """Kernel distance from one snapshot to the next, a step."""
    pairs = zip(kernels, kernels[1:], steps, steps[1:], strict=False)
    return [kernel_distance(a, b) / (end - start) for a, b, start, end in pairs]


def centred(kernel: Array) -> Array:
    """H K H with H = I − 1/n: the kernel of features whose mean over the samples is zero."""
    rows = kernel - kernel.mean(0, keepdims=True)
    return rows - rows.mean(1, keepdims=True)


def target_alignment(kernel: Array, targets: Array) -> float:
    """Centred alignment of a kernel (n n) with the kernel of the targets (n k one-hot classes, or values): 1 if it
    sees just what the task asks for. Source: Cortes et al., Journal of Machine Learning Research 13 (2012)."""
    if targets.ndim != 2 or len(targets) != len(kernel):
        raise InputError(f"targets must be n × k for a kernel of {len(kernel)} samples, not {targets.shape}.")
    return 1 - kernel_distance(centred(kernel), centred(targets @ targets.T))


def linear_cka(a: Array, b: Array) -> float:
    """Centred kernel alignment of two tables (n d, n d'): 1 if one is a rotation of the other up to its scale.
    Source: Kornblith et al., arXiv 1905.00414."""
    return 1 - kernel_distance(centred(a @ a.T), centred(b @ b.T))


@dataclass(frozen=True)
class Movement:
    """How weights have moved: ‖Δ‖ / ‖W₀‖, and the stable rank ‖Δ‖²_F / ‖Δ‖²₂ of the change of a matrix."""

    relative: float
    stable_rank: float


def movement(before: Array, after: Array) -> Movement:
    """From `before` to `after`; NaN where it is not defined (nothing moved, or it began at zero)."""
    _same_shape(before, after)
    change, start = after - before, float(np.linalg.norm(before))
    moved = float(np.linalg.norm(change))
    largest = float(np.linalg.norm(change, 2)) if change.ndim == 2 else moved
    return Movement(moved / start if start else float("nan"), (moved / largest) ** 2 if largest else float("nan"))


def kernel_ridge(train: Array, test: Array, targets: Array, ridge: float) -> Array:
    """Predictions (m k) on test samples of kernel ridge regression: train (n n), test (m n), targets (n k).

    `ridge` is a share of the kernel's mean diagonal, so that kernels of different scales compare.
    """
    n = len(train)
    mean = targets.mean(0)
    system = train + ridge * np.trace(train) / n * np.eye(n)
    return test @ linalg.solve(system, targets - mean, assume_a="pos") + mean


def choose_ridge(train: Array, targets: Array, ridges: Sequence[float] = RIDGES) -> float:
    """The ridge with the smallest leave-one-out error (Σ (α_i / [(K + λ)⁻¹]_ii)², with α the coefficients)."""
    n = len(train)
    values, vectors = linalg.eigh((train + train.T) / 2)
    rotated = vectors.T @ (targets - targets.mean(0))

    def error(ridge: float) -> float:
        inverse = 1 / (np.maximum(values, 0) + ridge * np.trace(train) / n)
        coefficients = vectors @ (inverse[:, None] * rotated)
        return float(np.square(coefficients / ((vectors**2) @ inverse)[:, None]).sum())

    return min(ridges, key=error)


def half_way(steps: Sequence[int], values: Sequence[float]) -> float:
    """The step (between two, on a logarithmic scale of 1 + step) at which a curve has made half of its way from its
    first to its farthest value; NaN for a curve that stays where it is."""
    curve = np.asarray(values, float) - values[0]
    curve /= curve[np.abs(curve).argmax()] or np.nan
    at = np.flatnonzero(curve >= 0.5)
    if not len(at):
        return float("nan")
    i = int(at[0])
    share = (0.5 - curve[i - 1]) / (curve[i] - curve[i - 1])
    logs = np.log1p(np.asarray(steps, float))
    return float(np.expm1(logs[i - 1] + share * (logs[i] - logs[i - 1])))


def _same_shape(before: Array, after: Array) -> None:
    if before.shape != after.shape:
        raise InputError(f"the two must have one shape, not {before.shape} and {after.shape}.")
