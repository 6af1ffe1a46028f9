"""The experiments, one folder each: a task says what the tokens are, where they are, and how it is scored.

A folder's name is the task's name. Its `config.py` holds `Config` (a frozen dataclass), its `task.py` the `Task`,
its TOML files the presets. Adding one touches no other file.
"""

from __future__ import annotations

import importlib
import pkgutil
from importlib import resources
from typing import TYPE_CHECKING, Any

from placecell.errors import unknown

if TYPE_CHECKING:
    from placecell.tasks.base import Task


def available() -> list[str]:
    """The names of all tasks."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def check(name: str) -> str:
    """The name itself, if there is such a task."""
    if name not in available():
        raise unknown("task", name, available())
    return name


def config_class(name: str) -> Any:
    """The dataclass of a task's settings; imports no torch."""
    return importlib.import_module(f"{__name__}.{check(name)}.config").Config


def load(name: str) -> type[Task]:
    """The task's class."""
    cls: type[Task] = importlib.import_module(f"{__name__}.{check(name)}.task").TASK
    return cls


def presets(name: str) -> dict[str, str]:
    """The text (TOML) of every preset of a task, by name."""
    folder = resources.files(f"{__name__}.{check(name)}")
    found = {entry.name[:-5]: entry.read_text() for entry in folder.iterdir() if entry.name.endswith(".toml")}
    return dict(sorted(found.items()))
