"""Graphs: sources, dynamics, measures along the graph, and input that cannot be used."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.stats import spearmanr

from placecell import analysis
from placecell.errors import InputError
from placecell.tasks.graph import make_network, simulate
from placecell.tasks.graph.config import Config
from placecell.tasks.graph.task import GraphValues
from placecell.tasks.optional import Learned

SMALL = {"nodes": 24, "n_train": 60, "n_valid": 20, "n_test": 20}
RANDOM = ("geometric", "blocks", "ring", "torus")


@pytest.mark.parametrize("graph", RANDOM)
def test_graphs_are_connected_and_symmetric(graph: str) -> None:
    config = Config(graph=graph, nodes=24, inside=0.8, between=0.1)
    network = make_network(config, np.random.default_rng(0))
    weights = network.weights
    assert weights.shape == (24, 24)
    assert np.array_equal(weights, weights.T)
    assert not np.diagonal(weights).any()
    whole = nx.from_numpy_array(weights)
    assert nx.is_connected(whole)
    degrees = dict(whole.degree())
    if graph == "ring":
        assert set(degrees.values()) == {2}
        assert nx.is_isomorphic(whole, nx.cycle_graph(24))
    if graph == "torus":
        assert nx.is_isomorphic(whole, nx.grid_2d_graph(4, 6, periodic=True))
    if graph == "geometric":
        apart = np.linalg.norm(network.coords[:, None] - network.coords, axis=-1)
        joined = weights > 0
        assert apart[joined].max() < apart[~joined & ~np.eye(24, dtype=bool)].min()
    if graph == "blocks":
        assert np.bincount(network.blocks).tolist() == [5, 5, 5, 5, 4]
    lengths = dict(nx.all_pairs_shortest_path_length(whole))
    distances = network.distances()
    assert all(distances[i, j] == lengths[i][j] for i, j in np.ndindex(24, 24))


def test_dynamics_are_those_of_a_loop() -> None:
    weights = nx.to_numpy_array(nx.path_graph(4)) * np.array([[1.0]])
    for dynamics in ("nonlinear", "diffusion"):
        config = Config(dynamics=dynamics, length=3, noise=0.1, slope=1.7, leak=0.2)
        states = simulate(weights, 7, config, np.random.default_rng(3))
        assert states.shape == (7, 4)
        rng = np.random.default_rng(3)
        x = rng.normal(0, 1, (3, 4))
        kept = []
        for t in range(-100, 3):
            noise = rng.normal(0, 0.1, (3, 4))
            new = np.empty_like(x)
            for s in range(3):
                for i in range(4):
                    around = [j for j in (i - 1, i, i + 1) if 0 <= j < 4]
                    if dynamics == "nonlinear":
                        mean = np.mean([x[s, j] for j in around])
                        new[s, i] = np.tanh(1.7 * mean) + noise[s, i]
                    else:
                        new[s, i] = 0.8 * np.mean([x[s, j] + noise[s, j] for j in around])
            x = new
            if t >= 0:
                kept.append(x)
        expected = np.stack(kept, axis=1).reshape(-1, 4)[:7]
        np.testing.assert_allclose(states, expected, atol=1e-10)


@pytest.fixture(scope="module")
def task() -> GraphValues:
    return GraphValues(Config(**SMALL))


def test_the_table_is_measured_along_the_graph(task: GraphValues) -> None:
    rng = np.random.default_rng(0)
    table, noise = task.network.coords, rng.normal(size=(24, 8))
    values = task.measure(Learned(table, noise, np.full((1, 24, 24), 1 / 24)), rng)
    pairs = np.triu_indices(24, 1)
    apart = np.linalg.norm(table[:, None] - table, axis=-1)
    expected = spearmanr(apart[pairs], task.network.distances()[pairs]).statistic
    assert values["table/path"] == pytest.approx(expected)
    assert values["table/path"] > 0.7
    assert abs(values["untrained/path"]) < 0.3


def test_distances_must_fit_the_table() -> None:
    table = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(InputError, match="symmetric matrix"):
        analysis.distance_correlation(table, distances=np.ones((4, 4)))
    with pytest.raises(InputError, match="coordinates of the tokens, or the distances"):
        analysis.distance_correlation(table)


def test_the_places_carry_the_graph_and_the_truth_is_its_edges(task: GraphValues) -> None:
    graph = task.places.graph.numpy()
    assert np.array_equal(graph > 0, task.truth().relation > 0)
    assert task.truth().spatial
    assert task.names()[0] == "node 1"
    blocks = GraphValues(Config(graph="blocks", inside=0.9, between=0.1, **SMALL))
    assert blocks.truth().partition == "block"
    assert not blocks.truth().spatial


def test_the_linear_gaussian_baseline_is_there() -> None:
    blocks = {"graph": "blocks", "nodes": 12, "blocks": 3, "inside": 0.9}
    scores = GraphValues(Config(**SMALL | blocks)).baselines()
    assert scores["linear Gaussian"]["test/mse"] < scores["mean"]["test/mse"]
    assert "table/path" in scores["correlations of the training data"], "as a table is measured"


# ------------------------------------------------------------------ files


def written(path: Path, table: np.ndarray) -> str:
    np.savetxt(path, table, delimiter=",", fmt="%g")
    return str(path)


def path_graph(n: int = 8) -> np.ndarray:
    return nx.to_numpy_array(nx.path_graph(n))


def test_a_graph_of_ones_own_with_names_and_values(tmp_path: Path) -> None:
    adjacency = written(tmp_path / "a.csv", 2.0 * path_graph())
    (tmp_path / "names.txt").write_text("".join(f"town {i}\n" for i in range(8)))
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100, 8)).cumsum(1)
    np.save(tmp_path / "v.npy", values)
    config = Config(
        graph="files",
        adjacency=adjacency,
        values=str(tmp_path / "v.npy"),
        names=str(tmp_path / "names.txt"),
    )
    task = GraphValues(config)
    assert task.names()[3] == "town 3"
    assert {s: len(e) for s, e in task.splits().items()} == {"train": 70, "valid": 15, "test": 15}
    simulated = GraphValues(Config(graph="files", adjacency=adjacency, **SMALL))
    assert len(simulated.splits()["train"]) == 60
    written(tmp_path / "a.csv", 3.0 * path_graph())
    with pytest.raises(InputError, match="have changed"):
        GraphValues(task.config)


def broken(what: str) -> np.ndarray:
    a = path_graph()
    if what == "cut":
        a[3, 4] = a[4, 3] = 0
    elif what == "oblong":
        a = a[:, :7]
    elif what == "one way":
        a[0, 1] = 5
    elif what == "negative":
        a[0, 1] = a[1, 0] = -1
    elif what == "small":
        a = a[:4, :4]
    elif what == "nan":
        a[0, 1] = a[1, 0] = np.inf
    elif what == "huge":
        a *= 1e300
    elif what == "complex":
        a = a + 1j
    return a


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("cut", "falls into 2 parts; it must be connected"),
        ("oblong", r"an adjacency is square, found \(8, 7\)"),
        ("one way", "symmetric, but row 1, column 2 is 5 and the other way round 1"),
        ("negative", "must not be negative; row 1, column 2 is -1"),
        ("small", "4 nodes; at least six"),
        ("nan", "finite numbers"),
        ("huge", r"finite numbers, at most 1e\+15"),
        ("complex", "its numbers are complex"),
    ],
)
def test_graphs_that_cannot_be_used(what: str, said: str, tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", broken(what))
    with pytest.raises(InputError, match=said):
        GraphValues(Config(graph="files", adjacency=str(tmp_path / "bad.npy")))


def test_other_files_and_settings_that_cannot_be_used(tmp_path: Path) -> None:
    adjacency = written(tmp_path / "a.csv", path_graph())
    (tmp_path / "names.txt").write_text("a\nb\n")
    own = {"graph": "files", "adjacency": adjacency}
    with pytest.raises(InputError, match="2 names for 8 nodes"):
        GraphValues(Config(**own, names=str(tmp_path / "names.txt")))
    np.save(tmp_path / "v.npy", np.zeros((30, 7)))
    with pytest.raises(InputError, match="8 columns, one a node; found"):
        GraphValues(Config(**own, values=str(tmp_path / "v.npy")))
    np.save(tmp_path / "v.npy", np.full((30, 8), 1e300))
    with pytest.raises(InputError, match="values must be finite numbers, at most"):
        GraphValues(Config(**own, values=str(tmp_path / "v.npy")))
    with pytest.raises(InputError, match="no such file"):
        GraphValues(Config(graph="files", adjacency=str(tmp_path / "nowhere.npy")))
    (tmp_path / "bad.npy").write_text("no array")
    with pytest.raises(InputError, match="damaged, or Python objects"):
        GraphValues(Config(graph="files", adjacency=str(tmp_path / "bad.npy")))
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(InputError, match="it is empty"):
        GraphValues(Config(graph="files", adjacency=str(tmp_path / "empty.npz")))
    with pytest.raises(InputError, match="set `graph` to files"):
        Config(adjacency="a.csv")
    with pytest.raises(InputError, match="needs `adjacency`"):
        Config(graph="files")
    with pytest.raises(InputError, match="was connected; ask for more edges"):
        GraphValues(Config(degree=1.5))
    with pytest.raises(InputError, match="rows and columns of three"):
        GraphValues(Config(graph="torus", nodes=7))
    with pytest.raises(InputError, match="need 24 nodes, found 20"):
        Config(graph="blocks", blocks=12, nodes=20)


def test_the_connectome_has_the_regions_of_the_bold(hcp) -> None:
    hcp("hcp-schaefer100")
    try:
        task = GraphValues(Config(graph="connectome"))
    except InputError as error:
        pytest.skip(str(error))
    network = task.network
    assert network.weights.shape == (100, 100)
    assert network.weights[np.triu_indices(100, 1)].astype(bool).mean() == pytest.approx(0.1, 0.02)
    assert nx.is_connected(nx.from_numpy_array(network.weights))
    assert np.isfinite(network.distances()).all()
    splits = task.splits()
    assert splits["test"].tokens.shape == (2400, 100, 2)
    assert task.truth().partition == "network"
    assert {"Visual", "Default"} < set(task.truth().named("network"))
    with pytest.raises(InputError, match=r"falls apart at a density of 0\.01"):
        GraphValues(Config(graph="connectome", density=0.01))


def test_the_samples_of_ones_own_values_can_be_fewer(tmp_path: Path) -> None:
    adjacency = written(tmp_path / "a.csv", path_graph())
    values = np.random.default_rng(0).normal(size=(100, 8))
    np.save(tmp_path / "v.npy", values)
    own = {"graph": "files", "adjacency": adjacency, "values": str(tmp_path / "v.npy")}
    few = GraphValues(Config(**own, n_train=20, n_test=7))
    assert {s: len(x) for s, (x, _) in few.fields().items()} == {
        "train": 20,
        "valid": 15,
        "test": 7,
    }
    first = few.fields()["train"][0]
    assert first == pytest.approx((values[:20] - values[:20].mean(0)) / values[:20].std(0))
    with pytest.raises(InputError, match=r"n_train is 71, but the 100 samples of .*leave 70"):
        GraphValues(Config(**own, n_train=71)).splits()
    earlier = Config(**own, n_train=8000, n_valid=1000, n_test=2000)  # recorded, never heeded
    assert len(GraphValues(earlier).fields()["train"][0]) == 70
    assert GraphValues(Config(**own)).config.n_train is None, "a record says nothing untrue"


def test_simulated_runs_record_their_sizes() -> None:
    assert GraphValues(Config()).config == GraphValues(Config(n_train=8000)).config
    assert GraphValues(Config()).config.n_test == 2000
    with pytest.raises(InputError, match="n_valid is for simulated values and one's own"):
        Config(graph="connectome", n_valid=300)
    assert Config(graph="connectome", n_train=8000, n_valid=1000, n_test=2000).sizes == {}


@pytest.mark.parametrize("suffix", ["", ".csv", ".npy"])
@pytest.mark.parametrize("key", ["adjacency", "values", "names"])
def test_a_folder_is_called_a_folder(key: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"f{suffix}").mkdir()
    own = {"graph": "files", "adjacency": written(tmp_path / "a.csv", path_graph())}
    with pytest.raises(InputError, match=f"f{suffix}: a folder; expected the name of a file"):
        GraphValues(Config(**own | {key: str(tmp_path / f"f{suffix}")}))
