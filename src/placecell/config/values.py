"""Checks of values against their types: settings as they are made, and what is read from files.

A setting may be a list (annotated `Sequence[str]`, `tuple[int, ...]`, …). It is kept as a tuple
and has two spellings: a list, in Python and TOML, and one text, the elements joined by the
separator of its field, which flags, tables and the hash of a run use. Standard library only.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import math
import numbers
import operator
import types
import typing
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from typing import Any, Literal

from placecell.errors import InputError, unknown

BOUNDS = {
    "at_least": operator.ge,
    "above": operator.gt,
    "at_most": operator.le,
    "below": operator.lt,
}
PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
SEPARATOR = "+"


def option(default: Any, help: str, *, separator: str = SEPARATOR, **bounds: float) -> Any:
    """Return a dataclass field that is a setting.

    Parameters
    ----------
    default
        The value where none is given.
    help
        The sentence that `--help` shows.
    separator
        Of a list: what joins its elements where it is written as one text.
    **bounds
        `at_least`, `above`, `at_most`, `below`: limits of a number, or of every element of a list.

    Returns
    -------
    dataclasses.Field
        The field.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Config:
    ...     modules: Sequence[int] = option((10, 20), "sizes of the modules", at_least=2)
    """
    metadata = {"help": help, "bounds": bounds, "separator": separator}
    return field(default=default, metadata=metadata)


def check_fields(owner: Any) -> None:
    """Check every field of a dataclass against its type and bounds, in place.

    Numbers of NumPy become Python's, and lists (or their text) tuples.

    Parameters
    ----------
    owner
        An instance of a dataclass, frozen or not.

    Raises
    ------
    InputError
        If a field has a value that its type or its bounds do not allow.
    """
    hints = hints_of(type(owner))
    for f in fields(owner):
        value, hint = getattr(owner, f.name), hints[f.name]
        kind, _ = inner(hint)
        if kind in PLAIN or typing.get_origin(kind) is Literal or is_list(kind):
            bounds = f.metadata.get("bounds", {})
            value = check_value(value, hint, f.name, separator=separator_of(f), **bounds)
            object.__setattr__(owner, f.name, value)
        elif isinstance(kind, type) and is_dataclass(kind) and not isinstance(value, kind):
            raise InputError(f"{f.name} must be {kind.__name__}(…), not {value!r}.")


def hints_of(cls: Any) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields; kept, since a store has the same for every run."""
    return _hints(cls)


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    return types.MappingProxyType(typing.get_type_hints(cls))


def separator_of(field: Any) -> str:
    """Return what joins the elements of a dataclass field that is a list."""
    separator: str = field.metadata.get("separator", SEPARATOR)
    return separator


def inner(hint: Any) -> tuple[Any, bool]:
    """Return a type without its `| None`, and whether it had one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(hint) if arg is not type(None)), True
    return hint, False


def is_list(kind: Any) -> bool:
    """Return whether a type (without `| None`) is that of a setting that is a list.

    It is `Sequence[X]` or `tuple[X, ...]`, with X plain, a Literal, or `int | str`.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is not collections.abc.Sequence and not (origin is tuple and args[1:] == (...,)):
        return False
    element = args[0]
    return element in PLAIN or typing.get_origin(element) is Literal or element == int | str


def joined(elements: collections.abc.Iterable[Any], separator: str) -> str:
    """Return a list as the one text that a flag gives: `10+20+30`."""
    return separator.join(map(str, elements))


def check_value(
    value: Any, hint: Any, where: str, *, separator: str = SEPARATOR, **bounds: float
) -> Any:
    """Return a value as the type that it must have.

    Parameters
    ----------
    value
        What was given. Text is not read as a number; as a list it is.
    hint
        The type: bool, int, float, str, a Literal, a list of these, or one of them `| None`.
    where
        What the value is, to begin a sentence with.
    separator
        Of a list: what joins its elements where it is written as one text.
    **bounds
        As those of `option`.

    Returns
    -------
    Any
        The value, of the type itself: a list is a tuple.

    Raises
    ------
    InputError
        One sentence that says what was expected and what was given.

    Examples
    --------
    >>> check_value([10, 20], tuple[int, ...], "modules", at_least=2)
    (10, 20)
    """
    kind, optional = inner(hint)
    if optional and value is None:
        return None
    if is_list(kind):
        return _elements(value, kind, where, separator, check_value, bounds)
    if typing.get_origin(kind) is Literal:
        if value not in typing.get_args(kind):
            raise unknown(f"value ({where})", str(value), map(str, typing.get_args(kind)))
        return value
    limits = " and ".join(f"{name.replace('_', ' ')} {limit}" for name, limit in bounds.items())
    wanted = f"a finite {PLAIN[kind][2:]}" if kind is float and bounds else PLAIN[kind]
    wanted = ", ".join(filter(None, (wanted, limits)))
    refused = InputError(f"{where} must be {wanted}, not {value!r}.")
    if kind in (bool, str):
        if not isinstance(value, kind):
            raise refused
        return value
    if getattr(value, "ndim", None) == 0:  # one number of NumPy or torch
        value = value.item()
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real:
        raise refused
    try:
        number = float(value) + 0.0  # −0 and 0 are one number, and one hash
        plain = number if kind is float else int(value)
    except (ValueError, OverflowError):
        raise refused from None
    wrong = (kind is int and plain != value) or (bounds and not math.isfinite(number))
    if wrong or not all(BOUNDS[name](plain, limit) for name, limit in bounds.items()):
        raise refused
    return plain


def coerce(
    value: Any,
    hint: Any,
    where: str,
    *,
    separator: str = SEPARATOR,
    **bounds: float,
) -> Any:
    """Return a value as the type that it must have; text is read, as the command line gives it.

    Parameters and result are those of `check_value`.
    """
    kind, optional = inner(hint)
    if isinstance(value, str) and optional and value.lower() == "none":
        return None
    if is_list(kind) and not (optional and value is None):
        return _elements(value, kind, where, separator, coerce, bounds)
    if isinstance(value, str):
        if kind is bool:
            value = {"true": True, "false": False}.get(value.lower(), value)
        elif kind in (int, float):
            with contextlib.suppress(ValueError):  # what cannot be read is refused as text
                value = kind(value)
    return check_value(value, hint, where, separator=separator, **bounds)


def _elements(
    value: Any, kind: Any, where: str, separator: str, read: Any, bounds: dict[str, float]
) -> tuple[Any, ...]:
    """A list, or its text, as a tuple of which every element was read as its type."""
    hint = typing.get_args(kind)[0]
    if isinstance(value, str):
        parts, read = value.split(separator), coerce  # the parts of a text are text
    elif isinstance(value, collections.abc.Sequence) and not isinstance(value, bytes | bytearray):
        parts = list(value)
    else:
        raise InputError(f"{where} must be a list, or text joined by {separator}, not {value!r}.")
    elements = []
    for place, part in enumerate(parts, 1):
        element = _element(part, hint, f"element {place} of {where}", read, bounds)
        elements.append(element)
        if separator in str(element):
            raise InputError(
                f"{where}: {element!r} has a {separator} in it, which joins the elements of this "
                "list where it is one text."
            )
    if not joined(elements, separator).strip():
        raise InputError(f"{where} must have at least one element.")
    return tuple(elements)


def _element(part: Any, hint: Any, where: str, read: Any, bounds: dict[str, float]) -> Any:
    """One element. Of `int | str`, text that is exactly a number's is that number."""
    if hint != int | str:
        return read(part, hint, where, **bounds)
    if isinstance(part, str):
        with contextlib.suppress(ValueError):
            part = int(part) if str(int(part)) == part else part
    if isinstance(part, str):
        return part
    return check_value(part, int, where, separator=SEPARATOR, **bounds)
