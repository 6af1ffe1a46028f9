"""What a task may offer beyond what training needs; its users check with `isinstance` first."""

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
from placecell.tasks.names import refuse_same_names, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run learned, as arrays over the places.

    Attributes
    ----------
    table : ndarray or None
        The learned table (n d); None for an encoding without one.
    untrained : ndarray or None
        The table before training (n d).
    maps : ndarray
        Attention averaged over samples and heads (layers n n).
    """

    table: NDArray[np.float64] | None  # n d
    untrained: NDArray[np.float64] | None  # n d: the table before training
    maps: NDArray[np.float64]


@dataclass(frozen=True)
class ItemScores:
    """A model on items used with people, with people's scores.

    Attributes
    ----------
    groups : dict
        Condition (and `all`) to a dict of `items`, `model`, `published` and `people`.
    notes : dict
        Further results: wrong answers in the file, agreement with people on each item.
    """

    groups: dict[str, dict[str, float]]
    notes: dict[str, Any]


@runtime_checkable
class HasMeasures(Protocol):
    """A task that measures more of a finished run than is measured for every task."""

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """Measure a finished run.

        Parameters
        ----------
        learned : Learned
            What the run learned.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        dict
            Measurements by name.
        """


@runtime_checkable
class HasBaselines(Protocol):
    """A task with other methods to compare a model with."""

    def baselines(self) -> dict[str, dict[str, float]]:
        """Measure other methods on the same data.

        Returns
        -------
        dict
            Name of the method to its measurements by name.
        """


@runtime_checkable
class HasNames(Protocol):
    """A task whose places have names."""

    def names(self) -> list[str]:
        """Return the name of each place (n); no two have the same."""


@runtime_checkable
class HasBaselineScores(Protocol):
    """A task whose simpler methods can be scored in seconds, for the diagnosis of a single run."""

    def baseline_scores(self) -> dict[str, float]:
        """Score the simpler methods that take little time.

        Returns
        -------
        dict of str to float
            Name of the method to its test headline.
        """


@runtime_checkable
class HasPicture(Protocol):
    """A task whose places can be drawn where they are."""

    def draw(self, partitions: Mapping[str, NDArray[np.int64]]) -> Figure | None:
        """Draw the places, coloured by each partition.

        Parameters
        ----------
        partitions : mapping of str to ndarray
            Title to the part of each place (n).

        Returns
        -------
        Figure or None
            None if they cannot be drawn here.
        """


@runtime_checkable
class HasItems(Protocol):
    """A task that people have worked on too."""

    def score_items(self, model: Transformer, items: Path, human: Path | None = None) -> ItemScores:
        """Score a model on items that people have worked on too.

        Parameters
        ----------
        model : Transformer
            A trained model.
        items : Path
            The file of the items.
        human : Path, optional
            A file of people's accuracy on each item.

        Returns
        -------
        ItemScores
        """


def place_names(task: Task) -> list[str]:
    """Return the name of each place of a task.

    Parameters
    ----------
    task : Task
        The task.

    Returns
    -------
    list of str
        The task's own names, each in one line; without any, `position 1`, `position 2`, … (n).

    Raises
    ------
    InputError
        If there is not one name for each place, or two places share one.
    """
    n = len(task.places.index)
    if not isinstance(task, HasNames):
        return [f"position {i + 1}" for i in range(n)]
    names = [tidy(str(name)) for name in task.names()]
    whose = f"the names of the places of {type(task).__name__}"
    if len(names) != n:
        raise InputError(f"{whose}: {len(names)} for {n} places.")
    if "" in names:
        raise InputError(f"{whose}: that of place {names.index('') + 1} is empty.")
    refuse_same_names(names, whose, "places")
    return names


def need_truth(task: Task, what: str) -> Truth:
    """Return the truth of a task, or raise an InputError.

    Parameters
    ----------
    task : Task
        The task.
    what : str
        What needs the truth, as the beginning of the error message.

    Returns
    -------
    Truth
    """
    truth = task.truth()
    if truth is None:
        raise InputError(
            f"{what} needs to know how the places are arranged, and this task does not say."
        )
    return truth


def need_items(task: Task, items: Path) -> HasItems:
    """Return a task that has items used with people, or raise an InputError.

    Parameters
    ----------
    task : Task
        The task.
    items : Path
        The file of the items, for the error message.

    Returns
    -------
    HasItems
    """
    if not isinstance(task, HasItems):
        raise InputError(f"{items}: this task has no items used with people.")
    return task
