"""Read-outs, choice, layout and evidence against known answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial import procrustes
from scipy.stats import ttest_1samp
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from placecell.analysis.modularity import louvain
from placecell.discover import layout
from placecell.discover.candidates import consensus, pairwise_readouts, single_readouts
from placecell.discover.choice import Told, informativeness, score_readouts
from placecell.discover.columns import learn_coding
from placecell.discover.evidence import ROUNDING, gain_test, split_rows
from placecell.discover.modules import find_modules, partition_trust, partitions
from placecell.discover.network import Rows, Training, draw_hidden, gains, train
from placecell.discover.prepared import Coded, Prepared
from placecell.discover.readout import (
    ablation,
    correlation,
    mutual_information,
    partial_correlation,
    usual_difference,
)


def prepared(x: np.ndarray) -> Prepared:
    return Prepared(x, np.ones(len(x)), np.arange(len(x)))


def walk(rows: int = 400, n: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, n)).cumsum(axis=1)


def test_mutual_information_is_sklearns_less_its_bias() -> None:
    x = walk(500, 3)
    bins, _ = learn_coding(x).encode(x)
    bias = 7 * 7 / (2 * 500)
    expected = mutual_info_score(bins[:, 0], bins[:, 1]) - bias
    assert mutual_information(bins)[0, 1] == pytest.approx(expected, abs=1e-6)


def test_correlation_leaves_missing_pairs_out() -> None:
    x = walk(60, 3)
    x[:10, 0] = np.nan
    expected = abs(np.corrcoef(x[10:, 0], x[10:, 1])[0, 1])
    assert correlation(x)[0, 1] == pytest.approx(expected, abs=0.02)
    assert correlation(x)[1, 2] == pytest.approx(abs(np.corrcoef(x[:, 1:].T)[0, 1]))


def test_partial_correlation_of_a_walk_joins_only_neighbours() -> None:
    data = prepared(walk(3000, 6))
    partial = pairwise_readouts(data, Coded.learn(data))["partial correlation"]
    assert layout.nearest(partial, 1)[0, 0] == 1
    assert abs(partial[0, 4]) < 0.1 < partial[0, 1]


def test_shrunk_partial_correlations_become_correlations() -> None:
    coded = Coded.learn(prepared(walk(2000)))
    shrunk = np.linalg.inv(coded.copula.precision.numpy())
    off = ~np.eye(8, dtype=bool)
    almost = partial_correlation(coded.copula, 0.999)
    np.testing.assert_allclose(almost[off], 0.001 * shrunk[off], rtol=0.02)
    half = np.linalg.inv(0.5 * shrunk + 0.5 * np.eye(8))
    expected = -half[0, 1] / np.sqrt(half[0, 0] * half[1, 1])
    assert partial_correlation(coded.copula, 0.5)[0, 1] == pytest.approx(expected)


def test_hidden_columns_include_the_missing_ones() -> None:
    bins = torch.tensor([[0, -1, 2, 3], [1, 1, 1, 1]])
    hidden = draw_hidden(bins, 1, torch.Generator().manual_seed(0))
    assert hidden.real.sum(1).tolist() == [2, 1]
    assert hidden.scored.sum(1).tolist() == [1, 1]
    assert 1 in hidden.index[0][hidden.real[0]].tolist()


def test_a_network_learns_what_no_pair_shows_and_ablation_reads_it() -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (1500, 6))
    x[:, 2] = x[:, 0] * x[:, 1]  # three columns that are independent two by two
    coded = Coded.learn(prepared(x))
    rows = coded.rows(prepared(x), torch.device("cpu"))
    net = coded.net(False, 0, torch.device("cpu"))
    how = train(net, rows, rows, Training(steps=200, every=100), 0)
    assert how.gain_by_step[how.best_step] > 0.05
    moved, _ = ablation(net, rows, 0, samples=64)
    assert moved[:3, :3].sum() > 5 * moved[3:, 3:].sum()
    assert layout.nearest(moved, 2)[0].tolist() in ([1, 2], [2, 1])


def test_an_untrained_network_is_its_base() -> None:
    data = prepared(walk())
    coded = Coded.learn(data)
    rows = coded.rows(data, torch.device("cpu"))
    assert gains(coded.net(False, 0, torch.device("cpu")), rows, 0).abs().max() < 1e-5
    assert gains(coded.net(True, 0, torch.device("cpu")), rows, 0).mean() > 0.2


def test_missing_values_do_not_count() -> None:
    x = walk()
    x[::3, 2] = np.nan
    data = prepared(x)
    coded = Coded.learn(data)
    rows = coded.rows(data, torch.device("cpu"))
    gain = gains(coded.net(True, 0, torch.device("cpu")), rows, 0)
    assert torch.isfinite(gain).all()
    assert gain.mean() > 0.2


def test_true_neighbours_tell_more_than_far_ones() -> None:
    x = walk(800, 10)
    scores = learn_coding(x).encode(x)[1]
    apart = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    near, far = (informativeness(s, scores[:500], scores[500:]) for s in (-apart, apart))
    assert near > far + 0.3


def test_products_are_told_too() -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (900, 6)) * rng.uniform(0.5, 1.5, (900, 6))
    x[:, 2] = np.sign(x[:, 0] * x[:, 1]) * rng.uniform(0.5, 1.5, 900)
    scores = learn_coding(x).encode(x)[1]
    together = np.zeros((6, 6))
    together[:3, :3] = 1
    right = informativeness(together, scores[:600], scores[600:])
    assert right > informativeness(1 - together, scores[:600], scores[600:]) + 0.07


def test_choice_weighs_what_is_told_and_agreement() -> None:
    same = score_readouts([Told({"a": 1.0, "b": 0.99}, 10_000)], {"a": 0.5, "b": 0.9})
    assert same["b"] > same["a"]
    tells = score_readouts([Told({"a": 1.0, "b": 0.5}, 10_000)], {"a": 0.5, "b": 0.9})
    assert tells["a"] > tells["b"]
    assert score_readouts([Told({"a": -0.1}, 100)], {"a": 0.3}) == {"a": 0.3}


def test_what_few_values_say_is_doubted() -> None:
    """Of few values what is told is mostly chance, and agreement decides."""
    agreement = {"a": 0.2, "b": 0.4}
    few, many = (
        score_readouts([Told({"a": 0.03, "b": 0.01}, values)], agreement)
        for values in (400, 1_000_000)
    )
    assert few["b"] > few["a"]
    assert many["a"] > many["b"]


def test_a_loss_counts_where_much_is_told() -> None:
    """0.5 of 5 nats is a small share, and half a nat a value all the same."""
    score = score_readouts([Told({"a": 5.0, "b": 4.5}, 10_000)], {"a": 0.6, "b": 0.9})
    assert score["a"] > score["b"]


def test_correlation_is_left_only_for_what_is_clearly_better() -> None:
    def best(other: str, told: float, agreement: float) -> str:
        kinds = [Told({"correlation": 1.0, other: told}, 10_000)]
        score = score_readouts(kinds, {"correlation": 0.8, other: agreement})
        return max(score, key=lambda name: score[name])

    assert best("usual difference", 1.0, 0.84) == "correlation"
    assert best("usual difference", 1.0, 0.95) == "usual difference"
    assert best("usual difference", 1.05, 0.84) == "usual difference"
    assert best("partial correlation", 1.0, 0.84) == "partial correlation"


def test_where_only_the_network_finds_anything_pairs_have_less_to_say() -> None:
    kinds = [Told({"ablation": 0.25, "correlation": 0.26, "consensus": 0.26}, 10_000)]
    agreement = {"ablation": 0.75, "correlation": 0.9, "consensus": 0.85}
    both, half, alone = (score_readouts(kinds, agreement, only) for only in (0.0, 0.5, 1.0))
    assert max(both, key=lambda name: both[name]) == "correlation"
    assert both["ablation"] == half["ablation"] == alone["ablation"]
    assert half["correlation"] == pytest.approx(0.75 * both["correlation"])
    assert alone["correlation"] == 0
    assert alone["consensus"] == pytest.approx(0.5 * both["consensus"])


def grid_similarity(side: int) -> tuple[np.ndarray, np.ndarray]:
    at = np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)
    return np.exp(-((at[:, None] - at) ** 2).sum(-1)), at


def test_a_grid_is_laid_out_as_a_grid() -> None:
    similarity, at = grid_similarity(6)
    assert 1 - procrustes(at, layout.lay_out(similarity, 2))[2] > 0.98
    assert layout.estimate_dimensions(similarity) == 2


def test_a_line_has_one_dimension() -> None:
    apart = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    similarity = np.exp(-(apart.astype(float) ** 2))
    assert layout.estimate_dimensions(similarity) == 1
    coords = layout.lay_out(similarity, 1)[:, 0]
    assert abs(np.corrcoef(coords, np.arange(20))[0, 1]) > 0.99


def test_modules_and_order() -> None:
    labels = np.repeat([0, 1, 2], 5)[np.random.default_rng(0).permutation(15)]
    similarity = (labels[:, None] == labels) + 0.05
    found = find_modules({"all": similarity}, np.random.default_rng(0))
    assert len({(a, b) for a, b in zip(found, labels, strict=True)}) == 3
    order = layout.matrix_order(similarity, found)
    assert sorted(order.tolist()) == list(range(15))
    assert (np.diff(found[order]) >= 0).all()


def test_weak_ties_to_many_do_not_run_modules_together() -> None:
    """Something that all columns share ties every pair: with all pairs modules are merged."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), 10)
    shared = 1.5 * rng.normal(size=(400, 1))
    x = 0.6 * rng.normal(size=(400, 6))[:, labels] + shared + rng.normal(size=(400, 60))
    all_pairs = louvain(layout.balanced(correlation(x)), np.random.default_rng(0))
    found = find_modules({"all": correlation(x)}, np.random.default_rng(0))
    assert adjusted_rand_score(labels, all_pairs) < 0.7
    assert adjusted_rand_score(labels, found) > 0.95


def test_partitions_that_do_not_come_out_twice_do_not_spoil_modules() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 6)
    near = (labels[:, None] == labels) + 0.05
    noise = [{"noise": half + half.T} for half in rng.random((4, 24, 24))]
    halves = [
        (partitions({"near": near, **one}, rng), partitions({"near": near, **two}, rng))
        for one, two in (noise[:2], noise[2:])
    ]
    trust = partition_trust(halves)
    assert trust["near", 1.0] == 1
    assert trust["noise", 1.0] < 0.3
    found = find_modules({"near": near, "noise": noise[0]["noise"]}, rng, halves)
    assert adjusted_rand_score(labels, found) == 1


def test_a_partition_into_one_part_is_not_trusted() -> None:
    one = {("all", 1.0): np.zeros(5, dtype=np.int64)}
    assert partition_trust([(one, one)]) == {("all", 1.0): 0.0}


def test_two_columns_have_modules_too() -> None:
    rng = np.random.default_rng(0)
    assert find_modules({"all": np.ones((2, 2))}, rng).tolist() == [0, 0]
    assert find_modules({"all": np.eye(3)}, rng).tolist() == [0, 1, 2]


def test_agreement_counts_common_neighbours() -> None:
    similarity, _ = grid_similarity(4)
    assert (layout.neighbour_agreement(similarity, similarity) == 1).all()
    assert layout.neighbour_agreement(similarity, -similarity).mean() < 0.2


def test_rows_of_a_group_stay_together() -> None:
    groups = np.repeat(np.arange(30), 10)
    split = split_rows(groups, np.random.default_rng(0))
    parts = [set(groups[part]) for part in (split.train, split.valid, split.test)]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert [len(p) for p in parts] == [18, 6, 6]


def test_three_groups_give_a_part_each() -> None:
    split = split_rows(np.repeat([0, 1, 2], [100, 3, 5]), np.random.default_rng(0))
    assert min(len(split.train), len(split.valid), len(split.test)) > 0


def test_gain_test_is_scipys_one_sided_t_test() -> None:
    gains_of = np.random.default_rng(0).normal(0.1, 1, 40)
    found = gain_test(gains_of, np.arange(40), np.ones(40))
    expected = ttest_1samp(gains_of, ROUNDING, alternative="greater").pvalue
    assert found.p_value == pytest.approx(expected)


def test_rows_of_a_group_count_once() -> None:
    gains_of = np.repeat(np.random.default_rng(1).normal(0.3, 1, 8), 50)
    grouped = gain_test(gains_of, np.repeat(np.arange(8), 50), np.ones(400))
    single = gain_test(gains_of, np.arange(400), np.ones(400))
    assert grouped.units == 8
    assert grouped.p_value > 10 * single.p_value


def test_taking_rows_keeps_their_weights() -> None:
    rows = Rows(torch.zeros(3, 2, dtype=torch.long), torch.zeros(3, 2), torch.tensor([1.0, 2, 3]))
    assert rows.take(torch.tensor([2, 0])).weight.tolist() == [3, 1]


def test_the_largest_similarity_of_each_column_is_1() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        half = rng.uniform(1, 3, size=(6, 6))
        scaled = layout.balanced(half + half.T)
        np.testing.assert_allclose(scaled.max(1), 1.0, rtol=1e-4)
        order = layout.matrix_order(scaled, np.zeros(6, dtype=np.int64))
        assert sorted(order) == list(range(6))


def test_a_column_that_is_near_to_none_is_not_made_loud() -> None:
    near = grid_similarity(3)[0]
    near[8], near[:, 8] = 1e-3 * near[8], 1e-3 * near[:, 8]
    scaled = layout.balanced(near)
    assert scaled[8].max() < 0.1
    np.testing.assert_allclose(scaled[:8].max(1), 1.0, rtol=1e-4)


def test_the_usual_difference_is_the_mean_over_pairs_of_rows() -> None:
    """The share by chance, from a grid of thresholds, against all pairs of rows."""
    x = walk(300, 3)
    x[:40, 2] = np.nan
    x[:, 1] = -np.round(x[:, 1])  # with ties, and the other way round
    here = np.isfinite(x)
    _, scores = learn_coding(x).encode(x)
    found = usual_difference(scores, here)
    for i, j, sign in ((0, 1, -1), (0, 2, 1), (1, 2, -1)):
        both = here[:, i] & here[:, j]
        one, two = scores[:, i], sign * scores[:, j]
        chance = np.abs(one[here[:, i], None] - two[None, here[:, j]]).mean()
        differ = np.abs(one[both] - two[both]).mean()
        assert found[i, j] == pytest.approx(1 - differ / chance, abs=0.01)
    np.testing.assert_allclose(found, found.T)


def test_a_few_wild_values_hide_no_neighbour() -> None:
    rng = np.random.default_rng(0)
    x = walk(500, 12)
    wild = rng.random(x.shape) < 0.03
    x[wild] = 100 * rng.standard_t(1.5, wild.sum())
    data = prepared(x)
    pairwise = pairwise_readouts(data, Coded.learn(data))

    def right(name: str) -> int:
        first = layout.nearest(pairwise[name], 1)[:, 0]
        return int((np.abs(first - np.arange(12)) == 1).sum())

    assert right("usual difference") == 12
    assert right("correlation") < 9


def test_a_column_that_is_near_to_many_is_not_the_nearest_of_all() -> None:
    hub = np.array([[0, 9, 9, 16], [9, 0, 8, 0], [9, 8, 0, 0], [16, 0, 0, 0]], dtype=float)
    assert hub[1].argmax() == 0
    assert single_readouts({"correlation": hub}, None)["correlation"][1].argmax() == 2


def test_the_consensus_follows_the_readouts_that_come_out_the_same_twice() -> None:
    near, noise = grid_similarity(3)[0], np.random.default_rng(0).random((9, 9))
    parts = {
        "partial correlation": layout.balanced(near),
        "mutual information": layout.balanced(noise),
    }
    sure = consensus(parts, {"partial correlation": 0.8, "mutual information": 0.0})
    np.testing.assert_allclose(sure, layout.balanced(near), atol=1e-5)


def test_what_is_not_near_is_no_agreement() -> None:
    assert (layout.neighbour_agreement(np.zeros((5, 5)), np.zeros((5, 5))) == 0).all()


def test_one_false_edge_shortens_the_map_less_than_the_shortest_path() -> None:
    at = np.arange(30)
    similarity = np.exp(-np.abs(at[:, None] - at).astype(float))
    similarity[0, 29] = similarity[29, 0] = 0.1  # the ends of a line, joined by mistake
    far = [
        each(similarity)[0, 29] / each(similarity)[0, 1]
        for each in (layout.path_lengths, layout.map_distances)
    ]
    assert far[1] > 1.2 * far[0]


def test_tied_values_are_not_told_without_end() -> None:
    rng = np.random.default_rng(0)
    rare = (rng.random((400, 6)) < 0.03).astype(float)
    told = informativeness(np.ones((6, 6)), rare[:320] - 0.03, rare[320:] * 0 - 0.03)
    assert told < 1  # without a floor: 10, since nothing at all is left


def test_huge_values_have_correlations() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(correlation(x * 1e300), correlation(x), rtol=1e-9)


def test_rare_values_that_know_nothing_of_each_other_are_no_gain() -> None:
    """A share that is smoothed where the model's is not looks like knowledge in every row."""
    data = prepared(np.eye(300, 6))  # of each column one value is another
    coded = Coded.learn(data.take(np.arange(200)))
    rows = coded.rows(data.take(np.arange(200, 300)), torch.device("cpu"))
    gain = gains(coded.net(True, 0, torch.device("cpu")), rows, 0).double().numpy()
    assert gain_test(gain, np.arange(100), np.ones(100)).p_value > 0.05
