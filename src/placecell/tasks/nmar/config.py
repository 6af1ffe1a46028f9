"""The settings of the simulated network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placecell.config.values import check_fields, option
from placecell.errors import InputError

MOST = 10**8  # samples: of five nodes they fill 4 GB


@dataclass(frozen=True)
class Config:
    """Which network is simulated, for how long, and how much of a sample is masked."""

    modules: Sequence[int | str] = option(
        ("5x12",),
        "the modules: 5x12 (five of twelve nodes), or sizes joined by +, such as 10+20+30",
        separator="+",
    )
    radius: float = option(1.3, "spectral radius of each module's block of weights", at_least=0)
    between: float = option(
        0.3, "mean size of a weight between modules, of either sign, beside that within", at_least=0
    )
    density: float = option(
        0.1, "share of the weights between modules that are there", at_least=0, at_most=1
    )
    noise: float = option(0.5, "standard deviation of the noise", at_least=0)
    length: int = option(
        20, "time points of a series; the next one starts anew", at_least=1, at_most=MOST
    )
    mask: float = option(0.5, "share of the nodes masked in a sample", above=0, below=1)
    n_train: int = option(8000, "training samples (time points)", at_least=2, at_most=MOST)
    n_valid: int = option(1000, "validation samples", at_least=2, at_most=MOST)
    n_test: int = option(2000, "test samples", at_least=2, at_most=MOST)
    split_seed: int = option(
        0, "seed of the network, its time series and the masks of held-out samples"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.noise == 0:
            raise InputError(
                "noise must be above 0: without it a network settles and there is nothing to "
                "predict."
            )
        sizes(self.modules)


MOST_NODES = 5000  # their weights fill 200 MB


def sizes(modules: Sequence[int | str]) -> tuple[int, ...]:
    """The size of every module.

    Parameters
    ----------
    modules
        The setting: sizes (`10`), and how many of one size (`"5x12"`: five of twelve nodes).

    Returns
    -------
    tuple of int
        At least two sizes of at least two nodes, at most `MOST_NODES` in all.
    """
    text = "+".join(map(str, modules))
    nodes: list[int] = []
    try:
        for part in modules:
            count, times, size = str(part).rpartition("x")
            nodes += [int(size)] * (min(int(count), MOST_NODES) if times else 1)
    except ValueError:
        raise InputError(f"modules must be like 5x12 or 10+20+30, not {text!r}.") from None
    if len(nodes) < 2 or min(nodes) < 2:
        raise InputError(f"modules must be at least two, of at least two nodes each, not {text!r}.")
    if sum(nodes) > MOST_NODES:
        raise InputError(f"modules must have at most {MOST_NODES} nodes in all, not {text!r}.")
    return tuple(nodes)
