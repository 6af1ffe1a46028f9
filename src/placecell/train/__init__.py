"""Training: from a configuration to a run folder."""

from placecell.store.runs import Row, RunResult, load_result
from placecell.train.loop import State, evaluate_splits, fit, make_optimizer
from placecell.train.run import Watch, load_model, load_snapshots, make_model, make_task, run

__all__ = [
    "Row",
    "RunResult",
    "State",
    "Watch",
    "evaluate_splits",
    "fit",
    "load_model",
    "load_result",
    "load_snapshots",
    "make_model",
    "make_optimizer",
    "make_task",
    "run",
]
