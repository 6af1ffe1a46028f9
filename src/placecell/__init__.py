"""placecell: positional encodings that transformers learn and people can read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placecell import analysis as analysis
    from placecell import config as config
    from placecell import encodings as encodings
    from placecell import model as model
    from placecell import report as report
    from placecell import sweep as sweep
    from placecell import tasks as tasks
    from placecell import train as train
    from placecell.config import RunConfig as RunConfig
    from placecell.encodings import AlibiPE as AlibiPE
    from placecell.encodings import CausalNoPE as CausalNoPE
    from placecell.encodings import LearnablePE as LearnablePE
    from placecell.encodings import NoPE as NoPE
    from placecell.encodings import Positions as Positions
    from placecell.encodings import RandomPE as RandomPE
    from placecell.encodings import RelativePE as RelativePE
    from placecell.encodings import RotaryPE as RotaryPE
    from placecell.encodings import SinusoidalPE as SinusoidalPE
    from placecell.presets import preset as preset
    from placecell.train.run import run as run

__version__ = "0.1.0"

# Names are looked up when first used, so that `placecell --help` need not import torch.
_HOME = {
    "placecell.config": ("RunConfig",),
    "placecell.encodings": (
        "AlibiPE", "CausalNoPE", "LearnablePE", "NoPE", "Positions",
        "RandomPE", "RelativePE", "RotaryPE", "SinusoidalPE",
    ),
    "placecell.presets": ("preset",),
    "placecell.train": ("run",),
}  # fmt: skip
_PARTS = ("analysis", "config", "encodings", "model", "report", "sweep", "tasks", "train")  # report is a function too
__all__ = [*(name for names in _HOME.values() for name in names), "report"]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"placecell.{name}")
    for home, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'placecell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
