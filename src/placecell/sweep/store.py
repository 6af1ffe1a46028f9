"""Reading a folder of runs back."""

from __future__ import annotations

from pathlib import Path

from placecell.errors import InputError
from placecell.train.run import RunResult, load_result


def load_store(folder: Path) -> list[RunResult]:
    """Every run in `folder`, whatever its status, in the order of its name."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of runs.")
    if (folder / "status.json").exists():
        raise InputError(f"{folder}: one run; give the folder that holds it ({folder.parent}).")
    found = sorted(path.parent for path in folder.glob("*/status.json"))
    if not found:
        raise InputError(f"{folder}: no runs here; make some with `placecell sweep TASK --out {folder}`.")
    return [load_result(path) for path in found if (path / "config.toml").exists()]
