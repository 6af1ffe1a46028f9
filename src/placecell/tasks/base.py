"""The interface of a task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from placecell.analysis import Symmetries
from placecell.encodings.base import Positions
from placecell.errors import InputError
from placecell.model import Tokens, Transformer


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


@dataclass(frozen=True)
class ItemScores:
    """A model on items used with people, people beside it."""

    groups: dict[str, dict[str, float]]  # condition (and "all") -> items, model, published, people
    notes: dict[str, Any]  # what else there is to say: keys that are wrong, agreement item by item


class Task(ABC):
    """An experiment: what the tokens are, where they are, how to draw data, the loss, the metrics, the truth."""

    tokens: Tokens
    positions: Positions
    n_outputs: int
    groups: tuple[str, ...]
    headline: ClassVar[str]  # the metric that a summary shows first
    headline_up: ClassVar[bool]  # whether more of it is better

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

    def learned(self, headline: float) -> bool:
        """Whether this value of the headline metric on the training set means that it is learned whole."""
        return False

    def score_items(self, model: Transformer, items: Path, human: Path | None = None) -> ItemScores:
        """The model on the items of a file that people have also worked on."""
        raise InputError(f"{items}: this task has no items used with people.")

    @abstractmethod
    def truth(self) -> Truth:
        """The arrangement that a readable table should show."""
