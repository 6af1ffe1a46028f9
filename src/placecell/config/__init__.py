"""Configuration: what decides a run's result, where it starts from, and what it is called."""

from placecell.config.keys import Key, keys
from placecell.config.labels import flatten, label, varying
from placecell.config.run import (
    EncodingConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    option,
    read_toml,
)

__all__ = [
    "EncodingConfig",
    "Key",
    "ModelConfig",
    "RunConfig",
    "TrainConfig",
    "flatten",
    "keys",
    "label",
    "option",
    "read_toml",
    "varying",
]
