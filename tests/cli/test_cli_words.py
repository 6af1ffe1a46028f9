"""What the command line says to somebody who is nearly right, and how much it says."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from placecell import analysis
from placecell.cli.app import call

TINY = [
    "--n-train",
    "40",
    "--n-valid",
    "16",
    "--n-test",
    "30",
    "--width",
    "8",
    "--depth",
    "1",
    "--batch-size",
    "16",
    "--steps",
    "4",
    "--eval-every",
    "2",
]


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert call(argv) == 2
    return capsys.readouterr().err.strip()


def test_an_option_of_another_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, "run", "latin_square", "--dry-run")
    assert said == (
        "placecell: --dry-run is an option of `placecell sweep`, not of `placecell run`."
    )
    assert "`placecell report`" in complaint(capsys, "analyse", "x", "--live")


def test_an_option_that_no_command_has_gets_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "did you mean '--sigma'" in complaint(capsys, "run", "latin_square", "--sgma", "1")


def test_a_command_that_is_misspelt_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "swep") == "placecell: unknown command 'swep': did you mean 'sweep'?"


@pytest.mark.parametrize(
    "words", [("--sigma", "0,1"), ("--encoding", "learnable,nope"), ("--heads", "1,2")]
)
def test_lists_belong_to_a_sweep(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = complaint(capsys, "run", "latin_square", *words)
    assert f"{words[0]} {words[1]}" in said
    assert "belongs to `placecell sweep`" in said


def test_a_list_that_is_one_setting_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    said = complaint(capsys, "run", "latin_square", "--conditions", "2-vector,1-step")
    assert "belongs to `placecell sweep`" not in said


def test_help_names_the_encodings_and_the_default_of_sigma(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        call(["run", "latin_square", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "one of: " in shown
    for name in ("learnable", "sinusoidal", "rotary", "nope"):
        assert name in shown.split("--encoding", 1)[1].split("--sigma", 1)[0]
    assert "0.1 for learnable" in shown.split("--sigma X", 1)[1].split("--axes", 1)[0]


def test_transplants_are_diagnosed_by_arm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["transplant", "latin_square", *TINY, "--seeds", "2", "--workers", "0"]
    assert call([*argv, "--out", str(tmp_path)]) == 0
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("diagnosis:")]
    assert len(lines) == 6  # two donors, four arms, each counting two seeds
    assert all("(2 of 2)" in line for line in lines)
    assert lines[0].startswith("diagnosis: donors at σ=0.1 (2 of 2)")
    assert any(line.startswith("diagnosis: the same, rows shuffled (2 of 2)") for line in lines)


def test_clusters_of_equal_rows_are_found_without_a_warning() -> None:
    table = np.repeat(np.eye(3), 6, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters = analysis.kmeans(table, np.random.default_rng(0))
    assert len(np.unique(clusters)) == 3
