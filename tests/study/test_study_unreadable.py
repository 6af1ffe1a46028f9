"""Runs that cannot be read do not stop an analysis: they are left out, named and counted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import placecell
from placecell.cli.app import call
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.store import files
from placecell.sweep import grid
from placecell.train import make_task, run

TINY = {
    "task": "latin_square",
    "data": {"n_train": 40, "n_valid": 16, "n_test": 30},
    "model": {"width": 8, "depth": 1},
    "train": {"steps": 4, "eval_every": 2, "batch_size": 16},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("store")
    for config in grid(RunConfig.from_dict(TINY), [{"sigma": [0.1, 2.0]}], {}, seeds=3):
        run(config, out, task=make_task(config))
    return out


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A store with an unknown encoding, missing metrics, cut weights and other weights; the name of
    each run and what its message says."""
    out = Path(shutil.copytree(whole, tmp_path / "store"))
    one, two, three, four, *_ = sorted(out.glob("latin_square-*"))
    config = (one / "config.toml").read_text()
    unknown = config.replace('name = "learnable"', 'name = "spiral"')
    assert unknown != config
    (one / "config.toml").write_text(unknown)
    renamed = out / RunConfig.from_toml(one / "config.toml").name
    one.rename(renamed)
    (two / "metrics.csv").unlink()
    weights = (three / "weights.safetensors").read_bytes()
    (three / "weights.safetensors").write_bytes(weights[: len(weights) // 2])
    tensors, metadata = files.read_tensors(four / "weights.safetensors")
    tensors.pop(next(iter(tensors)))
    files.write_tensors(four / "weights.safetensors", tensors, metadata)
    words = ["spiral", "metrics.csv", "weights.safetensors", "weights"]
    return out, dict(zip((renamed.name, two.name, three.name, four.name), words, strict=True))


def test_analyse_leaves_them_out_and_names_them(damaged: tuple[Path, dict[str, str]]) -> None:
    folder, reasons = damaged
    findings = placecell.analyse(folder)
    assert len(findings.summary.runs) == 2
    left_out = {one["run"]: one["reason"] for one in findings.facts["left_out"]}
    assert left_out.keys() == reasons.keys()
    for name, word in reasons.items():
        assert word in left_out[name]
        assert f"{name}: {left_out[name]}" in str(findings)
    assert "cannot be read (4)" in str(findings)


def test_the_commands_go_on_without_them(
    damaged: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, reasons = damaged
    assert call(["analyse", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {one["run"] for one in facts["left_out"]} == reasons.keys()
    assert call(["report", str(folder), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["unreadable"].keys() == reasons.keys()
    page = (folder / "report.html").read_text()
    assert "4 runs could not be read" in page
    assert page.count('<span class="mark ill">unreadable</span>') == 4
    for name in reasons:
        assert name in page
    assert call(["figures", str(folder)]) == 0


def test_a_store_that_is_whole_says_nothing_of_it(whole: Path) -> None:
    findings = placecell.analyse(whole)
    assert "left_out" not in findings.facts
    assert "cannot be read" not in str(findings)


def test_nothing_left_is_an_error_that_says_why(whole: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "store"))
    for path in out.glob("*/metrics.csv"):
        path.unlink()
    with pytest.raises(InputError, match="no finished run here can be read \\(6 cannot\\)"):
        placecell.analyse(out)
