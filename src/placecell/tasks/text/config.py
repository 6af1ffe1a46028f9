"""The settings of the text task."""

from __future__ import annotations

from dataclasses import dataclass

from placecell.config.values import check_fields, option

MOST = 10**8  # characters or windows


@dataclass(frozen=True)
class Config:
    """Which text, how long a window is, and how much of it is masked."""

    text: str | None = option(None, "a text file (UTF-8) of one's own; left out: a generated text")
    characters: int = option(
        400_000,
        "characters of the generated training text; a tenth of it each to validate and test",
        at_least=1000,
        at_most=MOST,
    )
    window: int = option(24, "places of a window", at_least=4, at_most=1000)
    mask: float = option(0.25, "share of the characters masked in a window", above=0, below=1)
    n_train: int = option(20_000, "training windows, at most", at_least=2, at_most=MOST)
    n_valid: int = option(1000, "validation windows, at most", at_least=1, at_most=MOST)
    n_test: int = option(2000, "test windows, at most", at_least=1, at_most=MOST)
    split_seed: int = option(
        0, "seed of the generated text, the order of the places, and the masks of held-out windows"
    )
    contents: str | None = option(
        None, "digest of one's own text, filled in as it is read; another is refused"
    )

    def __post_init__(self) -> None:
        check_fields(self)
