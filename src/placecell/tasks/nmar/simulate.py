"""The network and its time series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BURN_IN = 100  # steps before the first sample, so that the start is forgotten


@dataclass(frozen=True, eq=False)
class Network:
    """Who drives whom, and the module of each node."""

    weights: Array  # n n: node i is driven by node j with weight [i, j]
    modules: NDArray[np.int64]  # n


def network(sizes: tuple[int, ...], radius: float, between: float, density: float, rng: np.random.Generator) -> Network:
    """A network of modules of these sizes, its nodes in shuffled order.

    Within a module every weight is drawn from U(0, 1), and the block is scaled to the spectral radius. Between
    modules a share `density` of the weights is there, drawn from U(±2 · between) in units of the mean
    weight within. They have either sign: were they all positive, one module would pull along all the others.
    """
    n, modules = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    mean = radius / np.mean(sizes)  # of a weight within: a block of equal weights w has spectral radius w · size
    weights = np.where(rng.random((n, n)) < density, between * mean * rng.uniform(-2, 2, (n, n)), 0.0)
    for module in range(len(sizes)):
        inside = np.ix_(modules == module, modules == module)
        block = rng.uniform(0, 1, weights[inside].shape)
        weights[inside] = block * (radius / np.abs(np.linalg.eigvals(block)).max())
    order = rng.permutation(n)
    return Network(weights[np.ix_(order, order)], modules[order].astype(np.int64))


def simulate(weights: Array, series: int, length: int, noise: float, rng: np.random.Generator) -> Array:
    """Several time series (series length n) of x(t+1) = tanh(W x(t)) + ε, ε ~ N(0, noise²), after a burn-in.

    Each starts anew from N(0, 1). A module stays in one of two states for hundreds of steps; in one long series two
    modules would seem related for having changed over together a few times.
    """
    x = rng.normal(0, 1, (series, len(weights)))
    states = np.empty((series, length, len(weights)))
    for t in range(-BURN_IN, length):
        x = np.tanh(x @ weights.T) + rng.normal(0, noise, x.shape)
        if t >= 0:
            states[:, t] = x
    return states
