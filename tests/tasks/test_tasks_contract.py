"""What every task must do, run over the registry."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from placecell import tasks
from placecell.config import EncodingConfig, ModelConfig, RunConfig, TrainConfig, keys
from placecell.config.presets import base_config
from placecell.errors import InputError
from placecell.model import build_model
from placecell.registry import TASKS
from placecell.tasks.base import Examples, Task, check_splits
from placecell.tasks.optional import place_names
from placecell.train import State, fit, make_model, make_optimizer
from placecell.train import make_task as make_task_of

NAMES = tasks.available()  # with one from outside the package: conftest.py loads it
PRESETS = [(name, preset) for name in NAMES for preset in tasks.presets(name)]
PAPER = [name for name, preset in PRESETS if preset == "paper"]
SMALL = {"n_train": 48, "n_valid": 16, "n_test": 16}  # of these keys, those that a task has

every = pytest.mark.parametrize("name", NAMES)


def small(name: str, **more) -> RunConfig:
    config = RunConfig.from_dict({"task": name})
    known = keys(config)
    model, train = (
        ModelConfig(width=24, depth=2),
        TrainConfig(steps=60, lr=3e-3, batch_size=32, eval_every=60),
    )
    config = replace(
        config, model=model, train=train, encoding=EncodingConfig("learnable", sigma=0.1)
    )
    return config.override({key: value for key, value in (SMALL | more).items() if key in known})


def make_task(config: RunConfig) -> Task:
    """The task; one whose data have to be fetched first skips, saying how, where they are not
    there."""
    try:
        return make_task_of(config)
    except InputError as error:
        if "placecell fetch" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=NAMES)
def drawn(request) -> tuple[Task, dict[str, Examples]]:
    task = make_task(small(request.param))
    return task, task.splits()


def equal(one: Examples, two: Examples) -> bool:
    parts = ("tokens", "read", "targets", "group")
    return all(torch.equal(getattr(one, part), getattr(two, part)) for part in parts)


def outputs_for(task: Task, examples: Examples, seed: int = 0) -> torch.Tensor:
    shape = (*examples.read.shape, task.n_outputs)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@every
def test_name_docstring_and_settings(name: str) -> None:
    task = tasks.load(name)
    assert issubclass(task, Task)
    assert (task.__doc__ or "").strip()
    assert isinstance(task.headline, str)
    assert isinstance(task.headline_lower_is_better, bool)
    assert tasks.config_class(name)() == small(name).data or small(name).data is not None


def test_unknown_task_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=NAMES[0]):
        tasks.load(NAMES[0] + "x")


def test_splits_fit_the_tokens(drawn) -> None:
    task, splits = drawn
    assert {"train", "valid", "test"} <= splits.keys()
    n = task.n_tokens
    assert task.positions.index.shape == (n,)
    assert task.positions.coords.shape == (n, task.positions.axes)
    assert task.positions.coords.isfinite().all()
    check_splits(task, splits)
    for examples in splits.values():
        b = len(examples)
        assert b >= 1
        assert examples.tokens.shape[:2] == (b, n)
        if task.tokens.kind == "symbol":
            assert examples.tokens.shape == (b, n)
            assert examples.tokens.dtype == torch.int64
            assert 0 <= int(examples.tokens.min()) <= int(examples.tokens.max()) < task.tokens.size
        else:
            assert examples.tokens.shape == (b, n, task.tokens.size)
            assert examples.tokens.is_floating_point()
            assert examples.tokens.isfinite().all()
        assert examples.read.shape[0] == examples.targets.shape[0] == b
        assert examples.targets.shape[:2] == examples.read.shape
        assert 0 <= int(examples.read.min()) <= int(examples.read.max()) < n
        assert examples.group.shape == (b,)
        assert 0 <= int(examples.group.min()) <= int(examples.group.max()) < len(task.groups)


def test_places_and_their_labels_have_names(drawn) -> None:
    task, _ = drawn
    n = len(task.places.index)
    names = place_names(task)
    assert len(set(names)) == len(names) == n
    truth = task.truth()
    for label in () if truth is None else truth.labels:
        assert len(truth.named(label)) == n
        assert len(set(truth.named(label))) == len(np.unique(truth.labels[label]))


@every
def test_sizes_are_as_asked(name: str) -> None:
    config = small(name)
    asked = {key[2:]: value for key, value in SMALL.items() if key in keys(config)}
    splits = make_task(config).splits()
    assert {split: len(splits[split]) for split in asked} == asked


@every
def test_same_settings_same_data(name: str, drawn) -> None:
    config = small(name)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 - global state must not matter
    first, again = make_task(config).splits(), make_task(config).splits()
    assert first.keys() == again.keys()
    assert all(equal(first[split], again[split]) for split in first)
    if "split_seed" in keys(config):
        other = make_task(small(name, split_seed=1)).splits()
        assert not any(equal(first[split], other[split]) for split in ("train", "valid", "test"))


def test_no_test_sample_is_a_training_sample(drawn) -> None:
    _, splits = drawn
    seen = {tuple(row.flatten().tolist()) for row in splits["train"].tokens}
    for split in ("valid", "test"):
        assert not seen & {tuple(row.flatten().tolist()) for row in splits[split].tokens}


def test_batches_are_rows_of_the_training_set(drawn) -> None:
    task, splits = drawn
    rows = torch.tensor([3, 0, 7])
    one, two = (
        task.batch(splits["train"], rows, torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert len(one) == 3
    assert equal(one, two), "a batch is a function of its rows and its generator"
    assert one.tokens.shape[1:] == splits["train"].tokens.shape[1:]


def test_loss_is_finite_and_differentiable(drawn) -> None:
    task, splits = drawn
    for examples in splits.values():
        outputs = outputs_for(task, examples).requires_grad_()
        loss = task.loss(outputs, examples)
        assert loss.shape == ()
        assert math.isfinite(loss.item())
        loss.backward()
        assert outputs.grad.isfinite().all()
        assert outputs.grad.abs().sum() > 0


def test_loss_is_a_mean(drawn) -> None:
    """Twice the same samples is the same loss, so that losses of splits of different sizes
    compare."""
    task, splits = drawn
    examples = splits["test"]
    twice = torch.arange(len(examples)).repeat(2)
    outputs = outputs_for(task, examples)
    once, doubled = task.loss(outputs, examples), task.loss(outputs[twice], examples.take(twice))
    assert float(doubled) == pytest.approx(float(once), rel=1e-5)


def test_metrics_have_the_headline_and_are_in_range(drawn) -> None:
    task, splits = drawn
    for split, examples in splits.items():
        scores = task.metrics(outputs_for(task, examples), examples)
        assert task.headline in scores
        assert "loss" not in scores, "the loop adds the loss"
        for key, value in scores.items():
            assert type(value) is float, (split, key)
            assert math.isfinite(value), (split, key)
            if "accuracy" in key:
                assert 0 <= value <= 1


def test_metrics_know_a_perfect_answer(drawn) -> None:
    """A classification read right scores 1, read wrong 0."""
    task, splits = drawn
    examples = splits["test"]
    if task.headline != "accuracy":
        pytest.skip("not a classification")
    right = torch.nn.functional.one_hot(examples.targets, task.n_outputs).float()
    assert task.metrics(right, examples)["accuracy"] == 1
    assert task.metrics(-right, examples)["accuracy"] == 0
    assert float(task.loss(20 * right, examples)) < 1e-3


def test_truth_is_a_symmetric_relation(drawn) -> None:
    task, _ = drawn
    truth, n = task.truth(), len(task.places.index)
    assert truth.relation.shape == (n, n)
    assert np.array_equal(truth.relation, truth.relation.T)
    assert not np.diagonal(truth.relation).any()
    assert np.isfinite(truth.relation).all()
    assert truth.relation.any()
    for label, values in truth.labels.items():
        assert values.shape == (n,), label
        assert len(set(values.tolist())) > 1, label
    if truth.symmetries is not None:
        orders = truth.symmetries.permutations
        assert orders.shape == (len(truth.symmetries.words), n)
        assert np.array_equal(orders[0], np.arange(n)), "the identity comes first"
        for order in orders:
            assert sorted(order.tolist()) == list(range(n))
            assert np.array_equal(truth.relation[np.ix_(order, order)], truth.relation)


def test_every_task_of_this_package_has_a_quick_and_a_long_preset() -> None:
    for name in NAMES:
        there = tasks.presets(name).keys()
        assert "quick" in there
        if TASKS.source(name) == "placecell":  # the paper's setting, or ours where it has none
            assert there & {"paper", "full"}


@pytest.mark.parametrize("attention", ["full", "neighbours"])
def test_a_graph_of_the_places_serves_attention(drawn, attention: str) -> None:
    """Places with a graph can be attended along it; those without are refused in one sentence."""
    task, splits = drawn
    settings = ModelConfig(width=24, depth=2, attention=attention)
    parts = (task.tokens, task.places, task.n_outputs, settings, EncodingConfig("learnable"))
    streams = {name: torch.Generator().manual_seed(0) for name in ("weights", "pe")}
    if attention == "neighbours" and task.places.graph is None:
        with pytest.raises(InputError, match="needs a graph of the places"):
            build_model(*parts, **streams)
        return
    model = build_model(*parts, **streams)
    few = splits["test"].take(slice(0, 4))
    outputs = model(few.inputs(task.positions)).outputs
    assert outputs.shape == (*few.read.shape, task.n_outputs)
    assert outputs.isfinite().all()


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_presets_build(name: str, preset: str) -> None:
    config, _ = base_config(name, preset)
    task = make_task(config)
    model = make_model(replace(config, model=replace(config.model, depth=1)), task)
    assert sum(p.numel() for p in model.parameters()) > 0


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_preset_is_the_papers(name: str) -> None:
    config, _ = base_config(name, "paper")
    assert (config.model.depth, config.train.optimizer, config.train.lr) == (4, "adam", 1e-4)


@every
def test_learning_happens(name: str) -> None:
    config = small(name)
    task = make_task(config)
    few = {split: examples.take(slice(0, 32)) for split, examples in task.splits().items()}
    model, state = make_model(config, task), State()
    optimizer = make_optimizer(model, config.train)
    assert fit(model, task, few, config.train, seed=0, state=state, optimizer=optimizer) == "done"
    losses = {r.step: r.value for r in state.rows if (r.split, r.name) == ("train", "loss")}
    assert losses[60] < 0.8 * losses[0]
