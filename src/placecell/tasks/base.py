"""What training needs of a task, and nothing else. What a task may offer beyond that is in
`optional.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
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
    """Samples of one split, or a batch of them. The model sees the tokens and is scored at the
    tokens `read`.

    Parameters ---------- tokens : Tensor Symbols (b n), or vectors of values (b n f). read : Tensor
    The tokens at which the model is scored (b q). targets : Tensor What it should say there (b q).
    group : Tensor Which of the task's `groups` a sample belongs to (b). positions : Positions,
    optional Where the tokens of each sample are (b n). None: where the task's `positions` say, for
    every sample. present : Tensor, optional False where a sample has no such token (b n). None: all
    are there. scored : Tensor, optional False where an entry of `read` only fills up the row of a
    sample that has fewer (b q). None: all count."""

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
    """What is known of the places' arrangement, for analyses to compare a learned table with."""

    relation: NDArray[np.float64]  # n n: 1 where two different places belong together
    labels: Mapping[str, NDArray[np.int64]] = field(
        default_factory=dict
    )  # name -> n: row, column, module, network
    symmetries: Symmetries | None = (
        None  # reorderings of the places that the task cannot tell apart
    )
    partition: str | None = (
        None  # the one of `labels` that parts the places into modules or networks
    )
    spatial: bool = True  # whether the coordinates of the places are part of the truth

    @classmethod
    def unknown(cls, n: int) -> Truth:
        """Of n places of which nothing is known: for pictures, which then show no relation."""
        return cls(np.zeros((n, n)), spatial=False)


class Task(ABC):
    """An experiment: places, tokens, outputs, data, loss and metrics.

    A subclass is made from its settings and sets `config`, `tokens`, `places` and `n_outputs`. The
    shared bases `Classification` and `MaskedValues` have loss and metrics, so that a new task is
    data and a config. `Config`, a frozen dataclass, is what its settings are; `presets` are TOML
    texts by name."""

    Config: ClassVar[Any]
    presets: ClassVar[Mapping[str, str]] = {}
    config: Any  # the settings it was made from, with what only the data can tell filled in
    tokens: Tokens
    places: Positions  # every place there is: a learnable table has a row for each
    n_outputs: int
    groups: tuple[str, ...] = ("all",)
    headline: ClassVar[str]  # the metric that a summary shows first
    headline_lower_is_better: ClassVar[bool] = False  # an error rather than a score
    shown: ClassVar[tuple[str, ...]] = (
        "table/relation",
        "attention/relation",
    )  # measures in a summary's table

    @abstractmethod
    def __init__(self, config: Any) -> None:
        """A task from its settings."""

    @property
    def positions(self) -> Positions:
        """Where the tokens of a sample are, unless `Examples.positions` says it for each: at all
        places, in order. A task with a class token has `self.places.with_class_token()` here."""
        return self.places

    @property
    def n_tokens(self) -> int:
        """Tokens of a sample, those that may be absent included."""
        return len(self.positions.index)

    @abstractmethod
    def splits(self) -> dict[str, Examples]:
        """The data: `train`, `valid` and `test`, the same for every run with the same settings."""

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """The training batch of these rows; a task that masks or corrupts afresh each time does it
        here."""
        return examples.take(rows)

    @abstractmethod
    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """The mean loss (a scalar) of outputs (b q o)."""

    @abstractmethod
    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Scores of a whole split by name, the headline among them."""

    def learned(self, headline: float) -> bool | None:
        """Whether this value of the headline metric on the training set means that it is learned
        whole; None for a task whose training set never can be, because part of it is noise."""
        return None

    def truth(self) -> Truth | None:
        """The arrangement that a readable table should show; None where it is not known."""
        return None


def check_splits(task: Task, splits: Mapping[str, Examples]) -> None:
    """Refuse, before anything is trained, samples that no model could be right about: with no token
    present, an absent token read, a place that does not exist."""
    for split, examples in splits.items():
        examples.inputs(task.positions).validate(
            len(task.places.index), f"the {split} samples of the task"
        )
