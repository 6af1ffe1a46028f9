"""What the README and docs show runs: snippets are executed, command lines parsed, links
followed. Tutorials are executed in test_tutorials.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from placecell.cli.app import build_parser

ROOT = Path(__file__).parents[1]
REFERENCE = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
PAGES = [*REFERENCE, *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]


def blocks(language: str, pages: list[Path] = PAGES) -> list[tuple[str, str]]:
    found = []
    for page in pages:
        for text in re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL):
            found.append((page.name, text))
    return found


@pytest.mark.parametrize(("page", "code"), blocks("python", REFERENCE))
def test_snippets_run(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "snippet"}
    exec(compile(code, page, "exec", dont_inherit=True), scope)
    assert scope.keys() > {"__name__", "__builtins__"}, "it names nothing: nothing in it was run"


def commands() -> list[str]:
    texts = [text.replace("\\\n", " ") for _, text in blocks("bash")]  # a command of two lines
    lines = [line.split("  #")[0].strip() for text in texts for line in text.splitlines()]
    return sorted({line for line in lines if line.startswith("placecell ")})


@pytest.mark.parametrize("command", commands())
def test_commands_parse(command: str) -> None:
    words = shlex.split(command)[1:]
    parser, _ = build_parser()
    if "--help" in words:
        with pytest.raises(SystemExit, match="0"):
            parser.parse_known_args(words)
        return
    args, left = parser.parse_known_args(words)
    assert args.command is not None
    assert left == []


def test_there_is_something_to_test() -> None:
    assert len(blocks("python", REFERENCE)) >= 2
    assert len(commands()) >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points at {target}"
