"""The simulated network: its equation, its modules, and bad settings."""

from __future__ import annotations

import numpy as np
import pytest

from placecell import analysis
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.tasks.nmar import network, simulate
from placecell.tasks.nmar.config import Config, sizes
from placecell.tasks.nmar.simulate import BURN_IN
from placecell.train import make_task


def test_the_equation_step_by_step() -> None:
    w = network((3, 4), 1.3, 0.3, 0.5, np.random.default_rng(0)).weights
    states = simulate(w, 2, 3, 0.5, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    x = rng.normal(0, 1, (2, 7))
    for t in range(BURN_IN + 3):
        shock = rng.normal(0, 0.5, (2, 7))
        x = (
            np.array(
                [[np.tanh(sum(w[i, j] * s[j] for j in range(7))) for i in range(7)] for s in x]
            )
            + shock
        )
        if t >= BURN_IN:
            assert states[:, t - BURN_IN] == pytest.approx(x, abs=1e-9)


@pytest.mark.parametrize("of", [(12,) * 5, (3, 20, 7)])
def test_blocks_are_positive_with_the_spectral_radius_asked_for(of: tuple[int, ...]) -> None:
    drawn = network(of, 1.3, 0.3, 0.1, np.random.default_rng(1))
    assert sorted(np.bincount(drawn.modules).tolist()) == sorted(of)
    for module in range(len(of)):
        inside = drawn.modules == module
        block = drawn.weights[np.ix_(inside, inside)]
        assert block.min() >= 0
        assert np.abs(np.linalg.eigvals(block)).max() == pytest.approx(1.3)


def test_coupling_between_modules_is_sparse_and_of_either_sign() -> None:
    drawn = network((12,) * 5, 1.3, 0.3, 0.1, np.random.default_rng(2))
    between = drawn.weights[drawn.modules[:, None] != drawn.modules]
    there = between[between != 0]
    assert len(there) / len(between) == pytest.approx(0.1, abs=0.02)
    assert 0.4 < (there > 0).mean() < 0.6
    within = drawn.weights[drawn.modules[:, None] == drawn.modules].mean()
    assert np.abs(there).mean() == pytest.approx(0.3 * within, rel=0.15)


def test_the_order_of_nodes_says_nothing() -> None:
    modules = network((12,) * 5, 1.3, 0.3, 0.1, np.random.default_rng(3)).modules
    assert (np.diff(modules) == 0).mean() < 0.4


@pytest.mark.parametrize("modules", ["3x5", "12x30", "10+20+30"])
def test_from_15_to_360_nodes_the_modules_are_in_the_data(modules: str) -> None:
    data = {"modules": modules, "n_train": 2000, "n_valid": 20, "n_test": 20}
    task = make_task(RunConfig.from_dict({"task": "nmar", "data": data}))
    truth = task.truth()
    assert task.n_tokens == sum(sizes(task.config.modules))
    fc = task.fc("train")
    assert np.isfinite(fc).all()
    by_module = analysis.modules(fc, truth.labels["module"])
    assert by_module.within > 0.3
    assert abs(by_module.between) < 0.2


def test_bistable_so_not_gaussian() -> None:
    """What gives a nonlinear model something to find: a module's mean has two humps."""
    task = make_task(RunConfig.from_dict({"task": "nmar"}))
    x, modules = task._fields["train"][0], task.network.modules
    for module in range(5):
        mean = x[:, modules == module].mean(1)
        mean = mean / mean.std()
        assert (mean**4).mean() < 2, "kurtosis 3 is Gaussian, 1 two points"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"modules": "5"}, "modules"),
        ({"modules": "axb"}, "modules"),
        ({"modules": "2x1"}, "modules"),
        ({"noise": 0.0}, "noise"),
        ({"radius": -1.0}, "radius"),
        ({"mask": 1.0}, "mask"),
        ({"n_train": 1}, "n_train"),
        ({"density": 2.0}, "density"),
        ({"length": 0}, "length"),
        ({"between": float("nan")}, "between"),
    ],
)
def test_bad_settings(change: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        Config(**change)
