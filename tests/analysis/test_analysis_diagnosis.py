"""The diagnosis at its thresholds: just below and just above each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from placecell.analysis import Numbers, diagnose, map_consistency
from placecell.analysis.diagnosis import CONSISTENT, FLAT, GAP, GAP_ERROR, MOVED, NEARLY, TINY_GRADIENT

WELL = Numbers("done", up=True, train=1.0, test=0.97, learned=True, loss=[1.4, 0.7, 0.1, 0.0], moved=1.0)
STUCK = replace(WELL, train=0.4, test=0.38, learned=False, loss=[1.0, 0.99, 0.98, 0.97], gradient=[0.01] * 3)
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
        (replace(WELL, learned=False, train=NEARLY - NEAR, loss=[1.4, 0.2, 0.1, 0.09]), "not converged"),
        (replace(WELL, learned=False, train=0.6, test=0.3, moved=0.0, loss=[1.4, 0.8, 0.7, 0.69]), "not converged"),
        (replace(WELL, learned=None, train=0.6, test=0.55, loss=[1.4, 0.8, 0.7, 0.69]), "learned"),
        (ERROR, "learned"),
        (replace(ERROR, train=GAP_ERROR * 0.32 - NEAR, moved=0.0), "memorising"),
        (replace(ERROR, train=GAP_ERROR * 0.32 + NEAR, moved=0.0), "learned"),
        (replace(ERROR, loss=[1.0, 0.6, 0.5, 0.4]), "not converged"),
        (replace(WELL, status="diverged"), "diverged"),
        (replace(WELL, status="failed"), "failed"),
    ],
)
def test_each_side_of_each_threshold(numbers: Numbers, name: str) -> None:
    found = diagnose(numbers)
    assert found.name == name, found
    assert found.healthy == (name == "learned")
    assert found.seen
    assert str(found).startswith(name)


def test_a_run_with_a_single_evaluation_has_a_diagnosis() -> None:
    assert diagnose(replace(STUCK, loss=[1.0], gradient=())).name == "not converged"
    assert diagnose(replace(WELL, loss=[], train=math.nan, test=math.nan)).name == "learned"


def test_consistency_of_maps_is_the_mean_correlation_with_the_others() -> None:
    rng = np.random.default_rng(0)
    maps = [rng.random((2, 5, 5)) for _ in range(3)]
    found = map_consistency(maps)
    flat = [[m[layer].ravel() for layer in range(2)] for m in maps]

    def r(i: int, j: int) -> float:
        return float(np.mean([np.corrcoef(flat[i][k], flat[j][k])[0, 1] for k in range(2)]))

    np.testing.assert_allclose(found, [(r(0, 1) + r(0, 2)) / 2, (r(0, 1) + r(1, 2)) / 2, (r(0, 2) + r(1, 2)) / 2])
    assert np.isnan(map_consistency(maps[:1])).all()
    np.testing.assert_allclose(map_consistency([maps[0], maps[0]]), [1, 1])
