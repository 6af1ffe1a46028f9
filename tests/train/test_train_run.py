"""Run folders: what is in them, bit-exact resume after every kind of stop, and reuse."""

from __future__ import annotations

import csv
import itertools
import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import placecell
from placecell import encodings
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.model import resolve
from placecell.store import files, locks
from placecell.store.runs import metrics_csv
from placecell.train import (
    Row,
    RunResult,
    Watch,
    checkpoint,
    load_model,
    load_result,
    load_snapshots,
    make_model,
    make_optimizer,
    run,
)
from placecell.train.run import load_weights_along

ENDS = ("weights.safetensors", "snapshots.safetensors", "metrics.csv")
NEVER = 1e9  # seconds between checkpoints


class Crash(Exception):
    """Something broke in the middle of training."""


@pytest.fixture
def go(tiny_task, tiny_splits, tmp_path: Path):
    """Run a configuration below tmp_path, sharing the data between tests."""

    def run_here(config: RunConfig, out: str = "runs", **watch) -> RunResult:
        return run(
            config,
            tmp_path / out,
            device="cpu",
            task=tiny_task,
            splits=tiny_splits,
            watch=Watch(**watch),
        )

    return run_here


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def weights(result: RunResult) -> bytes:
    return (result.folder / "weights.safetensors").read_bytes()


def assert_same_end(one: RunResult, two: RunResult) -> None:
    assert (one.status, one.step) == (two.status, two.step)
    assert one.rows == two.rows
    assert [(one.folder / name).exists() for name in ENDS] == [
        (two.folder / name).exists() for name in ENDS
    ]
    for name in ENDS:
        if (one.folder / name).exists():
            assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()


def stop_after(step: int):
    return lambda state: state.step != step


def crash_after(step: int):
    def on_step(state) -> bool:
        if state.step == step:
            raise Crash
        return True

    return on_step


# ------------------------------------------------------------------ what a folder holds


def test_run_folder(go, tiny) -> None:
    result = go(tiny(sigma=0.2, seed=3))
    folder = result.folder
    assert folder.name == result.config.name
    assert sorted(p.name for p in folder.iterdir() if p.name != ".lock") == [
        "config.toml",
        "environment.json",
        "metrics.csv",
        "snapshots.safetensors",
        "status.json",
        "weights.safetensors",
    ]
    config = RunConfig.from_toml(folder / "config.toml")
    assert config == result.config
    assert config.name == folder.name
    assert (config.encoding.sigma, config.seed) == (0.2, 3)

    facts = json.loads((folder / "environment.json").read_text())
    assert facts["packages"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert facts["packages"]["placecell"] == placecell.__version__
    assert {"numpy", "safetensors"} <= facts["packages"].keys()
    assert facts["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert "git_commit" in facts
    assert all(facts[key] for key in ("platform", "processor", "device", "threads"))

    status = json.loads((folder / "status.json").read_text())
    assert (status["status"], status["step"]) == ("done", 12)
    with (folder / "metrics.csv").open(newline="") as file:
        rows = [
            Row(int(r["step"]), r["split"], r["name"], float(r["value"]))
            for r in csv.DictReader(file)
        ]
    assert tuple(rows) == result.rows
    assert {r.step for r in rows if r.name == "loss"} == {0, 4, 8, 12}
    # as snapshots, and evaluations
    assert [r.step for r in rows if r.name == "table_gradient"] == [1, 2, 4, 8, 12]

    stored, _ = files.read_tensors(folder / "weights.safetensors")
    _, task, model = load_model(folder)
    assert stored.keys() == model.state_dict().keys()
    assert all(torch.equal(part, stored[key]) for key, part in model.state_dict().items())
    assert model.table(task.positions).shape == (16, 16)


def test_git_commit_is_that_of_the_source(go, tiny) -> None:
    facts = json.loads((go(tiny(steps=1)).folder / "environment.json").read_text())
    here = ["git", "-C", str(Path(placecell.__file__).parents[2])]
    head = subprocess.run([*here, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    changed = (
        subprocess.run(
            [*here, "diff", "--quiet", "HEAD"], capture_output=True, check=False
        ).returncode
        == 1
    )
    expected = head.stdout.strip() + ("-dirty" if changed else "") if head.returncode == 0 else None
    assert facts["git_commit"] == expected


def test_load_result_reads_back_what_run_returned(go, tiny) -> None:
    result = go(tiny())
    again = load_result(result.folder)
    assert (again.config, again.status, again.step, again.rows) == (
        result.config,
        result.status,
        result.step,
        result.rows,
    )
    assert (
        again.final("test", "loss")
        == [r.value for r in result.rows if (r.split, r.name) == ("test", "loss")][-1]
    )
    assert math.isnan(again.final("test", "no such metric"))


def test_metrics_csv_is_plain_numbers() -> None:
    """np.float64 is a float to the type checker; its repr is not a number."""
    text = metrics_csv(
        [Row(1, "test", "accuracy", np.float64(0.1)), Row(2, "test", "loss", math.nan)]
    )
    assert text == "step,split,name,value\n1,test,accuracy,0.1\n2,test,loss,nan\n"


def test_snapshots_show_the_table_from_its_start_to_its_end(go, tiny) -> None:
    """At 0, powers of two and the last step; the first is the initial table and the last the
    learned one."""
    result = go(tiny(steps=11))
    tables = load_snapshots(result.folder)
    assert list(tables) == [0, 1, 2, 4, 8, 11]
    config, task, model = load_model(result.folder)
    assert torch.equal(tables[0], make_model(config, task).table(task.positions))
    assert torch.equal(tables[11], model.table(task.positions))
    assert not torch.equal(tables[4], tables[8])


def test_snapshots_of_weights_are_whole_models(go, tiny) -> None:
    result = go(tiny(steps=4, snapshots="weights"))
    _, _, model = load_model(result.folder)
    for name, value in model.state_dict().items():
        kept = load_snapshots(result.folder, name)
        assert list(kept) == [0, 1, 2, 4]
        assert torch.equal(kept[4], value)


def test_no_snapshots_when_not_wanted(go, tiny) -> None:
    result = go(tiny(steps=3, snapshots="none"))
    assert not (result.folder / "snapshots.safetensors").exists()
    assert load_snapshots(result.folder) == {}


def test_a_compiler_that_control_c_ended_leaves_a_run_that_goes_on(
    go, tiny, tmp_path: Path, monkeypatch
) -> None:
    from torch._dynamo.exc import TorchDynamoException

    def dies(*_):
        raise TorchDynamoException("g++ was ended by a signal\n" + "and said much" * 1000)

    config, watch = tiny(), Watch(on_step=lambda state: False)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "compile", lambda *_, **__: dies)
        stopped = run(config, tmp_path / "runs", device="cpu", compile=True, watch=watch)
        assert (stopped.status, stopped.step) == ("interrupted", 0)
        with pytest.raises(InputError, match="train without compile"):
            run(config, tmp_path / "other", device="cpu", compile=True)
    (folder,) = (tmp_path / "other").iterdir()
    status = json.loads((folder / "status.json").read_text())
    assert status["message"] == "TorchDynamoException: g++ was ended by a signal"
    again = go(config)
    assert_same_end(again, go(config, "straight"))
    attempts = json.loads((again.folder / "environment.json").read_text())["attempts"]
    assert [attempt["compiled"] for attempt in attempts] == [True, False]


def test_a_finished_run_is_reused(go, tiny) -> None:
    first = go(tiny())
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in first.folder.iterdir()}

    def never(state) -> bool:
        raise AssertionError("nothing is to be trained")

    again = go(tiny(), on_step=never, on_evaluation=never)
    assert again.reused
    assert not first.reused
    assert again == replace(first, reused=True, seconds=again.seconds)
    after = {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns)
        for p in first.folder.iterdir()
        if p.name != ".lock"
    }
    assert after == {name: value for name, value in before.items() if name != ".lock"}


def test_the_folder_follows_the_settings_and_nothing_else(go, tiny) -> None:
    one, same, other = go(tiny(steps=1)), go(tiny(steps=1, sigma=0.1)), go(tiny(steps=1, sigma=0.3))
    assert one.folder == same.folder  # 0.1 is the default
    assert same.reused
    assert one.folder != other.folder
    unread = go(tiny(encoding="nope", steps=1, sigma=0.3))
    assert go(tiny(encoding="nope", steps=1)).folder == unread.folder


def test_seeds_are_separate(go, tiny) -> None:
    base, order = go(tiny()), go(tiny(data_seed=5))
    first = {(r.split, r.name): r.value for r in base.rows if r.step == 0}
    assert first == {(r.split, r.name): r.value for r in order.rows if r.step == 0}
    assert base.rows != order.rows
    spelled = go(tiny(pe_seed=0, weights_seed=0, data_seed=0))
    assert spelled.rows == base.rows


# ------------------------------------------------------------------ bit-exact resume

CASES = [
    ("learnable", {"optimizer": "adam"}),
    ("learnable", {"optimizer": "adamw", "weight_decay": 0.1, "pe_weight_decay": 0.1}),
    ("learnable", {"optimizer": "muon", "weight_decay": 0.1}),
    ("learnable", {"optimizer": "sgd", "lr": 0.05}),
    ("learnable", {"optimizer": "sgd", "momentum": 0.0, "lr": 0.05}),
    ("relative", {"optimizer": "adam", "warmup": 3, "schedule": "cosine", "clip": 0.5}),
    ("rotary", {"optimizer": "sgd", "schedule": "cosine"}),
    ("random", {"optimizer": "adam", "pe_lr": 0.01}),
    ("sinusoidal", {"optimizer": "adamw"}),
]


@pytest.mark.parametrize(("encoding", "settings"), CASES)
def test_interrupted_and_continued_is_uninterrupted(
    go, tiny, encoding: str, settings: dict
) -> None:
    config = tiny(encoding=encoding, **settings)
    whole = go(config, "whole")
    for step in (1, 4, 11):  # after the first, at an evaluation, before the last
        out = f"stopped-{step}"
        part = go(config, out, on_step=stop_after(step))
        assert (part.status, part.step) == ("interrupted", step)
        assert (part.folder / "checkpoint.safetensors").exists()
        assert not (part.folder / "weights.safetensors").exists()
        done = go(config, out)
        assert_same_end(done, whole)
        assert not (done.folder / "checkpoint.safetensors").exists()


def test_every_encoding_resumes(go, tiny) -> None:
    covered = {name for name, _ in CASES}
    for name in encodings.available().keys() - covered:
        config = tiny(encoding=name)
        go(config, on_step=stop_after(5))
        assert_same_end(go(config), go(config, "whole"))


def test_stopped_at_every_single_step(go, tiny) -> None:
    config = tiny(steps=6, eval_every=2)
    while (result := go(config, on_step=lambda state: False)).status == "interrupted":
        pass
    assert_same_end(result, go(config, "whole"))


@pytest.mark.parametrize("step", [2, 4, 5, 9])
def test_continued_after_a_crash(go, tiny, step: int) -> None:
    config = tiny()
    with pytest.raises(Crash):
        go(config, on_step=crash_after(step), checkpoint_seconds=0.0)
    folder = next((go(config, "whole").folder.parent.parent / "runs").iterdir())
    status = json.loads((folder / "status.json").read_text())
    assert status["status"] == "failed"
    assert "Crash" in status["message"]
    resumed: list[int] = []
    done = go(config, on_step=lambda state: resumed.append(state.step) or True)
    assert resumed[0] == step + 1, "goes on from the last checkpoint, not from the start"
    assert_same_end(done, go(config, "whole"))


def test_continued_after_a_crash_without_a_checkpoint(go, tiny) -> None:
    with pytest.raises(Crash):
        go(tiny(), on_step=crash_after(5), checkpoint_seconds=NEVER)
    assert_same_end(go(tiny()), go(tiny(), "whole"))


@pytest.mark.parametrize("at", ["last evaluation", "patience"])
def test_killed_between_the_last_checkpoint_and_the_end(go, tiny, at: str) -> None:
    """The checkpoint that already meets the end must end there, not train on."""
    settings = {"optimizer": "sgd", "lr": 1e-30, "steps": 40, "eval_every": 2, "patience": 2}
    config = tiny(steps=8) if at == "last evaluation" else tiny(**settings)
    whole = go(config, "whole")

    def on_evaluation(state) -> None:
        if state.step == whole.step:
            raise Crash

    with pytest.raises(Crash):
        go(config, on_evaluation=on_evaluation, checkpoint_seconds=0.0)
    assert_same_end(go(config), whole)


TRAIN = """
import sys
from pathlib import Path
import torch
from placecell import RunConfig
from placecell.train import Watch, run
torch.set_num_threads(1)
config, watch = RunConfig.from_toml(Path(sys.argv[1])), Watch(checkpoint_seconds=0.0)
run(config, Path(sys.argv[2]), device="cpu", watch=watch)
"""


@pytest.mark.slow
def test_killed_and_run_again(go, tiny, tmp_path: Path) -> None:
    config = tiny(steps=200, eval_every=5)
    written = tmp_path / "config.toml"
    written.write_text(config.to_toml())
    whole = go(config, "whole")
    saved = tmp_path / "runs" / whole.config.name / "checkpoint.safetensors"
    process = subprocess.Popen([sys.executable, "-c", TRAIN, str(written), str(tmp_path / "runs")])
    try:
        deadline, versions = time.monotonic() + 60, set()
        while len(versions) < 3 and process.poll() is None and time.monotonic() < deadline:
            if saved.exists():
                versions.add(saved.stat().st_mtime_ns)  # the first is that of step 0
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=20) == -signal.SIGKILL, (
            "the run was over before it could be killed"
        )
    finally:
        process.kill()
        process.wait()
    assert json.loads((saved.parent / "status.json").read_text())["status"] == "running"
    steps: list[int] = []
    done = go(config, on_step=lambda state: steps.append(state.step) or True)
    assert steps[0] > 1
    assert not done.reused
    assert_same_end(done, whole)


def test_what_a_kill_left_half_written_is_cleared(go, tiny) -> None:
    folder = go(tiny(), on_step=stop_after(6)).folder
    stale = folder / ".metrics.csv.12345.tmp"  # as `files.write_bytes` stages it
    stale.write_text("step,spl")
    assert go(tiny()).status == "done"
    assert not stale.exists()


# ------------------------------------------------------------------ divergence


def test_a_diverged_run_is_kept_and_reported(go, tiny) -> None:
    config = tiny(optimizer="sgd", lr=1e30)
    result = go(config)
    assert result.status == "diverged"
    assert not math.isfinite(result.final("train", "loss"))
    assert json.loads((result.folder / "status.json").read_text())["status"] == "diverged"
    again = go(config)
    assert (again.status, again.reused, again.step) == ("diverged", True, result.step)
    assert not math.isfinite(again.final("train", "loss"))
    keyed = [(r.step, r.split, r.name) for r in result.rows]
    assert len(set(keyed)) == len(keyed), "each measurement stands once"


# ------------------------------------------------------------------ bad input


def spoil(path: Path, kind: str, other: Path) -> None:
    """Put something at `path` that is not the checkpoint of this run."""
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-10])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "pickle":
        torch.save({"model": torch.ones(3)}, path)
    elif kind == "other shape":
        path.write_bytes(other.read_bytes())
    elif kind == "no state":
        files.write_tensors(path, files.read_tensors(path)[0])
    elif kind.startswith("other type"):
        tensors, note = files.read_tensors(path)
        part = kind.split()[-1]
        files.write_tensors(
            path, {k: v.int() if k.startswith(part) else v for k, v in tensors.items()}, note
        )
    elif kind == "no optimizer":
        tensors, note = files.read_tensors(path)
        files.write_tensors(
            path, {k: v for k, v in tensors.items() if not k.startswith("optimizer.")}, note
        )


KINDS = [
    "truncated",
    "empty",
    "pickle",
    "other shape",
    "no state",
    "no optimizer",
    "other type: model",
    "other type: optimizer",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_something_else_is_refused_and_kept(go, tiny, kind: str) -> None:
    other = go(tiny(width=32), "other", on_step=stop_after(3))
    folder = go(tiny(), on_step=stop_after(6)).folder
    spoil(folder / "checkpoint.safetensors", kind, other.folder / "checkpoint.safetensors")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(
        InputError, match=r"checkpoint\.safetensors.* Remove it to start this run again"
    ) as caught:
        go(tiny())
    assert "\n" not in str(caught.value)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_optimizer_state_of_another_shape_is_refused(go, tiny, tiny_task) -> None:
    """The fused kernels trust these shapes: a step with a wrong one writes beyond its memory, so
    none is taken here."""
    part = go(tiny(), on_step=stop_after(3))
    path = part.folder / "checkpoint.safetensors"
    tensors, note = files.read_tensors(path)
    moment = next(
        name for name in tensors if name.startswith("optimizer.") and tensors[name].ndim == 2
    )
    model = make_model(part.config, tiny_task)
    for change in (
        {moment: torch.ones(1, 2)},
        {"optimizer.999.exp_avg": torch.ones(2)},
        {"optimizer.one.exp_avg": torch.ones(2)},
        {"optimizer.1": torch.ones(2)},
    ):
        files.write_tensors(path, tensors | change, note)
        with pytest.raises(InputError, match=r"checkpoint\.safetensors"):
            checkpoint.load(path, model, make_optimizer(model, part.config.train), part.config.name)


def test_the_checkpoint_of_another_run_is_refused(go, tiny) -> None:
    """Of the same shapes throughout, so that only its name tells them apart."""
    one, other = (go(tiny(seed=seed), on_step=stop_after(3)) for seed in (0, 1))
    saved = one.folder / "checkpoint.safetensors"
    own = saved.read_bytes()
    saved.write_bytes((other.folder / "checkpoint.safetensors").read_bytes())
    before = content(one.folder)
    with pytest.raises(InputError, match=f"{other.config.name}.*{one.config.name}"):
        go(tiny(seed=0))
    assert content(one.folder) == before
    saved.write_bytes(own)
    tensors, note = files.read_tensors(saved)
    files.write_tensors(saved, tensors, {key: text for key, text in note.items() if key != "run"})
    assert_same_end(go(tiny(seed=0)), go(tiny(seed=0), "whole"))  # as an older version wrote it


@pytest.mark.parametrize(
    ("wrote", "reads"), list(itertools.permutations(["adam", "muon", "sgd", "plain sgd"], 2))
)
def test_a_checkpoint_of_another_optimizer_is_refused(
    go, tiny, tiny_task, wrote: str, reads: str
) -> None:
    settings = {"adam": {}, "muon": {"optimizer": "muon"}, "sgd": {"optimizer": "sgd"}}
    settings["plain sgd"] = settings["sgd"] | {"momentum": 0}
    path = go(tiny(**settings[wrote]), on_step=stop_after(3)).folder / "checkpoint.safetensors"
    config = tiny(**settings[reads])
    model = make_model(config, tiny_task)
    with pytest.raises(InputError, match="of another optimizer"):
        checkpoint.load(path, model, make_optimizer(model, config.train), path.parent.name)


@pytest.mark.parametrize("key", ["exp_avg", "exp_avg_sq", "step"])
def test_what_an_optimizer_remembers_under_another_name_is_refused(go, tiny, key: str) -> None:
    path = go(tiny(), on_step=stop_after(3)).folder / "checkpoint.safetensors"
    tensors, note = files.read_tensors(path)
    renamed = {
        name.removesuffix(f".{key}") + ".other" * name.endswith(f".{key}"): t
        for name, t in tensors.items()
    }
    lacking = {name: tensor for name, tensor in tensors.items() if not name.endswith(f".{key}")}
    scalar = {name: t.mean() if name.endswith(f".{key}") else t for name, t in tensors.items()}
    changes = [(renamed, note), (lacking, note | {"tensors": str(len(lacking))})]
    for changed, said in changes if key == "step" else [*changes, (scalar, note)]:
        files.write_tensors(path, changed, said)
        with pytest.raises(InputError, match="of another optimizer"):
            go(tiny())


@pytest.mark.parametrize(
    "change",
    [
        {"step": "x"},
        {"step": -1},
        {"step": 1.5},
        {"step": None},
        {"best": None},
        {"stale": -1},
        {"seconds": "1"},
        {"rows": [[0, "train", "loss"]]},
        {"rows": [["0", "train", "loss", 1.0]]},
        {"rows": 3},
        {"more": 1},
    ],
)
def test_a_checkpoint_that_does_not_say_where_the_run_stands(go, tiny, change: dict) -> None:
    folder = go(tiny(), on_step=stop_after(3)).folder
    path = folder / "checkpoint.safetensors"
    tensors, note = files.read_tensors(path)
    files.write_tensors(
        path, tensors, note | {"state": json.dumps(json.loads(note["state"]) | change)}
    )
    before = content(folder)
    with pytest.raises(InputError, match="where the run stands"):
        go(tiny())
    assert content(folder) == before


@pytest.mark.parametrize("text", ["[]", "null", "3", '{"attempts": 3}', '{"attempts": null}', "{"])
def test_a_broken_environment_is_one_sentence(go, tiny, text: str) -> None:
    folder = go(tiny(), on_step=stop_after(3)).folder
    (folder / "environment.json").write_text(text)
    before = content(folder)
    with pytest.raises(InputError, match=r"environment\.json"):
        go(tiny())
    assert content(folder) == before


def test_weights_of_another_model_are_refused(go, tiny) -> None:
    other, result = go(tiny(width=32, steps=1)), go(tiny(steps=1))
    with pytest.raises(InputError, match="no weights yet"):
        load_model(go(tiny(steps=3), on_step=stop_after(1)).folder)
    for whole in (weights(other), weights(result)[:-8]):
        (result.folder / "weights.safetensors").write_bytes(whole)
        with pytest.raises(InputError, match=r"weights\.safetensors"):
            load_model(result.folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "null",
        "3",
        '"status"',
        *(
            json.dumps({"status": "done", "step": 1, "seconds": 0.1, "message": ""} | change)
            for change in (
                {"status": 3},
                {"status": ["x"]},
                {"status": "nonsense"},
                {"status": None},
                {"step": None},
                {"step": "1"},
                {"step": -1},
                {"step": 0.5},
                {"seconds": None},
                {"seconds": -1},
                {"message": 3},
            )
        ),
    ],
)
def test_a_broken_status_is_one_sentence(go, tiny, text: str) -> None:
    folder = go(tiny(steps=1)).folder
    (folder / "status.json").write_text(text)
    with pytest.raises(InputError, match=r"status\.json"):
        go(tiny(steps=1))
    with pytest.raises(InputError, match=r"status\.json"):
        load_result(folder)


HEADER = "step,split,name,value\n"
BROKEN = [
    None,
    "",
    "x",
    "a\n\x00\n",
    HEADER,
    HEADER + "x,train,loss,1\n",
    HEADER + "1,train\n",
    "0,train,loss,1\n",
]


@pytest.mark.parametrize("text", [*BROKEN, "step,split\n1,train\n", HEADER + 200_000 * "x"])
def test_broken_metrics_are_one_sentence(go, tiny, text: str | None) -> None:
    """Also where the run is done: without them it is not."""
    folder = go(tiny(steps=1)).folder
    if text is None:
        (folder / "metrics.csv").unlink()
    else:
        (folder / "metrics.csv").write_text(text)
    for read in (lambda: load_result(folder), lambda: go(tiny(steps=1))):
        with pytest.raises(InputError, match=r"metrics\.csv") as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_run_that_is_not_done_may_have_no_metrics(go, tiny) -> None:
    folder = go(tiny(), on_step=stop_after(3)).folder
    (folder / "metrics.csv").unlink()
    assert load_result(folder).rows == ()


def test_the_settings_of_another_run_are_refused(go, tiny) -> None:
    one, other = go(tiny(steps=1)), go(tiny(steps=1, seed=1))
    (one.folder / "config.toml").write_bytes((other.folder / "config.toml").read_bytes())
    for read in (lambda: load_result(one.folder), lambda: go(tiny(steps=1))):
        with pytest.raises(InputError, match=f"{one.config.name}.*{other.config.name}"):
            read()
    copy = one.folder.rename(one.folder.with_name("my favourite"))
    assert load_result(copy).config == other.config


def test_folders_may_be_text(tiny, tiny_task, tiny_splits, tmp_path: Path) -> None:
    result = run(tiny(steps=1), str(tmp_path), device="cpu", task=tiny_task, splits=tiny_splits)
    folder = str(result.folder)
    assert load_result(folder).rows == result.rows
    assert load_model(folder)[0] == result.config
    assert load_snapshots(folder).keys() == load_weights_along(folder).keys() == {0, 1}


@pytest.mark.parametrize(
    "settings",
    [
        {"encoding": "learnabel"},
        {"encoding": "rotary", "width": 9},
        {"encoding": "rotary", "heads": 16},
        {"encoding": "rotary", "width": 12, "axes": 3},  # the cells have two axes
        {"encoding": "sinusoidal", "width": 24, "axes": 3},
        {"encoding": "alibi", "axes": 3},
        {"encoding": "relative", "axes": 3},
        {"encoding": "sinusoidal", "base": math.nan},
        {"encoding": "relative", "max_distance": 0},
    ],
)
def test_settings_that_cannot_work_leave_nothing(go, tiny, tmp_path: Path, settings: dict) -> None:
    with pytest.raises(InputError) as caught:
        go(tiny(**settings))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_data_that_cannot_be_drawn_is_not_left_running(tiny, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run(tiny(n_train=10**7, steps=1), tmp_path / "runs", device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_a_busy_folder_is_refused(go, tiny, tiny_task, tmp_path: Path) -> None:
    config = replace(tiny(), encoding=resolve(tiny().encoding, tiny_task.positions.axes))
    folder = tmp_path / "runs" / config.name
    folder.mkdir(parents=True)
    with locks.lock(folder), pytest.raises(InputError, match="another process"):
        go(tiny())
    assert go(tiny()).status == "done"


def test_devices_that_are_not_there(tiny, tmp_path: Path) -> None:
    for device in ("cuda:99", "tpu", ""):
        with pytest.raises(InputError, match="not available"):
            run(tiny(), tmp_path / "runs", device=device)
    assert not (tmp_path / "runs").exists()


def test_optimizer_state_is_saved_whole(go, tiny, tiny_task) -> None:
    """Adam keeps two moments and a step for each parameter; none may be missing from a
    checkpoint."""
    part = go(tiny(), on_step=stop_after(3))
    tensors, _ = files.read_tensors(part.folder / "checkpoint.safetensors")
    model = make_model(part.config, tiny_task)
    count = sum(
        len(group["params"]) for group in make_optimizer(model, part.config.train).param_groups
    )
    assert sum(name.startswith("optimizer.") for name in tensors) == 3 * count
