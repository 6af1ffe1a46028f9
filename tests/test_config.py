"""Configuration: one name a key, TOML there and back, what is refused, and a hash that names the content."""

from __future__ import annotations

import dataclasses
import math
import tomllib
import typing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placecell import encodings, tasks
from placecell.config import EncodingConfig, ModelConfig, RunConfig, TrainConfig, keys
from placecell.errors import InputError
from placecell.model import resolve
from placecell.presets import base_config
from placecell.values import coerce

TASK = "latin_square"
BASE = RunConfig.from_dict({"task": TASK, "donor": "latin_square-0123456789ab"})  # a donor, for donor_change needs one


def choices(key: str) -> list[str]:
    """What the Literal of a key allows."""
    hint = keys(BASE)[key].type
    inner = [arg for arg in (hint, *typing.get_args(hint)) if typing.get_origin(arg) is typing.Literal]
    return list(typing.get_args(inner[0]))


positive = st.floats(1e-12, 1e12)
not_negative = st.floats(0, 1e12)
count = st.integers(1, 10**6)
seed = st.integers(-(2**70), 2**70)
OVERRIDES = {
    "encoding": st.sampled_from(sorted(encodings.available())),
    "sigma": st.none() | not_negative,
    "axes": st.none() | count,
    "base": st.none() | st.floats(1, 1e12, exclude_min=True),
    "max_distance": st.none() | st.integers(1, 65536),
    "width": st.integers(1, 100).map(lambda w: 4 * w),
    "depth": st.integers(1, 1000),
    "heads": st.sampled_from([1, 2, 4]),
    "mlp_ratio": st.floats(1e-12, 1000),
    "norm": st.sampled_from(choices("norm")),
    "activation": st.sampled_from(choices("activation")),
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
overrides = st.fixed_dictionaries({}, optional=OVERRIDES)


def read_back(config: RunConfig) -> RunConfig:
    return RunConfig.from_dict(tomllib.loads(config.to_toml()))


@pytest.mark.parametrize("task", tasks.available())
def test_every_key_has_a_name_of_its_own_and_help(task: str) -> None:
    config = RunConfig.from_dict({"task": task})
    owners = [config, config.data, config.encoding, config.model, config.train]
    leaves = sum(len(dataclasses.fields(owner)) for owner in owners) - 5  # task and the four sections
    assert len(keys(config)) == leaves
    assert all(key.help for key in keys(config).values())


def test_two_keys_of_one_name_are_refused() -> None:
    other = dataclasses.make_dataclass("Config", [("width", int, dataclasses.field(default=1))], frozen=True)
    with pytest.raises(ValueError, match="width"):
        keys(replace(BASE, data=other()))


def test_the_strategies_know_every_key() -> None:
    assert OVERRIDES.keys() == keys(BASE).keys(), "a new key of text: add how to draw it to OVERRIDES"


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
    turned = {k: dict(reversed(v.items())) if isinstance(v, dict) else v for k, v in reversed(plain.items())}
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
        "encoding": "rotary", "norm": "pre", "activation": "gelu", "optimizer": "sgd", "schedule": "cosine",
        "patience_split": "valid", "donor": "another", "donor_change": choices("donor_change")[0], "heads": 8,
        "snapshots": "none", "conditions": "1v1s", "min_distance": 0.5, "noise": 0.5,
        "momentum": 0.5,
    }  # fmt: skip
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
    ("key", "choice"), [(k, c) for k, v in keys(BASE).items() if "Literal" in str(v.type) for c in choices(k)]
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
        ("train", {"optimizer": "lion"}), ("train", {"schedule": "cosin"}), ("train", {"snapshots": "tabel"}),
        ("train", {"patience_split": "val"}), ("train", {"steps": 2.5}), ("train", {"steps": "3"}),
        ("train", {"steps": True}), ("train", {"steps": None}), ("train", {"lr": 10**400}), ("", {"seed": 1.5}),
        ("", {"seed": "a"}), ("", {"task": 3}), ("", {"donor": 3}), ("", {"donor_change": "lost"}),
        ("", {"encoding": "rotary"}), ("encoding", {"sigma": "0.1"}), ("encoding", {"sigma": 10**400}),
        ("encoding", {"name": None}), ("model", {"norm": "prea"}), ("model", {"width": "64"}),
        ("data", {"n_train": 2.5}), ("data", {"n_train": "5"}), ("data", {"conditions": 3}), ("data", {"noise": "0"}),
    ],
)  # fmt: skip
def test_wrong_types_are_refused_without_a_file_too(section: str, change: dict) -> None:
    """A configuration that a program makes is held to what a file is, but text is not read as a number."""
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
    assert [type(value) for value in (config.train.steps, config.train.lr, config.train.batch_size)] == [
        int,
        float,
        int,
    ]
    assert config.hash == BASE.override({"steps": 7, "lr": 0.5, "batch_size": 16, "clip": 1, "seed": 3}).hash
    assert read_back(config) == config


def test_names_of_runs_do_not_change() -> None:
    """A name is where a run is found again: one that a later version gives must be the same."""
    quick = base_config(TASK)[0]
    assert quick.name == "latin_square-15652b4a01ec"
    assert (
        quick.override({"sigma": 2, "optimizer": "sgd", "momentum": 0, "clip": 1}).name == "latin_square-4c6a8298be97"
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


@pytest.mark.parametrize(("key", "near"), [("sgima", "sigma"), ("head", "heads"), ("n-train", "n_train")])
def test_unknown_override_gets_the_nearest(key: str, near: str) -> None:
    with pytest.raises(InputError, match=f"'{near}'"):
        BASE.override({key: 1})


@pytest.mark.parametrize(
    "values",
    [
        {"sigma": "much"}, {"sigma": True}, {"sigma": [0.1]}, {"width": 16.5}, {"width": "16.5"}, {"width": None},
        {"width": "nan"}, {"width": math.inf}, {"width": False}, {"norm": 3}, {"encoding": 3}, {"seed": {}},
        {"steps": ""}, {"conditions": 3}, {"optimizer": ["adam"]},
    ],
)  # fmt: skip
def test_wrong_types_are_refused(values: dict) -> None:
    key = next(iter(values))
    with pytest.raises(InputError, match=key) as caught:
        BASE.override(values)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"sigma": -0.1}, {"sigma": "nan"}, {"sigma": "inf"}, {"sigma": "-inf"}, {"width": 0}, {"heads": 0},
        {"depth": 0}, {"heads": 3}, {"mlp_ratio": 0}, {"mlp_ratio": "nan"}, {"token_sigma": "nan"}, {"lr": 0},
        {"lr": -1}, {"lr": "nan"}, {"pe_lr": -1}, {"clip": "nan"}, {"momentum": -1}, {"weight_decay": -1},
        {"steps": 0}, {"batch_size": 0}, {"eval_every": 0}, {"warmup": -1}, {"patience": 0},
        {"n_train": 0}, {"conditions": "9v9s"}, {"conditions": ""}, {"noise": 2}, {"noise": "nan"},
        {"min_distance": -1}, {"clip": 0}, {"momentum": 1}, {"momentum": 5}, {"base": "nan"}, {"base": 1},
        {"axes": 0}, {"max_distance": 0}, {"max_distance": 10**12}, {"mlp_ratio": 1e300}, {"width": 10**9},
        {"depth": 10**9}, {"n_train": 10**20},
    ],
)  # fmt: skip
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
    ("value", "hint", "result"),
    [
        ("1e-4", float, 1e-4), (3, float, 3.0), ("7", int, 7), (7.0, int, 7), ("True", bool, True),
        (str(2**60 + 1), int, 2**60 + 1), ("none", int | None, None), (None, float | None, None),
        ("2", float | None, 2.0), ("text", str, "text"),
    ],
)  # fmt: skip
def test_coerce(value, hint, result) -> None:
    found = coerce(value, hint, "here")
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize("name", sorted(encodings.available()))
def test_what_an_encoding_does_not_read_is_not_in_the_hash(name: str) -> None:
    plain = BASE.override({"encoding": name})
    settings = {"sigma": 0.3, "base": 50.0, "max_distance": 3}
    unread = {key: value for key, value in settings.items() if key not in encodings.settings(name)}
    hashes = {replace(c, encoding=resolve(c.encoding, 2)).hash for c in (plain, plain.override(unread))}
    assert len(hashes) == 1
    for key in settings.keys() & encodings.settings(name):
        other = plain.override({key: settings[key]})
        assert replace(other, encoding=resolve(other.encoding, 2)).hash not in hashes


def test_a_default_said_aloud_is_the_same_run() -> None:
    said = resolve(EncodingConfig("learnable", sigma=0.1), 2)
    assert said == resolve(EncodingConfig("learnable"), 2)
    assert resolve(EncodingConfig("rotary"), 2) == resolve(EncodingConfig("rotary", axes=2), 2)
    assert resolve(EncodingConfig("rotary", axes=1), 2) != resolve(EncodingConfig("rotary"), 2)


@pytest.mark.parametrize(("task", "preset"), [(t, p) for t in tasks.available() for p in tasks.presets(t)])
def test_presets_load(task: str, preset: str) -> None:
    config, _ = base_config(task, preset)
    assert config.task == task
    assert read_back(config) == config
    assert tomllib.loads(tasks.presets(task)[preset]).get("about")


def test_a_preset_that_extends_another_differs_only_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("extends = 'quick'\n[train]\nsteps = 7\n[sweep]\nseeds = 2\n")
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
