"""Configuration: one name a key, TOML there and back, what is refused, and a hash that names the
content."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import tomllib
import typing
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placecell import encodings, tasks
from placecell.config import (
    EncodingConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    flatten,
    keys,
    label,
    option,
    read_toml,
    varying,
)
from placecell.config.presets import base_config
from placecell.config.toml import write_toml
from placecell.config.values import coerce
from placecell.errors import InputError
from placecell.model import resolve
from placecell.sweep.grid import grid
from placecell.tasks.latin_square.generate import CONDITIONS

TASK = "latin_square"
BASE = RunConfig.from_dict(
    {"task": TASK, "donor": "latin_square-0123456789ab"}
)  # a donor, for donor_change needs one


def choices(key: str) -> list[str]:
    """What the Literal of a key allows."""
    hint = keys(BASE)[key].type
    inner = [
        arg for arg in (hint, *typing.get_args(hint)) if typing.get_origin(arg) is typing.Literal
    ]
    return list(typing.get_args(inner[0]))


positive = st.floats(1e-12, 1e12)
not_negative = st.floats(0, 1e12)
count = st.integers(1, 10**6)
seed = st.integers(-(2**70), 2**70)
OVERRIDES = {
    "encoding": st.sampled_from(sorted(encodings.available())),
    "sigma": st.none() | not_negative,
    "rho": st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    "axes": st.none() | count,
    "base": st.none() | st.floats(1, 1e12, exclude_min=True),
    "max_distance": st.none() | st.integers(1, 65536),
    "features": st.none() | st.integers(1, 1000),
    "width": st.integers(1, 100).map(lambda w: 4 * w),
    "depth": st.integers(1, 1000),
    "heads": st.sampled_from([1, 2, 4]),
    "mlp_ratio": st.floats(1e-12, 1000),
    "norm": st.sampled_from(choices("norm")),
    "activation": st.sampled_from(choices("activation")),
    "attention": st.none() | st.just("neighbours"),  # "full" is what None means
    "token_sigma": positive,
    "optimizer": st.sampled_from(choices("optimizer")),
    "lr": positive,
    "pe_lr": st.none() | not_negative,
    "steps": count.map(lambda n: n + 50),
    "batch_size": count,
    "warmup": st.integers(0, 50),
    "schedule": st.sampled_from(choices("schedule")),
    "clip": st.none() | positive,
    "momentum": st.floats(0, 0.999),
    "weight_decay": not_negative,
    "pe_weight_decay": not_negative,
    "eval_every": count,
    "patience": st.none() | count,
    "patience_split": st.sampled_from(choices("patience_split")),
    "snapshots": st.sampled_from(choices("snapshots")),
    "seed": seed,
    "pe_seed": st.none() | seed,
    "weights_seed": st.none() | seed,
    "data_seed": st.none() | seed,
    "donor": st.sampled_from(["latin_square-ba9876543210", "another"]),
    "donor_change": st.sampled_from(choices("donor_change")),
    "conditions": st.sampled_from(["1v1s", "1v1s+2v1s", "3v2s"]),
    "n_train": count,
    "n_valid": count,
    "n_test": count,
    "split_seed": seed,
    "min_distance": st.floats(0, 1),
    "noise": st.floats(0, 1),
}
GUESSES = {bool: st.booleans(), int: count, float: st.floats(0.125, 1)}
for name, key in keys(BASE).items():  # a new key is drawn by its type until it needs more than that
    kinds = [kind for kind in (key.type, *typing.get_args(key.type)) if kind in GUESSES]
    if name not in OVERRIDES and kinds:
        OVERRIDES[name] = GUESSES[kinds[0]]
overrides = st.fixed_dictionaries({}, optional=OVERRIDES).filter(
    lambda values: values.get("sigma") is None or values.get("rho") is None
)


def read_back(config: RunConfig) -> RunConfig:
    return RunConfig.from_dict(tomllib.loads(config.to_toml()))


@pytest.mark.parametrize("task", tasks.available())
def test_every_key_has_a_name_of_its_own_and_help(task: str) -> None:
    config = RunConfig.from_dict({"task": task})
    owners = [config, config.data, config.encoding, config.model, config.train]
    leaves = (
        sum(len(dataclasses.fields(owner)) for owner in owners) - 5
    )  # task and the four sections
    assert len(keys(config)) == leaves
    assert all(key.help for key in keys(config).values())


@dataclasses.dataclass(frozen=True)
class Twins:
    """Settings of a task that are called like keys of other sections, and one list of each kind."""

    width: int = option(3, "of a picture", at_least=1)
    seed: int = option(5, "of the data")
    encoding: str = option("utf-8", "of a file")
    colour: str = option("red", "a key of its own")
    shares: tuple[float, ...] = (0.5, 1.0)
    flags: Sequence[bool] = option((True,), "a list of switches", separator=";")
    sizes: Sequence[int] | None = option(None, "a list that may be left out", at_least=2)


TWINS = replace(BASE, data=Twins())


def test_a_key_of_the_task_may_be_called_like_another() -> None:
    known = keys(TWINS)
    assert [known[name].dotted for name in ("width", "data.width", "colour")] == [
        "model.width",
        "data.width",
        "data.colour",
    ]
    assert {"seed", "data.seed", "encoding", "data.encoding"} <= known.keys()
    assert not {"model.width", "data.colour", "encoding.name"} & known.keys()  # a key is there once
    assert len({key.dotted for key in known.values()}) == len(known)
    for name, section, leaf in (
        ("width", "model", "width"),
        ("model.width", "model", "width"),
        ("data.width", "data", "width"),
        ("data.colour", "data", "colour"),
        ("encoding.name", "encoding", "name"),
        ("train.steps", "train", "steps"),
        ("data.encoding", "data", "encoding"),
        ("data.seed", "data", "seed"),
    ):
        value: Any = 32 if type(getattr(getattr(TWINS, section), leaf)) is int else "nope"
        changed = TWINS.override({name: str(value)})
        assert getattr(getattr(changed, section), leaf) == value
        assert changed == replace(
            TWINS, **{section: replace(getattr(TWINS, section), **{leaf: value})}
        )
    assert TWINS.override({"seed": 9}).seed == 9
    assert TWINS.override({"seed": 9}).data.seed == 5


@pytest.mark.parametrize("name", sorted(keys(BASE)))
def test_every_key_may_be_given_with_its_section(name: str) -> None:
    key = keys(BASE)[name]
    assert BASE.override({key.dotted: key.value}) == BASE.override({name: key.value}) == BASE


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("data.widht", "data.width"),
        ("model.widht", "model.width"),
        ("data.colr", "data.colour"),
        ("widht", "width"),
    ],
)
def test_unknown_keys_of_a_section_get_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"'{near}'"):
        TWINS.override({name: 1})


def test_one_key_by_two_names_is_refused() -> None:
    with pytest.raises(InputError, match=r"width and model\.width are one key"):
        TWINS.override({"width": 8, "model.width": 16})


def test_a_label_says_whose_width() -> None:
    runs = [TWINS, TWINS.override({"data.width": 4, "width": 32, "colour": "blue"})]
    assert varying(runs) == ["data.width", "data.colour", "model.width"]
    assert label(runs[1], varying(runs)) == "learnable data.width=4 colour=blue width=32"


def test_the_grid_of_a_sweep_may_name_a_section(tmp_path: Path) -> None:
    """TOML reads `data.noise = 1` as a table in a table."""
    path = tmp_path / "mine.toml"
    path.write_text(
        "extends = 'quick'\n[[sweep.grid]]\nsigma = 1\ndata.noise = [0.1, 0.2]\n'model.width' = "
        "32\n"
        "conditions = [['1v1s', '3v2s'], '2v1s', ['2v2s']]\n"
    )
    base, plan = base_config(TASK, config=path)
    conditions = [["1v1s", "3v2s"], "2v1s", ["2v2s"]]
    axes = {"sigma": 1, "data.noise": [0.1, 0.2], "model.width": 32, "conditions": conditions}
    assert plan == {"grid": [axes]}
    small = base.override({"n_train": 12, "n_valid": 6, "n_test": 6})
    runs = grid(small, plan["grid"], {}, 1)
    assert [(run.data.noise, run.data.conditions) for run in runs] == [
        (noise, tuple(one.split("+")))
        for noise in (0.1, 0.2)
        for one in ("1v1s+3v2s", "2v1s", "2v2s")
    ]
    names = varying(runs)
    assert names == ["data.conditions", "data.noise"]
    assert label(runs[0], names) == "learnable conditions=1v1s+3v2s noise=0.1"


def test_flags_are_made_of_the_names_and_values_of_keys() -> None:
    """The command line gives `--data.width`, and shows a list as a flag spells it."""
    known = keys(TWINS)
    assert (known["flags"].type, known["flags"].value) == (str, "True")
    assert (known["sizes"].type, known["sizes"].value) == (str | None, None)
    assert keys(BASE)["conditions"].value == "1v1s+1v2s+2v1s+2v2s+3v1s+3v2s"
    parser = argparse.ArgumentParser()
    for name in known:
        parser.add_argument(
            f"--{name.replace('_', '-')}", dest=f"key:{name}", default=argparse.SUPPRESS
        )
    args = vars(
        parser.parse_args(["--data.width", "7", "--width", "16", "--sizes", "2+3", "--pe-lr", "1"])
    )
    changed = TWINS.override({name[4:]: value for name, value in args.items()})
    assert (changed.data.width, changed.model.width, changed.data.sizes, changed.train.pe_lr) == (
        7,
        16,
        (2, 3),
        1.0,
    )


# Lists


def old_name(config: RunConfig, **texts: str) -> str:
    """The name of a run before settings could be lists: with those of its task as `texts`."""
    plain = config.to_dict()
    plain["data"] |= texts
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


conditions = st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=8)
modules = st.lists(
    st.integers(2, 99) | st.sampled_from(["2x12", "05", "1_0", " 7"]), min_size=2, max_size=9
)
pattern = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=";"))
patterns = st.lists(pattern, min_size=1).filter(lambda texts: "".join(texts).strip())


def check_list(start: RunConfig, key: str, elements: list, separator: str) -> None:
    """A list, a tuple and the text are one setting, of the name that the text had, in every way
    in."""
    text = separator.join(map(str, elements))
    config = start.override({key: elements})
    section = {"task": start.task, "data": start.to_dict()["data"]}
    for spelled in (elements, tuple(elements), text):
        assert start.override({key: spelled}) == config
        assert replace(start, data=replace(start.data, **{key: spelled})) == config
        read = RunConfig.from_dict(section | {"data": section["data"] | {key: spelled}})
        assert read.data == config.data
    assert isinstance(getattr(config.data, key), tuple)
    assert keys(config)[key].value == flatten(config)[f"data.{key}"] == text
    assert config.hash == old_name(config, **{key: text} | FILES.get(key, {}))
    assert read_back(config) == config
    assert read_back(config).hash == config.hash
    assert tomllib.loads(config.to_toml())["data"][key] == list(getattr(config.data, key))


OWN_FILES = {"dataset": "files", "train_files": ["a.npy"], "test_files": "b.npy"}
FILES = {"train_files": {"test_files": "b.npy"}, "test_files": {"train_files": "a.npy"}}


@given(conditions)
def test_conditions_as_a_list(elements: list[str]) -> None:
    check_list(RunConfig.from_dict({"task": TASK}), "conditions", elements, "+")


@given(modules)
def test_modules_as_a_list(elements: list[int | str]) -> None:
    check_list(RunConfig.from_dict({"task": "nmar"}), "modules", elements, "+")


@given(patterns, st.sampled_from(["train_files", "test_files"]))
def test_files_as_a_list(elements: list[str], key: str) -> None:
    if ";".join(elements).lower() == "none":  # as a text, that is no list
        elements = ["a", *elements]
    check_list(RunConfig.from_dict({"task": "fmri", "data": OWN_FILES}), key, elements, ";")


@given(st.text("0123456789x+_ -"))
def test_any_text_that_is_a_list_keeps_its_name(text: str) -> None:
    start = RunConfig.from_dict({"task": "nmar"})
    try:
        config = start.override({"modules": text})
    except InputError:
        return
    assert config.hash == old_name(config, modules=text)
    assert read_back(config) == config


def test_names_of_runs_with_lists_do_not_change() -> None:
    """As they were when a list was text."""
    then = {"optimizer": "adam", "lr": 3e-3, "steps": 1500, "warmup": 100, "eval_every": 500}
    nmar, ls = base_config("nmar")[0].override(then), base_config(TASK, "adam")[0]
    fmri = RunConfig.from_dict({"task": "fmri"})
    files = {"dataset": "files", "train_files": ["a.npy", "b*.npy"], "test_files": "c.npy; d.npy"}
    for config, name in (
        (nmar, "nmar-c131d9889c6e"),
        (nmar.override({"modules": "10+20+30"}), "nmar-4eee8b754656"),
        (nmar.override({"modules": [10, 20, 30]}), "nmar-4eee8b754656"),
        (ls.override({"conditions": ["1v1s", "2v1s"]}), "latin_square-0cac74e68cf0"),
        (fmri.override(files), "fmri-99e55dfcf054"),
    ):
        assert config.name == name


def test_numbers_that_are_spelled_otherwise_are_the_same_modules_of_another_name() -> None:
    start = RunConfig.from_dict({"task": "nmar"})
    sizes = [start.override({"modules": text}).data.modules for text in ("10+20", "010+20", "2x10")]
    assert sizes == [(10, 20), ("010", 20), ("2x10",)]
    assert start.override({"modules": ["10", np.int64(20)]}).data.modules == (10, 20)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("shares", [], "shares must have at least one element"),
        ("shares", (), "at least one element"),
        ("shares", [0.5, "much"], "element 2 of .*shares must be a number, not 'much'"),
        ("shares", [None], "element 1 of .*shares must be a number"),
        ("shares", [[0.5]], "must be a number"),
        ("shares", 0.5, r"shares must be a list, or text joined by \+, not 0.5"),
        ("shares", {"a": 1}, "shares must be a list"),
        ("shares", b"1+2", "shares must be a list"),
        ("shares", [1e30], r"1e\+30 has a \+ in it"),
        ("shares", "", "element 1 of .*shares"),
        ("sizes", [2, 1], "element 2 of sizes must be a whole number, at least 2, not 1"),
        ("sizes", "2+1", "element 2 of sizes must be a whole number, at least 2"),
        ("sizes", [2.5], "a whole number"),
        ("sizes", [True], "a whole number"),
        ("flags", ["yes"], "true or false"),
    ],
)
def test_lists_that_cannot_be_used_are_one_sentence(key: str, value: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        TWINS.override({key: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "data", "sentence"),
    [
        (TASK, {"conditions": ["1v1s+2v1s"]}, r"'1v1s\+2v1s' has a \+ in it"),
        (TASK, {"conditions": []}, "conditions must have at least one element"),
        (TASK, {"conditions": ""}, "conditions must have at least one element"),
        (TASK, {"conditions": [3]}, "element 1 of .*conditions must be text, not 3"),
        (TASK, {"conditions": ["1v1s", "1v2z"]}, "unknown condition '1v2z'"),
        ("nmar", {"modules": [10, 2.5]}, "element 2 of .*modules must be a whole number, not 2.5"),
        ("nmar", {"modules": 10}, "modules must be a list"),
        ("nmar", {"modules": [10]}, "at least two"),
        ("nmar", {"modules": ["x12", 3]}, "like 5x12"),
        ("nmar", {"modules": ["999999999999x2"]}, "at most 5000"),
        ("fmri", OWN_FILES | {"train_files": ["a;b.npy"]}, "'a;b.npy' has a ; in it"),
        ("fmri", OWN_FILES | {"train_files": [""]}, "train_files must have at least one element"),
    ],
)
def test_lists_of_tasks_that_cannot_be_used_are_one_sentence(
    task: str, data: dict, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        RunConfig.from_dict({"task": task, "data": data})
    assert "\n" not in str(caught.value)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1), st.lists(st.booleans(), min_size=1))
def test_lists_of_numbers_and_switches_round_trip(shares: list[float], flags: list[bool]) -> None:
    config = replace(TWINS, data=Twins(shares=shares, flags=flags))
    assert config.data == Twins(shares=tuple(shares), flags=tuple(flags))
    texts = {name: keys(config)[name].value for name in ("shares", "flags")}
    written = {
        f"data.{key}": value for key, value in tomllib.loads(config.to_toml())["data"].items()
    }
    assert TWINS.override(texts) == TWINS.override(written) == config


def test_the_strategies_know_every_key() -> None:
    assert OVERRIDES.keys() == keys(BASE).keys(), (
        "a new key of text: add how to draw it to OVERRIDES"
    )


@pytest.mark.parametrize("cls", [EncodingConfig, TrainConfig, ModelConfig, RunConfig])
def test_what_may_be_none_is_none_by_default(cls: type) -> None:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if type(None) in typing.get_args(hints[field.name]):
            assert field.default is None, field.name


@given(overrides)
def test_toml_round_trip(values: dict) -> None:
    config = BASE.override(values)
    again = read_back(config)
    assert again == config
    assert again.hash == config.hash
    assert again.to_toml() == config.to_toml()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_toml_round_trip_of_any_text(text: str) -> None:
    """A task's key may be a path or a name in any alphabet."""
    config = replace(BASE, encoding=EncodingConfig(name=text))
    assert read_back(config).encoding.name == text


def test_toml_round_trip_through_a_file(tmp_path: Path) -> None:
    config = BASE.override({"sigma": 1e-7, "lr": 1e22, "seed": 3})
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert RunConfig.from_toml(path) == RunConfig.from_toml(str(path)) == config
    path.write_text("\ufeff" + config.to_toml())  # as some editors save it
    assert RunConfig.from_toml(path) == config


@given(overrides)
def test_text_from_the_command_line_means_the_same(values: dict) -> None:
    as_text = {key: "none" if value is None else str(value) for key, value in values.items()}
    assert BASE.override(as_text) == BASE.override(values)


@given(overrides, st.randoms())
def test_order_does_not_matter(values: dict, random) -> None:
    shuffled = list(values.items())
    random.shuffle(shuffled)
    assert BASE.override(dict(shuffled)).hash == BASE.override(values).hash
    plain = BASE.override(values).to_dict()
    turned = {
        k: dict(reversed(v.items())) if isinstance(v, dict) else v
        for k, v in reversed(plain.items())
    }
    assert RunConfig.from_dict(turned).hash == BASE.override(values).hash


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"width": 64, "heads": 4}, {"width": 30, "heads": 3}),
        ({"donor": None}, {"donor": "a-run", "donor_change": "norms"}),
    ],
)
def test_overrides_are_judged_together(before: dict, after: dict, order: int) -> None:
    """A step on the way from one valid configuration to another must not be refused."""
    config = BASE.override(before).override(dict(list(after.items())[::order]))
    assert {key: keys(config)[key].value for key in after} == after


@given(st.data())
def test_hash_changes_with_every_key(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(OVERRIDES)))
    value = data.draw(OVERRIDES[key].filter(lambda v: v != keys(BASE)[key].value))
    assert BASE.override({key: value}).hash != BASE.hash


@pytest.mark.parametrize("key", sorted(OVERRIDES))
def test_hash_changes_with_this_key(key: str) -> None:
    other = {
        "encoding": "rotary",
        "norm": "pre",
        "activation": "gelu",
        "optimizer": "sgd",
        "schedule": "cosine",
        "patience_split": "valid",
        "donor": "another",
        "donor_change": choices("donor_change")[0],
        "heads": 8,
        "snapshots": "none",
        "conditions": "1v1s",
        "min_distance": 0.5,
        "noise": 0.5,
        "momentum": 0.5,
        "rho": 0.5,
        "attention": "neighbours",
    }
    value = other.get(key, not keys(BASE)[key].value if keys(BASE)[key].type is bool else 7)
    changed = BASE.override({key: value})
    assert changed.hash != BASE.hash
    assert changed != BASE
    assert read_back(changed).hash == changed.hash


@given(st.sampled_from(["sigma", "lr", "mlp_ratio", "clip"]), st.integers(1, 9))
def test_equal_configurations_have_equal_hashes(key: str, number: int) -> None:
    """`EncodingConfig(sigma=1)`, as a person writes it, is the run that `--sigma 1` names."""
    spot = keys(BASE)[key]
    owner = getattr(BASE, spot.section)
    by_hand = replace(BASE, **{spot.section: replace(owner, **{spot.leaf: number})})
    assert by_hand == BASE.override({key: str(number)})
    assert by_hand.hash == BASE.override({key: str(number)}).hash
    assert read_back(by_hand).hash == by_hand.hash


@pytest.mark.parametrize(
    ("key", "choice"),
    [(k, c) for k, v in keys(BASE).items() if "Literal" in str(v.type) for c in choices(k)],
)
def test_every_choice_survives_the_round_trip(key: str, choice: str) -> None:
    spot = keys(BASE)[key]
    changed = {spot.leaf: choice}
    if spot.section:
        changed = {spot.section: replace(getattr(BASE, spot.section), **changed)}
    config = replace(BASE, **changed)
    assert BASE.override({key: choice}) == config
    assert read_back(config) == config
    assert read_back(config).hash == config.hash


def test_numbers_of_numpy_are_numbers() -> None:
    """A sweep takes its values from np.linspace."""
    config = replace(BASE, encoding=EncodingConfig(sigma=np.float64(0.1)))
    assert config.hash == BASE.override({"sigma": 0.1}).hash
    assert read_back(config) == config


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("train", {"optimizer": "lion"}),
        ("train", {"schedule": "cosin"}),
        ("train", {"snapshots": "tabel"}),
        ("train", {"patience_split": "val"}),
        ("train", {"steps": 2.5}),
        ("train", {"steps": "3"}),
        ("train", {"steps": True}),
        ("train", {"steps": None}),
        ("train", {"lr": 10**400}),
        ("", {"seed": 1.5}),
        ("", {"seed": "a"}),
        ("", {"task": 3}),
        ("", {"donor": 3}),
        ("", {"donor_change": "lost"}),
        ("", {"encoding": "rotary"}),
        ("encoding", {"sigma": "0.1"}),
        ("encoding", {"sigma": 10**400}),
        ("encoding", {"name": None}),
        ("model", {"norm": "prea"}),
        ("model", {"width": "64"}),
        ("data", {"n_train": 2.5}),
        ("data", {"n_train": "5"}),
        ("data", {"conditions": 3}),
        ("data", {"noise": "0"}),
    ],
)
def test_wrong_types_are_refused_without_a_file_too(section: str, change: dict) -> None:
    """A configuration that a program makes is held to what a file is, but text is not read as a
    number."""
    with pytest.raises(InputError, match=next(iter(change))) as caught:
        replace(getattr(BASE, section) if section else BASE, **change)
    assert "\n" not in str(caught.value)


def test_every_tasks_settings_are_held_to_their_types() -> None:
    """Also those of a task whose Config does not look."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        size: int = 3
        share: float = 0.5

    assert type(replace(BASE, data=Config(size=np.int64(4))).data.size) is int
    for wrong in ({"size": 2.5}, {"size": "3"}, {"share": None}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            replace(BASE, data=Config(**wrong))


@pytest.mark.parametrize("data", [None, {}, {"n_train": 3}, type(BASE.data)])
def test_data_must_be_a_tasks_config(data: object) -> None:
    with pytest.raises(InputError, match=r"Config of latin_square.*from_dict"):
        RunConfig("latin_square", data)


def test_plain_numbers_whoever_made_them() -> None:
    changed = {"steps": np.int64(7), "lr": np.float32(0.5), "batch_size": 16.0, "clip": np.int8(1)}
    config = replace(BASE, train=replace(BASE.train, **changed), seed=np.uint8(3))
    assert [
        type(value) for value in (config.train.steps, config.train.lr, config.train.batch_size)
    ] == [
        int,
        float,
        int,
    ]
    assert (
        config.hash
        == BASE.override({"steps": 7, "lr": 0.5, "batch_size": 16, "clip": 1, "seed": 3}).hash
    )
    assert read_back(config) == config


def test_names_of_runs_do_not_change() -> None:
    """A name is where a run is found again: one that a later version gives must be the same."""
    adam = base_config(TASK, "adam")[0]
    assert adam.name == "latin_square-15652b4a01ec"
    assert (
        adam.override({"sigma": 2, "optimizer": "sgd", "momentum": 0, "clip": 1}).name
        == "latin_square-4c6a8298be97"
    )


@pytest.mark.parametrize("key", ["sigma", "pe_lr", "weight_decay", "noise"])
def test_no_run_is_of_minus_zero(key: str) -> None:
    assert BASE.override({key: -0.0}).hash == BASE.override({key: 0}).hash
    assert "-0.0" not in BASE.override({key: -0.0}).to_toml()


def test_hash_and_name() -> None:
    assert len(BASE.hash) == 12
    assert int(BASE.hash, 16) >= 0
    assert BASE.name == f"{TASK}-{BASE.hash}"
    assert RunConfig.from_dict(BASE.to_dict()).hash == BASE.hash


@pytest.mark.parametrize(
    ("values", "near"),
    [
        ({"task": TASK, "sead": 1}, "seed"),
        ({"task": TASK, "model": {"widht": 8}}, "width"),
        ({"task": TASK, "encoding": {"sgima": 0.1}}, "sigma"),
        ({"task": TASK, "train": {"learning_rate": 0.1}}, "known"),
        ({"task": TASK, "data": {"n_trian": 10}}, "n_train"),
        ({"task": TASK, "encodings": {}}, "encoding"),
        ({"task": "latin_sqare"}, TASK),
        ({"task": TASK, "model": {"norm": "prea"}}, "pre"),
    ],
)
def test_unknown_names_get_the_nearest(values: dict, near: str) -> None:
    with pytest.raises(InputError, match=near) as caught:
        RunConfig.from_dict(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "near"), [("sgima", "sigma"), ("head", "heads"), ("n-train", "n_train")]
)
def test_unknown_override_gets_the_nearest(key: str, near: str) -> None:
    with pytest.raises(InputError, match=f"'{near}'"):
        BASE.override({key: 1})


@pytest.mark.parametrize(
    "values",
    [
        {"sigma": "much"},
        {"sigma": True},
        {"sigma": [0.1]},
        {"width": 16.5},
        {"width": "16.5"},
        {"width": None},
        {"width": "nan"},
        {"width": math.inf},
        {"width": False},
        {"norm": 3},
        {"encoding": 3},
        {"seed": {}},
        {"steps": ""},
        {"conditions": 3},
        {"optimizer": ["adam"]},
    ],
)
def test_wrong_types_are_refused(values: dict) -> None:
    key = next(iter(values))
    with pytest.raises(InputError, match=key) as caught:
        BASE.override(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"sigma": -0.1},
        {"sigma": "nan"},
        {"sigma": "inf"},
        {"sigma": "-inf"},
        {"width": 0},
        {"heads": 0},
        {"depth": 0},
        {"heads": 3},
        {"mlp_ratio": 0},
        {"mlp_ratio": "nan"},
        {"token_sigma": "nan"},
        {"lr": 0},
        {"lr": -1},
        {"lr": "nan"},
        {"pe_lr": -1},
        {"clip": "nan"},
        {"momentum": -1},
        {"weight_decay": -1},
        {"steps": 0},
        {"batch_size": 0},
        {"eval_every": 0},
        {"warmup": -1},
        {"patience": 0},
        {"n_train": 0},
        {"conditions": "9v9s"},
        {"conditions": ""},
        {"noise": 2},
        {"noise": "nan"},
        {"min_distance": -1},
        {"clip": 0},
        {"momentum": 1},
        {"momentum": 5},
        {"base": "nan"},
        {"base": 1},
        {"axes": 0},
        {"max_distance": 0},
        {"max_distance": 10**12},
        {"mlp_ratio": 1e300},
        {"width": 10**9},
        {"depth": 10**9},
        {"n_train": 10**20},
    ],
)
def test_values_out_of_range_are_refused(values: dict) -> None:
    with pytest.raises(InputError) as caught:
        BASE.override(values)
    assert "\n" not in str(caught.value)


def test_sections_must_be_sections() -> None:
    with pytest.raises(InputError, match="section"):
        RunConfig.from_dict({"task": TASK, "encoding": "rotary"})
    with pytest.raises(InputError, match="must name a task"):
        RunConfig.from_dict({})
    with pytest.raises(InputError, match="must name a task"):
        RunConfig.from_dict({"task": 3})


def test_unreadable_toml_is_one_sentence(tmp_path: Path) -> None:
    broken, binary = tmp_path / "broken.toml", tmp_path / "binary.toml"
    broken.write_text("task = ")
    binary.write_bytes(b"\xff\xfe\x00")
    deep, long = tmp_path / "deep.toml", tmp_path / "long.toml"
    deep.write_text("a = " + 20000 * "[" + 20000 * "]")
    long.write_text("seed = " + 5000 * "9")
    for path in (broken, binary, deep, long, tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(InputError, match=path.name) as caught:
            RunConfig.from_toml(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        ".".join(20000 * "a") + " = 1",
        f"[{'.'.join(20000 * 'a')}]",
        f"[[{' . '.join(20000 * 'a')}]]",
        "x = [{y = 1, " + ".".join(20000 * ["'b'"]) + " = 1}]",
    ],
    ids=["key", "section", "sections", "inline"],
)
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(
    text: str, tmp_path: Path, monkeypatch
) -> None:
    """Parsed, it takes seconds and gigabytes."""
    path = tmp_path / "many.toml"
    path.write_text(text + "\n")
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("parsed"))
    with pytest.raises(InputError, match=r"many\.toml: a key has more than 16 parts") as caught:
        read_toml(path)
    assert "\n" not in str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(['"', '"""']))
def test_dots_in_text_and_comments_are_no_parts_of_keys(
    tmp_path_factory, text: str, quote: str
) -> None:
    text += 100 * "a.b = [\"' .#"
    path = tmp_path_factory.mktemp("toml") / "dots.toml"
    value = write_toml({"x": text})[4:-1].strip('"')
    path.write_text(
        f"# {100 * 'a.'}\nx = {quote}{value}{quote} # {99 * 'b.'}\ny = '{99 * '.'}'\nz = "
        f"[{99 * '1.5,'}]\n"
        f"w = '''\n{99 * '.'}'''\n",
        encoding="utf-8",
    )
    assert read_toml(path)["x"] == text


@given(st.text("a.\"'\\#=[]{},\n", max_size=60))
def test_the_check_of_parts_allows_what_can_be_parsed(tmp_path_factory, text: str) -> None:
    path = tmp_path_factory.mktemp("toml") / "any.toml"
    path.write_bytes(text.encode())
    try:
        values = tomllib.loads(text)
    except ValueError:
        return
    if text.count(".") < 16:
        assert read_toml(path) == values


@pytest.mark.parametrize(
    ("value", "hint", "result"),
    [
        ("1e-4", float, 1e-4),
        (3, float, 3.0),
        ("7", int, 7),
        (7.0, int, 7),
        ("True", bool, True),
        (str(2**60 + 1), int, 2**60 + 1),
        ("none", int | None, None),
        (None, float | None, None),
        ("2", float | None, 2.0),
        ("text", str, "text"),
    ],
)
def test_coerce(value, hint, result) -> None:
    value_read = coerce(value, hint, "here")
    assert value_read == result
    assert type(value_read) is type(result)


@pytest.mark.parametrize("name", sorted(encodings.available()))
def test_what_an_encoding_does_not_read_is_not_in_the_hash(name: str) -> None:
    plain = BASE.override({"encoding": name})
    settings = {"sigma": 0.3, "base": 50.0, "max_distance": 3}
    unread = {key: value for key, value in settings.items() if key not in encodings.settings(name)}
    hashes = {
        replace(c, encoding=resolve(c.encoding, 2)).hash for c in (plain, plain.override(unread))
    }
    assert len(hashes) == 1
    for key in settings.keys() & encodings.settings(name):
        other = plain.override({key: settings[key]})
        assert replace(other, encoding=resolve(other.encoding, 2)).hash not in hashes


def test_a_default_said_aloud_is_the_same_run() -> None:
    said = resolve(EncodingConfig("learnable", sigma=0.1), 2)
    assert said == resolve(EncodingConfig("learnable"), 2)
    assert resolve(EncodingConfig("rotary"), 2) == resolve(EncodingConfig("rotary", axes=2), 2)
    assert resolve(EncodingConfig("rotary", axes=1), 2) != resolve(EncodingConfig("rotary"), 2)


@pytest.mark.parametrize(
    ("task", "preset"), [(t, p) for t in tasks.available() for p in tasks.presets(t)]
)
def test_presets_load(task: str, preset: str) -> None:
    config, _ = base_config(task, preset)
    assert config.task == task
    assert read_back(config) == config
    assert tomllib.loads(tasks.presets(task)[preset]).get("about")


def test_a_preset_that_extends_another_differs_only_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "extends = 'quick'\n[train]\nsteps = 7\n[sweep]\nseeds = 2\n"
    )
    config, plan = base_config(TASK, config=tmp_path / "mine.toml")
    quick, _ = base_config(TASK, "quick")
    assert config == quick.override({"steps": 7})
    assert config != quick
    assert plan == {"seeds": 2}  # the sweep is its own


def test_configurations_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.seed = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.encoding.sigma = 3.0
