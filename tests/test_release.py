"""What a release says of itself, said in one place: its version, the Python it needs, its parts."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

import placecell
from placecell.cli.app import call

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_the_version_is_the_same_everywhere(capsys) -> None:
    version = placecell.__version__
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    assert importlib.metadata.version("placecell") == version
    assert re.findall(r"^version: (.*)$", text("CITATION.cff"), re.M) == [version]
    assert re.findall(r"^## ([0-9.]+)", text("CHANGELOG.md"), re.M)[0] == version
    with pytest.raises(SystemExit, match="0"):
        call(["--version"])
    assert capsys.readouterr().out == f"placecell {version}\n"


def test_the_citation_has_a_date() -> None:
    (released,) = re.findall(r"^date-released: (.*)$", text("CITATION.cff"), re.M)
    assert date.fromisoformat(released) >= date(2026, 1, 1)


def test_the_oldest_python_is_the_one_that_is_promised() -> None:
    said = [c.removeprefix("Programming Language :: Python :: ") for c in PROJECT["classifiers"]]
    minors = sorted(int(c.split(".")[1]) for c in said if re.fullmatch(r"3\.\d+", c))
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_the_demo_asks_for_less_than_development() -> None:
    """`make demo` sets up the extra `report`; what it lacks would be found by whoever runs it."""
    demo = re.search(r"^\$\(READY\):.*?\n\n", text("Makefile"), re.M | re.S)
    assert demo is not None
    assert re.findall(r'-e "\.\[(\w+)\]"', demo[0]) == ["report"]
    needs = {re.split(r"[<>=!\[]", line)[0] for line in PROJECT["optional-dependencies"]["report"]}
    assert needs == {"jinja2", "matplotlib", "plotly"}
