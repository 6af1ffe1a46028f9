"""A graph of named nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """A connected graph, its nodes in random order.

    Attributes
    ----------
    weights : array of shape (n, n)
        Symmetric weights of the edges, 0 where there is none.
    lengths : array of shape (n, n), optional
        Length of every edge, where they differ; None: 1 each.
    coords : array of shape (n, c), optional
        Where the nodes are, where that is known; neighbours are about 1 apart.
    blocks : int array of shape (n,), optional
        The block of each node, where there are some.
    names : tuple of str
        Names of the nodes; no two are the same.
    named : bool
        Whether a file gave these names, not this program.
    block_names : tuple of str
        Names of the blocks, where they have some.
    block_word : str
        What the blocks are: of the connectome, functional networks.
    flat : bool
        Whether distances between `coords` mean something (not on a torus).
    """

    weights: Array
    names: tuple[str, ...]
    lengths: Array | None = None
    coords: Array | None = None
    blocks: NDArray[np.int64] | None = None
    flat: bool = True
    named: bool = False
    block_names: tuple[str, ...] = ()
    block_word: str = "block"

    def distances(self) -> Array:
        """Return the length (n, n) of the shortest path between every two nodes."""
        from scipy.sparse.csgraph import shortest_path  # here, so that settings are read quickly

        steps = (
            self.weights > 0
            if self.lengths is None
            else np.where(self.weights > 0, self.lengths, 0)
        )
        lengths: Array = shortest_path(steps.astype(np.float64), directed=False)
        return lengths

    def edges(self) -> Array:
        """Return 1 where two nodes are joined (n, n)."""
        return (self.weights > 0).astype(np.float64)


def numbered(n: int, noun: str = "node") -> list[str]:
    """Return names for nodes that have none: their numbers, counted from 1.

    Parameters
    ----------
    n : int
        Number of nodes.
    noun : str
        What one of them is.

    Returns
    -------
    list of str
    """
    return [f"{noun} {i + 1}" for i in range(n)]


def count_parts(weights: Array) -> int:
    """Return the number of connected components of a graph.

    Parameters
    ----------
    weights : array of shape (n, n)
        Weights of its edges.

    Returns
    -------
    int
    """
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(weights, directed=False)[0])
