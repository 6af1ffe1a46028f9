"""Graphs to learn on: random ones, regular ones, the structural connectome, and one's own."""

from __future__ import annotations

import numpy as np

from placecell.errors import InputError
from placecell.tasks.fmri.fetch import folder_of
from placecell.tasks.graph.config import Config
from placecell.tasks.graph.files import load_array, load_graph
from placecell.tasks.graph.network import Network, count_parts, numbered

TRIES = 200  # random graphs drawn until one is connected
DATASET, PEOPLE = "hcp-schaefer100", ("100206", "100307")


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
        return load_graph(config)
    if config.graph == "connectome":
        return _connectome(config.density)
    for _ in range(TRIES):
        network = _random(config, rng)
        if count_parts(network.weights) == 1:
            return network
    raise InputError(
        f"none of {TRIES} random graphs ({config.graph}, {config.nodes} nodes) was connected; "
        "ask for more edges."
    )


def _random(config: Config, rng: np.random.Generator) -> Network:
    """One graph of a family; its nodes are numbered at random."""
    n, order = config.nodes, rng.permutation(config.nodes)
    names = tuple(numbered(n))
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
    arrays = [f"{person}_desc-{kind}.npz" for person in PEOPLE for kind in ("strength", "length")]
    folder = folder_of(DATASET, arrays)
    strengths, lengths = (
        np.mean([load_array(folder / f"{p}_desc-{kind}.npz") for p in PEOPLE], axis=0)
        for kind in ("strength", "length")
    )
    n = len(strengths)
    kept = np.sort(strengths[np.triu_indices(n, 1)])[-round(density * n * (n - 1) / 2)]
    weights = np.where((strengths >= kept) & (strengths > 0), np.log1p(strengths), 0.0)
    if count_parts(weights) > 1:
        raise InputError(
            f"the connectome falls apart at a density of {density:g}; ask for a higher one."
        )
    networks = np.loadtxt(folder / "ctx_parc-schaefer-100_desc-yeo7.txt").astype(np.int64)
    centres = np.loadtxt(folder / "centroids.csv", delimiter=",")
    apart = np.linalg.norm(centres[:, None] - centres, axis=-1) + np.diag(np.full(n, np.inf))
    coords = (centres - centres.mean(0)) / apart.min(1).mean()
    from placecell.tasks.fmri.datasets import YEO7  # here, so that settings are read quickly

    names = tuple(numbered(n, "region"))
    return Network(
        weights, names, lengths, coords, networks, block_names=YEO7, block_word="network"
    )
