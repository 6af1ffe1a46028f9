"""Settings as TOML: read with a sentence for what cannot be, and written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placecell.errors import InputError

DEEPEST = 16  # parts of a key; the time and memory of tomllib grow with their square
_TEXT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' r"'''.*?'''|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'|#[^\n]*",
    re.DOTALL,
)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Parameters
    ----------
    path
        The file, in UTF-8, with or without a byte order mark.

    Returns
    -------
    dict
        Its keys and sections.

    Raises
    ------
    InputError
        One sentence about why it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with such a mark
        if _deepest_key(text) > DEEPEST:
            parts = f"more than {DEEPEST} parts (a.b.c…)"
            raise InputError(f"{path}: a key has {parts}; settings have two.")
        return tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except InputError:
        raise
    except (
        ValueError,
        RecursionError,
    ) as error:  # not TOML or UTF-8, a long number, nested too deep
        raise InputError(f"{path}: not valid TOML: {error}.") from None


def write_toml(values: Mapping[str, Any]) -> str:
    """Plain values as TOML.

    Parameters
    ----------
    values
        Text, numbers, true and false and lists of these, and sections: dicts of the same.

    Returns
    -------
    str
        What `read_toml` reads as equal values.
    """
    sections = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {_toml(value)}" for key, value in values.items() if key not in sections]
    for name, section in sections.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _deepest_key(text: str) -> int:
    """At least the number of parts of the longest dotted key: dots outside text and comments."""
    parts = re.split(r"[=,\n\[\]{}]", _TEXT.sub("_", text))
    return 1 + max(part.count(".") for part in parts)
