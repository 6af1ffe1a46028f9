"""Fixed features of places with a learned linear map: what the graph encodings share."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from placecell.encodings.base import Encoding, check_shape, check_sigma, check_size
from placecell.encodings.positions import Positions, rows_at
from placecell.errors import InputError

Array = NDArray[np.float64]


class FeaturePE(Encoding):
    """Adds F[index] W to x, with F fixed features (p k) of the places and W learned.

    Initially W is drawn so that the table F W has mean 0 and standard deviation σ over the places.

    Parameters
    ----------
    features : array of shape (p, k)
        Features of all p places. They are centred; one that is the same everywhere becomes 0.
    d : int
        Width.
    sigma : float
        Initial standard deviation σ of the table.
    device, dtype : optional
        Of the parameters.
    """

    values: Tensor

    def __init__(
        self,
        features: Array,
        d: int,
        sigma: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d, self.sigma = check_size("d", d), check_sigma(sigma)
        self._features = features - features.mean(axis=0)
        places, count = features.shape
        empty = torch.empty(places, count, device=device, dtype=dtype)
        self.register_buffer("values", empty, persistent=False)  # known from the graph
        self.weight = nn.Parameter(torch.empty(count, self.d, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the map again; the features stay."""
        if self.weight.is_meta:
            return
        shape, features = tuple(self.weight.shape), torch.from_numpy(self._features)
        z = torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")
        size = float((features @ z.double()).square().mean().sqrt())
        with torch.no_grad():
            self.values.copy_(features)
            self.weight.copy_((self.sigma / size if size > 1e-9 else self.sigma) * z)

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        """Return x (b n d) plus the table's row for each token."""
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        return x + self._rows(self._for_step(self._at(pos)), pos)

    def table(self, pos: Positions) -> Tensor:
        """Return the table's row for each token (... n d), zero for a token without a place."""
        return self._rows(self._at(pos), pos)

    def _at(self, pos: Positions) -> Tensor:
        """The features (... n k) of the tokens' places."""
        return rows_at(self.values, pos)

    def check_positions(self, pos: Positions) -> None:
        """Raise `InputError` if a token's index is not a row of the table."""
        pos.check_index(len(self.values))

    def _for_step(self, features: Tensor) -> Tensor:
        """The features (... n k) as a training step sees them; a subclass may change them."""
        return features

    def _rows(self, features: Tensor, pos: Positions) -> Tensor:
        rows = features @ self.weight
        return rows if pos.placed is None else rows.masked_fill(~pos.placed[..., None], 0)

    def extra_repr(self) -> str:
        places, count = self.values.shape
        return f"{places}, {self.d}, features={count}, sigma={self.sigma:g}"


def adjacency_of(n: int, places: Positions | None) -> Array:
    """Return the adjacency (p p) of the graph of the places.

    Parameters
    ----------
    n : int
        Number of places.
    places : Positions, optional
        All places. If they have no graph, or are not given, the graph is the path 0 – 1 – … – n−1.

    Returns
    -------
    array of shape (p, p)
    """
    if places is not None and places.graph is not None:
        graph: Array = places.graph.double().cpu().numpy()
        return graph
    path = np.arange(check_size("n", n))
    adjacent: Array = (np.abs(path[:, None] - path) == 1).astype(np.float64)
    return adjacent


def degrees(adjacency: Array) -> Array:
    """Return the degree (n) of every node: the sum of the weights of its edges.

    Parameters
    ----------
    adjacency : array of shape (n, n)
        Symmetric weights, at least 0. A node without an edge is refused.

    Returns
    -------
    array of shape (n,)
    """
    degree: Array = adjacency.sum(axis=1)
    lonely = np.flatnonzero(degree <= 0)
    if len(lonely):
        raise InputError(f"node {lonely[0] + 1} of the graph has no edge.")
    return degree
