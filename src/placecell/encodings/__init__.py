"""Positional encodings, one per file. Importing this package registers all of them by name."""

import importlib
import pkgutil

from placecell.encodings.alibi import AlibiPE
from placecell.encodings.base import (
    Encoding,
    available,
    build,
    describe,
    lookup,
    register,
    settings,
)
from placecell.encodings.learnable import LearnablePE, RandomPE
from placecell.encodings.nope import CausalNoPE, NoPE
from placecell.encodings.positions import Positions
from placecell.encodings.relative import RelativePE
from placecell.encodings.rotary import RotaryPE
from placecell.encodings.sinusoidal import SinusoidalPE

for _module in pkgutil.iter_modules(__path__):  # a new encoding is one new file
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "AlibiPE",
    "CausalNoPE",
    "Encoding",
    "LearnablePE",
    "NoPE",
    "Positions",
    "RandomPE",
    "RelativePE",
    "RotaryPE",
    "SinusoidalPE",
    "available",
    "build",
    "describe",
    "lookup",
    "register",
    "settings",
]
