import numpy as np
import pytest
import scipy.spatial
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from placecell.analysis import grid_symmetries, procrustes
from placecell.errors import InputError

seeds = st.integers(0, 2**32 - 1)


def random_tables(seed, n=6, d=8, e=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, e)), rng


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_distance_squared_is_scipy_s_disparity(seed):
    table, reference, _ = random_tables(seed, e=8)
    assert procrustes(table, reference).distance ** 2 == pytest.approx(
        scipy.spatial.procrustes(table, reference)[2]
    )


@given(seed=seeds, scale=st.floats(1e-3, 1e3))
@settings(max_examples=30, deadline=None)
def test_rotation_scale_offset_and_symmetry_do_not_matter(seed, scale):
    table, reference, rng = random_tables(seed)
    group = grid_symmetries(2, 3)
    p, q = group.permutations[rng.integers(12, size=2)]
    turned = scale * table @ ortho_group.rvs(8, random_state=int(seed)) + rng.normal(size=8)
    expected = procrustes(table, reference, symmetries=group).distance
    assert procrustes(turned[p], 3 * reference[q], symmetries=group).distance == pytest.approx(
        expected
    )
    assert expected <= procrustes(table, reference).distance + 1e-12


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_symmetric_in_its_arguments_and_in_the_unit_interval(seed):
    table, reference, _ = random_tables(seed)
    forth, back = procrustes(table, reference), procrustes(reference, table)
    assert forth.distance == pytest.approx(back.distance)
    assert 0 <= forth.distance <= 1


def test_a_moved_reference_is_found_again_with_its_alignment():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(16, 20))
    group = grid_symmetries(4, 4)
    for member in (0, 30, 700, 1151):
        table = 5 * reference[group.permutations[member]] @ ortho_group.rvs(20, random_state=1) + 7
        fit = procrustes(table, reference, symmetries=group)
        assert fit.distance == pytest.approx(0, abs=1e-12)
        assert fit.alignment.words == group.words[member]
        assert (fit.alignment.permutation == group.permutations[member]).all()
        assert fit.rotation @ fit.rotation.T == pytest.approx(np.eye(20))


def test_distance_is_what_the_reported_rotation_and_alignment_leave():
    table, reference, _ = random_tables(3)
    fit = procrustes(table, reference, symmetries=grid_symmetries(3, 2))
    a, b = (x - x.mean(axis=0) for x in (table, np.pad(reference, ((0, 0), (0, 3)))))
    a, b = (
        a / np.linalg.norm(a) @ fit.rotation,
        b[fit.alignment.permutation] / np.linalg.norm(b),
    )
    scale = (a * b).sum()
    assert np.linalg.norm(scale * a - b) == pytest.approx(fit.distance)
    assert procrustes(reference, table).rotation.shape == (8, 8)


def test_the_search_equals_a_loop_over_all_relabelled_references():
    table, reference, _ = random_tables(5)
    group = grid_symmetries(2, 3)
    each = [procrustes(table, reference[p]).distance for p in group.permutations]
    fit = procrustes(table, reference, symmetries=group)
    assert fit.distance == pytest.approx(min(each))
    assert fit.alignment.words == group.words[int(np.argmin(each))]


@pytest.mark.parametrize("symmetries", [None, grid_symmetries(2, 4)], ids=["plain", "symmetric"])
def test_p_is_uniform_for_random_tables(symmetries):
    rng = np.random.default_rng(2)
    reference = rng.normal(size=(8, 2))
    p = [
        procrustes(
            rng.normal(size=(8, 5)), reference, symmetries=symmetries, permutations=39, rng=rng
        ).p
        for _ in range(150)
    ]
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)  # standard error 0.024
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.08)


def test_p_is_small_for_the_right_table_and_counts_the_observed():
    rng = np.random.default_rng(0)
    coords = np.stack(np.divmod(np.arange(16), 4), axis=1)
    table = coords @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(16, 30))
    fit = procrustes(table, coords, symmetries=grid_symmetries(4, 4), permutations=99, rng=rng)
    assert fit.p == pytest.approx(1 / 100)
    assert fit.null.shape == (99,)
    assert fit.null.min() > fit.distance


def test_no_generator_no_null():
    fit = procrustes(*random_tables(0)[:2])
    assert fit.null.shape == (0,)
    assert np.isnan(fit.p)


@pytest.mark.parametrize(
    ("table", "reference", "message"),
    [
        (np.ones(4), np.eye(4), r"table: .*2 axes, found shape \(4,\)"),
        (np.eye(4), np.eye(5), "reference: expected 4 rows as in the table, found 5"),
        (
            np.eye(4),
            np.full((4, 2), 3.3),
            "reference: expected rows that differ, found 4 equal rows",
        ),
        (
            np.where(np.eye(4) > 0, np.nan, 1.0),
            np.eye(4),
            "table: expected finite numbers, found 4 NaN",
        ),
        (np.eye(4), np.where(np.eye(4) > 0, np.inf, 1.0), "reference: expected finite numbers"),
    ],
)
def test_bad_tables(table, reference, message):
    with pytest.raises(InputError, match=message):
        procrustes(table, reference)
    with pytest.raises(InputError, match="symmetries: expected 5 tokens, found 4"):
        procrustes(np.eye(5), np.eye(5), symmetries=grid_symmetries(2, 2))
