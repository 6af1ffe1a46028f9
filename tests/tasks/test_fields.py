"""Masked prediction: what is hidden stays hidden, masks are fair, and only masked tokens count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from placecell import analysis
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.model import Inputs
from placecell.tasks.masked import field, hide, n_masked, random_masks
from placecell.tasks.optional import Learned
from placecell.train import make_model, make_task

DATA = {"modules": "3x5", "n_train": 60, "n_valid": 20, "n_test": 40}


@pytest.fixture(scope="module")
def task():
    return make_task(RunConfig.from_dict({"task": "nmar", "data": DATA}))


@given(st.integers(0, 1000), st.integers(2, 12), st.integers(1, 5))
def test_hiding_and_finding_again(seed: int, n: int, b: int) -> None:
    rng = np.random.default_rng(seed)
    values = torch.from_numpy(rng.normal(size=(b, n)).astype(np.float32))
    masked = torch.from_numpy(random_masks(rng, b, n, n_masked(n, 0.5)))
    hidden = hide(values, masked, torch.zeros(b, dtype=torch.long))
    assert torch.equal(field(hidden), values)
    changed = values.scatter(1, masked, 99.0)
    assert torch.equal(hide(changed, masked, hidden.group).tokens, hidden.tokens), (
        "a masked value leaves no trace"
    )
    assert torch.equal(hidden.tokens[..., 1].sum(1), torch.full((b,), float(masked.shape[1])))


@pytest.mark.parametrize(
    ("n", "share", "q"), [(60, 0.5, 30), (15, 0.5, 8), (4, 0.01, 1), (4, 0.99, 3), (100, 0.9, 90)]
)
def test_how_many_are_masked(n: int, share: float, q: int) -> None:
    assert n_masked(n, share) == q


def test_masks_are_fair() -> None:
    masks = random_masks(np.random.default_rng(0), 4000, 10, 3)
    assert all(len(set(row)) == 3 for row in masks.tolist())
    share = np.bincount(masks.ravel(), minlength=10) / 4000
    assert share == pytest.approx(0.3, abs=0.03)


def test_batches_have_masks_of_their_own_and_held_out_samples_do_not(task) -> None:
    splits, rows = task.splits(), torch.arange(40)
    one, two = (task.batch(splits["train"], rows, torch.Generator().manual_seed(s)) for s in (1, 2))
    assert not torch.equal(one.read, two.read)
    assert torch.equal(field(one), field(two)), "the samples are the same"
    counts = torch.bincount(one.read.flatten(), minlength=15)
    assert counts.min() > 5, "every token is masked at times"
    again = make_task(RunConfig.from_dict({"task": "nmar", "data": DATA})).splits()
    assert torch.equal(again["test"].read, splits["test"].read), (
        "held-out masks are fixed by the seed"
    )


def test_the_error_is_that_of_masked_tokens_only(task) -> None:
    test = task.splits()["test"]
    outputs = test.targets[..., None] + 0.5
    assert task.metrics(outputs, test) == {"mse": pytest.approx(0.25, rel=1e-5)}
    assert float(task.loss(outputs, test)) == pytest.approx(0.25, rel=1e-5)


def test_the_model_answers_at_the_masked_tokens(task) -> None:
    test = task.splits()["test"]
    config = RunConfig.from_dict({"task": "nmar", "data": DATA}).override(
        {"width": 16, "depth": 2, "sigma": 0.1}
    )
    model = make_model(config, task)
    with torch.no_grad():
        predicted = model(Inputs(test.tokens, task.positions, test.read)).outputs
        whole = model(Inputs(test.tokens, task.positions)).outputs
    assert predicted.shape == (40, 8, 1)
    assert torch.allclose(predicted, whole.gather(1, test.read[..., None]), atol=1e-5)


def test_without_positions_masked_tokens_cannot_be_told_apart(task) -> None:
    test = task.splits()["test"]
    config = RunConfig.from_dict({"task": "nmar", "data": DATA}).override(
        {"width": 16, "encoding": "nope"}
    )
    with torch.no_grad():
        predicted = make_model(config, task)(
            Inputs(test.tokens, task.positions, test.read)
        ).outputs[..., 0]
    assert torch.allclose(predicted, predicted[:, :1].expand_as(predicted), atol=1e-5)


def test_baselines_are_scored_as_the_model_is(task) -> None:
    baselines = task.baselines()
    assert {"mean", "ridge", "linear Gaussian"} <= baselines.keys()
    assert baselines["linear Gaussian"]["test/mse"] < baselines["mean"]["test/mse"]
    test = task.splits()["test"]
    mean = task._fields["train"][0].mean(0)
    expected = ((torch.from_numpy(mean)[test.read] - test.targets) ** 2).mean()
    assert baselines["mean"]["test/mse"] == pytest.approx(float(expected), rel=1e-5)


def test_linear_tables_are_measured_as_learned_ones_are(task) -> None:
    baselines = task.baselines()
    rows = baselines["correlations of the training data, rows as a table"]
    assert rows["table/modularity"] == analysis.modularity(
        analysis.row_similarity(task.fc("train")), task.truth().labels["module"]
    )
    assert (
        rows["table/modularity"]
        > baselines["correlations of the training data"]["table/modularity"]
    )
    table = np.random.default_rng(0).normal(size=(15, 4))
    maps = np.full((2, 15, 15), 1 / 15)
    measured = task.measure(Learned(table, table, maps), np.random.default_rng(0))
    of = {
        kind: {k.split("/")[1] for k in measured if k.startswith(kind + "/")}
        for kind in ("table", "untrained")
    }
    assert of["table"] == of["untrained"] == {k.split("/")[1] for k in rows}
    assert measured["attention/within"] == pytest.approx(measured["attention/within_uniform"]), (
        "uniform is chance"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_train": 2}, "2 training samples; at least 3"),
        ({"noise": 1e200}, "constant|not finite"),
        ({"noise": 1e-320, "radius": 0.01}, "constant|not finite"),
    ],
)
def test_samples_that_could_not_be_analysed_are_refused_before_training(
    change: dict, words: str
) -> None:
    with np.errstate(all="ignore"), pytest.raises(InputError, match=words):
        make_task(RunConfig.from_dict({"task": "nmar", "data": DATA | change})).splits()
