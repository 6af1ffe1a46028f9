"""The estimator, as scikit-learn and as a user see it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import placecell
from placecell import PlaceMap
from placecell.discover.sample import make_sample, sample_path, true_places
from placecell.errors import InputError

CHECKS = 53  # of scikit-learn; more of a newer one are welcome, fewer are not
SPLIT = "rows are split at random, so a row twice is not a row of weight two"


def walk(rows: int = 300, n: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, n)).cumsum(axis=1)


@pytest.fixture(scope="module")
def fitted() -> PlaceMap:
    frame = pd.DataFrame(walk(), columns=list("abcdef"))
    return PlaceMap(steps=20, random_state=0).fit(frame)


def test_scikit_learns_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            PlaceMap(steps=2, random_state=0),
            expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": SPLIT},
            on_skip=None,
        )
    passed = [r["check_name"] for r in results if r["status"] == "passed"]
    assert len(results) >= CHECKS
    assert len(passed) >= CHECKS - 2  # the one above, and one that needs an environment variable


def test_a_walk_is_found(fitted: PlaceMap) -> None:
    assert fitted.found_
    assert fitted.p_value_ < 1e-6
    assert fitted.gain_ > 0.3
    assert fitted.neighbours_["a"][0] == "b"
    assert set(fitted.neighbours_["d"][:2]) == {"c", "e"}
    assert fitted.embedding_.shape == (6, 2)
    assert fitted.similarity_.shape == (6, 6)
    assert fitted.readout_ in fitted.readout_scores_
    assert 0 <= fitted.stability_.min() <= fitted.stability_.max() <= 1
    assert fitted.get_feature_names_out().tolist() == ["placemap0", "placemap1"]


def test_columns_are_a_table_with_names(fitted: PlaceMap) -> None:
    table = fitted.columns()
    assert table["column"] == list("abcdef")
    assert table["nearest_1"][0] == "b"
    assert table["module"][0] >= 1


def test_the_same_seed_gives_the_same_map(fitted: PlaceMap) -> None:
    frame = pd.DataFrame(walk(), columns=list("abcdef"))
    again = clone(fitted).fit(frame)
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    assert again.p_value_ == fitted.p_value_
    other = PlaceMap(steps=20, random_state=1).fit(frame)
    assert other.p_value_ != fitted.p_value_


@pytest.mark.slow
def test_two_at_a_time_give_the_same_map(fitted: PlaceMap) -> None:
    frame = pd.DataFrame(walk(), columns=list("abcdef"))
    both = PlaceMap(steps=20, random_state=0, n_jobs=2).fit(frame)
    np.testing.assert_allclose(both.similarity_, fitted.similarity_, atol=1e-5)


def test_it_pickles(fitted: PlaceMap) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    frame = pd.DataFrame(walk(seed=1), columns=list("abcdef"))
    assert again.score(frame) == pytest.approx(fitted.score(frame))
    np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))


def test_pandas_comes_out(fitted: PlaceMap) -> None:
    frame = pd.DataFrame(walk(), columns=list("abcdef"))
    out = clone(fitted).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["placemap0", "placemap1"]


def test_score_is_higher_on_rows_of_the_same_kind(fitted: PlaceMap) -> None:
    same = pd.DataFrame(walk(seed=2), columns=list("abcdef"))
    mixed = same.copy()
    for place, name in enumerate(mixed.columns):
        mixed[name] = np.random.default_rng(place).permutation(same[name])
    assert fitted.score(same) > fitted.score(mixed) + 0.3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_is_not_found(seed: int) -> None:
    x = np.random.default_rng(100 + seed).normal(size=(200, 8))
    assert not PlaceMap(steps=30, random_state=seed).fit(x).found_


def test_time_dependent_noise_is_not_found_with_groups() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 6))
    for t in range(1, 400):
        x[t] = 0.97 * x[t - 1] + 0.25 * x[t]
    blocks = np.arange(400) // 20
    assert not PlaceMap(steps=30, random_state=0).fit(x, groups=blocks).found_


def test_missing_values() -> None:
    x = walk(400)
    x[np.random.default_rng(0).random(x.shape) < 0.2] = np.nan
    found = PlaceMap(steps=20, random_state=0).fit(x)
    assert found.found_
    assert found.neighbours_["x0"][0] == "x1"
    assert np.isfinite(found.transform(x)).all()


def test_mixed_kinds_of_columns() -> None:
    x = walk(400)
    frame = pd.DataFrame(x[:, :3], columns=list("abc"))
    frame["binary"] = x[:, 3] > 0
    frame["ordinal"] = pd.Categorical(
        np.digitize(x[:, 4], [-1, 1]).astype(str), categories=["0", "1", "2"], ordered=True
    )
    kinds = np.array(["zebra", "ape", "cat"])[np.digitize(x[:, 5], [-1.5, 1.5])]
    frame["kind"] = kinds
    found = PlaceMap(steps=10, random_state=0).fit(frame)
    assert found.found_
    assert not found.left_out_
    assert {"ordinal", "binary"} & set(found.neighbours_["kind"][:2])
    assert np.isfinite(found.transform(frame)).all()


def test_weights_of_zero_leave_rows_out() -> None:
    x = walk()
    noise = np.random.default_rng(5).normal(size=(300, 6))
    both = np.concatenate([x, noise])
    weight = np.r_[np.ones(300), np.zeros(300)]
    one = PlaceMap(steps=5, random_state=0).fit(both, sample_weight=weight)
    two = PlaceMap(steps=5, random_state=0).fit(x)
    np.testing.assert_allclose(one.similarity_, two.similarity_)


def test_weights_matter() -> None:
    x, noise = walk(), np.random.default_rng(5).normal(size=(300, 6))
    both = np.concatenate([x, noise])
    weight = np.r_[np.full(300, 1.0), np.full(300, 0.01)]
    heavy = PlaceMap(steps=5, random_state=0, readout="partial correlation")
    alone = clone(heavy).fit(x).similarity_
    heeded = clone(heavy).fit(both, sample_weight=weight).similarity_
    ignored = clone(heavy).fit(both).similarity_
    assert np.abs(heeded - alone).mean() < 0.5 * np.abs(ignored - alone).mean()


def test_columns_left_out_have_no_place() -> None:
    x = np.column_stack([walk(), np.ones(300)])
    found = PlaceMap(steps=5, random_state=0).fit(x)
    assert found.left_out_ == {"x6": "constant (1)"}
    assert found.labels_[6] == -1
    assert np.isnan(found.embedding_[6]).all()
    assert np.isfinite(found.transform(x)).all()


def test_a_column_that_repeats_another_has_its_similarities() -> None:
    x = walk()
    found = PlaceMap(steps=0, random_state=0).fit(np.column_stack([x, np.exp(x[:, 2]), x[:, 2]]))
    assert found.left_out_ == {"x6": "the same as x2", "x7": "the same as x2"}
    s = found.similarity_
    np.testing.assert_array_equal(s, s.T)
    np.testing.assert_array_equal(s[6, [0, 1, 3, 4, 5]], s[2, [0, 1, 3, 4, 5]])
    assert s[6, 2] == s[6, 7] == 1
    assert (np.diag(s) == 0).all()
    assert np.isnan(found.embedding_[6]).all()


def test_where_nothing_is_found_no_network_is_read() -> None:
    x = np.random.default_rng(7).normal(size=(150, 5))
    found = PlaceMap(steps=60, random_state=0).fit(x)
    assert not found.found_
    assert "ablation" not in found.readout_scores_


def test_few_rows_are_said() -> None:
    with pytest.warns(UserWarning, match="too few for a test"):
        found = PlaceMap(random_state=0).fit(walk(20))
    assert np.isnan(found.p_value_)
    assert not found.found_
    assert any("too few to train" in note for note in found.notes_)


def test_a_wide_table_is_read_pair_by_pair() -> None:
    x = walk(150, 170)
    found = PlaceMap(steps=3, random_state=0).fit(x)
    assert found.found_
    assert any("columns are many" in note for note in found.notes_)
    near = np.array([int(found.neighbours_[f"x{i}"][0][1:]) for i in range(170)])
    assert (np.abs(near - np.arange(170)) == 1).mean() > 0.9


def test_ctrl_c_leaves_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    import placecell.discover.network as network

    count = iter(range(10**6))
    plain = network._step

    def stop(*args: object) -> float:
        if next(count) == 5:
            raise KeyboardInterrupt
        return plain(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(network, "_step", stop)
    found = PlaceMap(steps=50, random_state=0).fit(walk())
    assert found.partial_
    assert found.embedding_.shape == (6, 2)
    assert found.neighbours_["x0"][0] == "x1"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"n_components": 0}, "n_components"),
        ({"readout": "ablatoin"}, "did you mean 'ablation'"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"device": "tpu"}, "device 'tpu'"),
    ],
)
def test_bad_settings(settings: dict, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        PlaceMap(**settings).fit(walk())


def test_dates_are_refused() -> None:
    frame = pd.DataFrame(walk(), columns=list("abcdef"))
    frame["when"] = pd.Timestamp("2020-01-01")
    with pytest.raises(InputError, match="dates"):
        PlaceMap().fit(frame)


def test_groups_of_another_length() -> None:
    with pytest.raises(InputError, match="one for each of 300 rows"):
        PlaceMap().fit(walk(), groups=[1, 2])


def test_the_sample_is_what_its_generator_makes() -> None:
    assert sample_path().read_text() == make_sample()
    assert len(true_places()) == 16


def test_it_is_a_public_name() -> None:
    assert placecell.PlaceMap is PlaceMap
    assert "PlaceMap" in dir(placecell)
