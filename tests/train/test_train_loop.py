"""The training loop: optimizer groups, schedule, clipping, order of samples, early stop,
divergence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from placecell.config import TrainConfig
from placecell.model import Inputs
from placecell.train import State, fit, make_model, make_optimizer
from placecell.train.loop import batch_rows, rate

OPTIMIZERS = ["adam", "adamw", "muon", "sgd"]


def train(config, task, splits, **hooks):
    """Train from step 0; the model, where it stands, and how it ended."""
    model, state = make_model(config, task), State()
    optimizer = make_optimizer(model, config.train)
    seed = config.seed_of("data")
    status = fit(
        model, task, splits, config.train, seed=seed, state=state, optimizer=optimizer, **hooks
    )
    return model, state, status


# ------------------------------------------------------------------ optimizer groups


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_encoding_is_a_group_of_its_own(tiny, tiny_task, optimizer: str) -> None:
    config = tiny(optimizer=optimizer, lr=1e-3, pe_lr=5e-2, weight_decay=0.1, pe_weight_decay=0.3)
    model = make_model(config, tiny_task)
    first, position, *more = make_optimizer(model, config.train).param_groups
    assert [id(p) for p in position["params"]] == [id(model.encoding.weight)]
    together = [p for group in (first, position, *more) for p in group["params"]]
    assert sorted(map(id, together)) == sorted(map(id, model.parameters()))
    assert {(rest["lr"], rest["weight_decay"]) for rest in (first, *more)} == {(1e-3, 0.1)}
    assert (position["lr"], position["weight_decay"]) == (5e-2, 0.3)


def test_the_encoding_follows_lr_unless_told(tiny, tiny_task) -> None:
    config = tiny(lr=0.02)
    assert [
        g["lr"] for g in make_optimizer(make_model(config, tiny_task), config.train).param_groups
    ] == [0.02, 0.02]


def test_an_encoding_without_parameters_trains(tiny, tiny_task, tiny_splits) -> None:
    for name in ("nope", "sinusoidal"):
        _, state, status = train(tiny(encoding=name, steps=2), tiny_task, tiny_splits)
        assert (status, state.step) == ("done", 2)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weight_decay_leaves_the_table_alone_unless_asked(tiny, tiny_task, optimizer: str) -> None:
    """A real step with gradients of zero moves exactly what is decayed."""
    for decay, pe_decay in ((0.5, 0.0), (0.0, 0.5), (0.5, 0.5), (0.0, 0.0)):
        config = tiny(optimizer=optimizer, lr=0.1, weight_decay=decay, pe_weight_decay=pe_decay)
        model = make_model(config, tiny_task)
        before = {key: part.detach().clone() for key, part in model.named_parameters()}
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        make_optimizer(model, config.train).step()
        assert torch.equal(model.encoding.weight, before["encoding.weight"]) == (pe_decay == 0)
        assert torch.equal(model.readout.weight, before["readout.weight"]) == (decay == 0)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_pe_lr_is_the_rate_of_the_table_alone(tiny, tiny_task, tiny_splits, optimizer: str) -> None:
    still, _, _ = train(tiny(optimizer=optimizer, pe_lr=0, steps=3), tiny_task, tiny_splits)
    start = make_model(tiny(), tiny_task)
    assert torch.equal(still.encoding.weight, start.encoding.weight)
    assert not torch.equal(still.readout.weight, start.readout.weight)


def test_the_first_adam_step_has_the_size_of_each_groups_rate(tiny, tiny_task, tiny_splits) -> None:
    model, _, _ = train(tiny(lr=1e-3, pe_lr=1e-2, steps=1), tiny_task, tiny_splits)
    start = make_model(tiny(), tiny_task)
    for part, first, lr in (
        (model.encoding.weight, start.encoding.weight, 1e-2),
        (model.readout.weight, start.readout.weight, 1e-3),
    ):
        moved = (part - first).detach().abs().max()
        assert float(moved) == pytest.approx(lr, rel=1e-2)


# ------------------------------------------------------------------ schedule and clipping


def test_constant_rate() -> None:
    assert [rate(step, TrainConfig(steps=10)) for step in range(10)] == [1.0] * 10


def test_warm_up_rises_to_one() -> None:
    config = TrainConfig(steps=10, warmup=4)
    assert [rate(step, config) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_falls_to_zero() -> None:
    config = TrainConfig(steps=12, warmup=2, schedule="cosine")
    values = [rate(step, config) for step in range(13)]
    assert values[:3] == [0.5, 1.0, 1.0]
    assert values[7] == pytest.approx(0.5)  # half of the ten steps after the warm-up
    assert values[12] == pytest.approx(0.0, abs=1e-15)
    for step in range(2, 12):
        assert values[step] == pytest.approx(math.cos(math.pi * (step - 2) / 20) ** 2)


def test_both_groups_follow_the_schedule(tiny, tiny_task, tiny_splits) -> None:
    config = tiny(lr=1e-3, pe_lr=4e-3, steps=6, warmup=2, schedule="cosine")
    model, seen = make_model(config, tiny_task), []
    optimizer = make_optimizer(model, config.train)

    def on_step(state: State) -> bool:
        seen.append([g["lr"] for g in optimizer.param_groups])
        return True

    fit(
        model,
        tiny_task,
        tiny_splits,
        config.train,
        seed=0,
        state=State(),
        optimizer=optimizer,
        on_step=on_step,
    )
    expected = [[lr * rate(step, config.train) for lr in (1e-3, 4e-3)] for step in range(len(seen))]
    assert len(seen) >= 5
    assert seen == expected


def test_clipping_bounds_the_step(tiny, tiny_task, tiny_splits) -> None:
    """Plain SGD moves by lr · gradient, so the length of the move is the clipped norm."""
    start = dict(make_model(tiny(), tiny_task).named_parameters())

    def moved(**overrides: float) -> torch.Tensor:
        config = tiny(optimizer="sgd", momentum=0, lr=1.0, steps=1, **overrides)
        model, _, _ = train(config, tiny_task, tiny_splits)
        return torch.cat(
            [(part - start[key]).detach().flatten() for key, part in model.named_parameters()]
        )

    free, clipped, loose = moved(), moved(clip=0.01), moved(clip=1e6)
    assert float(free.norm()) > 0.1
    assert float(clipped.norm()) == pytest.approx(0.01, rel=1e-3)
    torch.testing.assert_close(clipped / clipped.norm(), free / free.norm(), rtol=0, atol=1e-4)
    torch.testing.assert_close(loose, free, rtol=0, atol=1e-7)


# ------------------------------------------------------------------ order of samples


@pytest.mark.parametrize(("n", "size"), [(64, 16), (10, 3), (7, 7), (5, 100), (9, 1)])
def test_an_epoch_meets_each_sample_at_most_once(n: int, size: int) -> None:
    fits = min(size, n)
    per_epoch = n // fits
    epochs = []
    for epoch in range(3):
        rows = [batch_rows(epoch * per_epoch + k, n, size, seed=3) for k in range(per_epoch)]
        assert all(len(r) == fits for r in rows)
        seen = torch.cat(rows).tolist()
        assert len(set(seen)) == len(seen) == per_epoch * fits
        assert set(seen) <= set(range(n))
        epochs.append(seen)
    if n > 5:
        assert epochs[0] != epochs[1] != epochs[2]


def test_rows_are_a_function_of_seed_and_step() -> None:
    later = batch_rows(9, 64, 16, seed=3)
    torch.manual_seed(1)
    assert torch.equal(batch_rows(9, 64, 16, seed=3), later)
    assert not torch.equal(batch_rows(9, 64, 16, seed=4), later)


def test_left_overs_come_back_in_another_epoch() -> None:
    assert {row for step in range(60) for row in batch_rows(step, 10, 4, seed=0).tolist()} == set(
        range(10)
    )


# ------------------------------------------------------------------ evaluation


def test_metrics_are_rows(tiny, tiny_task, tiny_splits) -> None:
    evaluated: list[int] = []
    config = tiny(steps=10, eval_every=4)
    _, state, status = train(
        config, tiny_task, tiny_splits, on_evaluation=lambda s: evaluated.append(s.step)
    )
    assert status == "done"
    assert evaluated == [0, 4, 8, 10]
    keyed = {(r.step, r.split, r.name): r.value for r in state.rows}
    assert len(keyed) == len(state.rows), "each measurement stands once"
    for step in evaluated:
        for split in ("train", "valid", "test"):
            assert math.isfinite(keyed[step, split, "loss"])
            assert 0 <= keyed[step, split, tiny_task.headline] <= 1
    assert all(type(r.value) is float and type(r.step) is int for r in state.rows)
    assert keyed[10, "train", "loss"] < keyed[0, "train", "loss"]


def test_evaluation_changes_nothing(tiny, tiny_task, tiny_splits) -> None:
    often, _, _ = train(tiny(steps=8, eval_every=1), tiny_task, tiny_splits)
    seldom, _, _ = train(tiny(steps=8, eval_every=8), tiny_task, tiny_splits)
    for key, part in often.state_dict().items():
        assert torch.equal(part, seldom.state_dict()[key]), key


def test_training_is_the_same_twice(tiny, tiny_task, tiny_splits) -> None:
    (one, first, _), (two, second, _) = (train(tiny(), tiny_task, tiny_splits) for _ in range(2))
    assert first.rows == second.rows
    assert all(torch.equal(part, two.state_dict()[key]) for key, part in one.state_dict().items())
    other, third, _ = train(tiny(data_seed=9), tiny_task, tiny_splits)
    assert third.rows != first.rows
    assert not torch.equal(other.readout.weight, one.readout.weight)


# ------------------------------------------------------------------ how a run ends


@pytest.mark.parametrize("split", ["train", "valid"])
def test_patience_stops_on_a_plateau(tiny, tiny_task, tiny_splits, split: str) -> None:
    """With a rate too small to move a float, no evaluation after the first is lower."""
    config = tiny(
        optimizer="sgd", lr=1e-30, steps=100, eval_every=2, patience=3, patience_split=split
    )
    _, state, status = train(config, tiny_task, tiny_splits)
    assert status == "done"
    assert state.step == 8  # lowest at 2; 4, 6 and 8 are no lower
    assert state.rows[-1].step == 8
    _, state, _ = train(
        tiny(optimizer="sgd", lr=1e-30, steps=12, eval_every=2), tiny_task, tiny_splits
    )
    assert state.step == 12


def test_patience_lets_a_falling_loss_go_on(tiny, tiny_task, tiny_splits) -> None:
    config = tiny(
        optimizer="sgd", momentum=0, lr=1e-2, steps=20, eval_every=4, patience=1, batch_size=64
    )
    _, state, status = train(config, tiny_task, tiny_splits)
    assert (status, state.step) == ("done", 20)


def test_on_step_interrupts(tiny, tiny_task, tiny_splits) -> None:
    _, state, status = train(tiny(), tiny_task, tiny_splits, on_step=lambda s: s.step < 5)
    assert (status, state.step) == ("interrupted", 5)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_loss_that_is_not_finite_ends_the_run(
    tiny, tiny_task, tiny_splits, optimizer: str
) -> None:
    _, state, status = train(tiny(optimizer=optimizer, lr=1e30), tiny_task, tiny_splits)
    assert status == "diverged"
    assert state.step < 12
    last = [r for r in state.rows if (r.split, r.name) == ("train", "loss")][-1]
    assert not math.isfinite(last.value)
    assert last.step == state.step, "it ends where it was seen"


def test_a_loss_that_is_not_finite_after_the_last_step_is_not_done(
    tiny, tiny_task, tiny_splits
) -> None:
    """The last step may be the one that breaks the weights; the evaluation after it sees that."""
    _, state, status = train(tiny(optimizer="sgd", lr=1e30, steps=1), tiny_task, tiny_splits)
    losses = [r.value for r in state.rows if (r.split, r.name) == ("train", "loss")]
    assert not math.isfinite(losses[-1])
    assert status == "diverged"


def test_learning_happens(tiny, tiny_task, tiny_splits) -> None:
    config = tiny(steps=80, lr=1e-2, batch_size=64, eval_every=80)
    _, state, _ = train(config, tiny_task, tiny_splits)
    losses = [r.value for r in state.rows if (r.split, r.name) == ("train", "loss")]
    assert losses[-1] < 0.7 * losses[0]


def test_a_configuration_is_not_changed_by_training(tiny, tiny_task, tiny_splits) -> None:
    config = tiny(steps=2)
    copy = replace(config)
    train(config, tiny_task, tiny_splits)
    assert config == copy


def test_the_gradient_into_the_table_is_measured(tiny, tiny_task, tiny_splits) -> None:
    """A row at each evaluation after the first step, the norm of what the last step's backward
    left."""
    model, state, _ = train(tiny(), tiny_task, tiny_splits)
    gradients = [row for row in state.rows if row.name == "table_gradient"]
    assert [row.step for row in gradients] == sorted({row.step for row in state.rows} - {0})
    (table,) = model.encoding.parameters()
    assert gradients[-1].value == pytest.approx(float(table.grad.norm()))
    assert gradients[-1].value > 0


def test_the_training_samples_scored_are_spread_evenly(tiny, tiny_task, tiny_splits) -> None:
    config = tiny(steps=1, eval_train=7)
    _, state, _ = train(config, tiny_task, tiny_splits)
    n = len(tiny_splits["train"])
    few = tiny_splits["train"].take(torch.tensor([i * n // 7 for i in range(7)]))
    outputs = make_model(config, tiny_task)(
        Inputs(few.tokens, tiny_task.positions, few.read)
    ).outputs
    loss = next(r.value for r in state.rows if (r.step, r.split, r.name) == (0, "train", "loss"))
    assert loss == pytest.approx(tiny_task.loss(outputs, few).item(), rel=1e-5)
