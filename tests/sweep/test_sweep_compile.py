"""Compiled sweeps: one compilation serves the runs of a worker, where it pays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from placecell.cli import call
from placecell.store.files import read_json
from placecell.sweep import estimate, grid, local, sweep
from placecell.train import load_result, run


@pytest.fixture
def configs(tiny):
    axes = [{"encoding": "learnable", "sigma": [0.1, 2.0]}, {"encoding": "nope"}]
    return grid(tiny(), axes, {}, seeds=2)


def test_only_what_takes_long_enough_is_worth_compiling(
    configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(seconds: float, workers: int) -> set[str]:
        monkeypatch.setattr(estimate, "_seconds", lambda *args: seconds)
        worth = estimate.worth_compiling(configs, tmp_path, "cpu", workers)
        return {c.encoding.name for c in configs if c.name in worth}

    once = estimate.COMPILING / estimate.SAVED  # seconds of runs that one compilation needs
    assert of(once / 5, workers=1) == set()
    assert of(once / 3, workers=1) == {"learnable"}  # 4 runs; there are 2 of nope
    assert of(once / 3, workers=2) == set(), "two workers compile twice"
    assert of(once, workers=1) == {"learnable", "nope"}


def test_what_cannot_be_compiled_is_trained_without(
    configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_module = sys.modules["placecell.train.run"]  # `placecell.train.run` is the function
    real, asked = run_module.fit, []

    def fit(*args, compile: bool, **kwargs):
        asked.append(compile)
        if compile:
            raise RuntimeError("no compiler")
        return real(*args, compile=compile, **kwargs)

    monkeypatch.setattr(run_module, "fit", fit)
    monkeypatch.setattr(run_module, "not_compilable", lambda error: True)
    outcomes = sweep(configs[:1], tmp_path, local(0), device="cpu", compile=True)
    assert [outcome.status for outcome in outcomes] == ["done"]
    assert asked == [True, False]


def test_when_to_compile_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "latin_square", "--compile", "sometimes", "--out", str(tmp_path / "x")]
    assert call([*words, "--steps", "1", "--n-train", "8"]) == 2
    assert "unknown value of --compile 'sometimes'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, by its compiler
def test_one_compilation_serves_runs_that_differ_in_values(configs, tmp_path: Path) -> None:
    """And each is the eager run but for rounding."""
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    learnable = [c for c in configs if c.encoding.name == "learnable"]
    outcomes = sweep(learnable, tmp_path / "compiled", local(0), device="cpu", compile=True)
    assert {outcome.status for outcome in outcomes} == {"done"}
    assert counters["stats"]["unique_graphs"] == 1
    for config in learnable:
        folder = tmp_path / "compiled" / config.name
        assert read_json(folder / "environment.json")["attempts"][0]["compiled"]
        eager = run(config, tmp_path / "eager", device="cpu")
        for one, two in zip(load_result(folder).rows, eager.rows, strict=True):
            assert one[:3] == two[:3]
            assert one.value == pytest.approx(two.value, rel=1e-3, abs=1e-4)
