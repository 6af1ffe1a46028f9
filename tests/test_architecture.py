"""Data moves one way through the rooms: no module imports from a room above its own. And lines of
code and prose end at 100 columns."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import placecell

SOURCE = Path(placecell.__file__).parent
ROOMS = (  # from the ground up
    ("errors", "registry", "plugins", "seeds", "command"),
    ("config",),
    ("store",),
    ("encodings",),
    ("model",),
    ("analysis",),
    ("doctor",),
    ("tasks",),
    ("train",),
    ("sweep",),
    ("study",),
    ("report",),
    ("discover",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}


def imports(path: Path) -> list[tuple[int, str]]:
    """Every import of this package in a file, also inside functions: line and full name."""
    names: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "placecell":
            names += [(node.lineno, f"placecell.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno}: imports are written in full"
            names.append((node.lineno, node.module))
    return [(line, name) for line, name in names if name.startswith("placecell.")]


FILES = sorted(p for p in SOURCE.rglob("*.py") if p.parent != SOURCE or p.stem != "__init__")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_module_imports_upwards(path: Path) -> None:
    inside = path.relative_to(SOURCE)
    room = inside.parts[0].removesuffix(".py")
    assert room in FLOOR, f"{room} is a new room: say on which floor it stands"
    wrong = []
    for line, name in imports(path):
        other = name.split(".")[1]
        if other.startswith("__"):  # placecell.__version__
            continue
        if FLOOR[other] > FLOOR[room]:
            wrong.append(f"{inside}:{line} imports {name}, which stands above")
    assert not wrong, "\n".join(wrong)


def test_a_wrong_import_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "def f():\n    from placecell.report.page import build\n    import placecell.cli\n"
    )
    assert imports(path) == [(2, "placecell.report.page"), (3, "placecell.cli")]


ROOT = Path(__file__).parents[1]
COLUMNS = 100


def long_lines(text: str, markdown: bool) -> Iterator[int]:
    """The numbers of lines that are too long. In Markdown, tables, code blocks and lines with a
    link or picture are left out, in Python lines that end with a pragma."""
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        fence = markdown and line.lstrip().startswith("```")
        in_code ^= fence
        if markdown:
            free = in_code or line.lstrip().startswith("|") or "](" in line or "://" in line
        else:
            free = "# type: ignore" in line or "# noqa" in line
        if len(line) > COLUMNS and not free and not fence:
            yield number


def test_lines_end_at_100_columns() -> None:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "*.py", "*.md"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a clone of the repository")
    wrong = [
        f"{name}:{number}"
        for name in listed.stdout.split()
        if (ROOT / name).exists()
        for number in long_lines((ROOT / name).read_text("utf-8"), name.endswith(".md"))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_long_line_would_be_seen() -> None:
    long = 101 * "x"
    prose = f"{long}\n| {long} |\n```\n{long}\n```\n{long}\n[a]({long})"
    assert list(long_lines(prose, markdown=True)) == [1, 6]
    assert list(long_lines(f"{long}\n{long}  # noqa: E501\nσ{99 * 'x'}", markdown=False)) == [1]
