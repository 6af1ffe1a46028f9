"""Extending: the entries that training never used are found, and only they are tuned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import placecell
from placecell.cli import call
from placecell.errors import InputError
from placecell.store import load_store
from placecell.study.intervals import interval_table
from placecell.study.new_rows import Tuning, _tune, extend, unused_entries
from placecell.tasks.latin_orders.task import SIDE
from placecell.train import load_model, make_task

SMALL = {
    "train_orders": "3+4",
    "test_orders": "3+5",
    "n_train": 60,
    "n_valid": 12,
    "n_test": 40,
    "width": 16,
    "depth": 1,
    "heads": 1,
    "steps": 6,
    "eval_every": 6,
    "warmup": 0,
}
ENCODINGS = ("learnable", "factored", "relative", "continuous", "sinusoidal")
N_RUNS = len(ENCODINGS) + 2  # three seeds of the first, one of the others


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("extend")
    for name in ENCODINGS:
        for seed in range(3 if name == "learnable" else 1):
            changes = {"encoding": name, "axes": None, "seed": seed}
            placecell.run(placecell.preset("latin_orders").override(SMALL | changes), out)
    return out


def loaded(folder: Path, name: str):
    run = next(r for r in load_store(folder) if r.config.encoding.name == name)
    config, task, model = load_model(run.folder)
    return config, task, model, unused_entries(model, task, task.splits()["train"])


def test_unused_rows_are_those_of_places_that_training_lacks(folder: Path) -> None:
    *_, new = loaded(folder, "learnable")
    row, column = torch.arange(SIDE**2) // SIDE, torch.arange(SIDE**2) % SIDE
    outside = (row >= 4) | (column >= 4)
    assert torch.equal(new["weight"], outside[:, None].expand(-1, 16))
    *_, new = loaded(folder, "factored")
    for part in new.values():
        assert part.any(1).tolist() == [False] * 4 + [True] * 2
    *_, new = loaded(folder, "relative")
    far = [abs(d) > 3 for d in range(-16, 17)]
    assert new["key"].all(-1).tolist() == [far, far]
    *_, new = loaded(folder, "continuous")
    assert not any(part.any() for part in new.values()), "every weight of a network is used"
    assert loaded(folder, "sinusoidal")[3] == {}


def test_only_the_new_entries_are_tuned(folder: Path) -> None:
    config, _, model, new = loaded(folder, "learnable")
    other = make_task(config.override({"train_orders": "5"}))
    before = {name: part.clone() for name, part in model.state_dict().items()}
    _tune(model, other, other.splits()["train"], new, Tuning(steps=5, lr=0.1), seed=0)
    for name, part in model.state_dict().items():
        if name != "encoding.weight":
            assert torch.equal(part, before[name]), name
    moved = (model.encoding.weight.detach() != before["encoding.weight"]).all(1)
    used = other.splits()["train"].present.any(0)
    assert torch.equal(moved, new["weight"].all(1) & used)


def test_the_table_has_scores_before_and_after(folder: Path) -> None:
    rows = extend(load_store(folder), {"train_orders": "5"}, Tuning(steps=3)).rows()
    by_name = {row["label"].split()[0]: row for row in rows if row["seed"] == 0}
    assert by_name.keys() == set(ENCODINGS)
    for name in ("continuous", "sinusoidal"):
        row = by_name[name]
        assert row["new"] == 0
        assert row["before/accuracy/order 5"] == row["after/accuracy/order 5"]
    assert by_name["learnable"]["new"] == 20 * 16
    runs = [r for r in load_store(folder) if r.config.encoding.name == "learnable"]
    run = next(r for r in runs if r.config.seed == 0)
    assert by_name["learnable"]["before/accuracy"] == pytest.approx(run.final("test", "accuracy"))


def test_changes_that_cannot_be_made(folder: Path, tmp_path: Path, capsys) -> None:
    runs = load_store(folder)
    with pytest.raises(InputError, match="unknown key"):
        extend(runs, {"train_order": "5"}, Tuning())
    with pytest.raises(InputError, match="an order is 3 to 6"):
        extend(runs, {"train_orders": "7"}, Tuning())
    with pytest.raises(InputError, match="no finished run"):
        extend([], {"train_orders": "5"}, Tuning())
    for words in ([], ["--set", "train_orders"], ["--set", "train_orders=5", "--steps", "0"]):
        assert call(["extend", str(folder), *words]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err


def test_the_command_prints_and_writes_the_table(folder: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "extended"
    words = ["--set", "train_orders=5", "--steps", "1", "--out", str(out)]
    assert call(["extend", str(folder), *words]) == 0
    said = capsys.readouterr().out.splitlines()
    row = next(line for line in said if line.startswith("| learnable") and "order 5" in line)
    assert row.count(" to ") == 3, "three seeds have an interval before, after and of the gain"
    row = next(line for line in said if line.startswith("| sinusoidal") and "order 5" in line)
    assert " to " not in row, "one seed has none"
    assert len((out / "runs.csv").read_text().splitlines()) == 1 + N_RUNS
    assert "gain/accuracy/order 5" in (out / "intervals.csv").read_text()


def test_every_measurement_has_its_mean_and_interval(folder: Path, tmp_path: Path) -> None:
    findings = placecell.analyse(folder)
    rows = {(row["label"], row["measure"]): row for row in findings.intervals.rows()}
    learnable = next(name for name in findings.summary.labels if name.startswith("learnable"))
    for name in ("test/accuracy", "test/accuracy/order 3", "test/accuracy/order 5", "table/moved"):
        values = findings.summary.values(learnable, name)
        row = rows[learnable, name]
        assert row["seeds"] == len(values) == 3
        assert row["mean"] == pytest.approx(values.mean())
        assert min(values) <= row["low"] <= row["mean"] <= row["high"] <= max(values)
    shown = next(row for row in findings.configurations.rows() if row["label"] == learnable)
    headline = rows[learnable, "test/accuracy"]
    assert (shown["low"], shown["high"]) == (headline["low"], headline["high"])


def test_means_of_known_values() -> None:
    runs = [("a", {"x": float(v), "y": float("nan") if v < 9 else 1.0}) for v in range(10)]
    one, two, three = interval_table([*runs, ("b", {"x": 7.0})]).rows()
    assert (one["label"], one["measure"], one["seeds"], one["mean"]) == ("a", "x", 10, 4.5)
    half = 1.96 * np.std(range(10)) / 10**0.5  # of a normal distribution: 1.78
    assert one["low"] == pytest.approx(4.5 - half, abs=0.2)
    assert one["high"] == pytest.approx(4.5 + half, abs=0.2)
    assert (two["measure"], two["seeds"], two["mean"]) == ("y", 1, 1.0)
    assert (three["label"], three["mean"]) == ("b", 7.0)
    assert np.isnan(three["low"])
