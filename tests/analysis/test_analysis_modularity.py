"""Modules of a table: against networkx and bctpy, and what must not matter."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group

from placecell import analysis
from placecell.errors import InputError


def planted(seed: int = 0, sizes: tuple[int, ...] = (8, 10, 12), d: int = 24, spread: float = 0.4):
    """A table whose rows lie about one centre a module, and the module of each row, shuffled."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(sizes), d))[labels] + spread * rng.normal(
        size=(len(labels), d)
    ), labels


def signed(seed: int, n: int = 20) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, n))
    x = x + x.T
    np.fill_diagonal(x, 0)
    return x


def bct():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("bct")


@pytest.mark.parametrize("seed", range(4))
def test_modularity_is_networkx_s_of_the_positive_part(seed: int) -> None:
    s, labels = signed(seed), np.random.default_rng(seed).integers(0, 3, 20)
    graph = nx.from_numpy_array(np.clip(s, 0, None))
    communities = [set(np.flatnonzero(labels == k)) for k in range(3)]
    assert analysis.modularity(s, labels) == pytest.approx(
        nx.community.modularity(graph, communities), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_signed_modularity_is_bctpy_s(seed: int) -> None:
    s, labels = signed(seed), np.random.default_rng(seed).integers(0, 4, 20)
    _, expected = bct().modularity_und_sign(s, labels + 1, qtype="sta")
    assert analysis.signed_modularity(s, labels) == pytest.approx(expected, abs=1e-10)


def test_a_matrix_by_hand() -> None:
    """Two pairs of weight 1 and one link of weight 1 between them: Q = 2 (2/6 − (3/6)²) = 1/6."""
    a = np.zeros((4, 4))
    for i, j in ((0, 1), (2, 3), (1, 2)):
        a[i, j] = a[j, i] = 1
    assert analysis.modularity(a, [0, 0, 1, 1]) == pytest.approx(1 / 6)
    result = analysis.modules(a, [0, 0, 1, 1])
    assert (result.within, result.between) == (1, 0.25)
    assert result.segregation == pytest.approx(0.75)
    assert analysis.modularity(-a, [0, 0, 1, 1]) == 0  # nothing positive: nothing to part


@given(st.integers(0, 1000))
def test_order_names_and_rotation_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table, labels = planted(seed)
    order, rename = rng.permutation(len(labels)), rng.permutation(3)
    turned = 2.5 * table @ ortho_group.rvs(table.shape[1], random_state=seed) + rng.normal(
        size=table.shape[1]
    )
    one = analysis.modules(analysis.row_similarity(table), labels)
    two = analysis.modules(analysis.row_similarity(turned[order]), rename[labels][order])
    for name in ("modularity", "signed", "segregation", "within", "between"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), abs=1e-9)


def test_similarity_is_the_cosine_of_centred_rows() -> None:
    table = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]]) + 7
    result = analysis.row_similarity(table)
    assert result[0] == pytest.approx([0, -1, 0, 0])
    assert result[2] == pytest.approx([0, 0, 0, -1])
    assert np.array_equal(analysis.row_similarity(np.ones((3, 2))), np.zeros((3, 3)))


def test_planted_modules_are_found_blindly_and_noise_is_not() -> None:
    table, labels = planted()
    rng = np.random.default_rng(0)
    assert (
        analysis.match_labels(analysis.louvain(analysis.row_similarity(table), rng), labels).ari
        == 1
    )
    result = analysis.match_labels(analysis.kmeans(table, rng), labels)
    assert (result.clusters, result.ari, result.nmi) == (3, 1, pytest.approx(1))
    noise = rng.normal(size=table.shape)
    assert abs(analysis.match_labels(analysis.kmeans(noise, rng), labels).ari) < 0.2


def test_clusters_are_numbered_from_the_largest_and_repeat() -> None:
    table, labels = planted()
    result = [
        analysis.louvain(analysis.row_similarity(table), np.random.default_rng(1)) for _ in range(2)
    ]
    assert np.array_equal(*result)
    assert np.bincount(result[0]).tolist() == sorted(np.bincount(labels).tolist(), reverse=True)


def test_louvain_does_not_see_negative_weights() -> None:
    table, _ = planted()
    s = analysis.row_similarity(table)
    low = np.where(s < 0, 100 * s, s)
    assert np.array_equal(*(analysis.louvain(x, np.random.default_rng(0)) for x in (s, low)))


def test_the_label_test_knows_modules_from_noise() -> None:
    rng = np.random.default_rng(3)
    table, labels = planted(3)
    orders = np.stack([rng.permutation(len(labels)) for _ in range(199)])
    p, null = analysis.label_test(analysis.row_similarity(table), labels, orders)
    assert p == 1 / 200
    assert null[0] == pytest.approx(
        analysis.modularity(analysis.row_similarity(table), labels[orders[0]])
    )
    ps = [
        analysis.label_test(analysis.row_similarity(rng.normal(size=table.shape)), labels, orders)[
            0
        ]
        for _ in range(60)
    ]
    assert 0.3 < np.mean(ps) < 0.7  # uniform under the null
    assert np.mean(np.array(ps) <= 0.1) < 0.3


def sphere(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points on two spheres, as evenly as random ones are: the right one the mirror image of the
    left."""
    points = np.random.default_rng(seed).normal(size=(n, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.concatenate([points, points * [-1, 1, 1]]), np.repeat([0, 1], n)


def test_spins_keep_hemispheres_and_neighbours() -> None:
    points, side = sphere()
    orders = analysis.spin_orders(points, side, 50, np.random.default_rng(0))
    assert orders.shape == (50, 80)
    few, sides = sphere(3)  # so few that many rotations move none of them
    assert all(
        (o != np.arange(6)).any()
        for o in analysis.spin_orders(few, sides, 100, np.random.default_rng(0))
    )
    for order in orders:
        assert sorted(order.tolist()) == list(range(80))
        assert np.array_equal(side[order], side)
        assert np.array_equal(order[40:], order[:40] + 40), (
            "the right hemisphere turns as the left one's mirror image"
        )
    near = squareform(pdist(points[:40])) + 9 * np.eye(40)
    i, j = np.arange(40), near.argmin(1)
    moved = np.mean([np.linalg.norm(points[o[i]] - points[o[j]], axis=1).mean() for o in orders])
    shuffled = np.mean(
        [
            np.linalg.norm(
                points[i] - points[np.random.default_rng(s).permutation(40)], axis=1
            ).mean()
            for s in range(50)
        ]
    )
    assert moved < 0.6 * shuffled, "neighbours stay neighbours"


def test_smooth_noise_passes_the_plain_test_and_not_the_spins() -> None:
    """What the spatial null is for: a table that is only smooth in space looks modular by labels
    that are patches."""
    points, side = sphere(60, 1)
    labels = (points[:, 1] > 0) * 2 + (points[:, 2] > 0)
    rng = np.random.default_rng(0)
    plain = np.stack([rng.permutation(120) for _ in range(199)])
    spins = analysis.spin_orders(points, side, 199, rng)
    result = {"plain": [], "spins": []}
    for seed in range(12):
        centres = np.random.default_rng(seed).normal(size=(6, 3))
        table = np.exp(-((points[:, None] - centres) ** 2).sum(-1))
        for name, orders in (("plain", plain), ("spins", spins)):
            result[name].append(
                analysis.label_test(analysis.row_similarity(table), labels, orders)[0]
            )
    assert np.mean(np.array(result["plain"]) < 0.01) > 0.9
    assert np.mean(np.array(result["spins"]) < 0.01) < 0.4


def test_block_means_and_matrix_correlation() -> None:
    m = np.arange(16.0).reshape(4, 4)
    assert analysis.block_means(m, [0, 0, 1, 1]).tolist() == [[2.5, 4.5], [10.5, 12.5]]
    s = signed(0)
    assert analysis.matrix_correlation(s, 2 * s + 1) == pytest.approx(1)
    assert analysis.matrix_correlation(s, np.ones_like(s)) == 0


@pytest.mark.parametrize(
    ("matrix", "labels"),
    [
        (np.ones((3, 4)), [0, 1, 1]),
        (np.triu(np.ones((3, 3))), [0, 1, 1]),
        (np.ones((3, 3)), [0, 1]),
        (np.eye(3), [1, 1, 1]),
    ],
)
def test_what_cannot_be_measured_is_refused(matrix, labels) -> None:
    with pytest.raises(InputError):
        analysis.modularity(matrix, labels)


def test_kmeans_finds_many_modules() -> None:
    labels = np.repeat(np.arange(20), 5)
    table = np.eye(20)[labels] + 0.05 * np.random.default_rng(0).normal(size=(100, 20))
    assert (
        analysis.match_labels(analysis.kmeans(table, np.random.default_rng(1)), labels).ari == 1.0
    )
