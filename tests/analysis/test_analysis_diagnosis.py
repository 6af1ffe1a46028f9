"""The diagnosis at its thresholds: just below and just above each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from placecell.analysis import Numbers, diagnose, map_consistency
from placecell.analysis.diagnosis import (
    BEHIND,
    BETTER,
    CONSISTENT,
    FLAT,
    GAP,
    GAP_ERROR,
    MOVED,
    NEARLY,
    SHORT_PASSES,
    SHORT_STEPS,
    TINY_GRADIENT,
)

WELL = Numbers(
    "done", up=True, train=1.0, test=0.97, learned=True, loss=[1.4, 0.7, 0.1, 0.0], moved=1.0
)
STUCK = replace(
    WELL, train=0.4, test=0.38, learned=False, loss=[1.0, 0.99, 0.98, 0.97], gradient=[0.01] * 3
)
ERROR = replace(WELL, up=False, train=0.30, test=0.32, learned=False, loss=[1.0, 0.32, 0.31, 0.30])
NEAR = 1e-6


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        (WELL, "learned"),
        (replace(WELL, test=1 - GAP - NEAR, moved=MOVED - NEAR), "memorising"),
        (replace(WELL, test=1 - GAP - NEAR, moved=MOVED + NEAR), "overfitting"),
        (replace(WELL, test=1 - GAP - NEAR, moved=math.nan), "overfitting"),
        (replace(WELL, test=1 - GAP + NEAR, moved=MOVED - NEAR), "learned"),
        (replace(WELL, consistency=CONSISTENT - NEAR), "attention does not follow positions"),
        (replace(WELL, consistency=CONSISTENT + NEAR), "learned"),
        (replace(WELL, consistency=CONSISTENT - NEAR, moved=MOVED - NEAR), "learned"),
        (STUCK, "stalling"),
        (replace(STUCK, gradient=[TINY_GRADIENT * 1.02] * 3), "not converged"),
        (replace(STUCK, moved=math.nan), "not converged"),
        (replace(STUCK, gradient=()), "stalling"),
        (replace(STUCK, loss=[1.0, 0.99, 0.95, 0.95 - FLAT - NEAR]), "not converged"),
        (replace(WELL, learned=False, train=NEARLY), "learned"),
        (
            replace(WELL, learned=False, train=NEARLY - NEAR, loss=[1.4, 0.2, 0.1, 0.09]),
            "not converged",
        ),
        (
            replace(
                WELL, learned=False, train=0.6, test=0.3, moved=0.0, loss=[1.4, 0.8, 0.7, 0.69]
            ),
            "not converged",
        ),
        (replace(WELL, learned=None, train=0.6, test=0.55, loss=[1.4, 0.8, 0.7, 0.69]), "learned"),
        (ERROR, "learned"),
        (replace(ERROR, train=GAP_ERROR * 0.32 - NEAR, moved=0.0), "memorising"),
        (replace(ERROR, train=GAP_ERROR * 0.32 + NEAR, moved=0.0), "learned"),
        (replace(ERROR, loss=[1.0, 0.6, 0.5, 0.4]), "not converged"),
        (replace(ERROR, chance=0.32 / (1 - BETTER) - NEAR), "no better than chance"),
        (replace(ERROR, chance=0.32 / (1 - BETTER) + NEAR), "learned"),
        (replace(ERROR, learned=None, chance=0.31), "no better than chance"),
        (replace(ERROR, train=0.1, chance=0.31), "overfitting"),
        (replace(WELL, chance=0.97 / (1 + BETTER) + NEAR), "no better than chance"),
        (replace(WELL, chance=0.97 / (1 + BETTER) - NEAR), "learned"),
        (replace(STUCK, steps=SHORT_STEPS - 1), "too short to tell"),
        (replace(STUCK, steps=SHORT_STEPS), "stalling"),
        (replace(STUCK, steps=SHORT_STEPS + 99, warmup=100), "too short to tell"),
        (replace(STUCK, passes=SHORT_PASSES - NEAR), "too short to tell"),
        (replace(STUCK, passes=SHORT_PASSES), "stalling"),
        (replace(WELL, steps=50), "learned"),
        (replace(ERROR, learned=None, steps=50), "too short to tell"),
        (replace(ERROR, steps=50, chance=1.0, simpler={"linear": 0.25}), "learned"),
        (replace(ERROR, steps=50, chance=1.0, simpler={"linear": 0.2}), "too short to tell"),
        (
            replace(ERROR, chance=1.0, simpler={"linear": 1 - 0.68 / (BEHIND + NEAR)}),
            "learned",
        ),
        (
            replace(ERROR, chance=1.0, simpler={"linear": 1 - 0.68 / (BEHIND - NEAR)}),
            "behind a simpler method",
        ),
        (replace(ERROR, simpler={"linear": 0.32 * (BEHIND - NEAR)}), "behind a simpler method"),
        (replace(WELL, chance=0.25, test=0.92, simpler={"n": 0.99}), "learned"),
        (replace(WELL, chance=0.25, test=0.91, simpler={"n": 0.99}), "behind a simpler method"),
        (replace(WELL, steps=100, warmup=100), "warm-up not over"),
        (replace(WELL, steps=101, warmup=100), "learned"),
        (replace(WELL, steps=0, warmup=0), "learned"),
        (replace(WELL, status="diverged", steps=10, warmup=100), "diverged"),
        (replace(WELL, status="diverged"), "diverged"),
        (replace(WELL, status="failed"), "failed"),
    ],
)
def test_each_side_of_each_threshold(numbers: Numbers, name: str) -> None:
    verdict = diagnose(numbers)
    assert verdict.name == name, verdict
    assert verdict.healthy == (name == "learned")
    assert verdict.seen
    assert str(verdict).startswith(name)


def test_a_run_with_a_single_evaluation_has_a_diagnosis() -> None:
    assert diagnose(replace(STUCK, loss=[1.0], gradient=())).name == "not converged"
    assert diagnose(replace(WELL, loss=[], train=math.nan, test=math.nan)).name == "learned"


def test_too_few_evaluations_to_know_are_not_called_a_loss_that_stays() -> None:
    for loss in ([1.0], [1.0, 0.4]):
        verdict = diagnose(replace(WELL, learned=False, train=0.6, loss=loss))
        assert verdict.name == "not converged"
        assert f"too few evaluations ({len(loss)})" in verdict.seen
        assert "no longer falls" not in verdict.seen
        assert verdict.advice == "more --steps, or a smaller --eval-every."


def test_a_run_shorter_than_its_warm_up_is_told_both_options() -> None:
    verdict = diagnose(replace(STUCK, steps=40, warmup=100))
    assert "100 steps" in verdict.seen
    assert "40" in verdict.seen
    assert "--steps" in verdict.advice
    assert "--warmup" in verdict.advice


@pytest.mark.parametrize(
    ("moved", "advice"),
    [
        (0.01, "a smaller --sigma"),
        (1.0, "another --sigma"),
        (math.nan, "an encoding that tells the tokens apart"),
    ],
)
def test_what_to_try_against_the_mean_hangs_on_the_table(moved: float, advice: str) -> None:
    verdict = diagnose(replace(ERROR, chance=0.3, moved=moved))
    assert verdict.advice == f"more --steps, another --lr, or {advice}."
    assert "guessing has 0.300" in verdict.seen


def test_a_simpler_method_that_does_better_is_named() -> None:
    simpler = {"mean": 1.0, "ridge": 0.31, "linear": 0.30}
    verdict = diagnose(replace(ERROR, simpler=simpler))
    assert verdict.healthy
    assert verdict.seen.endswith("no sign of trouble, but linear does better (0.300).")
    assert diagnose(replace(ERROR, simpler={"ridge": 0.33})).seen.endswith("no sign of trouble.")
    assert diagnose(replace(WELL, simpler={"ridge": 0.98, "other": 0.5})).seen.endswith(
        "ridge does better (0.980)."
    )
    assert diagnose(replace(WELL, simpler={"ridge": 0.96})).seen.endswith("no sign of trouble.")


def test_far_above_a_simpler_method_is_no_success() -> None:
    """The case that was called learned: an error of 0.898, where guessing has 1."""
    run = replace(ERROR, learned=None, train=0.9, test=0.898, loss=[1.6, 0.92, 0.91, 0.90])
    verdict = diagnose(replace(run, steps=1500, chance=1.0, simpler={"linear Gaussian": 0.43}))
    assert verdict.name == "behind a simpler method"
    assert "guessing has 1.000; linear Gaussian has 0.430" in verdict.seen
    assert verdict.advice.startswith("more --steps")
    short = diagnose(replace(run, steps=50, passes=0.1, chance=1.0))
    assert short.name == "too short to tell"
    assert short.seen.startswith("50 steps went over the training set 0.1 times;")
    assert short.advice == "more --steps, before anything else."


def test_a_loss_that_ends_with_its_learning_rate_is_not_stalling() -> None:
    falling_first = replace(
        STUCK, steps=1000, loss=[1.0, 0.99, 0.95, 0.91, 0.88, 0.87, 0.87], gradient=[0.01] * 6
    )
    assert diagnose(falling_first).name == "stalling"
    decayed = diagnose(replace(falling_first, decays=True))
    assert decayed.name == "not converged"
    assert "as the learning rate went to 0" in decayed.seen
    assert decayed.advice.startswith("more --steps")


def test_advice_names_no_option_that_a_task_may_lack() -> None:
    cases = [
        replace(WELL, consistency=0.0),
        replace(STUCK, moved=0.0),
        STUCK,
        replace(WELL, test=0.5),
    ]
    advice = " ".join(diagnose(one).advice for one in cases)
    assert "--n-train" not in advice
    assert "Adam" not in advice, "which optimizer stalls more is not settled: docs/lazy_or_rich.md"


def test_consistency_of_maps_is_the_mean_correlation_with_the_others() -> None:
    rng = np.random.default_rng(0)
    maps = [rng.random((2, 5, 5)) for _ in range(3)]
    consistency = map_consistency(maps)
    flat = [[m[layer].ravel() for layer in range(2)] for m in maps]

    def r(i: int, j: int) -> float:
        return float(np.mean([np.corrcoef(flat[i][k], flat[j][k])[0, 1] for k in range(2)]))

    np.testing.assert_allclose(
        consistency, [(r(0, 1) + r(0, 2)) / 2, (r(0, 1) + r(1, 2)) / 2, (r(0, 2) + r(1, 2)) / 2]
    )
    assert np.isnan(map_consistency(maps[:1])).all()
    np.testing.assert_allclose(map_consistency([maps[0], maps[0]]), [1, 1])
