"""Sweeps end to end on tiny models: grids, pairing, reuse, failures, transplants, and what the
analysis says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from placecell.cli import call
from placecell.config import RunConfig
from placecell.config.labels import label, varying
from placecell.config.presets import base_config
from placecell.errors import InputError
from placecell.seeds import torch_stream
from placecell.store import load_store
from placecell.store.files import read_tensors
from placecell.study.transplant import donors, receivers
from placecell.sweep import grid, local, sweep
from placecell.train import load_model, run
from placecell.train.donor import changed

TINY = {
    "n_train": 96,
    "n_valid": 24,
    "n_test": 48,
    "width": 8,
    "depth": 1,
    "steps": 12,
    "eval_every": 6,
    "batch_size": 32,
    "warmup": 0,
}
FLAGS = [word for key, value in TINY.items() for word in (f"--{key.replace('_', '-')}", str(value))]


@pytest.fixture
def base() -> RunConfig:
    return base_config("latin_square")[0].override(TINY)


def test_a_grid_runs_every_different_model_once(base: RunConfig) -> None:
    axes = {"encoding": ["learnable", "sinusoidal", "nope"], "sigma": [0.1, 2.0], "axes": [1, 2]}
    configs = grid(base, [], axes, seeds=2)
    # learnable reads σ, sinusoidal reads axes, nope neither: 2 + 2 + 1 models, under 2 seeds
    assert len(configs) == len({c.name for c in configs}) == 10
    assert [c.seed for c in configs] == [0] * 5 + [1] * 5


def test_axes_of_the_command_line_replace_those_of_the_preset(base: RunConfig) -> None:
    grids = [
        {"encoding": "learnable", "sigma": [0.1, 0.2]},
        {"encoding": "sinusoidal", "axes": [1, 2]},
    ]
    assert len(grid(base, grids, {}, seeds=1)) == 4
    only = grid(base, grids, {"encoding": ["learnable"], "sigma": [1.0]}, seeds=1)
    assert [(c.encoding.name, c.encoding.sigma) for c in only] == [("learnable", 1.0)]


def test_labels_tell_what_varies(base: RunConfig) -> None:
    configs = grid(
        base,
        [],
        {"encoding": ["learnable", "sinusoidal"], "sigma": [0.1, 2.0], "axes": [1, 2]},
        seeds=1,
    )
    keys = varying(configs)
    assert {label(c, keys) for c in configs} == {
        "learnable σ=0.1",
        "learnable σ=2.0",
        "sinusoidal 1D",
        "sinusoidal 2D",
    }


@pytest.mark.parametrize("bad", [{"sgima": [1]}, {"sigma": [-1.0]}, {"encoding": ["rotray"]}])
def test_a_bad_axis_is_refused_before_anything_runs(
    base: RunConfig, bad: dict[str, list[object]]
) -> None:
    with pytest.raises(InputError):
        grid(base, [], bad, seeds=1)


@pytest.mark.slow
def test_workers_give_the_bits_of_a_single_run_and_reuse_what_is_done(
    base: RunConfig, tmp_path: Path
) -> None:
    configs = grid(base, [], {"sigma": [0.1, 2.0]}, seeds=2)
    outcomes = sweep(configs, tmp_path / "sweep", local(2))
    assert [o.status for o in outcomes] == ["done"] * 4
    alone = run(configs[0], tmp_path / "alone")
    there, _ = read_tensors(tmp_path / "sweep" / configs[0].name / "weights.safetensors")
    here, _ = read_tensors(alone.folder / "weights.safetensors")
    assert all(torch.equal(there[name], here[name]) for name in here)
    again = sweep(configs, tmp_path / "sweep", local(1))
    assert all(o.result is not None and o.result.reused for o in again)
    assert len(load_store(tmp_path / "sweep")) == 4


@pytest.mark.slow
def test_one_run_that_fails_does_not_stop_the_others(base: RunConfig, tmp_path: Path) -> None:
    missing = replace(base, donor="latin_square-000000000000")
    outcomes = sweep([missing, base], tmp_path, local(1))
    by_name = {o.config.name: o for o in outcomes}
    assert by_name[missing.name].status == "failed"
    assert "run the donor first" in by_name[missing.name].message
    assert sum(o.status == "done" for o in outcomes) == 1


def test_a_store_without_runs_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no runs here\.$") as told:  # no command from Python
        load_store(tmp_path)
    assert "placecell sweep" in told.value.command
    with pytest.raises(InputError, match="no such folder"):
        load_store(tmp_path / "nowhere")


def test_changed_tables_keep_what_they_promise() -> None:
    table = torch.randn(16, 8, generator=torch_stream(0, "table"))
    shuffled = changed(table, "shuffled", torch_stream(1, "t"))
    assert not torch.equal(shuffled, table)
    assert torch.equal(shuffled.sort(0).values, table.sort(0).values)
    norms = changed(table, "norms", torch_stream(1, "t"))
    torch.testing.assert_close(norms.norm(dim=1), table.norm(dim=1))
    assert abs(float(torch.corrcoef(torch.stack([norms.flatten(), table.flatten()]))[0, 1])) < 0.4
    assert torch.equal(changed(table, "kept", torch_stream(1, "t")), table)


def test_a_transplant_carries_over_the_table_and_nothing_else(
    base: RunConfig, tmp_path: Path
) -> None:
    small, large = donors(base, 0.1, 2.0, seeds=1)[0]
    for config in (small, large):
        run(config, tmp_path)
    learned = {
        sigma: load_model(tmp_path / c.name)[2].encoding.weight
        for sigma, c in ((0.1, small), (2.0, large))
    }
    arms = receivers(small, large)
    assert len({c.name for c in arms.values()}) == 4
    for name, config in arms.items():
        run(config, tmp_path)
        table = load_model(tmp_path / config.name)[2].encoding.weight
        if "learned at σ=0.1" in name:
            assert torch.equal(table, learned[0.1])  # frozen: training has not moved it
        if "learned at σ=2.0" in name:
            assert torch.equal(table, learned[2.0])
        assert config.seed_of("weights") != small.seed_of("weights")


def test_a_donor_that_does_not_fit_is_refused(base: RunConfig, tmp_path: Path) -> None:
    small, _ = donors(base, 0.1, 2.0, seeds=1)[0]
    run(small, tmp_path)
    wider = replace(base, donor=small.name).override({"width": 16})
    with pytest.raises(InputError, match=r"should be \(16, 16\), found \(16, 8\)"):
        run(wider, tmp_path)
    with pytest.raises(InputError, match="needs an encoding with a table"):
        run(replace(base, donor=small.name).override({"encoding": "nope"}), tmp_path)


@pytest.mark.slow
def test_sweep_analyse_and_transplant_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "store")
    axes = ["--encoding", "learnable,sinusoidal,nope", "--sigma", "0.1,0.5,2", "--axes", "2"]
    assert (
        call(["sweep", "latin_square", *FLAGS, *axes, "--seeds", "2", "--out", out, "--json"]) == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {"done": 10}
    assert report["reused"] == 0
    assert call(["analyse", out, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    rows = {row["label"]: row for row in facts["configurations"]}
    assert set(rows) == {
        "learnable σ=0.1",
        "learnable σ=0.5",
        "learnable σ=2.0",
        "sinusoidal",
        "nope",
    }
    # the reference itself
    assert rows["sinusoidal"]["table/procrustes"] == pytest.approx(0, abs=1e-6)
    assert "table/relation" not in rows["nope"]  # it has no table
    assert rows["sinusoidal"]["attention/reference"] > 0.9
    for name in (
        "runs.csv",
        "summary.csv",
        "summary.json",
        "summary.md",
        "finding.png",
        "tables.png",
        "training.png",
    ):
        assert (tmp_path / "store" / "analysis" / name).stat().st_size > 0
    assert call(["transplant", "latin_square", *FLAGS, "--seeds", "2", "--out", out, "--json"]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert len(arms) == 4
    assert all(len(arm["seeds"]) == 2 for arm in arms.values())
    first, *others = arms.values()
    for arm in others:
        assert arm["first_minus_this"]["mean"] == pytest.approx(first["mean"] - arm["mean"])
    assert call(["transplant", "latin_square", *FLAGS, "--seeds", "2", "--out", out]) == 0
    assert "nan" not in capsys.readouterr().out  # two seeds have no interval


@pytest.mark.slow
def test_a_killed_sweep_goes_on_to_the_same_results(tmp_path: Path) -> None:
    words = ["sweep", "latin_square", *FLAGS, "--steps", "60", "--encoding", "learnable"]
    words += ["--sigma", "0.1,2", "--seeds", "2", "--workers"]
    assert call([*words, "0", "--out", str(tmp_path / "whole")]) == 0
    command = [sys.executable, "-m", "placecell", *words, "1", "--out"]
    broken = subprocess.Popen(
        [*command, str(tmp_path / "killed")], stderr=subprocess.PIPE, text=True
    )
    assert broken.stderr is not None
    broken.stderr.readline()  # one run has ended, another is under way
    broken.kill()
    broken.wait()
    broken.stderr.close()
    done = subprocess.run(
        [*command, str(tmp_path / "killed")], check=True, capture_output=True, text=True
    )
    assert "were there already" in done.stdout
    whole, killed = (
        {r.config.name: r for r in load_store(tmp_path / name)} for name in ("whole", "killed")
    )
    assert whole.keys() == killed.keys()
    for name in whole:
        assert whole[name].rows == killed[name].rows
        a, b = (
            read_tensors(tmp_path / store / name / "weights.safetensors")[0]
            for store in ("whole", "killed")
        )
        assert all(torch.equal(a[key], b[key]) for key in a)


def test_dry_run_trains_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "store"
    assert (
        call(["sweep", "latin_square", *FLAGS, "--dry-run", "--out", str(out), "--sigma", "0.1,2"])
        == 0
    )
    assert "nothing was trained" in capsys.readouterr().out
    assert not out.exists()


def test_seeds_pair_the_curves(base: RunConfig) -> None:
    from placecell.train import make_model, make_task

    small, large = grid(base, [{"encoding": "learnable"}], {"sigma": [0.5, 2.0]}, seeds=1)
    task = make_task(small)
    a, b = (make_model(c, task).state_dict() for c in (small, large))
    for name in a:
        ratio = 4.0 if name == "encoding.weight" else 1.0
        np.testing.assert_array_equal(a[name].numpy() * ratio, b[name].numpy())


@pytest.mark.slow
def test_a_polite_kill_of_the_parent_alone_saves_every_run(tmp_path: Path) -> None:
    """A scheduler signals one process; the workers must hear of it, or hours would pass before the
    sweep ends."""
    command = [
        sys.executable,
        "-m",
        "placecell",
        "sweep",
        "latin_square",
        *FLAGS,
        "--steps",
        "100000",
    ]
    command += [
        "--encoding",
        "learnable",
        "--sigma",
        "0.1,2",
        "--seeds",
        "1",
        "--workers",
        "2",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for _ in range(600):
        if len(list(tmp_path.glob("*/status.json"))) == 2:
            break
        time.sleep(0.1)
    time.sleep(1)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    assert [r.status for r in load_store(tmp_path)] == ["interrupted"] * 2
    assert len(list(tmp_path.glob("*/checkpoint.safetensors"))) == 2


@pytest.mark.slow
def test_analyse_takes_folders_as_they_are(
    base: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    run(base.override({"encoding": "nope"}), other)
    assert call(["analyse", str(other), "--json"]) == 0  # no learnable table, so no σ curve
    assert json.loads(capsys.readouterr().out)["sigma"] == {}
    # a run, not a folder of runs
    assert call(["analyse", str(next(other.glob("latin_square-*")))]) == 2
    assert f"give the folder that holds it ({other})" in capsys.readouterr().err

    # σ = 0.1 has three seeds, the others two: an extended or interrupted sweep
    uneven = tmp_path / "uneven"
    runs = [(s, seed) for s in (0.1, 0.5, 2.0) for seed in range(2)] + [(0.1, 2)]
    for sigma, seed in runs:
        run(base.override({"sigma": sigma, "seed": seed}), uneven)
    assert call(["analyse", str(uneven), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["seeds"] for row in facts["configurations"]] == [3, 2, 2]
    assert facts["sigma"]["largest"] == 2.0

    run(base.override({"sigma": 0.1, "clip": 1.0}), uneven)  # not another seed of the same thing
    assert call(["analyse", str(uneven), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"learnable σ=0.1 clip=1.0", "learnable σ=0.1"} <= {
        r["label"] for r in facts["configurations"]
    }
    assert facts["sigma"] == {}  # more than σ varies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sweep = 3", "a sweep is a section"),
        ("[sweep.grid]\nsigma = 1", r"\[\[sweep.grid\]\]"),
        ("[sweep]\nsedes = 3", "did you mean 'seeds'"),
        ("[[sweep.grid]]\nseed = 3", "a grid has no `seed`"),
        ('task = "other"', "not of 'latin_square'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        base_config("latin_square", config=path)


@pytest.mark.parametrize(
    "words",
    [
        ["transplant", "latin_square", "--sigma", "0.3"],
        ["transplant", "latin_square", "--seeds", "0"],
        ["transplant", "latin_square", "--small", "2", "--large", "2"],
        ["sweep", "latin_square", "--seed", "3"],
        ["sweep", "latin_square", "--workers", "-1", "--seeds", "1", "--encoding", "nope"],
        ["sweep", "latin_square", "--device", "tpu", "--seeds", "1", "--encoding", "nope"],
        ["evaluate", "RUN", "--human", "people.csv"],
        ["evaluate", "."],
    ],
)
def test_what_a_verb_cannot_do_is_one_sentence(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.glob("runs/*/*"))
