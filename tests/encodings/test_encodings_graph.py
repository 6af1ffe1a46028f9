"""Encodings of graphs and of grids that change size, against values from outside."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import laplacian

from placecell.config import EncodingConfig, ModelConfig
from placecell.encodings import ContinuousPE, FactoredPE, LaplacianPE, Positions, RandomWalkPE
from placecell.encodings.laplacian import laplacian_eigenvectors
from placecell.encodings.positions import neighbours
from placecell.encodings.random_walk import return_probabilities
from placecell.errors import InputError
from placecell.model import Inputs, Tokens, build_model

GRAPH = nx.random_geometric_graph(30, 0.35, seed=1)


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def on_graph(graph: nx.Graph) -> Positions:
    n = len(graph)
    places = Positions.sequence(n)
    return Positions(
        places.index, places.coords, graph=torch.from_numpy(nx.to_numpy_array(graph)).float()
    )


def test_eigenvectors_are_those_of_scipy_and_networkx() -> None:
    adjacency = nx.to_numpy_array(GRAPH) * np.random.default_rng(0).uniform(1, 2)
    values, vectors = laplacian_eigenvectors(adjacency, 10)
    assert vectors.shape == (30, 10)
    matrix = laplacian(adjacency, normed=True)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(10), atol=1e-9)
    spectrum = np.sort(nx.normalized_laplacian_spectrum(GRAPH))
    np.testing.assert_allclose(values, spectrum[1:11], atol=1e-9)
    assert (vectors.max(0) >= -vectors.min(0) - 1e-9).all(), "the largest entry is positive"


def test_eigenvectors_of_a_path_are_cosines() -> None:
    """Of D^−½ x with a free end: cos(π k i / (n − 1)), known in closed form."""
    n = 9
    _, vectors = laplacian_eigenvectors(nx.to_numpy_array(nx.path_graph(n)), 3)
    root = np.sqrt([1, *[2] * (n - 2), 1])
    for k, vector in enumerate(vectors.T, 1):
        wave = root * np.cos(np.pi * k * np.arange(n) / (n - 1))
        cosine = abs(vector @ wave) / np.linalg.norm(wave)
        assert cosine == pytest.approx(1, abs=1e-9)


def test_return_probabilities_are_powers_of_the_walk() -> None:
    adjacency = nx.to_numpy_array(GRAPH)
    walk = adjacency / adjacency.sum(1, keepdims=True)
    back = return_probabilities(adjacency, 6)
    for k in range(1, 7):
        power = np.linalg.matrix_power(walk, k)
        np.testing.assert_allclose(back[:, k - 1], np.diagonal(power), atol=1e-12)
    assert return_probabilities(nx.to_numpy_array(nx.complete_graph(3)), 2)[0].tolist() == [0, 0.5]


def test_random_walk_tells_no_nodes_of_a_ring_apart() -> None:
    places = on_graph(nx.cycle_graph(8))
    table = RandomWalkPE(8, 16, places=places).table(places)
    assert float(table.detach().abs().max()) == 0
    lopsided = nx.cycle_graph(8)
    lopsided.add_edge(0, 3)
    places = on_graph(lopsided)
    assert float(RandomWalkPE(8, 16, places=places).table(places).detach().std()) > 0.4


@pytest.mark.parametrize("cls", [LaplacianPE, RandomWalkPE])
def test_the_graph_decides_the_table_and_sigma_is_its_size(cls: type) -> None:
    places = on_graph(GRAPH)
    encoding = cls(30, 48, sigma=0.3, features=5, places=places)
    table = encoding.table(places).detach()
    assert np.linalg.matrix_rank(table.double().numpy(), tol=1e-4) == 5 - (cls is RandomWalkPE)
    assert float(table.std(correction=0)) == pytest.approx(0.3, rel=1e-5)
    path = cls(30, 48, sigma=0.3, features=5).table(places).detach()
    assert not torch.allclose(table, path)


def test_signs_are_drawn_in_training_only() -> None:
    places, x = on_graph(GRAPH), torch.zeros(4, 30, 48)
    encoding = LaplacianPE(30, 48, features=6, places=places)
    plain = encoding.embed(x, places).detach()
    encoding.begin_step(4, stream(0))
    one = encoding.embed(x, places).detach()
    encoding.begin_step(4, stream(0))
    again = encoding.embed(x, places).detach()
    assert torch.equal(one, again)
    assert not torch.allclose(one[0], one[1]), "each sample has signs of its own"
    signs = torch.linalg.lstsq(
        encoding.weight.T, torch.linalg.lstsq(encoding.values, one[0]).solution.T
    ).solution.diagonal()
    torch.testing.assert_close(signs.abs(), torch.ones(6), rtol=1e-3, atol=1e-3)
    assert (signs < 0).any() or (one[0] == plain[0]).all()
    assert torch.equal(encoding.table(places).detach(), plain[0]), "the table has no random signs"
    encoding.end_step()
    assert torch.equal(encoding.embed(x, places).detach(), plain)


def test_an_isolated_node_is_refused() -> None:
    lonely = nx.path_graph(4)
    lonely.add_node(4)
    with pytest.raises(InputError, match="node 5 of the graph has no edge"):
        LaplacianPE(5, 8, places=on_graph(lonely))


def test_factored_is_the_sum_of_one_row_per_axis() -> None:
    places = Positions.grid(3, 5)
    encoding = FactoredPE(15, 8, axes=2, sigma=0.5, places=places)
    assert [tuple(part.shape) for part in encoding.tables] == [(3, 8), (5, 8)]
    table = encoding.table(places).detach().view(3, 5, 8)
    for row in range(3):
        for column in range(5):
            expected = encoding.tables[0][row] + encoding.tables[1][column]
            torch.testing.assert_close(table[row, column], expected.detach())
    wide = Positions.grid(200, 200)
    table = FactoredPE(40000, 8, axes=2, sigma=0.5, places=wide).table(wide).detach()
    assert float(table.std()) == pytest.approx(0.5, rel=0.05)


def test_factored_wants_whole_coordinates() -> None:
    between = Positions(torch.arange(3), torch.tensor([[0.0], [0.5], [1.0]]))
    with pytest.raises(InputError, match="whole numbers from 0"):
        FactoredPE(3, 8, places=between)


def test_continuous_is_a_function_of_the_coordinates() -> None:
    places = Positions.grid(6, 6)
    encoding = ContinuousPE(36, 32, axes=2, sigma=0.2, places=places)
    table = encoding.table(places).detach()
    assert float(table.std(correction=0)) == pytest.approx(0.2, rel=1e-4)
    assert float(table.mean(0).abs().max()) < 1e-6
    between = Positions(torch.tensor([0]), torch.tensor([[2.5, 2.0]]))
    near = encoding.table(between).detach()[0]
    apart = [float((near - table[i]).norm()) for i in (12, 14, 20, 35)]
    assert apart[1] < apart[0]
    assert apart[1] < apart[3], "nearest to the cells it lies between"


def test_neighbours_attention_reaches_neighbours_only() -> None:
    places, settings = (
        on_graph(nx.path_graph(6)),
        ModelConfig(width=16, depth=1, attention="neighbours"),
    )
    model = build_model(
        Tokens("symbol", 9),
        places,
        3,
        settings,
        EncodingConfig("learnable", sigma=0.5),
        weights=stream(0),
        pe=stream(1),
    )
    tokens = torch.randint(9, (2, 6), generator=stream(2))
    changed = tokens.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 9
    before, after = (model(Inputs(t, places)).outputs.detach() for t in (tokens, changed))
    moved = (before - after).abs().amax(-1) > 1e-7
    assert moved.tolist() == [[False, False, False, True, True, True]] * 2
    maps = model(Inputs(tokens, places), maps=True).maps[0]
    far = (torch.arange(6)[:, None] - torch.arange(6)).abs() > 1
    assert float(maps[:, :, far].detach().abs().max()) == 0
    with pytest.raises(InputError, match="needs a graph"):
        build_model(
            Tokens("symbol", 9),
            Positions.sequence(6),
            3,
            settings,
            EncodingConfig("learnable"),
            weights=stream(0),
            pe=stream(1),
        )


def test_attention_full_is_the_default_by_another_name() -> None:
    assert ModelConfig(attention="full") == ModelConfig()
    assert ModelConfig(attention="neighbours") != ModelConfig()


def test_a_class_token_is_everybodys_neighbour() -> None:
    places = on_graph(nx.path_graph(4)).with_class_token()
    near = neighbours(places, places)[0]
    assert near[0].all()
    assert near[:, 0].all()
    assert near[1].tolist() == [True, True, True, False, False]
    some = places.take(torch.tensor([[0, 2], [4, 4]]))
    assert torch.equal(neighbours(some, places)[:, 0], near[torch.tensor([[0, 2], [4, 4]])])
