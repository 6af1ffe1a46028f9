"""Return probabilities of random walks on a graph."""

from __future__ import annotations

import numpy as np
import torch

from placecell.encodings.base import check_size, register
from placecell.encodings.features import Array, FeaturePE, adjacency_of, degrees
from placecell.encodings.positions import Positions


def return_probabilities(adjacency: Array, steps: int) -> Array:
    """Compute the probability that a random walk is back at its first node after 1, 2, … steps.

    Parameters
    ----------
    adjacency : array of shape (n, n)
        Symmetric weights, at least 0; every node has an edge. A walk takes an edge with a
        probability in proportion to its weight.
    steps : int
        Number of steps.

    Returns
    -------
    array of shape (n, steps)
    """
    step = adjacency / degrees(adjacency)[:, None]
    walk, back = np.eye(len(step)), []
    for _ in range(steps):
        walk = walk @ step
        back.append(np.diagonal(walk).copy())
    return np.stack(back, axis=1)


@register("random-walk")
class RandomWalkPE(FeaturePE):
    """Return probabilities of random walks on the graph and a learned map: x_i + R_i W.

    R has the probability to be back after 1, 2, … steps, each standardised over the nodes. Nodes
    that a symmetry of the graph exchanges have the same row: on a ring or a torus all have, and
    the encoding tells none apart. Places without a graph are a path.
    Source: Dwivedi et al., arXiv 2110.07875.

    Parameters
    ----------
    n : int
        Number of places.
    d : int
        Width.
    sigma : float
        Initial standard deviation σ of the table.
    features : int
        Number of steps.
    places : Positions, optional
        All places, with their graph.
    device, dtype : optional
        Of the parameters.
    """

    def __init__(
        self,
        n: int,
        d: int,
        sigma: float = 0.5,
        features: int = 16,
        places: Positions | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        returns = return_probabilities(adjacency_of(n, places), check_size("features", features))
        spread = returns.std(axis=0)
        # the same everywhere but for rounding, such as 0 after one step: no information
        told = np.where(spread > 1e-9, (returns - returns.mean(axis=0)) / (spread + 1e-30), 0.0)
        super().__init__(told, d, sigma, device, dtype)
