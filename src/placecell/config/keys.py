"""The keys of a configuration, as flags and sweeps name them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from placecell.config.values import hints_of, inner, is_list, joined, separator_of

if TYPE_CHECKING:
    from placecell.config.run import RunConfig

SECTIONS = ("", "data", "encoding", "model", "train")


@dataclass(frozen=True)
class Key:
    """One key of a configuration, as a flag would set it.

    Attributes
    ----------
    section
        The section in which it stands; `""` for those above all sections.
    leaf
        Its name there.
    type
        The type that a flag gives: the key's own, but text for a list.
    value
        The value now; of a list, its elements joined to one text.
    help
        The sentence that explains it.
    hint
        The key's own type.
    separator
        Of a list: what joins its elements.
    """

    section: str
    leaf: str
    type: Any
    value: Any
    help: str
    hint: Any
    separator: str

    @property
    def dotted(self) -> str:
        """The name that no other key has: `model.width`."""
        return f"{self.section}.{self.leaf}" if self.section else self.leaf


def keys(config: RunConfig) -> dict[str, Key]:
    """Every key of a configuration, once, by the name that flags and sweeps have for it.

    Parameters
    ----------
    config
        The configuration; its task decides which keys there are.

    Returns
    -------
    dict
        By short name (`sigma`; a section's `name` by the section's: `encoding`). A key of the task
        that is called like another key is here by its section too: `data.width`.
    """
    every = [key for section in SECTIONS for key in _keys_of(config, section)]
    others = [_short(key) for key in every if key.section != "data"]
    if len(set(others)) < len(others):
        raise ValueError(f"two configuration keys have one name: {sorted(others)}")
    by_name: dict[str, Key] = {}
    for key in every:
        name = _short(key)
        taken = key.section == "data" and (name in others or name in by_name)
        by_name[key.dotted if taken else name] = key
    return by_name


def _short(key: Key) -> str:
    return key.section if key.leaf == "name" and key.section else key.leaf


def _keys_of(config: RunConfig, section: str) -> Iterator[Key]:
    """The keys of one section."""
    owner = getattr(config, section) if section else config
    hints = hints_of(type(owner))
    for f in fields(owner):
        value, hint, separator = getattr(owner, f.name), hints[f.name], separator_of(f)
        if is_dataclass(value) or (not section and f.name == "task"):
            continue
        kind, optional = inner(hint)
        spelled = hint
        if is_list(kind):
            spelled = str | None if optional else str
            value = None if value is None else joined(value, separator)
        yield Key(section, f.name, spelled, value, f.metadata.get("help", ""), hint, separator)
