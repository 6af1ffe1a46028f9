"""The experiments: a task says what the tokens are, where they are, and how it is scored. One
folder each."""

from placecell.tasks.registry import (
    available,
    check,
    config_class,
    describe,
    load,
    presets,
    register,
)

__all__ = ["available", "check", "config_class", "describe", "load", "presets", "register"]
