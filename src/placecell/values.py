"""Values held to their types: settings as they are made, and what is read back from files. Standard library only."""

from __future__ import annotations

import contextlib
import math
import numbers
import operator
import types
import typing
from dataclasses import field, fields, is_dataclass
from typing import Any, Literal

from placecell.errors import InputError, unknown

BOUNDS = {"at_least": operator.ge, "above": operator.gt, "at_most": operator.le, "below": operator.lt}
PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def option(default: Any, help: str, **bounds: float) -> Any:
    """A dataclass field with the sentence that --help shows for it, and the bounds that `hold` keeps it to."""
    return field(default=default, metadata={"help": help, "bounds": bounds})


def hold(owner: Any) -> None:
    """Hold every field of a dataclass to its type and bounds. Numbers of NumPy become Python's, in place."""
    hints = typing.get_type_hints(type(owner))
    for f in fields(owner):
        value, hint = getattr(owner, f.name), hints[f.name]
        kind, _ = inner(hint)
        if kind in PLAIN or typing.get_origin(kind) is Literal:
            object.__setattr__(owner, f.name, held(value, hint, f.name, **f.metadata.get("bounds", {})))
        elif isinstance(kind, type) and is_dataclass(kind) and not isinstance(value, kind):
            raise InputError(f"{f.name} must be {kind.__name__}(…), not {value!r}.")


def inner(hint: Any) -> tuple[Any, bool]:
    """A type without its `| None`, and whether it had one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(hint) if arg is not type(None)), True
    return hint, False


def held(value: Any, hint: Any, where: str, **bounds: float) -> Any:
    """`value` as the type `hint`, within `bounds`, or a sentence that says what was expected and found."""
    kind, optional = inner(hint)
    if optional and value is None:
        return None
    if typing.get_origin(kind) is Literal:
        if value not in typing.get_args(kind):
            raise unknown(f"value ({where})", str(value), map(str, typing.get_args(kind)))
        return value
    limits = " and ".join(f"{name.replace('_', ' ')} {limit}" for name, limit in bounds.items())
    wanted = f"a finite {PLAIN[kind][2:]}" if kind is float and bounds else PLAIN[kind]
    refused = InputError(f"{where} must be {', '.join(filter(None, (wanted, limits)))}, not {value!r}.")
    if kind in (bool, str):
        if not isinstance(value, kind):
            raise refused
        return value
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real:
        raise refused
    try:
        number = float(value) + 0.0  # −0 and 0 are one number, and one hash
        found = number if kind is float else int(value)
    except (ValueError, OverflowError):
        raise refused from None
    wrong = (kind is int and found != value) or (bounds and not math.isfinite(number))
    if wrong or not all(BOUNDS[name](found, limit) for name, limit in bounds.items()):
        raise refused
    return found


def coerce(value: Any, hint: Any, where: str, **bounds: float) -> Any:
    """The same of a value that may be text, as the command line gives it: text is read."""
    kind, optional = inner(hint)
    if isinstance(value, str):
        if optional and value.lower() == "none":
            return None
        if kind is bool:
            value = {"true": True, "false": False}.get(value.lower(), value)
        elif kind in (int, float):
            with contextlib.suppress(ValueError):  # what cannot be read is refused as the text that it is
                value = kind(value)
    return held(value, hint, where, **bounds)
