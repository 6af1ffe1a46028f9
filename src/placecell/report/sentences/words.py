"""Nouns, numbers and lists as people write them."""

from __future__ import annotations

from collections.abc import Sequence

METRICS = {"mse": "mean squared error"}


def metric(name: str) -> str:
    """Write the name of a metric in words."""
    return METRICS.get(name, name.replace("_", " "))


def two(value: float) -> str:
    """Write a number with two decimals and a real minus sign, and nothing as 0.00."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def plural(noun: str) -> str:
    """Write a noun in its plural, such as module or community."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def listed(names: Sequence[str]) -> str:
    """Join names as people write them: a, b and c."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
