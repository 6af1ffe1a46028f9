"""Data moves one way through the rooms: no module imports from a room above its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import placecell

SOURCE = Path(placecell.__file__).parent
ROOMS = (  # from the ground up
    ("errors", "registry", "seeds", "command"),
    ("config",),
    ("store",),
    ("encodings",),
    ("model",),
    ("analysis",),
    ("tasks",),
    ("train",),
    ("sweep",),
    ("study",),
    ("report",),
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
