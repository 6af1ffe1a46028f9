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
from placecell.encodings.continuous import ContinuousPE
from placecell.encodings.factored import FactoredPE
from placecell.encodings.laplacian import LaplacianPE
from placecell.encodings.learnable import LearnablePE, RandomPE
from placecell.encodings.nope import CausalNoPE, NoPE
from placecell.encodings.positions import Positions
from placecell.encodings.random_walk import RandomWalkPE
from placecell.encodings.relative import RelativePE
from placecell.encodings.rotary import RotaryPE
from placecell.encodings.sinusoidal import SinusoidalPE

for _module in pkgutil.iter_modules(__path__):  # a new encoding is one new file
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "AlibiPE",
    "CausalNoPE",
    "ContinuousPE",
    "Encoding",
    "FactoredPE",
    "LaplacianPE",
    "LearnablePE",
    "NoPE",
    "Positions",
    "RandomPE",
    "RandomWalkPE",
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
