"""Each failure signature, recognised on a real run that was made to show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from placecell.analysis import diagnosis
from placecell.config import RunConfig
from placecell.study.diagnosis import (
    diagnose_result,
    diagnose_results,
    diagnose_summary,
    lines,
    numbers,
)
from placecell.study.summary import chance, summarise
from placecell.train import RunResult, make_task, run

Make = Callable[..., RunResult]
FEW = {"n_train": 64, "batch_size": 32, "lr": 3e-3, "width": 32}
LONG = {"steps": 200, "eval_every": 20}
MANY = {"n_train": 400, "batch_size": 200, "eval_train": 200}


def test_memorising(tiny_run: Make) -> None:
    result = tiny_run(**FEW, sigma=2, steps=150, eval_every=15)
    diagnosis = diagnose_result(result)
    assert diagnosis.name == "memorising"
    assert "--sigma" in diagnosis.advice
    assert result.final("train", "accuracy") == 1.0
    assert f"{result.final('test', 'accuracy'):.3f}" in diagnosis.seen


@pytest.mark.parametrize(
    "settings", [{"lr": 3e-5}, {"lr": 2e-3, "optimizer": "sgd"}], ids=["adam", "sgd"]
)
def test_stalling(tiny_run: Make, settings: dict[str, object]) -> None:
    diagnosis = diagnose_result(tiny_run(**MANY, **settings, **LONG, sigma=1e-3))
    assert diagnosis.name == "stalling"
    assert "larger --sigma" in diagnosis.advice


def test_a_large_table_that_stalls_is_not_told_to_grow(tiny_run: Make) -> None:
    diagnosis = diagnose_result(tiny_run(**MANY, **LONG, sigma=3, lr=1e-5))
    assert diagnosis.name == "stalling"
    assert "larger --sigma" not in diagnosis.advice
    assert "smaller --sigma" in diagnosis.advice


def test_not_converged_and_still_falling(tiny_run: Make) -> None:
    settings = FEW | {"lr": 2e-4}
    diagnosis = diagnose_result(tiny_run(**settings, sigma=0.2, steps=200, eval_every=20))
    assert diagnosis.name == "not converged"
    assert "--steps" in diagnosis.advice


def test_not_converged_and_flat(tiny_run: Make) -> None:
    diagnosis = diagnose_result(tiny_run(**MANY, **LONG, encoding="nope", lr=1e-4))
    assert diagnosis.name == "not converged"
    assert "--steps" not in diagnosis.advice
    assert "encoding" in diagnosis.advice


@pytest.mark.filterwarnings("ignore")
def test_diverged(tiny_run: Make) -> None:
    diagnosis = diagnose_result(tiny_run(**FEW | {"lr": 1e6}, optimizer="sgd", sigma=0.2))
    assert diagnosis.name == "diverged"
    assert "--lr" in diagnosis.advice


def test_attention_that_does_not_follow_positions_needs_other_seeds_to_be_seen(
    tiny_run: Make,
) -> None:
    settings = FEW | {"lr": 2e-3, "batch_size": 64, "schedule": "cosine", "mlp_ratio": 2}
    results = [
        tiny_run(**settings, sigma=0.1, steps=150, eval_every=15, seed=seed) for seed in (0, 1)
    ]
    alone = [diagnose_result(result).name for result in results]
    assert alone == ["overfitting", "overfitting"]
    together = [one.name for _, one in diagnose_results(results, [])]
    assert together == ["attention does not follow positions"] * 2
    (line,) = lines(diagnose_results(results, []))
    assert line.startswith("diagnosis: learnable (2 of 2) attention does not follow positions")


def test_learned(tiny_run: Make) -> None:
    """A run on its own training set as test would do: scores are taken from the metrics, so they
    are set equal."""
    from dataclasses import replace

    result = tiny_run(**FEW, sigma=2, steps=150, eval_every=15)
    rows = tuple(
        r._replace(value=0.97) if (r.split, r.name) == ("test", "accuracy") else r
        for r in result.rows
    )
    diagnosis = diagnose_result(replace(result, rows=rows))
    assert diagnosis.name == "learned"
    assert diagnosis.healthy
    assert lines([("x", diagnosis)]) == []


def test_runs_without_snapshots_and_gradients_are_diagnosed_too(tiny_run: Make) -> None:
    """Old runs: how far the table moved is had from the seed."""
    settings = dict(**FEW, sigma=2, steps=150, eval_every=15)
    kept, bare = tiny_run(**settings), tiny_run(**settings, snapshots="none")
    assert not (bare.folder / "snapshots.safetensors").exists()
    assert diagnose_result(bare) == diagnose_result(kept)
    from dataclasses import replace

    stalled = tiny_run(**MANY, **LONG, lr=3e-5, sigma=1e-3)
    old = replace(stalled, rows=tuple(r for r in stalled.rows if r.name != "table_gradient"))
    assert numbers(old).gradient == []
    assert "not recorded" in diagnose_result(old).seen


def test_runs_that_have_not_ended_say_so(tiny_run: Make) -> None:
    from dataclasses import replace

    result = tiny_run()
    for status in ("running", "interrupted", "failed"):
        diagnosis = diagnose_result(replace(result, status=status))
        assert diagnosis.name == status
        assert diagnosis.advice


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_fifty_steps_are_too_short_to_tell(tiny_run: Make, schedule: str) -> None:
    settings = {"sigma": 0.1, "lr": 1e-4, "schedule": schedule, "steps": 50, "eval_every": 5}
    diagnosis = diagnose_result(tiny_run(**MANY, **settings))
    assert diagnosis.name == "too short to tell"
    assert diagnosis.advice.startswith("more --steps")
    assert "--lr" not in diagnosis.advice
    assert "guessing has" in diagnosis.seen


def test_a_short_run_of_an_error_is_compared_with_simpler_methods(tmp_path: Path) -> None:
    result = run(nmar(steps=60, lr=3e-3), tmp_path)
    diagnosis = diagnose_result(result)
    assert diagnosis.name == "too short to tell"
    task = make_task(result.config)
    guess, linear = chance(task), task.baseline_scores()["linear Gaussian"]
    assert linear < result.final("test", "mse") < 1
    assert f"guessing has {guess:.3f}; linear Gaussian has {linear:.3f}" in diagnosis.seen


def nmar(**train: object) -> RunConfig:
    return RunConfig.from_dict(
        {
            "task": "nmar",
            "data": {"modules": "3x5", "n_train": 200, "n_valid": 40, "n_test": 300},
            "encoding": {"sigma": 2.0},
            "model": {"width": 16, "depth": 2},
            "train": {"eval_every": 20, "batch_size": 16} | train,
        }
    )


def test_no_better_than_the_mean(tmp_path: Path) -> None:
    """An error that is that of guessing the mean is no success, for a single run, a sweep and a
    page alike."""
    config = nmar(steps=200, lr=1e-6).override({"encoding": "nope"})
    result = run(config, tmp_path)
    diagnosis = diagnose_result(result)
    assert diagnosis.name == "no better than chance"
    assert [one for _, one in diagnose_results([result], [])] == [diagnosis]
    summary = summarise(tmp_path)
    assert diagnose_summary(summary.runs, summary.baseline_headlines()) == [diagnosis]
    guess = chance(summary.task)
    assert f"guessing has {guess:.3f}" in diagnosis.seen
    assert guess == pytest.approx(summary.baselines["mean"]["test/mse"], rel=0.01)


def test_chance_of_classes_is_the_commonest_one(tiny_run: Make) -> None:
    task = make_task(tiny_run().config)
    splits = task.splits()
    common = splits["train"].targets.flatten().mode().values
    assert chance(task) == pytest.approx(float((splits["test"].targets == common).double().mean()))


def test_a_run_within_its_warm_up(tiny_run: Make) -> None:
    diagnosis = diagnose_result(tiny_run(**FEW, sigma=0.2, steps=20, eval_every=5, warmup=20))
    assert diagnosis.name == "warm-up not over"


def test_a_run_evaluated_twice(tiny_run: Make) -> None:
    diagnosis = diagnose_result(
        tiny_run(**MANY, encoding="nope", lr=1e-3, steps=200, eval_every=200)
    )
    assert diagnosis.name == "not converged"
    assert "--eval-every" in diagnosis.advice


def test_thresholds_are_written_down() -> None:
    """The docs give every threshold with its value."""
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    for name in (
        "GAP",
        "GAP_ERROR",
        "MOVED",
        "NEARLY",
        "BEHIND",
        "SHORT_STEPS",
        "SHORT_PASSES",
        "BETTER",
        "FLAT",
        "TINY_GRADIENT",
        "CONSISTENT",
    ):
        assert f"`{name}` | {getattr(diagnosis, name):g}" in text, name
