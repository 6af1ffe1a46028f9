"""A task of your own in one file: coloured beads on a ring whose order nobody gives away."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from placecell import Positions, register_task
from placecell.config import option
from placecell.errors import InputError
from placecell.model import Tokens
from placecell.seeds import numpy_stream
from placecell.tasks.base import Examples, Truth
from placecell.tasks.classification import Classification

QUICK = """
about = "small rings: about a minute on two cores"

[model]
width = 32
depth = 2

[train]
lr = 2e-3
batch_size = 64
steps = 4000
warmup = 100
schedule = "cosine"
eval_every = 500

[sweep]
seeds = 2

[[sweep.grid]]
encoding = "learnable"
sigma = [0.1, 0.5, 2.0]
"""


@dataclass(frozen=True)
class RingConfig:
    """Which rings there are to learn from and to be tested on."""

    beads: int = option(8, "beads on the ring", at_least=3, at_most=9)
    colours: int = option(4, "colours of beads", at_least=3, at_most=4)
    n_train: int = option(3000, "training rings", at_least=2)
    n_valid: int = option(300, "validation rings", at_least=2)
    n_test: int = option(1000, "test rings; none equals a training ring", at_least=2)
    split_seed: int = option(0, "seed of the beads' order and of the draw of rings")


@register_task("ring")
class Ring(Classification):
    """Do any two neighbouring beads have the same colour? A class token says it.

    A sample is [class token, bead, bead, …]. The class token has no place. The beads come in one
    shuffled order, the same in all samples; which are neighbours is for the encoding to learn.
    """

    Config = RingConfig
    presets: ClassVar[dict[str, str]] = {"quick": QUICK}
    n_outputs = 2

    def __init__(self, config: RingConfig) -> None:
        self.config = config
        self.tokens = Tokens("symbol", config.colours + 1)  # 0 is the class token
        self.places = Positions.sequence(config.beads)  # of the beads: a table has a row for each
        order = numpy_stream(config.split_seed, "order").permutation(config.beads)
        self.left, self.right = order, np.roll(order, -1)  # the two beads of each link

    @property
    def positions(self) -> Positions:
        """The class token, then every bead at its place."""
        return self.places.with_class_token()

    def splits(self) -> dict[str, Examples]:
        """Different rings in each split, half of them with neighbours alike."""
        c, rng = self.config, numpy_stream(self.config.split_seed, "rings")
        every = np.arange(c.colours**c.beads)[:, None] // c.colours ** np.arange(c.beads)
        every %= c.colours  # rings beads: each ring that there is
        alike = (every[:, self.left] == every[:, self.right]).any(1)
        kinds = [rng.permutation(np.flatnonzero(alike == label)) for label in (False, True)]
        drawn = np.array(list(zip(*kinds, strict=False))).flatten()  # one of each kind in turn
        sizes = {"train": c.n_train, "valid": c.n_valid, "test": c.n_test}
        if sum(sizes.values()) > len(drawn):
            raise InputError(f"{c.beads} beads in {c.colours} colours make {len(drawn)} rings.")
        splits = {}
        for split, n in sizes.items():
            rows, drawn = drawn[:n], drawn[n:]
            tokens = np.pad(every[rows] + 1, ((0, 0), (1, 0)))  # the class token first
            first = torch.zeros(n, 1, dtype=torch.int64)  # it is read
            targets = torch.from_numpy(alike[rows].astype(np.int64))[:, None]
            splits[split] = Examples(torch.from_numpy(tokens), first, targets, first[:, 0])
        return splits

    def truth(self) -> Truth:
        """Two places belong together when their beads are neighbours on the ring."""
        relation = np.zeros((self.config.beads, self.config.beads))
        relation[self.left, self.right] = 1
        together = "are neighbours on the ring"
        return Truth(np.maximum(relation, relation.T), spatial=False, together=together)
