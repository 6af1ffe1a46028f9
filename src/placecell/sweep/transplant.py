"""The causal check: is it the learned table that generalises? Fresh models get tables of others, frozen."""

from __future__ import annotations

from dataclasses import replace

from placecell.config import EncodingConfig, RunConfig
from placecell.errors import InputError
from placecell.train.run import complete, make_task

FRESH = 1000  # added to a donor's seed for the receiver's weights, so that only the table is carried over


def donors(base: RunConfig, small: float, large: float, seeds: int) -> list[tuple[RunConfig, RunConfig]]:
    """For each seed, the run that learns its table from a small σ and the one that does from a large."""
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}.")
    if not small < large:
        raise InputError(f"the small σ must be below the large one: {small:g}, {large:g}.")

    def donor(sigma: float, seed: int) -> RunConfig:
        config = replace(base, encoding=EncodingConfig("learnable", sigma=sigma), seed=seed)
        return complete(config, make_task(config))

    return [(donor(small, seed), donor(large, seed)) for seed in range(seeds)]


def receivers(small: RunConfig, large: RunConfig) -> dict[str, RunConfig]:
    """The four arms: fresh weights, and a frozen table that is (a) learned at small σ, (b) that with its rows
    shuffled, (c) random with the same row norms, (d) learned at large σ."""

    def receiver(source: RunConfig, change: str) -> RunConfig:
        config = replace(
            source,
            encoding=EncodingConfig("random"),
            weights_seed=source.seed + FRESH,
            donor=source.name,
            donor_change=change,  # type: ignore[arg-type]
        )
        return complete(config, make_task(config))

    return {
        f"table learned at σ={small.encoding.sigma}": receiver(small, "kept"),
        "the same, rows shuffled": receiver(small, "shuffled"),
        "random, the same norms": receiver(small, "norms"),
        f"table learned at σ={large.encoding.sigma}": receiver(large, "kept"),
    }
