"""What is on disk: whole writes, locks, the folder of a run, a folder of runs."""

from placecell.store.index import Store, load_store
from placecell.store.run_set import RunSet
from placecell.store.runs import Row, RunResult, load_result
from placecell.store.table import Table

__all__ = ["Row", "RunResult", "RunSet", "Store", "Table", "load_result", "load_store"]
