"""From axes to runs: every combination of values once, in an order that pairs seeds first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.tasks.base import Task
from placecell.train.run import complete, make_task

Axes = Mapping[str, Any]  # key -> a value or a list of values


def grid(base: RunConfig, grids: Sequence[Axes], axes: Axes, seeds: int) -> list[RunConfig]:
    """The runs of a sweep: each of `grids` with `axes` laid over it, under the seeds 0 … seeds−1.

    Settings that an encoding does not read are cleared, and what is then equal is run once. All runs of a
    seed stand together, so that a sweep stopped early has whole paired sets.
    """
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}.")
    found: dict[str, RunConfig] = {}
    tasks: dict[Any, Task] = {}  # data -> its task, which may have read files
    for seed in range(seeds):
        for one in grids or [{}]:
            for values in _product({**one, **axes}):
                config = base.override({"seed": seed} | values, "sweep")
                if config.data not in tasks:
                    tasks[config.data] = make_task(config)
                config = complete(config, tasks[config.data])
                found.setdefault(config.name, config)
    return list(found.values())


def _product(axes: Axes) -> Iterable[dict[str, Any]]:
    lists = [value if isinstance(value, list) else [value] for value in axes.values()]
    return (dict(zip(axes, values, strict=True)) for values in itertools.product(*lists))


def varying(configs: Sequence[RunConfig]) -> list[str]:
    """The keys (section.key) of which runs have different values, seeds apart, in the order of the configuration.

    A setting of the encoding that is absent was cleared because that encoding does not read it: no difference.
    """
    flat = [flatten(config) for config in configs]
    names = dict.fromkeys(name for one in flat for name in one)

    def differs(name: str) -> bool:
        told = [one for one in flat if name in one or not name.startswith("encoding.")]
        return len({repr(one.get(name)) for one in told}) > 1

    return [name for name in names if name not in SEEDS and differs(name)]


SEEDS = ("seed", "pe_seed", "weights_seed", "data_seed")


def flatten(config: RunConfig) -> dict[str, Any]:
    """A configuration as one level of `section.key`."""
    flat: dict[str, Any] = {}
    for key, value in config.to_dict().items():
        flat |= {f"{key}.{leaf}": v for leaf, v in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def label(config: RunConfig, keys: Sequence[str]) -> str:
    """What tells a run from the others of its sweep, in words: `learnable σ=0.1`, `sinusoidal 2D`."""
    flat = flatten(config)
    words = [config.encoding.name]
    for key in keys:
        value = flat.get(key)
        if key == "encoding.name" or value is None:  # None is a default, or what this encoding does not read
            continue
        name = key.split(".")[-1]
        words.append({"sigma": f"σ={value}", "axes": f"{value}D"}.get(name, f"{name}={value}"))
    return " ".join(words)
