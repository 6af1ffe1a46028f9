"""Sweeps: many configurations through the same arrow."""

from placecell.sweep.grid import flatten, grid, label, varying
from placecell.sweep.local import Outcome, sweep
from placecell.sweep.store import load_store

__all__ = ["Outcome", "flatten", "grid", "label", "load_store", "sweep", "varying"]
