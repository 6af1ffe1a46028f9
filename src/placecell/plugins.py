"""Code of others that registers encodings and tasks: importing it, naming it, sending it on."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from placecell.errors import InputError
from placecell.registry import ENCODINGS, HERE, TASKS


def load_plugin(text: str) -> str:
    """Import a module, or a Python file, that registers encodings or tasks.

    Parameters
    ----------
    text : str
        A module's name (`my_package.tasks`) or the path of a file (`my_task.py`).

    Returns
    -------
    str
        The module's name, by which worker processes import it too.
    """
    path = Path(text)
    name = text
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(f"plugin {text}: no such file.")
        if not path.stem.isidentifier():
            raise InputError(
                f"plugin {text}: a file that is imported needs a name like my_task.py."
            )
        name, folder = path.stem, str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        module = importlib.import_module(name)
    except InputError:
        raise
    except Exception as error:  # a plugin's code may raise anything
        raise InputError(
            f"plugin {text} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if path.suffix == ".py" and Path(module.__file__ or "").resolve() != path.resolve():
        raise InputError(
            f"plugin {text}: another module is called {name} ({module.__file__}); rename the file."
        )
    return name


def plugins(task: str, encoding: str) -> tuple[str, ...]:
    """Return the modules outside this package that registered a task or an encoding.

    Parameters
    ----------
    task, encoding : str
        Their names.

    Returns
    -------
    tuple of str
        Names of modules; empty if both come with this package or through an entry point.
    """
    modules = {TASKS.module(task), ENCODINGS.module(encoding)} - {None}
    return tuple(sorted(str(module) for module in modules))


def sources(task: str, encoding: str) -> dict[str, str]:
    """Return where a task and an encoding come from, if not from this package.

    Parameters
    ----------
    task, encoding : str
        Their names.

    Returns
    -------
    dict
        Kind (`task`, `encoding`) -> package or module.
    """
    places = {TASKS.kind: TASKS.source(task), ENCODINGS.kind: ENCODINGS.source(encoding)}
    return {kind: source for kind, source in places.items() if source not in (HERE, "")}


def outside(modules: tuple[str, ...]) -> dict[tuple[str, str], Any]:
    """Return what some modules registered, so that it can be sent to machines that lack them.

    Parameters
    ----------
    modules : tuple of str
        Names of modules outside this package.

    Returns
    -------
    dict
        (kind, name) -> class.
    """
    return {
        (registry.kind, name): thing
        for registry in (ENCODINGS, TASKS)
        for name, thing in registry.outside().items()
        if registry.module(name) in modules
    }


def register_outside(things: dict[tuple[str, str], Any]) -> None:
    """Register on this machine what `outside` returned on another.

    Parameters
    ----------
    things : dict
        (kind, name) -> class.
    """
    for (kind, name), thing in things.items():
        (ENCODINGS if kind == ENCODINGS.kind else TASKS).register(name, thing)
