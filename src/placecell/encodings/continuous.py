"""A small network from coordinates to a vector."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
from torch import Tensor, nn

from placecell.encodings.base import Encoding, check_shape, check_sigma, check_size, register
from placecell.encodings.factored import places_or_grid
from placecell.encodings.positions import Positions

HIDDEN = 64  # width of the network's hidden layers


@register("continuous")
class ContinuousPE(Encoding):
    """A small network of the coordinates: x_i + N(p_i), a table for places between the known too.

    N has two hidden layers of 64 units. The coordinates of all places are scaled to −1 … 1 before.
    Initially N has mean 0 and standard deviation σ over the places: the last layer is scaled so.
    Source: Li et al., arXiv 2106.02795, without their Fourier features.

    Parameters
    ----------
    n : int
        Number of places.
    d : int
        Width.
    axes : int
        Number of coordinate axes c.
    sigma : float
        Initial standard deviation σ of the output.
    places : Positions, optional
        All places.
    device, dtype : optional
        Of the parameters.
    """

    adds_table = True

    def __init__(
        self,
        n: int,
        d: int,
        axes: int = 1,
        sigma: float = 0.1,
        places: Positions | None = None,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.d, self.axes = check_size("d", d), check_size("axes", axes)
        self.sigma = check_sigma(sigma)
        coords = places_or_grid(n, self.axes, places).along(self.axes).double()  # p c
        low, high = coords.amin(0), coords.amax(0)
        self._middle = [float(v) for v in (low + high) / 2]
        self._half = [float(v) or 1.0 for v in (high - low) / 2]
        self._places = coords
        sizes = (self.axes, HIDDEN, HIDDEN, self.d)
        layers = list(itertools.pairwise(sizes))
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weights = nn.ParameterList(torch.empty(two, one, **kind) for one, two in layers)
        self.biases = nn.ParameterList(torch.empty(two, **kind) for _, two in layers)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the network again."""
        if self.weights[0].is_meta:
            return
        # in single precision on the CPU, so that one generator gives one network everywhere
        drawn = [_draw(weight.shape, generator) for weight in self.weights]
        weights, biases = [w for w, _ in drawn], [b for _, b in drawn]
        weights[0] = math.pi * weights[0]  # a place's neighbours differ, but not by much
        hidden = _hidden(
            self._scaled(self._places),
            [w.double() for w in weights[:-1]],
            [b.double() for b in biases[:-1]],
        )
        outputs = hidden @ weights[-1].double().T  # p d
        outputs = outputs - outputs.mean(0)
        size = float(outputs.square().mean().sqrt()) or 1.0
        weights[-1] = (self.sigma / size) * weights[-1]
        biases[-1] = -(hidden.mean(0) @ weights[-1].double().T).float()
        with torch.no_grad():
            for target, values in zip(
                [*self.weights, *self.biases], [*weights, *biases], strict=True
            ):
                target.copy_(values)

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        """Return x (b n d) plus the network's output for each token."""
        check_shape("token embeddings (b n d)", x, *pos.sizes, self.d)
        return x + self.table(pos)

    def table(self, pos: Positions) -> Tensor:
        """Return the network's output for each token (... n d), zero without a place."""
        weights, biases = list(self.weights), list(self.biases)
        coords = self._scaled(pos.along(self.axes)).to(weights[0].dtype)
        rows = nn.functional.linear(
            _hidden(coords, weights[:-1], biases[:-1]), weights[-1], biases[-1]
        )
        return rows if pos.placed is None else rows.masked_fill(~pos.placed[..., None], 0)

    def _scaled(self, coords: Tensor) -> Tensor:
        return (coords - coords.new_tensor(self._middle)) / coords.new_tensor(self._half)

    def extra_repr(self) -> str:
        return f"{self.d}, axes={self.axes}, sigma={self.sigma:g}"


def _draw(shape: torch.Size, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """A layer's weights, of variance 1 / inputs, and biases of variance 1."""
    plain: dict[str, Any] = {"generator": generator, "dtype": torch.float32, "device": "cpu"}
    weight = torch.randn(tuple(shape), **plain) / shape[1] ** 0.5
    return weight, torch.randn((shape[0],), **plain)


def _hidden(coords: Tensor, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
    """The last hidden layer (... n hidden) of coordinates (... n c)."""
    x = coords
    for weight, bias in zip(weights, biases, strict=True):
        x = torch.tanh(nn.functional.linear(x, weight, bias))
    return x
