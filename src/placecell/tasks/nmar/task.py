"""The simulated network on the library's interface."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from placecell.encodings.positions import Positions
from placecell.seeds import numpy_stream
from placecell.tasks.base import Truth, counted
from placecell.tasks.masked import MaskedValues
from placecell.tasks.nmar.config import Config, sizes
from placecell.tasks.nmar.simulate import Array, Network, network, simulate


class Nmar(MaskedValues):
    """Predict masked nodes of a nonlinear network from the visible ones.

    The modules of the network are not shown to the model.
    """

    title = "A network with hidden modules (NMAR)"

    def __init__(self, config: Config) -> None:
        self.config = config
        self.places = Positions.sequence(sum(sizes(config.modules)))

    @cached_property
    def network(self) -> Network:
        """The network that is simulated."""
        c = self.config
        return network(
            sizes(c.modules), c.radius, c.between, c.density, numpy_stream(c.split_seed, "network")
        )

    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """Return time series of their own for each split, standardised by the training samples."""
        c, samples = self.config, {}
        for split, count in {"train": c.n_train, "valid": c.n_valid, "test": c.n_test}.items():
            rng = numpy_stream(c.split_seed, f"series/{split}")
            states = simulate(self.network.weights, -(-count // c.length), c.length, c.noise, rng)
            samples[split] = states.reshape(-1, self.n_tokens)[:count]
        mean, spread = samples["train"].mean(0), samples["train"].std(0)
        return {
            split: ((x - mean) / spread, np.zeros(len(x), dtype=np.int64))
            for split, x in samples.items()
        }

    def names(self) -> list[str]:
        """Return the name of each node (n): its number, counted from 1."""
        return [f"node {i + 1}" for i in range(self.n_tokens)]

    def truth(self) -> Truth:
        """Return the truth: two nodes belong together if they are of one module."""
        modules = self.network.modules
        together = modules[:, None] == modules
        np.fill_diagonal(together, False)
        return Truth(
            together.astype(float),
            {"module": modules},
            partition="module",
            spatial=False,
            together="are of one module",
            value_names={"module": counted(modules)},
        )


TASK = Nmar
