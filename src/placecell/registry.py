"""Encodings and tasks by name: those of this package, and those of others.

Somebody else's encoding or task becomes known in one of three ways: an entry point of an installed
package (groups `placecell.encodings` and `placecell.tasks`), a decorator
(`placecell.register_encoding`, `placecell.register_task`) in a module that is imported, or
`--plugin FILE_OR_MODULE` on the command line, which imports it.
Standard library only, so that the command line can answer --help at once.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from placecell.errors import InputError, unknown

if TYPE_CHECKING:
    from placecell.command import Command

HERE = "placecell"
HOW_TO_LOAD = "import it first (the option --plugin FILE_OR_MODULE does so)"
NO_MODULE = ("__main__", "__mp_main__")  # a script's name: in itself, and in its worker processes


@dataclass(frozen=True)
class Entry:
    """One encoding or task, for a list of them.

    Parameters
    ----------
    name : str
    source : str
        Where it comes from: `placecell`, an installed package, or a module.
    about : str
        The first line of its docstring; if it cannot be imported, the sentence that says so.
    """

    name: str
    source: str
    about: str


class Registry:
    """Things of one kind by name.

    Parameters
    ----------
    kind : str
        What messages call one of them.
    group : str
        The entry-point group through which installed packages add theirs.
    built_in : callable
        Returns name -> module for those of this package that are known before they are imported.
    """

    def __init__(self, kind: str, group: str, built_in: Callable[[], dict[str, str]]) -> None:
        self.kind, self.group, self._built_in = kind, group, built_in
        self._registered: dict[str, Any] = {}
        self._points: tuple[list[str], list[metadata.EntryPoint]] = ([], [])

    def register(self, name: str, thing: Any) -> None:
        """Make `thing` known as `name`.

        The same class again, as when a notebook's cell is run twice, replaces the one before.

        Parameters
        ----------
        name : str
            Its name.
        thing : class or module
            What `load` will return.
        """
        before = self._registered.get(name)
        if before is not None and _origin(before) != _origin(thing):
            raise self._twice(name, _words(before), _words(thing))
        if before is None and not _is_ours(thing):
            other = self._references().get(name)
            if other is not None and not _refers_to(other, thing):
                raise self._twice(name, _words(thing), other)
        self._registered[name] = thing

    def names(self) -> list[str]:
        """Every name, in the order of the alphabet."""
        return sorted({*self._registered, *self._references()})

    def check(self, name: str) -> str:
        """Return a name if it is known; raise `InputError` with the nearest name if not.

        Parameters
        ----------
        name : str
            The name to check.

        Returns
        -------
        str
            The same name.
        """
        if name not in self._registered and name not in self._references():
            sentence = (
                f"{unknown(self.kind, name, self.names())} If it is a plugin's, import it first."
            )
            raise InputError(sentence, "The option --plugin FILE_OR_MODULE does so.")
        return name

    def load(self, name: str) -> Any:
        """Return what is known as `name`, importing it if need be.

        Parameters
        ----------
        name : str
            A known name.

        Returns
        -------
        class or module
            The registered class, or what the entry point refers to.
        """
        if name in self._registered:
            return self._registered[name]
        reference = self._references()[self.check(name)]
        module, _, attribute = reference.partition(":")
        loaded = self._import(name, module)
        if attribute and not hasattr(loaded, attribute):
            raise InputError(f"{self._of(name)}: the module {module} has no {attribute}.")
        return getattr(loaded, attribute) if attribute else loaded

    def source(self, name: str) -> str:
        """Return where a thing comes from.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        str
            `placecell`, the package that has the entry point, or the module that registered it.
        """
        thing = self._registered.get(name)
        if _is_ours(thing) or name in self._built_in():
            return HERE
        for point in self._entry_points():
            if point.name == name and (thing is None or _refers_to(point.value, thing)):
                return point.dist.name if point.dist else point.value
        return _origin(thing)[0] if thing is not None else ""

    def describe(self) -> list[Entry]:
        """Every name with its source and one line about it.

        What cannot be imported does not hide the others: its line says why.
        """
        entries = []
        for name in self.names():
            try:
                about = self._docstring(name).partition("\n")[0]
            except InputError as error:
                about = str(error)
            entries.append(Entry(name, self.source(name), about))
        return entries

    def _docstring(self, name: str) -> str:
        """What describes `name`. Of this package's classes it is read, not imported, for speed."""
        reference = self._built_in().get(name)
        if reference is not None and name not in self._registered:
            return _docstring_in_source(reference)
        return inspect.getdoc(self._documented(name)) or ""

    def _documented(self, name: str) -> Any:
        """The class whose docstring describes `name`."""
        return self.load(name)

    def _import(self, name: str, module: str) -> ModuleType:
        """Import the module of `name`; one of another package may raise anything."""
        try:
            return importlib.import_module(module)
        except Exception as error:
            if module.startswith(f"{HERE}."):
                raise
            raise InputError(
                f"{self._of(name)} cannot be imported ({module}): {type(error).__name__}: {error}"
            ) from error

    def _of(self, name: str) -> str:
        return f"the {self.kind} {name!r} of {self.source(name)}"

    def _twice(self, name: str, one: str, other: str) -> InputError:
        return InputError(f"two {self.kind}s are called {name!r}: {one} and {other}; rename one.")

    def module(self, name: str) -> str | None:
        """Return the module whose decorator registered `name`.

        Worker processes import it, as they cannot know of it otherwise.

        Parameters
        ----------
        name : str
            A known name.

        Returns
        -------
        str or None
            The module; None for what comes with this package or through an entry point.
        """
        thing = self._registered.get(name)
        return None if thing is None or _is_ours(thing) else _origin(thing)[0]

    def outside(self) -> dict[str, Any]:
        """What was registered by a decorator outside this package, by name."""
        return {name: thing for name, thing in self._registered.items() if not _is_ours(thing)}

    def _entry_points(self) -> list[metadata.EntryPoint]:
        """What installed packages add; read again only if there are other folders of packages."""
        if self._points[0] != sys.path:
            self._points = list(sys.path), list(metadata.entry_points(group=self.group))
        return self._points[1]

    def _references(self) -> dict[str, str]:
        """Name -> `module` or `module:attribute` of what need not have been imported yet."""
        references = self._built_in()
        for point in self._entry_points():
            origin = f"{point.value} of {point.dist.name}" if point.dist else point.value
            if references.get(point.name, point.value) != point.value:
                raise self._twice(point.name, references[point.name], origin)
            thing = self._registered.get(point.name)
            if thing is not None and not _refers_to(point.value, thing):
                raise self._twice(point.name, _words(thing), origin)
            references[point.name] = point.value
        return references


class TaskRegistry(Registry):
    """Tasks by name.

    A task is known as a class, or as a package of the layout of this package's own: `config.py`
    with `Config` (a frozen dataclass), `task.py` with the class as `TASK`, presets as TOML files,
    and `commands.py` with `COMMANDS` if it adds some. The parts are imported one by one, so that
    settings can be read without torch.
    """

    def config_class(self, name: str) -> Any:
        """Return the dataclass of a task's settings.

        Parameters
        ----------
        name : str
            Name of the task.

        Returns
        -------
        type
            Its `Config`.
        """
        return self._part(name, "config", "Config")

    def task_class(self, name: str) -> Any:
        """Return the class of a task.

        Parameters
        ----------
        name : str
            Name of the task.

        Returns
        -------
        type
            A subclass of `placecell.tasks.Task`.
        """
        thing = self.load(name)
        return self._part(name, "task", "TASK") if isinstance(thing, ModuleType) else thing

    def _documented(self, name: str) -> Any:
        return self.task_class(name)

    def _part(self, name: str, part: str, attribute: str) -> Any:
        """An attribute of a task: of its class, or of the module `part` of its package."""
        thing = self.load(name)
        if isinstance(thing, ModuleType):
            thing = self._import(name, f"{thing.__name__}.{part}")
        if not hasattr(thing, attribute):
            raise InputError(f"{self._of(name)} has no `{attribute}` ({_words(thing)}).")
        return getattr(thing, attribute)

    def presets(self, name: str) -> dict[str, str]:
        """Return the presets of a task.

        Parameters
        ----------
        name : str
            Name of the task.

        Returns
        -------
        dict
            Name -> text (TOML). Every task has `quick`: its defaults, if it has no other.
        """
        thing = self.load(name)
        if isinstance(thing, ModuleType):
            entries = [e for e in resources.files(thing).iterdir() if e.name.endswith(".toml")]
            texts = {entry.name.removesuffix(".toml"): entry.read_text() for entry in entries}
        else:
            texts = dict(getattr(thing, "presets", {}))
        return dict(sorted({"quick": 'about = "its defaults"', **texts}.items()))

    def commands(self) -> list[Command]:
        """The commands that tasks add to the command line; a task that has none is not imported."""
        added: list[Command] = []
        for name, reference in self._references().items():
            if ":" not in reference and _has_commands(reference):
                added += self._part(name, "commands", "COMMANDS")
        return added


def _tasks_of_this_package() -> dict[str, str]:
    folder = Path(__file__).parent / "tasks"
    names = [module.name for module in pkgutil.iter_modules([str(folder)]) if module.ispkg]
    return {name: f"{HERE}.tasks.{name}" for name in names}


def _encodings_of_this_package() -> dict[str, str]:
    """Name -> `module:class`, from the decorators in the source, so that torch is not imported."""
    references: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "encodings").glob("*.py")):
        decorated = re.findall(r'^@register\("(.+)"\)\nclass (\w+)', path.read_text("utf-8"), re.M)
        module = f"{HERE}.encodings.{path.stem}"
        references |= {name: f"{module}:{cls}" for name, cls in decorated}
    return references


def _docstring_in_source(reference: str) -> str:
    """The docstring of a class of this package: `module:class`, or `TASK` of a task's folder."""
    module, _, name = reference.partition(":")
    path = Path(__file__).parent.joinpath(*module.split(".")[1:])
    path = path.with_suffix(".py") if name else path / "task.py"
    body = ast.parse(path.read_text("utf-8")).body
    for node in body:
        if not name and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TASK":
            name = ast.unparse(node.value)
    classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    return (ast.get_docstring(classes[0]) or "") if classes else ""


def _has_commands(package: str) -> bool:
    """Whether a package has a module `commands`; seen without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # of an entry point whose package is gone: `load` says so
        return False
    folders = (spec and spec.submodule_search_locations) or []
    return any(module.name == "commands" for module in pkgutil.iter_modules(folders))


def _origin(thing: Any) -> tuple[str, str]:
    """The module and the name of a class, or of a module."""
    if isinstance(thing, ModuleType):
        return thing.__name__, thing.__name__
    module = str(getattr(thing, "__module__", ""))
    name = getattr(thing, "__qualname__", repr(thing))
    return (NO_MODULE[0] if module in NO_MODULE else module), name


def _is_ours(thing: Any) -> bool:
    return thing is not None and _origin(thing)[0].startswith(f"{HERE}.")


def _refers_to(reference: str, thing: Any) -> bool:
    """Whether an entry point names this class, perhaps where its package imports it again."""
    module, _, attribute = reference.partition(":")
    own_module, name = _origin(thing)
    return module.split(".")[0] == own_module.split(".")[0] and attribute in ("", name)


def _words(thing: Any) -> str:
    module, name = _origin(thing)
    return f"the module {module}" if isinstance(thing, ModuleType) else f"{name} of {module}"


ENCODINGS = Registry("encoding", "placecell.encodings", _encodings_of_this_package)
TASKS = TaskRegistry("task", "placecell.tasks", _tasks_of_this_package)
