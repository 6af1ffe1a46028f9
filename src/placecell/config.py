"""Configuration: frozen dataclasses, TOML in and out, overrides by flag, and the content hash that names a run.

A key is known by its own name alone (`sigma`, `heads`, `lr`), whichever section it stands in; a section that
has a `name` is known by its own (`encoding` means `encoding.name`). Standard library only, so that the command
line can answer --help at once.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

from placecell.errors import InputError, unknown
from placecell.values import coerce, hold
from placecell.values import option as option  # for the Config of a task


@dataclass(frozen=True)
class EncodingConfig:
    """The positional encoding. What is not set takes the encoding's default; what it does not read is cleared."""

    name: str = option("learnable", "positional encoding; `placecell list` shows all")
    sigma: float | None = option(None, "standard deviation of the initial table", at_least=0)
    axes: int | None = option(
        None, "coordinate axes; 1 reads the index of tokens that have more; left out: all", at_least=1
    )
    base: float | None = option(None, "base of the sinusoidal and rotary frequencies", above=1)
    max_distance: int | None = option(
        None, "differences of position beyond this are clipped (relative)", at_least=1, at_most=65536
    )

    def __post_init__(self) -> None:
        hold(self)


@dataclass(frozen=True)
class ModelConfig:
    """The encoder."""

    width: int = option(64, "width d of the encoder", at_least=1, at_most=65536)
    depth: int = option(4, "layers", at_least=1, at_most=1000)
    heads: int = option(1, "attention heads; they share the width", at_least=1)
    mlp_ratio: float = option(4.0, "hidden width of the MLP as a multiple of the width", above=0, at_most=1000)
    norm: Literal["pre", "post"] = option("post", "layer norm before or after each block")
    activation: Literal["gelu", "relu"] = option("relu", "activation of the MLP")
    token_sigma: float = option(
        0.25, "standard deviation of what embeds the tokens, symbols or values, at the start", above=0
    )
    weight_scale: float | None = option(None, "factor on the initial weights of the layers; left out: 1", above=0)
    output_scale: float | None = option(
        None, "factor α on the outputs; large α with a small lr is lazy; left out: 1", above=0
    )

    def __post_init__(self) -> None:
        hold(self)
        if self.width % self.heads:
            raise InputError(f"the width must be divisible by the heads: width {self.width}, heads {self.heads}.")


@dataclass(frozen=True)
class TrainConfig:
    """The optimizer and how long it runs."""

    optimizer: Literal["adam", "adamw", "muon", "sgd"] = option(
        "adam", "optimizer; sgd uses `momentum`, muon is adamw but for the matrices of the layers"
    )
    lr: float = option(1e-3, "learning rate", above=0)
    pe_lr: float | None = option(None, "learning rate of the positional encoding; left out: lr", at_least=0)
    steps: int = option(1000, "training steps", at_least=1)
    batch_size: int = option(128, "samples a step", at_least=1)
    warmup: int = option(0, "steps over which the learning rate rises from 0", at_least=0)
    schedule: Literal["constant", "cosine"] = option("constant", "learning rate after the warm-up; cosine falls to 0")
    clip: float | None = option(None, "largest norm of the gradient; left out: no clipping", above=0)
    momentum: float = option(0.9, "momentum of sgd", at_least=0, below=1)
    weight_decay: float = option(0.0, "weight decay of everything but the positional encoding", at_least=0)
    pe_weight_decay: float = option(0.0, "weight decay of the positional encoding", at_least=0)
    eval_every: int = option(100, "steps between evaluations", at_least=1)
    eval_train: int = option(3000, "training samples scored in an evaluation, at most", at_least=1)
    snapshots: Literal["none", "table", "weights"] = option(
        "table", "what is kept at steps 0, 1, 2, 4, … and the last: the encoding's table, all weights too, or nothing"
    )
    patience: int | None = option(
        None, "stop after this many evaluations without a lower loss; left out: never", at_least=1
    )
    patience_split: Literal["train", "valid"] = option("train", "the split whose loss `patience` watches")

    def __post_init__(self) -> None:
        hold(self)


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's result. Where it runs (device, threads, folder) is not part of it."""

    task: str
    data: Any  # the task's own Config
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    seed: int = option(0, "seed of the run; the three below follow it unless given")
    pe_seed: int | None = option(None, "seed of the positional encoding's initial table")
    weights_seed: int | None = option(None, "seed of all other initial weights")
    data_seed: int | None = option(None, "seed of the order of the training samples")
    donor: str | None = option(None, "name of a finished run in the same folder whose table is taken over")
    donor_change: Literal["kept", "shuffled", "norms"] | None = option(
        None, "the donor's table as it is, with its rows shuffled, or random rows of the same norms"
    )

    def __post_init__(self) -> None:
        hold(self)
        if not is_dataclass(self.data) or isinstance(self.data, type):
            raise InputError(
                f"data must be the Config of {self.task}, not {self.data!r}; from_dict reads plain values."
            )
        hold(self.data)  # for a task's Config that does not do it itself
        if self.donor_change is not None and self.donor is None:
            raise InputError("donor_change needs a donor.")

    def seed_of(self, stream: Literal["pe", "weights", "data"]) -> int:
        """The seed of one of the three streams of random numbers."""
        own: int | None = getattr(self, f"{stream}_seed")
        return self.seed if own is None else own

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "the configuration") -> Self:
        """A configuration from nested plain values; unknown keys and wrong types are refused."""
        from placecell import tasks  # here, because a task's folder imports this module for its Config

        task = values.get("task")
        if not isinstance(task, str):
            raise InputError(f"{where}: `task` must name a task, found {task!r}.")
        return _from_dict(cls, values, where, {"data": tasks.config_class(task)})

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values; what is None (not set, not read) is left out."""
        return _without_none(asdict(self))

    def to_toml(self) -> str:
        """The configuration as TOML that `from_toml` reads back unchanged."""
        plain = self.to_dict()
        sections = {key: value for key, value in plain.items() if isinstance(value, dict)}
        lines = [f"{key} = {_toml(value)}" for key, value in plain.items() if key not in sections]
        for name, section in sections.items():
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        return cls.from_dict(read_toml(Path(path)), str(path))

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits of the content's sha256."""
        content = json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """The run's name: its task and its content hash."""
        return f"{self.task}-{self.hash}"

    def override(self, values: Mapping[str, Any], where: str = "command line") -> Self:
        """This configuration with keys set by their short names; text is read as the key's type."""
        known = keys(self)
        changes: dict[str, dict[str, Any]] = {}
        for key, value in values.items():
            if key not in known:
                raise unknown(f"key ({where})", key, known)
            new = coerce(value, known[key].type, f"{where}: {key}")
            changes.setdefault(known[key].section, {})[known[key].leaf] = new
        own = changes.pop("", {})  # each section is changed at once, so that only the result is judged
        sections = {name: replace(getattr(self, name), **change) for name, change in changes.items()}
        return replace(self, **cast(Any, own | sections))


@dataclass(frozen=True)
class Key:
    """One key of a configuration: where it stands, its type, its value now, and the sentence that explains it."""

    section: str
    leaf: str
    type: Any
    value: Any
    help: str


def keys(config: RunConfig) -> dict[str, Key]:
    """Every key of a configuration by its short name (a section's `name` by the section's)."""
    found: dict[str, Key] = {}
    for section in ("", "data", "encoding", "model", "train"):
        owner = getattr(config, section) if section else config
        hints = typing.get_type_hints(type(owner))
        for f in fields(owner):
            value = getattr(owner, f.name)
            if is_dataclass(value) or (not section and f.name == "task"):
                continue
            key = section if f.name == "name" else f.name
            if key in found:
                raise ValueError(f"two configuration keys are called {key!r}")
            found[key] = Key(section, f.name, hints[f.name], value, f.metadata.get("help", ""))
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or a sentence about why it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin a file with a byte order mark
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:  # not TOML or UTF-8, a number too long, nested too deep
        raise InputError(f"{path}: not valid TOML: {error}.") from None


def _from_dict(cls: Any, values: Mapping[str, Any], where: str, sections: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(cls) | dict(sections)
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key not in hints:
            raise unknown(f"key in {where}", key, hints)
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise InputError(f"{where}: `{key}` must be a section, found {value!r}.")
            given[key] = _from_dict(hints[key], value, f"{where} [{key}]", {})
        else:
            given[key] = coerce(value, hints[key], f"{where}: {key}")
    for name, cls_of in sections.items():
        given.setdefault(name, cls_of())
    return cls(**given)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_none(v) if isinstance(v, dict) else v for k, v in values.items() if v is not None}
