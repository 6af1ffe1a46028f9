"""Configuration: frozen dataclasses, TOML in and out, overrides, and the hash that names a run.

A key is known by its own name alone (`sigma`, `heads`, `lr`), whichever section it stands in; a
section that has a `name` is known by its own (`encoding` means `encoding.name`). A key of the task
that is called like another is known with its section (`data.width`, beside `width` of the model),
and every key may be given so (`model.width`, `encoding.name`). Standard library only, so that the
command line can answer --help at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

from placecell.config.keys import keys
from placecell.config.toml import read_toml as read_toml
from placecell.config.toml import write_toml
from placecell.config.values import (
    check_fields,
    coerce,
    hints_of,
    joined,
    separator_of,
)
from placecell.config.values import option as option  # for the Config of a task
from placecell.errors import InputError, unknown
from placecell.registry import TASKS


@dataclass(frozen=True)
class EncodingConfig:
    """The positional encoding: its name and its settings.

    What is not set takes the encoding's default; what it does not read is cleared. Every field is
    explained by the text beside it, which `placecell run --help` shows.
    """

    name: str = option("learnable", "positional encoding; `placecell list` shows all")
    sigma: float | None = option(
        None,
        "standard deviation of the initial table; left out: the encoding's own "
        "(0.1 for learnable, 1 for random)",
        at_least=0,
    )
    rho: float | None = option(
        None,
        "in place of sigma: the share of the input's variance that positions are to make; "
        "recorded as the σ that gives it",
        above=0,
        below=1,
    )
    gain: float | None = option(
        None,
        "initial value of a learnable factor on the whole table (learnable); left out: none",
        above=0,
    )
    axes: int | None = option(
        None,
        "coordinate axes; 1 reads the index of tokens that have more; left out: all",
        at_least=1,
    )
    base: float | None = option(None, "base of the sinusoidal and rotary frequencies", above=1)
    max_distance: int | None = option(
        None,
        "differences of position beyond this are clipped (relative)",
        at_least=1,
        at_most=65536,
    )
    features: int | None = option(
        None, "eigenvectors (laplacian) or steps (random-walk)", at_least=1, at_most=1000
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rho is not None and self.sigma is not None:
            raise InputError(
                f"sigma ({self.sigma:g}) and rho ({self.rho:g}) both set the table's scale; give "
                "one of them."
            )


@dataclass(frozen=True)
class ModelConfig:
    """The encoder: its size and its initial weights.

    Every field is explained by the text beside it, which `placecell run --help` shows.
    """

    width: int = option(64, "width d of the encoder", at_least=1, at_most=65536)
    depth: int = option(4, "layers", at_least=1, at_most=1000)
    heads: int = option(1, "attention heads; they share the width", at_least=1)
    mlp_ratio: float = option(
        4.0, "hidden width of the MLP as a multiple of the width", above=0, at_most=1000
    )
    norm: Literal["pre", "post"] = option("post", "layer norm before or after each block")
    activation: Literal["gelu", "relu"] = option("relu", "activation of the MLP")
    attention: Literal["full", "neighbours"] | None = option(
        None,
        "tokens attend to all, or to their neighbours in the graph of the places; left out: full",
    )
    token_sigma: float = option(
        0.25,
        "standard deviation of what embeds the tokens, symbols or values, at the start",
        above=0,
    )
    weight_scale: float | None = option(
        None, "factor on the initial weights of the layers; left out: 1", above=0
    )
    output_scale: float | None = option(
        None, "factor α on the outputs; large α with a small lr is lazy; left out: 1", above=0
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.attention == "full":  # the same model as without the setting, so the same hash
            object.__setattr__(self, "attention", None)
        if self.width % self.heads:
            raise InputError(
                f"the width must be divisible by the heads: width {self.width}, heads {self.heads}."
            )


@dataclass(frozen=True)
class TrainConfig:
    """The optimizer and how long it runs.

    Every field is explained by the text beside it, which `placecell run --help` shows.
    """

    optimizer: Literal["adam", "adamw", "muon", "sgd"] = option(
        "adam", "optimizer; sgd uses `momentum`, muon is adamw but for the matrices of the layers"
    )
    lr: float = option(1e-3, "learning rate", above=0)
    pe_lr: float | None = option(
        None, "learning rate of the positional encoding; left out: lr", at_least=0
    )
    steps: int = option(1000, "training steps", at_least=1)
    batch_size: int = option(128, "samples per step", at_least=1)
    warmup: int = option(0, "steps over which the learning rate rises from 0", at_least=0)
    schedule: Literal["constant", "cosine"] = option(
        "constant", "learning rate after the warm-up; cosine falls to 0"
    )
    clip: float | None = option(
        None, "largest norm of the gradient; left out: no clipping", above=0
    )
    momentum: float = option(0.9, "momentum of sgd", at_least=0, below=1)
    weight_decay: float = option(
        0.0, "weight decay of everything but the positional encoding", at_least=0
    )
    pe_weight_decay: float = option(0.0, "weight decay of the positional encoding", at_least=0)
    eval_every: int = option(100, "steps between evaluations", at_least=1)
    eval_train: int = option(3000, "training samples scored in an evaluation, at most", at_least=1)
    snapshots: Literal["none", "table", "weights"] = option(
        "table",
        "what is kept at steps 0, 1, 2, 4, … and the last: the encoding's table, all weights "
        "too, or nothing",
    )
    patience: int | None = option(
        None, "stop after this many evaluations without a lower loss; left out: never", at_least=1
    )
    patience_split: Literal["train", "valid"] = option(
        "train", "the split whose loss `patience` watches"
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's result.

    Where it runs (device, threads, folder) is not part of it.

    Parameters
    ----------
    task : str
        Name of the task.
    data
        The task's own `Config`.
    encoding, model, train : EncodingConfig, ModelConfig, TrainConfig
        The settings of these parts.
    seed : int
        Seed of the run; `pe_seed`, `weights_seed` and `data_seed` follow it unless they are given.
    donor, donor_change : str, optional
        A finished run whose table is taken over, and how it is changed.

    Examples
    --------
    >>> RunConfig.from_dict({"task": "nmar", "seed": 1}).seed_of("data")
    1
    """

    task: str
    data: Any  # the task's own Config
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    seed: int = option(0, "seed of the run; the three below follow it unless given")
    pe_seed: int | None = option(None, "seed of the positional encoding's initial table")
    weights_seed: int | None = option(None, "seed of all other initial weights")
    data_seed: int | None = option(None, "seed of the order of the training samples")
    donor: str | None = option(
        None, "name of a finished run in the same folder whose table is taken over"
    )
    donor_change: Literal["kept", "shuffled", "norms"] | None = option(
        None, "the donor's table as it is, with its rows shuffled, or random rows of the same norms"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if not is_dataclass(self.data) or isinstance(self.data, type):
            raise InputError(
                f"data must be the Config of {self.task}, not {self.data!r}; from_dict reads "
                f"plain values."
            )
        check_fields(self.data)  # for a task's Config that does not do it itself
        if self.donor_change is not None and self.donor is None:
            raise InputError("donor_change needs a donor.")

    def seed_of(self, stream: Literal["pe", "weights", "data"]) -> int:
        """Return the seed of one of the three streams of random numbers.

        Parameters
        ----------
        stream
            `pe`, `weights` or `data`.

        Returns
        -------
        int
            The stream's own seed if it is set, else the seed of the run.
        """
        own: int | None = getattr(self, f"{stream}_seed")
        return self.seed if own is None else own

    @classmethod
    def of(cls, config: RunConfig | Mapping[str, Any]) -> RunConfig:
        """Return a configuration that may be given as a dict.

        Parameters
        ----------
        config : RunConfig or mapping
            A configuration; or `task`, sections as `to_dict` returns them, and other keys by the
            names that `override` knows. What is left out has its default, not that of a preset.

        Returns
        -------
        RunConfig
            The configuration.

        Examples
        --------
        >>> RunConfig.of({"task": "nmar", "sigma": 0.5, "train": {"steps": 9}}).train.steps
        9
        """
        if isinstance(config, RunConfig):
            return config
        if not isinstance(config, Mapping):
            raise InputError(
                'expected a configuration, such as placecell.preset("latin_square"), or a dict '
                f"with `task` and settings, found {type(config).__name__}."
            )
        own = {f.name for f in fields(cls)}
        known = {key: value for key, value in config.items() if key in own and key != "encoding"}
        others = {key: value for key, value in config.items() if key not in known}
        if isinstance(others.get("encoding"), Mapping):  # a section; else the encoding's name
            known["encoding"] = others.pop("encoding")
        return cls.from_dict(known, "the dict").override(others, "the dict")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the configuration") -> Self:
        """Make a configuration of nested plain values.

        Parameters
        ----------
        values
            `task`, seeds and sections, as `to_dict` returns them. What is left out has its default.
        where
            Where the values come from, for error messages.

        Returns
        -------
        RunConfig
            The configuration. Unknown keys and wrong types are errors.
        """

        task = values.get("task")
        if not isinstance(task, str):
            raise InputError(f"{where}: `task` must name a task, found {task!r}.")
        return _from_dict(cls, values, where, {"data": TASKS.config_class(task)})

    def to_dict(self, *, join: bool = False) -> dict[str, Any]:
        """Nested plain values; what is None (not set, not read) is left out.

        Parameters
        ----------
        join
            Give a list as one text, as a flag does (`"10+20+30"`), instead of as a list.

        Returns
        -------
        dict
            What `from_dict` makes an equal configuration of.
        """
        return _plain(self, join)

    def to_toml(self) -> str:
        """The configuration as TOML that `from_toml` reads back unchanged."""
        return write_toml(self.to_dict())

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        """Read a configuration from a TOML file, such as a run's `config.toml`.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        RunConfig
            The configuration.
        """
        return cls.from_dict(read_toml(Path(path)), str(path))

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits of the content's sha256."""
        content = json.dumps(self.to_dict(join=True), sort_keys=True, allow_nan=False)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """The run's name: its task and its content hash."""
        return f"{self.task}-{self.hash}"

    def override(self, values: Mapping[str, Any], where: str = "override") -> Self:
        """This configuration with some keys set.

        Parameters
        ----------
        values
            New values by name: that of `keys`, or `section.key`. Text is read as the key's type.
        where
            Who gives them, for the sentence about one that cannot be used.

        Returns
        -------
        RunConfig
            A new configuration. Only the result must be valid, not each step towards it.

        Examples
        --------
        >>> preset("nmar").override({"sigma": 2, "model.depth": 3, "modules": [10, 20, 30]})
        """
        known = keys(self)
        dotted = {key.dotted: name for name, key in known.items()}
        changes: dict[str, dict[str, Any]] = {}
        names: dict[str, str] = {}  # of every key that is set: the name by which it was given
        for name, value in values.items():
            key = known.get(dotted.get(name, name))
            if key is None:
                near = known.keys() | (dotted.keys() if "." in name else set())
                raise unknown(f"key ({where})", name, near)
            if names.setdefault(key.dotted, name) != name:
                both = f"{names[key.dotted]} and {name}"
                raise InputError(f"{where}: {both} are one key; give one of them.")
            new = coerce(value, key.hint, f"{where}: {name}", separator=key.separator)
            changes.setdefault(key.section, {})[key.leaf] = new
        own = changes.pop("", {})  # each section is changed at once: only the result is judged
        new_sections = {name: replace(getattr(self, name), **c) for name, c in changes.items()}
        return replace(self, **cast(Any, own | new_sections))


def _from_dict(cls: Any, values: Mapping[str, Any], where: str, sections: Mapping[str, Any]) -> Any:
    hints = {**hints_of(cls), **sections}
    separators = {f.name: separator_of(f) for f in fields(cls)}
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key not in hints:
            raise unknown(f"key in {where}", key, hints)
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise InputError(f"{where}: `{key}` must be a section, found {value!r}.")
            given[key] = _from_dict(hints[key], value, f"{where} [{key}]", {})
        else:
            place = f"{where}: {key}"
            given[key] = coerce(value, hints[key], place, separator=separators[key])
    for name, cls_of in sections.items():
        given.setdefault(name, cls_of())
    return cls(**given)


def _plain(owner: Any, join: bool) -> dict[str, Any]:
    """The fields of a dataclass that are not None, as plain values."""
    values: dict[str, Any] = {}
    for f in fields(owner):
        value = getattr(owner, f.name)
        if is_dataclass(value):
            values[f.name] = _plain(value, join)
        elif isinstance(value, tuple):
            values[f.name] = joined(value, separator_of(f)) if join else list(value)
        elif value is not None:
            values[f.name] = value
    return values
