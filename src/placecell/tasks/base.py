"""What training needs of a task, and nothing else. What a task may offer beyond that is in
`optional.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from placecell.analysis import Symmetries
from placecell.encodings.positions import Positions
from placecell.model import Inputs, Tokens


@dataclass(frozen=True, eq=False)
class Examples:
    """Samples of one split, or a batch of them.

    The model sees the tokens and is scored at the tokens `read`.

    Parameters
    ----------
    tokens : Tensor
        Symbols (b n), or vectors of values (b n f).
    read : Tensor
        The tokens at which the model is scored (b q).
    targets : Tensor
        What it should say there (b q).
    group : Tensor
        Which of the task's `groups` a sample belongs to (b).
    positions : Positions, optional
        Where the tokens of each sample are (b n). None: where the task's `positions` say, for every
        sample.
    present : Tensor, optional
        False where a sample has no such token (b n). None: all are there.
    scored : Tensor, optional
        False where an entry of `read` only fills up the row of a sample that has fewer (b q). None:
        all count.
    """

    tokens: Tensor
    read: Tensor
    targets: Tensor
    group: Tensor
    positions: Positions | None = None
    present: Tensor | None = None
    scored: Tensor | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def inputs(self, positions: Positions) -> Inputs:
        """What the model is given; `positions` are the task's, for samples that have none of their
        own."""
        return Inputs(self.tokens, self.positions or positions, self.read, self.present)

    def take(self, rows: Tensor | slice) -> Examples:
        """Some of the samples."""
        return Examples(
            self.tokens[rows],
            self.read[rows],
            self.targets[rows],
            self.group[rows],
            None if self.positions is None else self.positions.samples(rows),
            None if self.present is None else self.present[rows],
            None if self.scored is None else self.scored[rows],
        )

    def join(self, other: Examples) -> Examples:
        """These samples and then others of the same task."""

        def both(name: str) -> Tensor | None:
            mine, yours = getattr(self, name), getattr(other, name)
            return None if mine is None else torch.cat((mine, yours))

        return Examples(
            torch.cat((self.tokens, other.tokens)),
            torch.cat((self.read, other.read)),
            torch.cat((self.targets, other.targets)),
            torch.cat((self.group, other.group)),
            None
            if self.positions is None or other.positions is None
            else self.positions.join(other.positions),
            both("present"),
            both("scored"),
        )

    def to(self, device: torch.device) -> Examples:
        """The same on another device."""
        return Examples(
            self.tokens.to(device),
            self.read.to(device),
            self.targets.to(device),
            self.group.to(device),
            None if self.positions is None else self.positions.to(device),
            None if self.present is None else self.present.to(device),
            None if self.scored is None else self.scored.to(device),
        )


@dataclass(frozen=True)
class Truth:
    """What is known of the places' arrangement, for analyses to compare a learned table with.

    Parameters
    ----------
    relation : ndarray
        1 where two different places belong together, else 0 (n n).
    labels : mapping of str to ndarray
        Labels of the places by name, for example `row`, `column`, `module` or `network` (n each).
    symmetries : Symmetries, optional
        Reorderings of the places that the task cannot tell apart.
    partition : str, optional
        The one of `labels` that divides the places into modules or networks.
    spatial : bool
        Whether the coordinates of the places are part of the truth.
    from_data : bool
        True if nothing is known of the arrangement, and `partition` is communities of the training
        data's own correlations. Reports then call it that, and not the truth.
    together : str
        When two places belong together, in words that follow "if they".
    value_names : mapping of str to sequence of str
        What the values 0, 1, … of a label are called, such as the names of networks, or numbers
        counted from 1. A label without is shown by its values.
    """

    relation: NDArray[np.float64]
    labels: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    symmetries: Symmetries | None = None
    partition: str | None = None
    spatial: bool = True
    from_data: bool = False
    together: str = "are related"
    value_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def named(self, label: str) -> list[str]:
        """Return a label of each place as readers see it.

        Parameters
        ----------
        label : str
            One of `labels`.

        Returns
        -------
        list of str
            The name of its value (n), or else the value.
        """
        names = self.value_names.get(label, ())
        return [
            str(value)
            if isinstance(value, str) or not 0 <= value < len(names)
            else str(names[int(value)])
            for value in self.labels[label]
        ]

    @classmethod
    def unknown(cls, n: int) -> Truth:
        """Make the truth of places of which nothing is known; pictures then show no relation.

        Parameters
        ----------
        n : int
            Number of places.

        Returns
        -------
        Truth
            With a relation of zeros (n n) and no labels.
        """
        return cls(np.zeros((n, n)), spatial=False)


def counted(values: NDArray[np.integer[Any]]) -> list[str]:
    """Return names for the values 0, 1, … of a label: their numbers, counted from 1.

    Parameters
    ----------
    values : ndarray
        The label of each place (n).

    Returns
    -------
    list of str
        The name of each value up to the largest.

    Examples
    --------
    >>> counted(np.array([0, 2, 0]))
    ['1', '2', '3']
    """
    return [str(value + 1) for value in range(int(values.max(initial=-1)) + 1)]


class Task(ABC):
    """An experiment: places, tokens, outputs, data, loss and metrics.

    A subclass takes its settings and sets `config`, `tokens`, `places` and `n_outputs`. The shared
    bases `Classification` and `MaskedValues` have loss and metrics, so that a new task is data and
    a config.

    Parameters
    ----------
    config : Config
        The settings, an instance of the class's own `Config`.

    Attributes
    ----------
    Config : type
        A frozen dataclass of the task's settings.
    presets : mapping of str to str
        TOML texts by name.
    config : Config
        The settings it was made from, completed by what only the data can say.
    tokens : Tokens
        What a token is: a symbol, or a vector of values.
    places : Positions
        Every place there is; a learnable table has one row for each.
    n_outputs : int
        Width of the model's output at every token that is read.
    title : str
        What a page calls the task; if empty, its name.
    groups : tuple of str
        Names of the groups of samples that are scored separately.
    group_noun : str
        What one of them is.
    headline : str
        The metric that a summary shows first.
    headline_lower_is_better : bool
        True if the headline is an error, False if it is a score.
    shown : tuple of str
        The measures that a summary shows as columns.
    """

    Config: ClassVar[Any]
    presets: ClassVar[Mapping[str, str]] = {}
    config: Any
    tokens: Tokens
    places: Positions
    n_outputs: int
    title: ClassVar[str] = ""
    groups: tuple[str, ...] = ("all",)
    group_noun: ClassVar[str] = "condition"
    headline: str  # of the class, or of an instance whose settings decide
    headline_lower_is_better: bool = False
    shown: tuple[str, ...] = ("table/relation", "attention/relation")

    @abstractmethod
    def __init__(self, config: Any) -> None: ...

    @property
    def positions(self) -> Positions:
        """Where the tokens of a sample are, unless `Examples.positions` says so for each sample.

        By default at all places, in order. A task with a class token returns
        `self.places.with_class_token()`.
        """
        return self.places

    @property
    def n_tokens(self) -> int:
        """Number of tokens of a sample, counting those that may be absent."""
        return len(self.positions.index)

    @abstractmethod
    def splits(self) -> dict[str, Examples]:
        """Return the data, the same for every run with the same settings.

        Returns
        -------
        dict of str to Examples
            The samples of `train`, `valid` and `test`.
        """

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """Make a training batch. Tasks that mask or corrupt at random override this.

        Parameters
        ----------
        examples : Examples
            The training samples.
        rows : Tensor
            Indices of the samples of this batch (b).
        generator : torch.Generator
            The only source of randomness to use.

        Returns
        -------
        Examples
            The batch.
        """
        return examples.take(rows)

    @abstractmethod
    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the mean loss of a batch.

        Parameters
        ----------
        outputs : Tensor
            What the model says at the tokens that are read (b q o).
        examples : Examples
            The batch.

        Returns
        -------
        Tensor
            A scalar.
        """

    @abstractmethod
    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Score a whole split.

        Parameters
        ----------
        outputs : Tensor
            What the model says at the tokens that are read (b q o).
        examples : Examples
            The samples of the split.

        Returns
        -------
        dict of str to float
            Scores by name; the headline is one of them.
        """

    @classmethod
    def headline_for(cls, config: Any) -> str:
        """Return the name of the headline metric under given settings, before a task is made.

        Parameters
        ----------
        config : Config
            The task's settings.

        Returns
        -------
        str
            The class's `headline`, unless a task says otherwise.
        """
        return cls.headline

    def learned(self, headline: float) -> bool | None:
        """Say whether the training set is learned completely.

        Parameters
        ----------
        headline : float
            The headline metric on the training set.

        Returns
        -------
        bool or None
            None if the training set can never be learned completely, because part of it is noise.
        """
        return None

    def truth(self) -> Truth | None:
        """Return the arrangement that a readable table should show; None if it is not known."""
        return None


def check_splits(task: Task, splits: Mapping[str, Examples]) -> None:
    """Refuse samples that no model can predict, before anything is trained.

    Parameters
    ----------
    task : Task
        The task that the samples belong to.
    splits : mapping of str to Examples
        The samples of each split.

    Raises
    ------
    InputError
        If a sample has no token, an absent token is read, or a place does not exist.
    """
    for split, examples in splits.items():
        examples.inputs(task.positions).validate(
            len(task.places.index), f"the {split} samples of the task"
        )
