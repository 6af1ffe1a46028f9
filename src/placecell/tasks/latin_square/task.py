"""The Latin Square Task on the library's interface: 16 tokens, the answer read at the probe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from placecell.analysis import grid_symmetries
from placecell.encodings.positions import Positions
from placecell.model import Tokens, Transformer
from placecell.seeds import numpy_stream
from placecell.tasks.base import Examples, Truth, counted
from placecell.tasks.classification import Classification
from placecell.tasks.latin_square.config import Config
from placecell.tasks.latin_square.generate import CONDITIONS, Puzzles, split
from placecell.tasks.latin_square.items import load_human, load_items
from placecell.tasks.latin_square.people import compare
from placecell.tasks.optional import ItemScores

ORDER = 4


class LatinSquare(Classification):
    """Which symbol goes where the probe is, if no row and no column may have a symbol twice?

    Cells are tokens: blank, one of four symbols, or the probe.
    """

    shown = (
        "table/relation",
        "table/procrustes",
        "table/probe_row",
        "attention/relation",
        "attention/reference",
    )
    groups = CONDITIONS
    n_outputs = ORDER

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tokens = Tokens("symbol", ORDER + 2)
        self.places = Positions.grid(ORDER, ORDER)

    def splits(self) -> dict[str, Examples]:
        """Return the puzzles of each split; a share of the givens of test puzzles may be wrong."""
        c = self.config
        sizes = {"train": c.n_train, "valid": c.n_valid, "test": c.n_test}
        puzzles = split(
            sizes,
            numpy_stream(c.split_seed, "puzzles"),
            min_distance=c.min_distance,
            conditions=c.conditions,
            givens=(c.min_givens, c.max_givens),
        )
        by_split = {name: examples(drawn) for name, drawn in puzzles.items()}
        by_split["test"] = corrupt(by_split["test"], c.noise, numpy_stream(c.split_seed, "noise"))
        return by_split

    def score_items(self, model: Transformer, items: Path, human: Path | None = None) -> ItemScores:
        """Score a model on items that people have worked on too."""
        loaded, people = load_items(items), None if human is None else load_human(human)
        device = next(model.parameters()).device
        given = examples(loaded.puzzles).to(device)
        with torch.no_grad():
            outputs = model(given.inputs(self.positions.to(device))).outputs
        return compare(outputs[:, 0].softmax(-1).cpu().numpy(), loaded, people)

    def names(self) -> list[str]:
        """Return row and column of each cell, counted from 1."""
        rows, columns = np.divmod(np.arange(ORDER**2), ORDER)
        return [f"row {r + 1}, column {c + 1}" for r, c in zip(rows, columns, strict=True)]

    def truth(self) -> Truth:
        """Return the truth: two cells belong together if they share a row or a column."""
        row, column = np.divmod(np.arange(ORDER**2), ORDER)
        together = (row[:, None] == row) | (column[:, None] == column)
        np.fill_diagonal(together, False)
        return Truth(
            together.astype(float),
            {"row": row, "column": column},
            grid_symmetries(ORDER, ORDER),
            together="share a row or a column",
            value_names={"row": counted(row), "column": counted(column)},
        )


TASK = LatinSquare


def examples(puzzles: Puzzles) -> Examples:
    """Turn puzzles into tensors.

    Parameters
    ----------
    puzzles : Puzzles
        n puzzles.

    Returns
    -------
    Examples
        Tokens (n 16), read at the probe.
    """
    return Examples(
        tokens=torch.from_numpy(puzzles.cells().astype(np.int64)),
        read=torch.from_numpy(puzzles.probe.astype(np.int64))[:, None],
        targets=torch.from_numpy(puzzles.answer.astype(np.int64) - 1)[:, None],
        group=torch.from_numpy(puzzles.condition.astype(np.int64)),
    )


def corrupt(examples: Examples, share: float, rng: np.random.Generator) -> Examples:
    """Replace a share of the givens by another symbol; the answers stay.

    Parameters
    ----------
    examples : Examples
        Puzzles.
    share : float
        The share, from 0 to 1.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Examples
    """
    cells = examples.tokens.numpy()
    hit = (cells >= 1) & (cells <= ORDER) & (rng.random(cells.shape) < share)
    other = (cells - 1 + rng.integers(1, ORDER, cells.shape)) % ORDER + 1
    return Examples(
        torch.from_numpy(np.where(hit, other, cells)),
        examples.read,
        examples.targets,
        examples.group,
    )
