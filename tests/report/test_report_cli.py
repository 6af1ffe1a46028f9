"""`placecell report`, `figures`, and the diagnosis that ends `run` and `sweep`, from the command
line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from placecell.cli import call
from placecell.report.figures.paper import COLUMN
from placecell.tasks.latin_square import CONDITIONS, generate

SMALL = [
    "--n-train",
    "64",
    "--n-valid",
    "16",
    "--n-test",
    "30",
    "--width",
    "32",
    "--depth",
    "2",
    "--steps",
    "150",
    "--eval-every",
    "15",
    "--warmup",
    "0",
]


@pytest.fixture(autouse=True)
def quick_measures(known: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of the shared sweep are measured once for all."""
    monkeypatch.setattr("placecell.study.known.known_measures", lambda folder: known)
    monkeypatch.setattr("placecell.report.write.known_measures", lambda folder: known)


def outcome(capsys: Any, *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = call(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_report_writes_the_page_and_prints_its_path(
    copy: Path, tmp_path: Path, capsys: Any
) -> None:
    code, out, _ = outcome(capsys, "report", str(copy), "-o", str(tmp_path / "x.html"))
    assert code == 0
    assert out == f"{tmp_path / 'x.html'}\n"
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    code, out, _ = outcome(capsys, "report", str(copy), "--json", "--title", "T")
    assert code == 0
    assert json.loads(out)["report"] == str(copy / "report.html")
    assert json.loads(out)["runs"] == 8
    assert "<title>T</title>" in (copy / "report.html").read_text()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["report", "absent"], "no such folder of runs"),
        (["report", "."], "no runs here. Make some with `placecell sweep"),
        (["report", ".", "--human", "x.csv"], "--items FILE"),
        (["report", ".", "--live", "-o", "x.html"], "--live serves the page and writes no file"),
        (["report", "absent", "--live", "--port", "x"], "--port"),
        (["report", "absent", "--port", "8000"], "belongs to --live"),
        (["analyse", "absent", "--probes", "64"], "belongs to --lazy-rich"),
        (["figures", "absent"], "no such folder of runs"),
        (["figures", ".", "--to", "bmp"], "invalid choice: 'bmp'"),
    ],
)
def test_bad_input_is_one_sentence(
    argv: list[str], words: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = outcome(capsys, *argv)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_loses_nothing(
    copy: Path, tmp_path: Path, capsys: Any
) -> None:
    code, _, err = outcome(capsys, "report", str(copy), "-o", str(tmp_path / "no" / "x.html"))
    assert code == 2
    assert "there is no folder" in err


@pytest.mark.parametrize(
    ("to", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")]
)
def test_figures_for_a_paper(
    copy: Path, tmp_path: Path, capsys: Any, to: str, start: bytes
) -> None:
    code, out, _ = outcome(capsys, "figures", str(copy), "--to", to, "--out", str(tmp_path / "f"))
    assert code == 0
    names = {"tiles", "headline", "maps", "similarity", "attention"}
    names |= {"procrustes", "agreement", "training"}
    assert {path.name for path in (tmp_path / "f").iterdir()} == {f"{name}.{to}" for name in names}
    assert sorted(out.split()) == sorted(str(path) for path in (tmp_path / "f").iterdir())
    for path in (tmp_path / "f").iterdir():
        content = path.read_bytes()
        assert content.startswith(start)
        if to == "svg" and path.stem != "tiles":  # three panels, across the page
            assert f'width="{COLUMN * 72:g}pt"' in content.decode()
    again = outcome(capsys, "figures", str(copy), "--to", to, "--out", str(tmp_path / "g"))
    assert again[0] == 0
    for path in (tmp_path / "f").iterdir():
        assert path.read_bytes() == (tmp_path / "g" / path.name).read_bytes(), (
            "the same runs give the same file"
        )


def test_figures_of_fixed_encodings_only(store: Path, known: Any) -> None:
    from placecell.report.figures.paper import paper_panels
    from placecell.store import Store
    from placecell.study.summary import measure

    fixed = [r for r in Store(store).run_set().results if r.config.encoding.name == "sinusoidal"]
    measured_again = paper_panels(measure(fixed, "x", known=known))
    pictures = {"tiles", "headline", "maps", "similarity", "attention", "training"}
    assert set(measured_again) == pictures


def test_run_ends_with_a_diagnosis(tmp_path: Path, capsys: Any) -> None:
    argv = ["run", "latin_square", *SMALL, "--sigma", "2", "--out", str(tmp_path)]
    code, out, _ = outcome(capsys, *argv)
    assert code == 0
    assert out.splitlines()[-1].startswith("diagnosis: memorising: training 1.000")
    assert "Try: a smaller --sigma." in out
    content = json.loads(outcome(capsys, *argv, "--json")[1])
    assert content["diagnosis"]["name"] == "memorising"


def test_sweep_ends_with_a_diagnosis(tmp_path: Path, capsys: Any) -> None:
    few = ["--steps", "30", "--eval-every", "3"]
    argv = [
        "sweep",
        "latin_square",
        *SMALL,
        *few,
        "--encoding",
        "learnable",
        "--sigma",
        "0.2",
        "--workers",
        "1",
    ]
    code, out, _ = outcome(capsys, *argv, "--seeds", "1", "--out", str(tmp_path))
    assert code == 0
    assert "diagnosis: learnable (1 of 1) too short to tell" in out
    assert out.splitlines()[-1] == f"Next: placecell report {tmp_path}"


def test_people_beside_models(copy: Path, tmp_path: Path, capsys: Any) -> None:
    """Items of the layout of those used with people (the real file is not here), 18 of each
    condition."""
    blocks = [generate(18, seed, conditions=[name]) for seed, name in enumerate(CONDITIONS)]
    rows = np.concatenate([np.column_stack([p.cells(), p.answer]) for p in blocks])
    rows[:, :16][rows[:, :16] == 5] = 9
    savemat(tmp_path / "taskData.mat", {"taskData": rows.astype(np.uint8)})
    human = tmp_path / "human.csv"
    human.write_text("\n".join(f"{x}" for x in np.linspace(0, 1, 108)))
    argv = [
        "report",
        str(copy),
        "--items",
        str(tmp_path / "taskData.mat"),
        "-o",
        str(tmp_path / "x.html"),
    ]
    code, _, err = outcome(capsys, *argv, "--human", str(human))
    assert code == 0, err
    page = (tmp_path / "x.html").read_text()
    table = re.search(r'<section id="people".*?</section>', page, re.DOTALL)
    assert table is not None
    assert '<th scope="row">people</th><td class="num">0.949</td>' in table[0]
    assert "of 4 configurations solve more of these items than people do (0.713)" in table[0]
    assert "rank correlation with people" in table[0]
    assert len(re.findall(r"<th scope=.row.>learnable σ=[0-9.]+ \(seed [01]\)</th>", table[0])) == 3
    assert 'href="#people"' in page
    code, _, err = outcome(capsys, "report", str(copy), "--items", str(tmp_path / "absent.mat"))
    assert code == 2
    assert "absent.mat" in err
    assert not (copy / "report.html").exists()
