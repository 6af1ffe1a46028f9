"""Lazy or rich: what is measured of real runs, against other ways to compute it; the verb; what it
refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

from ntk_reference import ntk_by_products
from placecell.analysis.ntk import ntk
from placecell.analysis.regimes import choose_ridge, kernel_distance
from placecell.cli import call
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.model import Inputs
from placecell.study.kernels import LazyRich, Sizes, kernel_samples, lazy_rich
from placecell.train import load_model, run
from placecell.train.run import make_model

SMALL = Sizes(probes=12, learn=24)
SETTINGS = {
    "task": "latin_square",
    "data": {"n_train": 64, "n_valid": 16, "n_test": 30},
    "model": {"width": 8, "depth": 2, "token_sigma": 0.5},
    "train": {"steps": 20, "eval_every": 10, "batch_size": 32, "lr": 1e-2, "snapshots": "weights"},
}
FIELDS = SETTINGS | {
    "task": "nmar",
    "data": {"modules": "2x4", "n_train": 60, "n_valid": 20, "n_test": 40},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two σ × two seeds that kept all weights, and a frozen table that did not."""
    out = tmp_path_factory.mktemp("lazy")
    base = RunConfig.from_dict(SETTINGS)
    for seed in (0, 1):
        for change in (
            {"sigma": 0.1},
            {"sigma": 2.0},
            {"encoding": "random", "sigma": 0.1, "snapshots": "table"},
        ):
            run(base.override({"seed": seed} | change), out)
    return out


@pytest.fixture(scope="module")
def lazy(folder: Path) -> LazyRich:
    return lazy_rich([folder], SMALL)


def label_of(lazy: LazyRich, sigma: float, encoding: str = "learnable") -> str:
    chosen = (encoding, sigma)
    return next(
        n for n, r in lazy.runs if (r.config.encoding.name, r.config.encoding.sigma) == chosen
    )


def folder_of(lazy: LazyRich, label: str, seed: int) -> Path:
    return next(r.folder for name, r in lazy.runs if (name, r.config.seed) == (label, seed))


def test_kernel_facts_are_those_of_the_other_implementation(lazy: LazyRich) -> None:
    label = label_of(lazy, 0.1)
    config, task, trained = load_model(folder_of(lazy, label, 0))
    probes = kernel_samples(task.splits(), "test", SMALL.probes)
    inputs = Inputs(probes.tokens, task.positions, probes.read)
    first, last = (
        ntk_by_products(model.double(), inputs) for model in (make_model(config, task), trained)
    )
    for block in ("PE", "QK", "OV", "MLP", "readout"):
        a, b = first.blocks[block].numpy(), last.blocks[block].numpy()
        assert lazy.values(label, "kernel_distance", block)[0] == pytest.approx(
            kernel_distance(a, b), abs=1e-5
        )
        share = np.trace(b) / np.trace(last.total.numpy())
        assert lazy.values(label, "kernel_share", block)[0] == pytest.approx(share, rel=1e-4)


def test_movement_is_that_of_the_weights(lazy: LazyRich) -> None:
    label = label_of(lazy, 2.0)
    config, task, trained = load_model(folder_of(lazy, label, 1))
    start, end = make_model(config, task).state_dict(), trained.state_dict()
    table = (end["encoding.weight"] - start["encoding.weight"]).norm() / start[
        "encoding.weight"
    ].norm()
    assert lazy.values(label, "moved", "PE")[1] == pytest.approx(float(table), rel=1e-5)
    change = torch.cat([(end[n] - start[n]).flatten() for n in start]).norm()
    total = change / torch.cat([w.flatten() for w in start.values()]).norm()
    assert lazy.values(label, "moved")[1] == pytest.approx(float(total), rel=1e-5)
    assert lazy.values(label, "sigma_over_tokens").tolist() == [4.0, 4.0]


def test_the_way_is_there_where_weights_were_kept(lazy: LazyRich) -> None:
    learned, frozen = label_of(lazy, 0.1), label_of(lazy, 0.1, "random")
    steps = lazy.steps(learned, "moved", "PE")
    assert steps == lazy.steps(learned, "kernel_distance") == [0, 1, 2, 4, 8, 16, 20]
    assert lazy.steps(frozen, "kernel_distance") == [0, 20]
    for label in lazy.labels:
        assert np.abs(lazy.values(label, "kernel_distance", step=0)).max() < 1e-12
        assert (lazy.values(label, "kernel_distance") > 1e-6).all()
    for measure in ("kernel_share", "cka", "moved"):
        assert not len(
            lazy.values(frozen, measure, "PE")
        )  # a frozen table has no kernel, and does not move
    moved = {step: lazy.values(learned, "moved", "PE", step)[0] for step in steps}
    assert lazy.values(learned, "moves_at", "PE")[0] == next(
        step for step in steps if moved[step] >= 0.1
    )


def test_scores_are_of_samples_that_were_not_learned(lazy: LazyRich) -> None:
    """A ridge regression with the kernel of the last weights, done anew with scikit-learn, on the
    same probes."""
    label = label_of(lazy, 0.1)
    _, task, model = load_model(folder_of(lazy, label, 0))
    splits = task.splits()
    learn, probes = (
        kernel_samples(splits, "train", SMALL.learn),
        kernel_samples(splits, "test", SMALL.probes),
    )
    tokens, read = torch.cat([learn.tokens, probes.tokens]), torch.cat([learn.read, probes.read])
    kernel = ntk(model, Inputs(tokens, task.positions, read)).total.double().numpy()
    n, y = SMALL.learn, np.eye(4)[learn.targets[:, 0].numpy()]
    ridge = choose_ridge(kernel[:n, :n], y) * np.trace(kernel[:n, :n]) / n
    fitted = KernelRidge(alpha=ridge, kernel="precomputed").fit(kernel[:n, :n], y - y.mean(0))
    right = (fitted.predict(kernel[n:, :n]) + y.mean(0)).argmax(1) == probes.targets[:, 0].numpy()
    assert lazy.values(label, "ridge")[0] == pytest.approx(right.mean())


def test_other_tasks_are_measured_too(tmp_path: Path) -> None:
    run(RunConfig.from_dict(FIELDS), tmp_path)
    lazy = lazy_rich([tmp_path], SMALL)
    assert lazy.values(lazy.labels[0], "kernel_distance")[0] > 1e-6
    _, task, _ = load_model(lazy.runs[0][1].folder)
    spread = kernel_samples(task.splits(), "test", SMALL.probes).targets.square().mean()
    assert 0 < lazy.values(lazy.labels[0], "ridge")[0] < 2 * float(spread)  # a mean squared error


def test_the_verb_writes_tables_and_figures(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--lazy-rich", "--probes", "12", "--learn", "24"]
    assert call(["analyse", str(folder), *words, "--out", str(tmp_path / "a"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)["measures"]
    assert {row["label"] for row in content} >= {
        "learnable σ=0.1 snapshots=weights",
        "learnable σ=2.0 snapshots=weights",
    }
    names = [
        "lazy_rich.csv",
        "lazy_rich.md",
        "lazy_rich.png",
        "lazy_rich_curves.png",
        "lazy_rich_summary.csv",
    ]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    with (tmp_path / "a" / "lazy_rich.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"run", "label", "seed", "step", "block", "measure", "value"}
    assert (tmp_path / "a" / "lazy_rich.png").read_bytes().startswith(b"\x89PNG")

    single = next(
        path.parent for path in folder.glob("*/status.json")
    )  # one run, and runs of two places
    assert call(["analyse", str(single), str(folder), *words, "--out", str(tmp_path / "b")]) == 0
    text = capsys.readouterr().out
    assert "half-way at step" in text
    assert "kernel distance" in text


def test_bad_words_are_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv, message in (
        (["analyse", str(folder), str(folder)], "--lazy-rich"),
        (["analyse", str(folder), "--lazy-rich", "--probes", "kernel_samples"], "--probes"),
        (["analyse", str(folder), "--lazy-rich", "--probes", "2"], "8 probes"),
        (["analyse", str(folder), "--lazy-rich", "--budget", "1e-6"], "budget"),
        (["analyse", str(tmp_path / "absent"), "--lazy-rich"], "absent"),
    ):
        assert call(argv) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (folder / "analysis").exists()


def test_runs_of_two_tasks_are_refused(folder: Path, tmp_path: Path) -> None:
    run(RunConfig.from_dict(FIELDS).override({"steps": 1}), tmp_path)
    with pytest.raises(InputError, match="different tasks"):
        lazy_rich([folder, tmp_path], SMALL)
