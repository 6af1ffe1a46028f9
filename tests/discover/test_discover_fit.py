"""What the fit does with its networks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from placecell.discover import PlaceMap, fit
from placecell.discover.candidates import Candidates
from placecell.discover.evidence import gain_test
from placecell.discover.network import Trained, Training, train
from placecell.discover.prepared import Coded, Prepared

CPU = torch.device("cpu")


def test_what_only_the_network_finds_is_its_gain_beyond_the_linear_model() -> None:
    trained = {
        "based": Trained(gain_by_step={0: 0.2, 50: 0.3}, best_step=50),
        "alone": Trained(gain_by_step={0: 0.0, 50: 0.4}, best_step=50),
    }
    assert fit._only_network(trained, "alone") == pytest.approx(0.5)
    assert fit._only_network(trained, "based") == pytest.approx(1 / 3)
    none = {"based": Trained(gain_by_step={0: 0.2, 50: 0.1})}
    assert fit._only_network(none, "based") == 0


def test_of_two_networks_the_one_that_learned_less_counts_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.random.default_rng(0).normal(size=(200, 5)).cumsum(axis=1)
    data = Prepared(x, np.ones(200), np.arange(200))
    coded = Coded.learn(data)
    asked: list[int] = []

    def one_learns(jobs: Any, n_jobs: int) -> list[tuple[Any, Trained]]:
        (first, rows, _, training, seed), (second, *_) = jobs
        asked.append(training.steps)
        return [(first, train(first, rows, None, training, seed)), (second, Trained())]

    monkeypatch.setattr(fit, "train_several", one_learns)
    settings = fit.Settings(Training(steps=40), CPU, 0)
    fitted: Any = SimpleNamespace(trained={"alone": Trained(best_step=20)}, partial=False)
    read = fit._train_again(fitted, data, coded, 120, "alone", settings)
    weights = [weight for _, weight in read]
    assert weights[0] == 1
    assert weights[1] < 0.01
    # the first half of the steps, at high rates, is more than half of the learning, and there are
    # more rows: no more than the steps that were asked for
    assert asked == [40]


def test_a_consensus_owes_no_agreement_to_the_network() -> None:
    x = np.random.default_rng(0).normal(size=(200, 12)).cumsum(axis=1)
    x += np.random.default_rng(1).normal(size=x.shape)
    data = Prepared(x, np.ones(200), np.arange(200))
    coded = Coded.learn(data)
    rows = coded.rows(data, CPU)
    without, with_network = (
        Candidates.read(data, data, coded, net, rows, 0).agreement
        for net in (None, coded.net(True, 0, CPU))
    )
    for name, most in (
        ("consensus", without["consensus"].mean()),
        ("ablation", max(without[name].mean() for name in without if name != "consensus")),
    ):
        assert with_network[name].mean() <= most + 1e-9


def test_rounding_is_no_gain() -> None:
    """What a model that learned nothing gains is rounding, alike in every row."""
    rows, ones = np.arange(30), np.ones(30)
    for size in (2.4e-7, -2.4e-7):
        gains_of = size * (1 + 0.01 * np.random.default_rng(0).normal(size=30))
        assert gain_test(gains_of, rows, ones).p_value > 0.99
        assert gain_test(np.full(30, size), rows, ones).p_value == 1
    assert gain_test(np.full(30, 1e-3), rows, ones).p_value == 0


def test_where_all_is_shrunk_away_nothing_is_found() -> None:
    p = []
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=(150, 10))
        p.append(PlaceMap(steps=0, random_state=seed).fit(x).p_value_)
    assert sum(value <= 0.05 for value in p) <= 2
