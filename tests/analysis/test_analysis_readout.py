import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import RidgeClassifier

from placecell.analysis import (
    distance_correlation,
    grid_symmetries,
    linear_probe,
    relation_correlation,
)
from placecell.analysis.procrustes import standardized
from placecell.analysis.readout import RIDGE, _count_correct
from placecell.errors import InputError

ROW, COL = np.divmod(np.arange(16), 4)
COORDS = np.stack([ROW, COL], axis=1)
RELATION = ((ROW[:, None] == ROW) | (COL[:, None] == COL)) & ~np.eye(16, dtype=bool)


def grid_table(rng, noise=0.1, width=64):
    """A code for the row plus a code for the column, with noise."""
    return (
        rng.normal(size=(4, width))[ROW]
        + rng.normal(size=(4, width))[COL]
        + noise * rng.normal(size=(16, width))
    )


@pytest.mark.parametrize("labels", [ROW, COL])
def test_row_and_column_are_read_from_a_grid_table(labels):
    rng = np.random.default_rng(0)
    probe = linear_probe(grid_table(rng), labels, rng=rng, permutations=199)
    assert probe.accuracy == 1
    assert probe.chance == 0.25
    assert probe.p == pytest.approx(1 / 200)
    assert probe.null.mean() == pytest.approx(0.25, abs=0.02)


def test_the_2d_sinusoidal_table_is_read_in_full():
    angle = COORDS[:, :, None] * 10000.0 ** (-np.arange(0, 32, 2) / 32)  # (n, axes, frequencies)
    table = np.concatenate([np.sin(angle), np.cos(angle)], axis=2).reshape(16, 64)
    for labels in (ROW, COL):
        assert (
            linear_probe(table, labels, rng=np.random.default_rng(0), permutations=0).accuracy == 1
        )


def test_random_tables_are_read_at_chance():
    rng = np.random.default_rng(1)
    probes = [
        linear_probe(rng.normal(size=(16, 64)), ROW, rng=rng, permutations=39, repeats=2)
        for _ in range(100)
    ]
    assert np.mean([f.accuracy for f in probes]) == pytest.approx(0.25, abs=0.04)
    assert np.mean([f.p for f in probes]) == pytest.approx(0.5, abs=0.12)


def test_labels_of_unequal_number_weigh_the_same():
    rng = np.random.default_rng(2)
    labels = np.array(["big"] * 12 + ["small"] * 4)
    accuracy = [
        linear_probe(rng.normal(size=(16, 40)), labels, rng=rng, permutations=0).accuracy
        for _ in range(60)
    ]
    assert np.mean(accuracy) == pytest.approx(0.5, abs=0.06)  # not the 0.75 of always saying "big"


def test_the_probe_is_scikit_learn_s_ridge_classifier():
    rng = np.random.default_rng(3)
    x = standardized("table", grid_table(rng, noise=1.5)) * 4  # √16: mean squared row length 1
    parts = np.arange(16).reshape(4, 4).T  # each holds out one column of the grid
    folds = [(np.setdiff1d(np.arange(16), part), part) for part in parts]
    correct = np.zeros(16)
    for seen, unseen in folds:
        model = RidgeClassifier(alpha=RIDGE).fit(x[seen], ROW[seen])
        correct[unseen] = model.predict(x[unseen]) == ROW[unseen]
    assert 0 < correct.sum() < 16
    assert (_count_correct(x[None], ROW, folds)[0] == correct).all()


def test_the_probe_ignores_scale_and_offset_and_follows_its_seed():
    table = grid_table(np.random.default_rng(4), noise=1.5)
    first, second = (
        linear_probe(t, ROW, rng=np.random.default_rng(0), permutations=20)
        for t in (table, 1e-3 * table + 5)
    )
    assert first.accuracy == second.accuracy
    assert first.null == pytest.approx(second.null)


def test_distance_correlation_is_scipy_s_spearman():
    rng = np.random.default_rng(5)
    table = rng.normal(size=(16, 10))
    expected = spearmanr(pdist(table), pdist(COORDS)).statistic
    assert distance_correlation(table, COORDS).value == pytest.approx(expected)
    assert distance_correlation(COORDS * 3 + 1, COORDS).value == pytest.approx(1)


def test_distance_correlation_over_relabelled_grids():
    rng = np.random.default_rng(6)
    group = grid_symmetries(4, 4)
    table = COORDS[group.permutations[500]]
    plain = distance_correlation(table, COORDS)
    score = distance_correlation(table, COORDS, symmetries=group, permutations=99, rng=rng)
    assert plain.value < 0.9
    assert score.value == pytest.approx(1)
    assert score.p == pytest.approx(0.01)
    order = score.alignment.permutation
    assert pdist(COORDS[order]) == pytest.approx(pdist(table))
    assert score.null.mean() > 0.1  # the null has the same freedom


def test_equal_distances_have_no_rank_correlation():
    assert distance_correlation(np.eye(16) / 3, COORDS).value == 0


def test_relation_correlation_is_pearson_over_pairs():
    rng = np.random.default_rng(7)
    table = rng.normal(size=(16, 10)) + 4
    centred = table - table.mean(axis=0)
    pairs = np.triu_indices(16, 1)
    cosine = 1 - pdist(centred, "cosine")
    expected = pearsonr(cosine, RELATION[pairs]).statistic
    assert relation_correlation(table, RELATION).value == pytest.approx(expected)


def test_row_plus_column_code_has_the_relation_exactly():
    rng = np.random.default_rng(8)
    table = np.hstack([np.eye(4)[ROW], np.eye(4)[COL]])
    score = relation_correlation(table, RELATION, permutations=99, rng=rng)
    assert score.value == pytest.approx(1)
    assert score.p == pytest.approx(0.01)
    assert score.null.mean() == pytest.approx(0, abs=0.05)


def test_mantel_p_is_uniform_for_random_tables():
    rng = np.random.default_rng(9)
    p = [
        relation_correlation(rng.normal(size=(16, 8)), RELATION, permutations=39, rng=rng).p
        for _ in range(200)
    ]
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.07)


def test_bad_input():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(16, 3))
    with pytest.raises(
        InputError, match=r"labels: expected one for each of 16 rows, found shape \(4,\)"
    ):
        linear_probe(table, ROW[:4], rng=rng)
    with pytest.raises(InputError, match=r"each at least twice, found counts \[15, 1\]"):
        linear_probe(table, np.arange(16) == 3, rng=rng)
    with pytest.raises(InputError, match="repeats: expected 1 or more, found 0"):
        linear_probe(table, ROW, rng=rng, repeats=0)
    with pytest.raises(InputError, match="coords: expected 16 rows as in the table, found 9"):
        distance_correlation(table, COORDS[:9])
    with pytest.raises(InputError, match=r"relation: expected a symmetric matrix \(16, 16\)"):
        relation_correlation(table, np.triu(RELATION))
    with pytest.raises(InputError, match="table: expected at least 3 rows, found 2"):
        distance_correlation(np.eye(2), np.eye(2))
    with pytest.raises(InputError, match="table: expected finite numbers"):
        linear_probe(table * np.inf, ROW, rng=rng)
