"""Extending: the entries that training never used are found, and only they are tuned."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import placecell
from placecell.cli import call
from placecell.errors import InputError
from placecell.store import load_store
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("extend")
    for name in ENCODINGS:
        config = placecell.preset("latin_orders").override(SMALL | {"encoding": name, "axes": None})
        placecell.run(config, out)
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
    by_name = {row["label"].split()[0]: row for row in rows}
    assert by_name.keys() == set(ENCODINGS)
    for name in ("continuous", "sinusoidal"):
        row = by_name[name]
        assert row["new"] == 0
        assert row["before/accuracy/order 5"] == row["after/accuracy/order 5"]
    assert by_name["learnable"]["new"] == 20 * 16
    run = next(r for r in load_store(folder) if r.config.encoding.name == "learnable")
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
    out = tmp_path / "extended.csv"
    words = ["--set", "train_orders=5", "--steps", "1", "--out", str(out)]
    assert call(["extend", str(folder), *words]) == 0
    said = capsys.readouterr().out
    assert "before/accuracy/order 5" in said
    assert len(out.read_text().splitlines()) == 1 + len(ENCODINGS)
