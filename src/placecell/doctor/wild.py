"""How models in the wild are built: read from the table that `benchmarks/wild.py` makes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Wild:
    """One table of one model as its library builds it.

    Attributes
    ----------
    model : str
    table : str
    kind : str
    state : str
        "trainable", "fixed", "zero" or "zero and frozen".
    sigma, beside, rho, logits : float
        As in `AsBuilt`; None where it does not exist.
    """

    model: str
    table: str
    kind: str
    state: str
    sigma: float
    beside: float
    rho: float
    logits: float | None


def wild() -> tuple[Wild, ...]:
    """Return every model that was measured."""
    text = resources.files("placecell.doctor").joinpath("wild.json").read_text(encoding="utf-8")
    return tuple(Wild(**line) for line in json.loads(text))


def some_of_the_wild(most: int = 6) -> tuple[Wild, ...]:
    """Return some models from the smallest share to the largest, absolute tables only."""
    lines = [line for line in wild() if line.kind == "absolute" and line.rho is not None]
    lines = sorted({line.model: line for line in lines}.values(), key=lambda line: line.rho)
    if len(lines) <= most:
        return tuple(lines)
    step = (len(lines) - 1) / (most - 1)
    return tuple(lines[round(i * step)] for i in range(most))
