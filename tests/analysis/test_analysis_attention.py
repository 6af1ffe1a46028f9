import numpy as np
import pytest

from placecell.analysis import agreement, grid_symmetries, relation_agreement
from placecell.errors import InputError


def random_maps(rng, *shape, n=6):
    return rng.dirichlet(np.full(n, 0.5), size=(*shape, n))


def test_cosine_and_correlation_by_hand():
    maps = np.array([[[[1.0, 0.0], [0.5, 0.5]]]])  # one layer, one head
    reference = np.array([[0.0, 1.0], [0.5, 0.5]])
    scores = agreement(maps, reference)
    assert scores.cosine == pytest.approx(
        [0.5 / 1.5]
    )  # ⟨·,·⟩ = 0.25 + 0.25; both have squared length 1.5
    assert scores.correlation == pytest.approx(
        [-1.0]
    )  # centred: (.5, −.5, 0, 0) and (−.5, .5, 0, 0)
    assert scores.alignment.words == "identity"
    assert np.isnan(scores.p).all()


def test_relation_by_hand():
    relation = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    uniform = np.full((1, 1, 3, 3), 1 / 3)
    # ideal rows (0, 1, 0), (½, 0, ½), (0, 1, 0): off the diagonal sum 3 and squared length 2.5, 6
    # entries
    scores = relation_agreement(uniform, relation)
    assert scores.cosine == pytest.approx([3 / np.sqrt(6 * 2.5)])
    assert scores.correlation == pytest.approx([0])
    ideal = relation / relation.sum(axis=1, keepdims=True)
    # what goes to oneself does not count
    scores = relation_agreement((0.5 * ideal + 0.5 * np.eye(3))[None, None], relation)
    assert scores.cosine == pytest.approx([1])
    assert scores.correlation == pytest.approx([1])


def test_heads_and_puzzles_are_averaged():
    rng = np.random.default_rng(0)
    maps, reference = random_maps(rng, 3, 4, 2), random_maps(rng, 3)
    mean = maps.mean(axis=(1, 2))
    whole = agreement(maps, reference)
    assert whole.cosine == pytest.approx(agreement(mean, reference).cosine)
    cosine = [
        m.ravel() @ r.ravel() / np.linalg.norm(m) / np.linalg.norm(r)
        for m, r in zip(mean, reference, strict=True)
    ]
    assert whole.cosine == pytest.approx(cosine)
    correlation = [
        np.corrcoef(m.ravel(), r.ravel())[0, 1] for m, r in zip(mean, reference, strict=True)
    ]
    assert whole.correlation == pytest.approx(correlation)
    assert agreement(maps, reference[0]).cosine[0] == pytest.approx(cosine[0])


def test_a_relabelled_model_agrees_fully_and_the_alignment_is_named():
    rng = np.random.default_rng(1)
    group = grid_symmetries(2, 3)
    reference = random_maps(rng, 4, 2)
    order = group.permutations[9]
    maps = reference[..., order[:, None], order]
    assert agreement(maps, reference).cosine.max() < 0.99
    scores = agreement(maps, reference, symmetries=group, permutations=200, rng=rng)
    assert scores.cosine == pytest.approx(np.ones(4))
    assert scores.correlation == pytest.approx(np.ones(4))
    assert scores.alignment.words == group.words[9]
    assert (scores.alignment.permutation == order).all()
    assert scores.null.shape == (200, 4)
    assert (scores.null.mean(axis=0) < 0.95).all()
    assert (scores.p < 0.1).all()  # 12 of 720 orders are as good


def test_p_of_unrelated_maps_is_uniform():
    rng = np.random.default_rng(2)
    group = grid_symmetries(2, 3)
    p = [
        agreement(
            random_maps(rng, 1), random_maps(rng, 1), symmetries=group, permutations=39, rng=rng
        ).p[0]
        for _ in range(150)
    ]
    assert np.mean(p) == pytest.approx(0.5, abs=0.1)


def test_a_map_without_weight_off_the_diagonal_has_no_agreement():
    scores = relation_agreement(np.eye(4)[None], 1 - np.eye(4))
    assert scores.cosine.tolist() == scores.correlation.tolist() == [0.0]


def test_bad_input():
    maps = np.full((2, 1, 3, 3), 1 / 3)
    with pytest.raises(InputError, match=r"maps: expected .*found \(2, 3, 4\)"):
        agreement(np.ones((2, 3, 4)), np.eye(3))
    with pytest.raises(
        InputError, match=r"reference: expected \(3, 3\) or \(2, 3, 3\).*found \(5, 3, 3\)"
    ):
        agreement(maps, np.ones((5, 3, 3)))
    with pytest.raises(InputError, match=r"relation: expected \(3, 3\).*found \(1, 4, 4\)"):
        relation_agreement(maps, np.eye(4))
    with pytest.raises(InputError, match="relation: expected no negative entries, found -1"):
        relation_agreement(maps, -np.ones((3, 3)))
    with pytest.raises(InputError, match="maps: expected finite numbers, found 18 NaN"):
        agreement(maps * np.nan, np.eye(3))
