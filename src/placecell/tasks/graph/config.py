"""The settings of the graph task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from placecell.config.values import check_fields, option
from placecell.errors import InputError

MOST = 10**8  # samples
SIMULATED = {"n_train": 8000, "n_valid": 1000, "n_test": 2000}  # samples, unless others are asked
OWN = ("adjacency", "values", "names", "contents")


@dataclass(frozen=True)
class Config:
    """Which graph, what happens on it, and how much of a sample is masked."""

    graph: Literal["geometric", "blocks", "ring", "torus", "connectome", "files"] = option(
        "geometric",
        "a random geometric graph, a stochastic block model, a ring, a torus, the structural "
        "connectome of `placecell fetch hcp-schaefer100` with its BOLD, or `files` for one's own",
    )
    nodes: int = option(60, "nodes of a random graph", at_least=6, at_most=5000)
    degree: float = option(
        8.0, "mean number of neighbours (geometric), not counting the border", above=1
    )
    blocks: int = option(5, "blocks of equal size (blocks)", at_least=2)
    inside: float = option(0.5, "share of the edges within a block", above=0, at_most=1)
    between: float = option(0.03, "share of the edges between blocks", above=0, at_most=1)
    density: float = option(
        0.1,
        "share of all pairs of nodes kept as edges, the strongest (connectome)",
        above=0,
        at_most=1,
    )
    dynamics: Literal["nonlinear", "diffusion"] = option(
        "nonlinear", "x' = tanh(slope · mean over neighbours) + noise, or the mean itself, leaking"
    )
    slope: float = option(2.0, "slope of the nonlinear map; above 1 regions hold one sign", above=0)
    leak: float = option(0.1, "share that diffusion loses in a step", above=0, below=1)
    noise: float = option(0.4, "standard deviation of the noise", above=0)
    length: int = option(20, "time points of a series; the next one starts anew", at_least=1)
    mask: float = option(0.5, "share of the nodes masked in a sample", above=0, below=1)
    n_train: int | None = option(
        None,
        "training samples (time points); left out: 8000, of `values` all of the first 70 %",
        at_least=3,
        at_most=MOST,
    )
    n_valid: int | None = option(
        None,
        "validation samples; left out: 1000, of `values` the 15 % that follow",
        at_least=2,
        at_most=MOST,
    )
    n_test: int | None = option(
        None,
        "test samples; left out: 2000, of `values` the last 15 %",
        at_least=2,
        at_most=MOST,
    )
    split_seed: int = option(
        0, "seed of the graph, the order of its nodes, its time series and held-out masks"
    )
    adjacency: str | None = option(
        None,
        "one's own graph: a square table of weights (.npy, .npz, .csv, .tsv, .txt); names of nodes "
        "may stand above its columns or before its rows",
    )
    values: str | None = option(
        None,
        "values on one's own graph, a row a sample, names of nodes or 0, 1, 2, … may stand above; "
        "left out: `dynamics` on it",
    )
    names: str | None = option(None, "text file with a name for each node, one a line")
    contents: str | None = option(
        None, "digest of one's own files, filled in as they are read; others are refused"
    )

    @property
    def simulates(self) -> bool:
        """Whether the values come from `dynamics`."""
        return self.graph != "connectome" and self.values is None

    @property
    def sizes(self) -> dict[str, int]:
        """Samples that are asked for, by split.

        Runs whose values are not simulated once recorded the sizes of simulated ones, though they
        did not heed them; those ask for nothing.
        """
        asked = {key: getattr(self, key) for key in SIMULATED}
        if self.simulates:
            asked = {key: SIMULATED[key] if n is None else n for key, n in asked.items()}
        elif asked == SIMULATED:
            return {}
        return {key.removeprefix("n_"): n for key, n in asked.items() if n is not None}

    def __post_init__(self) -> None:
        check_fields(self)
        if self.graph == "files" and self.adjacency is None:
            raise InputError("graph `files` needs `adjacency`, a square table of weights.")
        own = [key for key in OWN if getattr(self, key) is not None]
        if self.graph != "files" and own:
            raise InputError(f"{own[0]} is for one's own graph; set `graph` to files.")
        asked = [key for key in SIMULATED if getattr(self, key) is not None]
        if self.graph == "connectome" and asked and self.sizes:
            raise InputError(
                f"{asked[0]} is for simulated values and one's own; the samples of the connectome "
                "are the volumes of its BOLD."
            )
        if self.graph == "blocks" and self.nodes < 2 * self.blocks:
            raise InputError(
                f"{self.blocks} blocks of two nodes or more need {2 * self.blocks} nodes, found "
                f"{self.nodes}."
            )
