"""The interface of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from placecell.analysis import Symmetries
from placecell.encodings.base import Positions
from placecell.errors import InputError
from placecell.model import Tokens, Transformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Examples:
    """Samples of one split, or a batch of them. The model sees `tokens` and is scored at the tokens `read`."""

    tokens: Tensor  # b n symbols, or b n f values
    read: Tensor  # b q
    targets: Tensor  # b q
    group: Tensor  # b: which group of the task's `groups` a sample belongs to

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: Tensor | slice) -> Examples:
        return Examples(self.tokens[rows], self.read[rows], self.targets[rows], self.group[rows])

    def to(self, device: torch.device) -> Examples:
        return Examples(*(part.to(device) for part in (self.tokens, self.read, self.targets, self.group)))


@dataclass(frozen=True)
class Truth:
    """What is known of the tokens' arrangement, for analyses to compare a learned table with."""

    relation: NDArray[np.float64]  # n n: 1 where two different tokens belong together
    labels: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # name -> n: row, column, module, network
    symmetries: Symmetries | None = None  # reorderings of the tokens that the task cannot tell apart
    partition: str | None = None  # the one of `labels` that parts the tokens into modules or networks
    spatial: bool = True  # whether the coordinates of the tokens are part of the truth


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run learned, as arrays; None for an encoding without a table."""

    table: NDArray[np.float64] | None  # n d
    untrained: NDArray[np.float64] | None  # n d: the table before training
    maps: NDArray[np.float64]  # layers n n: attention averaged over samples and heads


@dataclass(frozen=True)
class ItemScores:
    """A model on items used with people, people beside it."""

    groups: dict[str, dict[str, float]]  # condition (and "all") -> items, model, published, people
    notes: dict[str, Any]  # what else there is to say: keys that are wrong, agreement item by item


class Task(ABC):
    """An experiment: what the tokens are, where they are, how to draw data, the loss, the metrics, the truth."""

    config: Any  # the settings it was made from, with what only the data can tell filled in
    tokens: Tokens
    positions: Positions
    n_outputs: int
    groups: tuple[str, ...]
    headline: ClassVar[str]  # the metric that a summary shows first
    headline_lower_is_better: ClassVar[bool] = False  # an error rather than a score
    shown: ClassVar[tuple[str, ...]] = ("table/relation", "attention/relation")  # measures that a summary's table has

    @abstractmethod
    def __init__(self, config: Any) -> None:
        """A task from its settings."""

    @property
    def n_tokens(self) -> int:
        return len(self.positions.index)

    @abstractmethod
    def splits(self) -> dict[str, Examples]:
        """The data: `train`, `valid` and `test`, the same for every run with the same settings."""

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """The training batch of these rows; a task that masks or corrupts afresh each time does it here."""
        return examples.take(rows)

    @abstractmethod
    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """The mean loss (a scalar) of outputs (b q o)."""

    @abstractmethod
    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Scores of a whole split by name, the headline among them."""

    def learned(self, headline: float) -> bool | None:
        """Whether this value of the headline metric on the training set means that it is learned whole; None for a
        task whose training set never can be, because part of it is noise."""
        return None

    def score_items(self, model: Transformer, items: Path, human: Path | None = None) -> ItemScores:
        """The model on the items of a file that people have also worked on."""
        raise InputError(f"{items}: this task has no items used with people.")

    @abstractmethod
    def truth(self) -> Truth:
        """The arrangement that a readable table should show."""

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """What this task reads from a finished run beyond what is measured of every task's runs, by name."""
        return {}

    def baselines(self) -> dict[str, dict[str, float]]:
        """Other methods on the same data, and the same measures of other matrices: name -> measurements by name."""
        return {}

    def draw(self, partitions: Mapping[str, NDArray[np.int64]]) -> Figure | None:
        """The tokens where they are, coloured by each partition (title -> n); None if they cannot be drawn."""
        return None
