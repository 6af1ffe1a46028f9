"""placecell: positional encodings that transformers learn and people can read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placecell import analysis as analysis
    from placecell import config as config
    from placecell import discover as discover
    from placecell import doctor as doctor
    from placecell import encodings as encodings
    from placecell import model as model
    from placecell import report as report
    from placecell import store as store
    from placecell import study as study
    from placecell import sweep as sweep
    from placecell import tasks as tasks
    from placecell import train as train
    from placecell.config import RunConfig as RunConfig
    from placecell.config.presets import preset as preset
    from placecell.discover.place_map import PlaceMap as PlaceMap
    from placecell.doctor.draw import init_ as init_
    from placecell.doctor.find import find_tables as find_tables
    from placecell.doctor.measure import share_of_position as share_of_position
    from placecell.doctor.mend import extend as extend
    from placecell.doctor.mend import freeze as freeze
    from placecell.doctor.mend import param_groups as param_groups
    from placecell.doctor.mend import resize as resize
    from placecell.encodings import AlibiPE as AlibiPE
    from placecell.encodings import CausalNoPE as CausalNoPE
    from placecell.encodings import ContinuousPE as ContinuousPE
    from placecell.encodings import FactoredPE as FactoredPE
    from placecell.encodings import LaplacianPE as LaplacianPE
    from placecell.encodings import LearnablePE as LearnablePE
    from placecell.encodings import NoPE as NoPE
    from placecell.encodings import Positions as Positions
    from placecell.encodings import RandomPE as RandomPE
    from placecell.encodings import RandomWalkPE as RandomWalkPE
    from placecell.encodings import RelativePE as RelativePE
    from placecell.encodings import RotaryPE as RotaryPE
    from placecell.encodings import SinusoidalPE as SinusoidalPE
    from placecell.encodings.base import register_encoding as register_encoding
    from placecell.encodings.share import calibrate_ as calibrate_
    from placecell.encodings.share import position_share as position_share
    from placecell.model.inputs import Inputs as Inputs
    from placecell.store import Store as Store
    from placecell.study.diagnosis import diagnose as diagnose
    from placecell.study.findings import analyse as analyse
    from placecell.study.transplant import transplant as transplant
    from placecell.tasks.registry import register_task as register_task
    from placecell.train.run import run as run

__version__ = "0.1.0"

# Names are looked up when first used, so that `placecell --help` need not import torch.
_HOME = {
    "placecell.config": ("RunConfig",),
    "placecell.encodings": (
        "AlibiPE",
        "CausalNoPE",
        "ContinuousPE",
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
    ),
    "placecell.config.presets": ("preset",),
    "placecell.discover": ("PlaceMap",),
    "placecell.doctor": (
        "extend",
        "find_tables",
        "freeze",
        "init_",
        "param_groups",
        "resize",
        "share_of_position",
    ),
    "placecell.store": ("Store",),
    "placecell.study.diagnosis": ("diagnose",),
    "placecell.study.findings": ("analyse",),
    "placecell.study.transplant": ("transplant",),
    "placecell.train": ("run",),
    "placecell.encodings.base": ("register_encoding",),
    "placecell.encodings.share": ("calibrate_", "position_share"),
    "placecell.tasks.registry": ("register_task",),
    "placecell.model.inputs": ("Inputs",),
}
_PARTS = (
    "analysis",
    "config",
    "discover",
    "doctor",
    "encodings",
    "model",
    "report",
    "store",
    "study",
    "sweep",
    "tasks",
    "train",
)
__all__ = [  # doctor, report and sweep are functions too
    *(name for names in _HOME.values() for name in names),
    "doctor",
    "report",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"placecell.{name}")
    for home, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'placecell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
