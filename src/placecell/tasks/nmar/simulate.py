"""Make a modular network and simulate its time series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BURN_IN = 100  # steps before the first sample, so that it does not depend on the initial state


@dataclass(frozen=True, eq=False)
class Network:
    """A network of modules.

    Attributes
    ----------
    weights : array of shape (n, n)
        Node j drives node i with weight [i, j].
    modules : int array of shape (n,)
        The module of each node.
    """

    weights: Array  # n n
    modules: NDArray[np.int64]  # n


def network(
    sizes: tuple[int, ...], radius: float, between: float, density: float, rng: np.random.Generator
) -> Network:
    """Draw a network of modules, with its nodes in random order.

    Within a module, all weights are drawn from U(0, 1) and then scaled to the given spectral
    radius. Between modules a fraction of the weights is not zero. Those have both signs: if all
    were positive, one module would drive all the others into its state.

    Parameters
    ----------
    sizes : tuple of int
        Number of nodes of each module.
    radius : float
        Spectral radius of the weights within a module.
    between : float
        Weights between modules are drawn from U(−2 · between, 2 · between), in units of the mean
        weight within modules.
    density : float
        Fraction of the weights between modules that are not zero.
    rng : numpy.random.Generator

    Returns
    -------
    Network
    """
    n, modules = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    # Mean weight within a module: a block of equal weights w has spectral radius w · size.
    mean = radius / np.mean(sizes)
    present = rng.random((n, n)) < density
    weights = np.where(present, between * mean * rng.uniform(-2, 2, (n, n)), 0.0)
    for module in range(len(sizes)):
        inside = np.ix_(modules == module, modules == module)
        block = rng.uniform(0, 1, weights[inside].shape)
        weights[inside] = block * (radius / np.abs(np.linalg.eigvals(block)).max())
    order = rng.permutation(n)
    return Network(weights[np.ix_(order, order)], modules[order].astype(np.int64))


def simulate(
    weights: Array, series: int, length: int, noise: float, rng: np.random.Generator
) -> Array:
    """Simulate several time series of x(t+1) = tanh(W x(t)) + ε with ε ~ N(0, noise²).

    Each series starts from N(0, 1) and has a burn-in. There are several because a module stays in
    one of two states for hundreds of steps: in one long series, two modules that happened to switch
    together a few times would look related.

    Parameters
    ----------
    weights : array of shape (n, n)
        W, as in `Network`.
    series : int
        Number of time series.
    length : int
        Number of steps of each.
    noise : float
        Standard deviation of ε.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (series, length, n)
    """
    x = rng.normal(0, 1, (series, len(weights)))
    states = np.empty((series, length, len(weights)))
    for t in range(-BURN_IN, length):
        x = np.tanh(x @ weights.T) + rng.normal(0, noise, x.shape)
        if t >= 0:
            states[:, t] = x
    return states
