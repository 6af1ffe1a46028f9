"""Sweep, analyse and report on images, graphs, text and changing sizes, at small size."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from placecell.cli import call

SMALL = ["--n-train", "40", "--n-valid", "12", "--n-test", "24"]
TINY = ["--width", "16", "--depth", "1", "--heads", "1", "--steps", "4", "--eval-every", "4"]
WORLDS = {
    "images": [],
    "graph": ["--nodes", "16", "--degree", "5"],
    "text": ["--characters", "3000", "--window", "10"],
    "latin_orders": ["--test-orders", "3+4+5"],
}
PICTURES = {"images", "latin_orders"}  # of which similarity tiles can be drawn


@pytest.mark.parametrize("world", WORLDS)
def test_sweep_analyse_and_report(world: str, tmp_path: Path, capsys) -> None:
    out, words = tmp_path / "runs", [*WORLDS[world], *SMALL, *TINY, "--warmup", "0"]
    grid = ["--encoding", "learnable", "--sigma", "0.1,2", "--seeds", "1", "--workers", "0"]
    assert call(["sweep", world, *words, *grid, "--out", str(out)]) == 0
    more = ["--encoding", "sinusoidal", "--out", str(out)]
    assert call(["run", world, *words, *more]) == 0
    capsys.readouterr()
    assert call(["analyse", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    labels = [row["label"] for row in facts["configurations"]]
    assert labels[:2] == ["learnable σ=0.1", "learnable σ=2.0"]
    assert labels[2].startswith("sinusoidal")
    shown = [name for name in facts["shown"] if name.startswith("table/")]
    assert shown[0] in facts["configurations"][0], "the first measure is there"
    if world != "latin_orders":
        assert any(facts["headline"] in row for row in facts["baselines"])
    with (out / "analysis" / "places.csv").open(newline="") as file:
        places = list(csv.DictReader(file))
    assert all(row["name"] and row["nearest, learnable σ=0.1"] for row in places)
    assert (out / "analysis" / "tiles.png").exists() == (world in PICTURES)
    page = tmp_path / "page.html"
    assert call(["report", str(out), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "learnable σ=0.1" in text
    assert "NaN" not in text.split("<script", 1)[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["images", "--patch", "5"], "cannot be cut"),
        (["images", "--dataset", "files", "--images", "nowhere.npz"], "no such file"),
        (["graph", "--graph", "files"], "needs `adjacency`"),
        (["graph", "--graph", "files", "--adjacency", "nowhere.npy"], "no such file"),
        (["text", "--text", "nowhere.txt"], "cannot be read"),
        (["latin_orders", "--train-orders", "3+7"], "an order is 3 to 6, found 7"),
        (["latin_square", "--attention", "neighbours"], "needs a graph of the places"),
        (["graph", "--attention", "near"], "near"),
    ],
)
def test_bad_input_is_one_sentence_and_trains_nothing(
    words: list[str], said: str, tmp_path: Path, capsys
) -> None:
    out = tmp_path / "runs"
    assert call(["run", *words, "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not out.exists()
