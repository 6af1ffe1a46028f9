"""What tells the runs of a sweep apart, in keys and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placecell.config.keys import keys as keys_of
from placecell.config.run import RunConfig

SEEDS = ("seed", "pe_seed", "weights_seed", "data_seed")


def varying(configs: Sequence[RunConfig]) -> list[str]:
    """The keys of which runs have different values, seeds apart.

    Parameters
    ----------
    configs
        The configurations of the runs.

    Returns
    -------
    list of str
        As `section.key`, in the order of the configuration. A setting of the encoding that is
        absent was cleared because that encoding does not read it: no difference.
    """
    flat = [flatten(config) for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings)

    def differs(name: str) -> bool:
        readers = [s for s in flat if name in s or not name.startswith("encoding.")]
        return len({repr(settings.get(name)) for settings in readers}) > 1

    return [name for name in names if name not in SEEDS and differs(name)]


def flatten(config: RunConfig) -> dict[str, Any]:
    """Return a configuration as one level of keys.

    Parameters
    ----------
    config
        The configuration.

    Returns
    -------
    dict
        `section.key` -> value; a list as the one text that a flag gives.
    """
    flat: dict[str, Any] = {}
    for key, value in config.to_dict(join=True).items():
        section = isinstance(value, dict)
        flat |= {f"{key}.{leaf}": v for leaf, v in value.items()} if section else {key: value}
    return flat


def label(config: RunConfig, keys: Sequence[str]) -> str:
    """What tells a run from the others of its sweep, in words.

    Parameters
    ----------
    config
        The run's configuration.
    keys
        What differs within the sweep, as `varying` gives it.

    Returns
    -------
    str
        Such as `learnable σ=0.1`, `sinusoidal 2D` or `learnable width=32 data.width=3`.
    """
    flat, named = flatten(config), keys_of(config)
    words = [config.encoding.name]
    for key in keys:
        value = flat.get(key)
        if key == "encoding.name" or value is None:  # None: a default, or not read by this encoding
            continue
        name = key if key in named else key.split(".")[-1]
        special = {"encoding.sigma": f"σ={value}", "encoding.axes": f"{value}D"}
        words.append(special.get(key, f"{name}={value}"))
    return " ".join(words)
