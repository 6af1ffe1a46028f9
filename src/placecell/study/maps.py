"""Attention maps over places, averaged over samples."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from placecell.model import Inputs, Transformer


@torch.no_grad()
def mean_maps(model: Transformer, inputs: Inputs, n_places: int) -> NDArray[np.float64]:
    """Average attention between places over samples.

    Parameters
    ----------
    model : Transformer
        A trained model.
    inputs : Inputs
        The samples. Tokens without a place (a class token) and absent tokens are left out. A pair
        of places counts only in the samples that have tokens at both, and is 0 if none has.
    n_places : int
        Number of places.

    Returns
    -------
    ndarray
        Attention by layer and head (layers h n n).
    """
    maps = model(inputs, maps=True).maps
    pos = inputs.positions
    plain = pos.placed is None and inputs.present is None and pos.index.ndim == 1
    if plain and torch.equal(pos.index.cpu(), torch.arange(n_places)):
        by_layer = [layer.mean(0) for layer in maps]
    else:
        by_layer = [_between_places(layer, inputs, n_places) for layer in maps]
    return torch.stack(by_layer).double().cpu().numpy()


def _between_places(weights: Tensor, inputs: Inputs, n_places: int) -> Tensor:
    """Attention between tokens (b h n n) as a mean over samples between places (h places
    places)."""
    b, h, n, _ = weights.shape
    index = inputs.positions.index.expand(b, n)
    counted = torch.ones_like(index, dtype=torch.bool)
    for mask in (inputs.positions.placed, inputs.present):
        if mask is not None:
            counted = counted & mask
    pairs = (index[:, :, None] * n_places + index[:, None, :]).flatten()
    both = (counted[:, :, None] & counted[:, None, :]).flatten()
    chosen = weights.transpose(0, 1).flatten(1)[:, both]  # h pairs
    sums = weights.new_zeros(h, n_places**2).index_add(1, pairs[both], chosen)
    counts = torch.bincount(pairs[both], minlength=n_places**2).clamp(min=1)
    return (sums / counts).view(h, n_places, n_places)
