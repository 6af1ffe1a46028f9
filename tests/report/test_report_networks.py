"""What `placecell analyse` says of a task with modules and an error for its headline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from placecell.config import RunConfig
from placecell.report import analyse
from placecell.report.page.build import build_page
from placecell.store import Store
from placecell.study.known import known_measures
from placecell.study.summary import summarise
from placecell.train import run

TINY = {
    "task": "nmar",
    "data": {"modules": "3x5", "n_train": 200, "n_valid": 40, "n_test": 60},
    "model": {"width": 16, "depth": 2},
    "train": {"steps": 6, "eval_every": 3, "batch_size": 16},
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nmar")
    for overrides in (
        {"sigma": 0.1},
        {"sigma": 0.5},
        {"sigma": 2.0},
        {"encoding": "nope"},
        {"encoding": "sinusoidal"},
    ):
        run(RunConfig.from_dict(TINY).override(overrides), folder, device="cpu")
    return folder


@pytest.fixture(scope="module")
def summary(sweep: Path):
    return summarise(sweep)


def test_the_best_sigma_has_the_lowest_error(summary) -> None:
    errors = [summary.interval(label, "test/mse").estimate for _, label in summary.sigma_curve()]
    assert summary.best_sigma() == int(np.argmin(errors))


def test_runs_are_measured_by_their_modules(summary) -> None:
    learned = next(r for r in summary.runs if r.label == "learnable σ=0.1")
    for name in (
        "table/modularity",
        "table/modularity_signed",
        "untrained/modularity",
        "table/louvain_ari",
        "table/fc",
    ):
        assert -1 <= learned.values[name] <= 1
    assert 0 < learned.values["table/modularity_p"] <= 1
    assert "table/spatial_p" not in learned.values, "nodes of a simulation have no places"
    assert "table/procrustes" not in learned.values
    without = next(r for r in summary.runs if r.label == "nope")
    assert "table/modularity" not in without.values
    assert 0 <= without.values["attention/within"] <= 1


def test_attention_without_positions_is_spread_as_chance_has_it(summary) -> None:
    """Masked tokens without positions look at all others alike on average, so a module's share is
    its size."""
    without = next(r for r in summary.runs if r.label == "nope")
    assert without.values["attention/within"] == pytest.approx(
        without.values["attention/within_uniform"], abs=0.03
    )


def test_a_sinusoidal_model_is_no_reference_where_numbers_of_nodes_mean_nothing(summary) -> None:
    assert "sinusoidal" in summary.labels
    assert not summary.task.truth().spatial
    assert not [
        name
        for one in summary.runs
        for name in one.values
        if name.startswith("attention/reference")
    ]


def test_an_earlier_analysis_changes_nothing_on_the_page(sweep: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(sweep, tmp_path / "store"))
    before = build_page(Store(store).run_set())
    analyse(store, store / "analysis", quiet=True)
    known = known_measures(store)
    assert known
    after = build_page(Store(store).run_set(), known=known)
    assert before.summary is not None
    assert after.summary is not None
    for a, b in zip(before.summary.runs, after.summary.runs, strict=True):
        assert a.values["attention/within"] == b.values["attention/within"]
    assert after.html == before.html


def test_baselines_stand_in_the_same_table(sweep: Path, tmp_path: Path) -> None:
    written = analyse(sweep, tmp_path / "found", quiet=True)
    lines = (tmp_path / "found" / "summary.md").read_text().splitlines()
    heads = lines[0].count("|")
    for name in ("linear Gaussian", "ridge", "mean", "correlations of the training data"):
        row = next(line for line in lines if line.startswith(f"| {name} |"))
        assert row.count("|") == heads
    assert "converged" not in lines[0], "noise cannot be learned whole"
    facts = json.loads((tmp_path / "found" / "summary.json").read_text())
    scores = {row["label"]: row.get("test/mse") for row in facts["baselines"]}
    assert scores["linear Gaussian"] < scores["mean"]
    assert {path.name for path in written.paths} >= {"networks.png", "finding.png", "summary.csv"}
    assert "linear Gaussian" in (tmp_path / "found" / "summary.csv").read_text()
