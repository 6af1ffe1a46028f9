"""What happens on a graph: diffusion, or a nonlinear map."""

from __future__ import annotations

import numpy as np

from placecell.tasks.graph.config import Config
from placecell.tasks.graph.network import Array

BURN_IN = 100  # steps before the first sample, so that it does not depend on the initial state


def simulate(weights: Array, samples: int, config: Config, rng: np.random.Generator) -> Array:
    """Simulate values on the nodes of a graph.

    With M x the weighted mean of a node and its neighbours (the node itself has the mean weight of
    its edges), `diffusion` is x(t+1) = (1 − leak) M (x(t) + ε) and `nonlinear` is
    x(t+1) = tanh(slope · M x(t)) + ε, with ε ~ N(0, noise²).

    Parameters
    ----------
    weights : array of shape (n, n)
        Symmetric weights of the edges.
    samples : int
        Number of samples (time points). Every `length` of them are one series, which starts anew.
    config : Config
        With `dynamics`, `slope`, `leak`, `noise` and `length`.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (samples, n)
    """
    own = weights.sum(1) / (weights > 0).sum(1)
    mean = weights + np.diag(own)
    mean = mean / mean.sum(1, keepdims=True)
    series = -(-samples // config.length)
    x = rng.normal(0, 1, (series, len(weights)))
    states = np.empty((series, config.length, len(weights)))
    for t in range(-BURN_IN, config.length):
        noise = rng.normal(0, config.noise, x.shape)
        if config.dynamics == "nonlinear":
            x = np.tanh(config.slope * (x @ mean.T)) + noise
        else:
            x = (1 - config.leak) * (x + noise) @ mean.T
        if t >= 0:
            states[:, t] = x
    return states.reshape(-1, len(weights))[:samples]
