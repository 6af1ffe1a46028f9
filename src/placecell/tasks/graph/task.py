"""Values on a graph, on the library's interface: nodes are tokens."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from placecell import analysis
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.seeds import numpy_stream
from placecell.tasks.base import Truth, counted
from placecell.tasks.fmri.config import Config as BoldConfig
from placecell.tasks.fmri.task import Fmri
from placecell.tasks.graph.config import Config
from placecell.tasks.graph.files import LARGEST, read_table
from placecell.tasks.graph.network import Array, Network, numbered
from placecell.tasks.graph.simulate import simulate
from placecell.tasks.graph.sources import make_network
from placecell.tasks.masked import MaskedValues
from placecell.tasks.names import refuse_same_names, tidy
from placecell.tasks.tables import words

HELD_OUT = 0.15  # last share of one's own values to test on, and as much before it to validate


class GraphValues(MaskedValues):
    """Predict masked nodes of a graph from the visible ones; the graph is the reference.

    The places carry the graph, for the encodings that read it (`laplacian`, `random-walk`) and for
    attention to neighbours; a learnable table is not told.
    """

    shown: tuple[str, ...] = (
        "table/path",
        "table/relation",
        "table/fc",
        "table/strength",
        "table/louvain_ari",
        "attention/relation",
    )

    def __init__(self, config: Config) -> None:
        if config.simulates:  # recorded, because a run is named by what it was made with
            size = config.sizes
            config = replace(
                config, n_train=size["train"], n_valid=size["valid"], n_test=size["test"]
            )
        self.network = make_network(config, numpy_stream(config.split_seed, "graph"))
        if config.graph == "files":
            self._values: Array | None = None
            if config.values is not None:
                self._values, self.network = _own_values(config, self.network)
            digest = _digest(config, self.network, self._values)
            if config.contents not in (None, digest):
                raise InputError(
                    f"{config.adjacency}: these files have changed since the run was made "
                    f"(contents {digest}, expected {config.contents})."
                )
            config = replace(config, contents=digest)  # so that other files are another run
        self.config = config
        n, coords = len(self.network.weights), self.network.coords
        plain = Positions.sequence(n)
        where = plain.coords if coords is None else torch.from_numpy(coords.astype(np.float32))
        graph = torch.from_numpy(self.network.weights.astype(np.float32))
        self.places = Positions(plain.index, where, graph=graph)

    @cached_property
    def _bold(self) -> Fmri:
        """The fMRI task whose volumes are the values on the connectome."""
        return Fmri(BoldConfig(dataset="hcp-schaefer100", mask=self.config.mask))

    @property
    def flip(self) -> bool:
        """Whether training turns signs at random: fluctuations of BOLD have no up or down."""
        return self.config.graph == "connectome"

    @property
    def groups(self) -> tuple[str, ...]:  # type: ignore[override]
        """The people whose data are scored, on the connectome."""
        return self._bold.groups if self.config.graph == "connectome" else ("all",)

    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """Values of each split, standardised by the training samples."""
        c = self.config
        if c.graph == "connectome":
            return self._bold.fields()
        if c.graph == "files" and self._values is not None:
            found = self._parts(self._values)
        else:
            found = {
                split: simulate(
                    self.network.weights, size, c, numpy_stream(c.split_seed, f"series/{split}")
                )
                for split, size in c.sizes.items()
            }
        mean, spread = found["train"].mean(0), found["train"].std(0)
        return {
            split: ((x - mean) / np.where(spread > 0, spread, 1), np.zeros(len(x), dtype=np.int64))
            for split, x in found.items()
        }

    def _parts(self, values: Array) -> dict[str, Array]:
        """The first of one's own values to train on, then those to validate and test on, each from
        its beginning as many as are asked for."""
        held = round(HELD_OUT * len(values))
        cuts = np.split(values, [len(values) - 2 * held, len(values) - held])
        parts = dict(zip(("train", "valid", "test"), cuts, strict=True))
        for split, wanted in self.config.sizes.items():
            if wanted > len(parts[split]):
                raise InputError(
                    f"n_{split} is {wanted}, but the {len(values)} samples of {self.config.values} "
                    f"leave {len(parts[split])} for it; make it smaller, or leave it out for all."
                )
            parts[split] = parts[split][:wanted]
        return parts

    def truth(self) -> Truth:
        """Two nodes belong together when they are joined."""
        network = self.network
        labels, names = {}, {}
        if network.blocks is not None:
            labels[network.block_word] = network.blocks
            names[network.block_word] = network.block_names or counted(network.blocks)
        return Truth(
            network.edges(),
            labels,
            partition=next(iter(labels), None),
            spatial=network.coords is not None and network.flat,
            together="are joined",
            value_names=names,
        )

    def names(self) -> list[str]:
        """Return the name of each node (n)."""
        return list(self.network.names)

    def _measured(
        self, of: str, similarity: Array, table: Array, rng: np.random.Generator
    ) -> dict[str, float]:
        """As for all masked values, and how far a table follows the graph.

        `path` is Spearman's ρ of distances in the table with lengths of shortest paths; `strength`
        the correlation of similarities with the weights of the edges, where these differ.
        """
        found = super()._measured(of, similarity, table, rng)
        distances, weights = self.network.distances(), self.network.weights
        path = analysis.distance_correlation(table, distances=distances).value
        found[f"{of}/path"] = path
        if len(np.unique(weights[weights > 0])) > 1:
            found[f"{of}/strength"] = analysis.matrix_correlation(similarity, weights)
        return found


TASK = GraphValues


def _own_values(config: Config, network: Network) -> tuple[Array, Network]:
    """The values on one's own graph, and the graph, with the names above them if it had none."""
    path = Path(str(config.values))
    values, names = read_table(path)
    if values.ndim != 2 or values.shape[1] != len(network.weights):
        raise InputError(
            f"{path}: expected a row a sample and {len(network.weights)} columns, one a node; "
            f"found {values.shape}."
        )
    called = [tidy(name) for name in names]
    if "" in called:
        raise InputError(f"{path}: the name of column {called.index('') + 1} is empty.")
    if not all(name.isdecimal() for name in called):  # columns that are only numbered name no node
        refuse_same_names(called, str(path), "columns")
        if not network.named:
            network = replace(network, names=tuple(called), named=True)
        other = [i for i, name in enumerate(called) if name != network.names[i]]
        if other:
            raise InputError(
                f"{path}: column {other[0] + 1} is called {called[other[0]]!r} and node "
                f"{other[0] + 1} {network.names[other[0]]!r}; bring both into one order, or leave "
                "the names out."
            )
    wrong = np.flatnonzero(~(np.abs(values) <= LARGEST).all(axis=0))
    if len(wrong):
        raise InputError(
            f"{path}: values must be finite numbers, at most {LARGEST:g}; those of "
            f"{network.names[wrong[0]]} are not."
        )
    if len(values) < 20:
        raise InputError(f"{path}: {len(values)} samples; at least 20 are needed.")
    return values, network


def _digest(config: Config, network: Network, values: Array | None) -> str:
    """What tells one's own files from others; names that stand in tables are not part of it."""
    given = numbered(len(network.weights)) if config.names is None else words(Path(config.names))
    seen = hashlib.sha256(repr(tuple(given)).encode())
    for part in (network.weights, values):
        seen.update(b"" if part is None else part.astype("<f4").tobytes())
    return seen.hexdigest()[:12]
