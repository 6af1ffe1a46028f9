"""Sweeps: many configurations through the same arrow."""

from placecell.sweep.driver import Outcome, Tally, sweep
from placecell.sweep.grid import flatten, grid, label, varying
from placecell.sweep.local import local
from placecell.sweep.store import Store, load_store

__all__ = ["Outcome", "Store", "Tally", "flatten", "grid", "label", "load_store", "local", "sweep", "varying"]
