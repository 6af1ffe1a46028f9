"""What a task may offer beyond what training needs. Whoever uses one of these asks first
(`isinstance`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.model import Transformer
from placecell.tasks.base import Task, Truth

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run learned, as arrays over the places; None for an encoding without a table."""

    table: NDArray[np.float64] | None  # n d
    untrained: NDArray[np.float64] | None  # n d: the table before training
    maps: NDArray[np.float64]  # layers n n: attention averaged over samples and heads


@dataclass(frozen=True)
class ItemScores:
    """A model on items used with people, people beside it."""

    groups: dict[str, dict[str, float]]  # condition (and "all") -> items, model, published, people
    notes: dict[str, Any]  # what else there is to say: keys that are wrong, agreement item by item


@runtime_checkable
class HasMeasures(Protocol):
    """A task that reads more from a finished run than is measured of every task's runs."""

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """Measurements by name."""


@runtime_checkable
class HasBaselines(Protocol):
    """A task with other methods to compare a model with."""

    def baselines(self) -> dict[str, dict[str, float]]:
        """Other methods on the same data, and the same measures of other matrices: name ->
        measurements by name."""


@runtime_checkable
class HasPicture(Protocol):
    """A task whose places can be drawn where they are."""

    def draw(self, partitions: Mapping[str, NDArray[np.int64]]) -> Figure | None:
        """The places, coloured by each partition (title -> n); None if they cannot be drawn
        here."""


@runtime_checkable
class HasItems(Protocol):
    """A task that people have worked on too."""

    def score_items(self, model: Transformer, items: Path, human: Path | None = None) -> ItemScores:
        """The model on the items of a file that people have also worked on."""


def need_truth(task: Task, what: str) -> Truth:
    """The truth of a task, for what cannot be done without.

    Parameters
    ----------
    task : Task
    what : str
        What needs it, as the beginning of the sentence that says so.
    """
    truth = task.truth()
    if truth is None:
        raise InputError(
            f"{what} needs to know how the places are arranged, and this task does not say."
        )
    return truth


def need_items(task: Task, items: Path) -> HasItems:
    """The task, if it has items used with people."""
    if not isinstance(task, HasItems):
        raise InputError(f"{items}: this task has no items used with people.")
    return task
