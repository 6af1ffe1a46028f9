"""Graphs to learn on: random ones, regular ones, the structural connectome, and one's own."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.tasks.fmri.fetch import folder_of
from placecell.tasks.fmri.loaders import numbers, words
from placecell.tasks.graph.config import Config

Array = NDArray[np.float64]
TRIES = 200  # random graphs drawn until one is connected
LARGEST = 1e15  # of weights and values; models reckon in 32 bits
DATASET, PEOPLE = "hcp-schaefer100", ("100206", "100307")


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
        Names of the nodes.
    flat : bool
        Whether distances between `coords` mean something (not on a torus).
    """

    weights: Array
    names: tuple[str, ...]
    lengths: Array | None = None
    coords: Array | None = None
    blocks: NDArray[np.int64] | None = None
    flat: bool = True

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


def make_network(config: Config, rng: np.random.Generator) -> Network:
    """Draw or read the graph of a configuration.

    Parameters
    ----------
    config : Config
    rng : numpy.random.Generator

    Returns
    -------
    Network
    """
    if config.graph == "files":
        return _own(config)
    if config.graph == "connectome":
        return _connectome(config.density)
    for _ in range(TRIES):
        network = _random(config, rng)
        if _count_parts(network.weights) == 1:
            return network
    raise InputError(
        f"none of {TRIES} random graphs ({config.graph}, {config.nodes} nodes) was connected; "
        "ask for more edges."
    )


def _random(config: Config, rng: np.random.Generator) -> Network:
    """One graph of a family; its nodes are numbered at random."""
    n, order = config.nodes, rng.permutation(config.nodes)
    names = tuple(f"node {i + 1}" for i in range(n))
    if config.graph == "geometric":
        places = rng.random((n, 2))
        apart = np.linalg.norm(places[:, None] - places, axis=-1)
        edges = (apart < np.sqrt(config.degree / (np.pi * n))) & ~np.eye(n, dtype=bool)
        return Network(edges.astype(float), names, coords=places * np.sqrt(n))
    if config.graph == "blocks":
        blocks = np.sort(np.arange(n) % config.blocks)[order]
        share = np.where(blocks[:, None] == blocks, config.inside, config.between)
        upper = np.triu(rng.random((n, n)) < share, 1)
        return Network((upper | upper.T).astype(float), names, blocks=blocks)
    if config.graph == "ring":
        angle = 2 * np.pi * order / n
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * n / (2 * np.pi)
        apart = (order[:, None] - order) % n
        return Network(np.isin(apart, (1, n - 1)).astype(float), names, coords=circle)
    rows = max(k for k in range(1, int(np.sqrt(n)) + 1) if n % k == 0)
    if rows < 3:
        raise InputError(f"a torus needs rows and columns of three nodes or more, not {n} nodes.")
    import networkx as nx

    row, column = np.divmod(order, n // rows)
    torus = nx.to_numpy_array(nx.grid_2d_graph(rows, n // rows, periodic=True))
    where = np.stack([row, column], axis=1).astype(float)
    return Network(torus[np.ix_(order, order)], names, coords=where, flat=False)


def _connectome(density: float) -> Network:
    """The mean of two people's connectomes, reduced to its strongest edges."""
    names = [f"{person}_desc-{kind}.npz" for person in PEOPLE for kind in ("strength", "length")]
    folder = folder_of(DATASET, names)
    strengths, lengths = (
        np.mean([_array(folder / f"{p}_desc-{kind}.npz") for p in PEOPLE], axis=0)
        for kind in ("strength", "length")
    )
    n = len(strengths)
    kept = np.sort(strengths[np.triu_indices(n, 1)])[-round(density * n * (n - 1) / 2)]
    weights = np.where((strengths >= kept) & (strengths > 0), np.log1p(strengths), 0.0)
    if _count_parts(weights) > 1:
        raise InputError(
            f"the connectome falls apart at a density of {density:g}; ask for a higher one."
        )
    networks = np.loadtxt(folder / "ctx_parc-schaefer-100_desc-yeo7.txt").astype(np.int64)
    centres = np.loadtxt(folder / "centroids.csv", delimiter=",")
    apart = np.linalg.norm(centres[:, None] - centres, axis=-1) + np.diag(np.full(n, np.inf))
    coords = (centres - centres.mean(0)) / apart.min(1).mean()
    return Network(weights, tuple(f"region {i + 1}" for i in range(n)), lengths, coords, networks)


def _own(config: Config) -> Network:
    """The user's graph, checked."""
    path = Path(str(config.adjacency))
    weights = read_table(path)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise InputError(f"{path}: an adjacency is square, found {weights.shape}.")
    n = len(weights)
    if n < 6:
        raise InputError(f"{path}: {n} nodes; at least six are needed.")
    if not (np.abs(weights) <= LARGEST).all():
        raise InputError(f"{path}: weights must be finite numbers, at most {LARGEST:g}.")
    if not np.allclose(weights, weights.T):
        i, j = np.argwhere(~np.isclose(weights, weights.T))[0]
        raise InputError(
            f"{path}: an adjacency is symmetric, but row {i + 1}, column {j + 1} is "
            f"{weights[i, j]:g} and the other way round {weights[j, i]:g}."
        )
    if (weights < 0).any():
        i, j = np.argwhere(weights < 0)[0]
        raise InputError(
            f"{path}: weights must not be negative; row {i + 1}, column {j + 1} is "
            f"{weights[i, j]:g}."
        )
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0.0)
    parts = _count_parts(weights)
    if parts > 1:
        raise InputError(
            f"{path}: the graph falls into {parts} parts; it must be connected, so keep one part."
        )
    names = tuple(f"node {i + 1}" for i in range(n))
    if config.names is not None:
        names = tuple(words(Path(config.names)))
        if len(names) != n:
            raise InputError(f"{config.names}: {len(names)} names for {n} nodes.")
    return Network(weights, names)


def read_table(path: Path) -> Array:
    """Read a table of numbers from .npy, .npz (its first array) or a text file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    array of shape (rows, columns)
    """
    if path.suffix not in (".npy", ".npz"):
        return numbers(path)
    try:
        return _array(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file (looked for from {Path.cwd()}).") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        why = "damaged, or Python objects" if "pickle" in str(error) else error
        raise InputError(f"{path}: not a plain array of numbers ({why}).") from None


def _array(path: Path) -> Array:
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        with loaded as file:
            if not file.files:
                raise ValueError("it is empty")
            loaded = file[file.files[0]]
    if np.iscomplexobj(loaded):
        raise ValueError("its numbers are complex")
    return np.asarray(loaded, dtype=np.float64)


def _count_parts(weights: Array) -> int:
    """The number of connected components of a graph."""
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(weights, directed=False)[0])
