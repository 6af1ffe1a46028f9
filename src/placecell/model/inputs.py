"""The inputs of a model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from placecell.encodings.positions import Positions
from placecell.errors import InputError


@dataclass(frozen=True, eq=False)
class Inputs:
    """Samples for a model: tokens, their positions, which are read and which are present.

    Parameters
    ----------
    tokens : Tensor
        Symbols (b n), or vectors of values (b n f).
    positions : Positions
        Positions of the n tokens, shared by all samples (n) or one set per sample (b n).
    read : Tensor, optional
        Tokens whose outputs are wanted (b q). None: all.
    present : Tensor, optional
        Boolean (b n), False where a sample has no such token, so that samples of different lengths
        fit in one batch. No token attends to an absent one, whatever its symbol and position.
        None: all are present.

    Examples
    --------
    >>> from placecell import Positions
    >>> tokens = torch.tensor([[1, 2, 3], [4, 5, 0]])
    >>> present = torch.tensor([[True, True, True], [True, True, False]])
    >>> len(Inputs(tokens, Positions.sequence(3), present=present))
    2
    """

    tokens: Tensor
    positions: Positions
    read: Tensor | None = None
    present: Tensor | None = None

    def __len__(self) -> int:
        """Number of samples b."""
        return len(self.tokens)

    def take(self, rows: Tensor | slice) -> Inputs:
        """Return some of the samples.

        Parameters
        ----------
        rows : Tensor or slice
            Which samples.

        Returns
        -------
        Inputs
            These samples.
        """
        return Inputs(
            self.tokens[rows],
            self.positions.samples(rows),
            None if self.read is None else self.read[rows],
            None if self.present is None else self.present[rows],
        )

    def check_shapes(self) -> None:
        """Raise `InputError` if the tensors do not fit together.

        Only shapes are compared, so the check costs nothing and compiles.
        """
        b, n = self.tokens.shape[:2]
        if self.positions.index.shape[-1] != n:
            raise InputError(
                f"each sample has {n} tokens, but there are positions for "
                f"{self.positions.index.shape[-1]}."
            )
        if self.read is not None and (self.read.ndim != 2 or len(self.read) != b):
            raise InputError(
                f"read must list tokens for each of the {b} samples (b q), not "
                f"{tuple(self.read.shape)}."
            )
        if self.present is not None and self.present.shape != (b, n):
            raise InputError(
                f"present must say of each token whether it is there: ({b}, {n}), not "
                f"{tuple(self.present.shape)}."
            )

    def validate(self, n_places: int, name: str = "the samples") -> None:
        """Raise `InputError` if a sample cannot be used, naming the first such sample.

        A sample cannot be used if no token is present, if it reads a token that is absent or does
        not exist, or if a token is at a place that does not exist.

        Parameters
        ----------
        n_places : int
            Number of places: the rows of a learnable table.
        name : str
            What the error message calls these samples.
        """
        self.check_shapes()
        present = self.present
        if present is not None:
            _refuse(~present.any(1), name, "no token is present.")
        if self.read is not None:
            outside = (self.read < 0) | (self.read >= self.tokens.shape[1])
            _refuse(
                outside.any(1),
                name,
                f"a token is read that is not one of its {self.tokens.shape[1]}.",
            )
            if present is not None:
                _refuse(
                    (~present.gather(1, self.read)).any(1), name, "a token is read that is absent."
                )
        index = self.positions.index
        counted = torch.ones_like(index, dtype=torch.bool)
        if self.positions.placed is not None:
            counted = counted & self.positions.placed
        if present is not None:
            counted = counted & present
        wrong = counted & ((index < 0) | (index >= n_places))
        if wrong.any():
            place = int(index.expand_as(wrong)[wrong][0])
            _refuse(
                wrong.reshape(-1, wrong.shape[-1]).any(1),
                name,
                f"a token is at place {place}; {_places(n_places)}.",
            )


def _places(n: int) -> str:
    return f"places are 0 to {n - 1}"


def _refuse(wrong: Tensor, name: str, what: str) -> None:
    if wrong.any():
        raise InputError(f"{name}, sample {int(wrong.nonzero()[0, 0]) + 1}: {what}")
