"""A task and an encoding from outside the package work everywhere: run, sweep with two workers and
on Ray, read back, analyse, report. Every command is a process of its own, which knows nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SMALL = {"beads": 6, "n-train": 60, "n-valid": 20, "n-test": 40, "width": 16, "depth": 1}
SMALL |= {"steps": 12, "eval-every": 6, "warmup": 2, "batch-size": 16}
FLAGS = [word for key, value in SMALL.items() for word in (f"--{key}", str(value))]
PLUGINS = ["--plugin", "ring_task.py", "--plugin", "fourier_encoding.py"]
SWEEP = ["sweep", "ring", *FLAGS, "--encoding", "learnable,fourier", "--sigma", "0.1,1"]
SWEEP += ["--seeds", "2", "--out", "runs"]


def placecell(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The command line, in a fresh process in this folder."""
    return python(folder, "-m", "placecell", *words, path=path)


def python(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "COLUMNS": "200"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's folder, with the two example files and nothing else."""
    folder = tmp_path_factory.mktemp("mine")
    for name in ("ring_task.py", "fourier_encoding.py"):
        shutil.copy(EXAMPLES / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def swept(folder: Path) -> Path:
    """The folder after a sweep of both examples with two workers: 8 runs."""
    succeed(placecell(folder, *SWEEP, "--workers", "2", *PLUGINS))
    return folder


def test_two_workers_train_both(swept: Path) -> None:
    runs = json.loads(succeed(placecell(swept, "status", "runs", "--json", *PLUGINS)))
    folders = sorted(path.parent for path in (swept / "runs").glob("ring-*/status.json"))
    assert len(folders) == 8, runs
    for one in folders:
        assert json.loads((one / "status.json").read_text())["status"] == "done"
        facts = json.loads((one / "environment.json").read_text())
        assert facts["plugins"]["task"] == "ring_task"
    hosts = {
        json.loads((one / "environment.json").read_text())["plugins"].get("encoding")
        for one in folders
    }
    assert hosts == {None, "fourier_encoding"}


def test_they_are_analysed_and_reported(swept: Path) -> None:
    said = succeed(placecell(swept, "analyse", "runs", *PLUGINS))
    assert "fourier" in said
    assert (swept / "runs" / "analysis" / "summary.csv").read_text().count("fourier") >= 2
    succeed(placecell(swept, "report", "runs", "-o", "page.html", *PLUGINS))
    assert "fourier" in (swept / "page.html").read_text()


def test_they_are_read_back(swept: Path) -> None:
    code = """
import sys
sys.path.insert(0, ".")
import fourier_encoding, ring_task
from pathlib import Path
from placecell.train import load_model
for folder in sorted(Path("runs").glob("ring-*")):
    config, task, model = load_model(folder)
    print(type(task).__name__, type(model.encoding).__name__, tuple(model.table(task.places).shape))
"""
    lines = succeed(python(swept, "-c", code)).split("\n")
    assert set(lines) - {""} == {"Ring FourierPE (6, 16)", "Ring LearnablePE (6, 16)"}


def test_without_the_plugin_one_sentence_says_what_is_missing(swept: Path) -> None:
    done = placecell(swept, "analyse", "runs")
    assert done.returncode == 2
    assert "ring" in done.stderr
    assert "--plugin" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_entry_point_makes_them_known_to_everybody(tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "beads-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beads\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[placecell.tasks]\nring = ring_task:Ring\n"
        "[placecell.encodings]\nfourier = fourier_encoding:FourierPE\n"
    )
    for name in ("ring_task.py", "fourier_encoding.py"):
        shutil.copy(EXAMPLES / name, site / name)
    listed = succeed(placecell(tmp_path, "list", path=str(site)))
    lines = [line for line in listed.splitlines() if "--preset" not in line]
    source = {line.split()[0]: "beads" in line for line in lines if line.strip()}
    assert source["ring"]
    assert source["fourier"]
    assert not source["learnable"]
    few = [*SWEEP[:-4], "--sigma", "0.1", "--seeds", "1", "--out", "runs", "--workers", "2"]
    succeed(placecell(tmp_path, *few, path=str(site)))
    assert len(list((tmp_path / "runs").glob("ring-*/weights.safetensors"))) == 2
    assert "fourier" in succeed(placecell(tmp_path, "analyse", "runs", path=str(site)))


@pytest.mark.slow
def test_on_ray_the_bytes_are_the_same(swept: Path) -> None:
    pytest.importorskip("ray")
    words = [word if word != "runs" else "on-ray" for word in SWEEP]
    succeed(placecell(swept, *words, "--backend", "ray", "--workers", "2", *PLUGINS))
    names = sorted(path.name for path in (swept / "runs").glob("ring-*"))
    assert names == sorted(path.name for path in (swept / "on-ray").glob("ring-*"))
    for name in names:
        for file in ("config.toml", "metrics.csv", "weights.safetensors"):
            here, there = (swept / where / name / file for where in ("runs", "on-ray"))
            assert here.read_bytes() == there.read_bytes(), f"{name}/{file}"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nothing_like_this", "cannot be imported"),
        ("import placecell\n@placecell.register_encoding('learnable')\nclass A: pass", "subclass"),
        (
            "from placecell import register_encoding\n"
            "from placecell.encodings import Encoding\n"
            "@register_encoding('learnable')\nclass A(Encoding): pass",
            "two encodings are called 'learnable'",
        ),
        (
            "from placecell import register_task\nfrom placecell.tasks.base import Task\n"
            "@register_task('mine')\nclass A(Task): pass",
            "needs `Config`",
        ),
    ],
)
def test_a_bad_plugin_is_one_sentence(code: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad_plugin.py").write_text(code + "\n")
    done = placecell(tmp_path, "list", "--plugin", "bad_plugin.py")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
