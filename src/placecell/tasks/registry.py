"""Tasks by name: this package's, one folder each, and those of others."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from placecell.errors import InputError
from placecell.registry import TASKS, Entry

if TYPE_CHECKING:
    from placecell.tasks.base import Task

T_co = TypeVar("T_co", bound=type)


def register(name: str) -> Callable[[T_co], T_co]:
    """Make a task known to configurations and the command line (a class decorator).

    Parameters
    ----------
    name : str
        How configurations and commands call it: `placecell run NAME`. Names of runs begin with it.

    Returns
    -------
    callable
    """

    def add(cls: T_co) -> T_co:
        if not name.replace("-", "_").isidentifier():
            raise InputError(f"a task's name has letters, digits, - and _ only, not {name!r}.")
        settings = getattr(cls, "Config", None)
        if not (isinstance(settings, type) and is_dataclass(settings)):
            raise InputError(
                f"the task {name!r} needs `Config`, a frozen dataclass of its settings."
            )
        # The types themselves, so that machines without the task's module need not look them up.
        settings.__annotations__ = typing.get_type_hints(settings)
        TASKS.register(name, cls)
        return cls

    return add


register_task = register  # as `placecell.register_task`, where the name must say of what


def available() -> list[str]:
    """Return the names of all tasks.

    Returns
    -------
    list of str
    """
    return TASKS.names()


def check(name: str) -> str:
    """Return the name itself, or raise an InputError if there is no such task.

    Parameters
    ----------
    name : str
        Name of a task.

    Returns
    -------
    str
    """
    return TASKS.check(name)


def config_class(name: str) -> Any:
    """Return the dataclass of a task's settings, if possible without importing torch.

    Parameters
    ----------
    name : str
        Name of a task.

    Returns
    -------
    Any
    """
    return TASKS.config_class(name)


def load(name: str) -> type[Task]:
    """Return the class of a task.

    Parameters
    ----------
    name : str
        Name of a task.

    Returns
    -------
    type[Task]
    """
    from placecell.tasks.base import Task  # here, because it imports torch

    cls: Any = TASKS.task_class(name)
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        raise InputError(f"the task {name!r} of {TASKS.source(name)} is no Task: {cls!r}.")
    return cls


def describe() -> list[Entry]:
    """Return every task with where it comes from and one line about it.

    Returns
    -------
    list of Entry
    """
    return TASKS.describe()


def presets(name: str) -> dict[str, str]:
    """Return the presets of a task.

    Parameters
    ----------
    name : str
        Name of a task.

    Returns
    -------
    dict
        Name of the preset to its text (TOML).
    """
    return TASKS.presets(name)
