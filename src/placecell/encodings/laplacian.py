"""Eigenvectors of the graph Laplacian."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from placecell.encodings.base import check_size, register
from placecell.encodings.features import Array, FeaturePE, adjacency_of, degrees
from placecell.encodings.positions import Positions


def laplacian_eigenvectors(adjacency: Array, count: int) -> tuple[Array, Array]:
    """Compute the smoothest eigenvectors of the symmetric normalised Laplacian I − D^−½ A D^−½.

    The first eigenvector of all is left out: it only tells the degree of a node. An eigenvector has
    no sign of its own; here its entry of largest size is positive.

    Parameters
    ----------
    adjacency : array of shape (n, n)
        Symmetric weights A, at least 0; every node has an edge.
    count : int
        Number of eigenvectors, at most n − 1.

    Returns
    -------
    values : array of shape (count,)
        Eigenvalues, rising.
    vectors : array of shape (n, count)
        Eigenvectors of length 1.
    """
    root = 1 / np.sqrt(degrees(adjacency))
    laplacian = np.eye(len(adjacency)) - root[:, None] * adjacency * root
    values, vectors = np.linalg.eigh(laplacian)
    values, vectors = values[1 : count + 1], vectors[:, 1 : count + 1]
    # of entries that are equal up to rounding, the first decides
    largest = (np.abs(vectors) >= np.abs(vectors).max(axis=0) - 1e-9).argmax(axis=0)
    return values, vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


@register("laplacian")
class LaplacianPE(FeaturePE):
    """Eigenvectors of the graph Laplacian and a learned map: x_i + (s ⊙ U_i) W.

    U has the smoothest eigenvectors, each of mean square 1 over the nodes. In training, every
    sample draws random signs s, because an eigenvector has no sign of its own; elsewhere s is 1.
    Places without a graph are a path.
    Source: Dwivedi and Bresson, arXiv 2012.09699; random signs as in Dwivedi et al., arXiv
    2003.00982.

    Parameters
    ----------
    n : int
        Number of places.
    d : int
        Width.
    sigma : float
        Initial standard deviation σ of the table.
    features : int
        Number of eigenvectors; n − 1 if there are fewer.
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
        adjacency = adjacency_of(n, places)
        count = min(check_size("features", features), len(adjacency) - 1)
        vectors = laplacian_eigenvectors(adjacency, count)[1] * len(adjacency) ** 0.5
        super().__init__(vectors, d, sigma, device, dtype)
        self._signs: Tensor | None = None  # b 1 k, during a training step

    def begin_step(self, samples: int, generator: torch.Generator) -> None:
        """Draw the signs of every eigenvector for each sample of a training step."""
        shape = (samples, 1, len(self.weight))
        self._signs = (2.0 * torch.randint(2, shape, generator=generator) - 1).to(self.weight)

    def end_step(self) -> None:
        """Take the signs back: outside training all are +1."""
        self._signs = None

    def _for_step(self, features: Tensor) -> Tensor:
        return features if self._signs is None else features * self._signs
