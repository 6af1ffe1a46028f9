"""The experiments: a task says what tokens are, where they are, and how a model is scored."""

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
