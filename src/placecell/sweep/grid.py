"""From axes to runs: every combination of values once, in an order that pairs seeds first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.tasks.base import Task
from placecell.train.run import complete, make_task
from placecell.train.share import no_sigma, takes_sigma

Axes = Mapping[str, Any]  # key -> a value or a list of values


def grid(base: RunConfig, grids: Sequence[Axes], axes: Axes, seeds: int) -> list[RunConfig]:
    """Return the runs of a sweep.

    Settings that an encoding does not read are cleared, and configurations that are then equal are
    run once. All runs of a seed stand together, so that a sweep stopped early has complete paired
    sets.

    Parameters
    ----------
    base : RunConfig
        The settings that are the same for all.
    grids : sequence of mapping
        Key -> a value or a list of values. Each grid gives every combination of its values.
    axes : mapping
        Values that replace those of every grid.
    seeds : int
        Number of seeds; they are 0 … seeds−1.

    Returns
    -------
    list of RunConfig
        The runs.

    Examples
    --------
    >>> base = placecell.preset("latin_square")  # doctest: +SKIP
    >>> len(grid(base, [], {"sigma": [0.1, 2.0]}, seeds=3))  # doctest: +SKIP
    6
    """
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}.")
    by_name: dict[str, RunConfig] = {}
    shares: list[str] = []  # encodings that are to take a share ρ
    tasks: dict[Any, Task] = {}  # data -> its task, which may have read files
    for seed in range(seeds):
        for one in grids or [{}]:
            # a share given for all replaces a grid's σ: both set the scale of the table
            kept = {k: v for k, v in one.items() if k != "sigma" or "rho" not in axes}
            for values in _product({**kept, **axes}):
                config = base.override({"seed": seed} | values, "sweep")
                if config.encoding.rho is not None:
                    shares.append(config.encoding.name)
                    if not takes_sigma(config.encoding.name):  # a share is for the others
                        config = replace(config, encoding=replace(config.encoding, rho=None))
                if config.data not in tasks:
                    tasks[config.data] = make_task(config)
                config = complete(config, tasks[config.data])
                by_name.setdefault(config.name, config)
    if shares and not any(map(takes_sigma, shares)):
        raise no_sigma(list(dict.fromkeys(shares)))
    return list(by_name.values())


def _product(axes: Axes) -> Iterable[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in axes.values()]
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*lists))
