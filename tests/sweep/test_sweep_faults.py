"""Sweeps that survive: killed, out of space, out of power at every operation; workers that die;
crowds; Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from sweep_faults import (
    NEED_SPACE,
    content,
    drawn,
    full,
    in_child,
    killed,
    names,
    recorded,
    resumed,
    small_sweep,
)

from placecell.config import RunConfig
from placecell.config.presets import base_config
from placecell.errors import InputError
from placecell.store import Store, disk
from placecell.store.files import read_json
from placecell.sweep import grid, local, sweep
from placecell.sweep.backends.local import Local

CHECKPOINT = "checkpoint.safetensors"
SLICES = 8  # so that several processes can share the work


@pytest.fixture(scope="module")
def data() -> dict:
    return drawn()


@dataclass
class Whole:
    """A sweep that nothing happened to, and what a fault at each of its operations would leave."""

    content: dict[str, bytes]
    operations: list[str]
    states: dict[str, list[Path]]
    seconds: float  # that such a sweep takes
    # from which it was seen that the sweep goes on: several operations leave the same
    good: set[Path] = field(default_factory=set)


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    code, report = in_child(recorded, data, folder / "store", folder)
    assert code == 0
    outcomes, operations, states = report
    assert [status for status, _, _ in outcomes] == ["done", "diverged"]
    assert len(operations) > 100
    assert states["power"] != states["kill"]  # what is not yet on disk is lost with the power only
    start = time.monotonic()
    in_child(killed, data, folder / "timed", 0)
    seconds = time.monotonic() - start
    return Whole(content(folder / "store"), operations, states, seconds)


def resume_and_compare(stores: Sequence[Path], data, whole: Whole) -> list:
    """The same sweep once more in each, without a fault: it must end as if nothing had happened."""
    code, outcomes = in_child(resumed, data, stores)
    assert code == 0
    for out in stores:
        assert content(out) == whole.content, out
        assert {row["status"] for row in Store(out).rows()} == {"done", "diverged"}
    return outcomes


def a_copy(state: Path, folder: Path) -> Path:
    """The state in a folder, to go on from; before the first operation there is nothing yet."""
    copy = folder / state.name
    return shutil.copytree(state, copy, copy_function=os.link) if state.exists() else copy


def operations_of(part: int, whole: Whole) -> range:
    """The operations, counted from 1, of a slice."""
    total = len(whole.operations)
    return range(1 + total * part // SLICES, 1 + total * (part + 1) // SLICES)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("fault", ["kill", "power", "full"])
def test_a_fault_at_every_operation(
    fault: str, part: int, data, whole: Whole, tmp_path: Path
) -> None:
    operations = operations_of(part, whole)
    if fault != "full":
        left = dict.fromkeys(whole.states[fault][at - 1] for at in operations)
        new = [state for state in left if state not in whole.good]
        stores = [a_copy(state, tmp_path) for state in new]
        resume_and_compare(stores, data, whole)
        whole.good.update(new)
        return
    # at an operation that needs no space, the next one is the first to fail
    failing = [at for at in operations if whole.operations[at - 1] in NEED_SPACE]
    stores = {at: tmp_path / str(at) for at in failing}
    code, outcomes_at = in_child(full, data, stores)
    assert code == 0
    for outcomes in outcomes_at.values():
        # whether the sweep came to its end or not, it says why what was not written was not
        for status, _, message in outcomes:
            assert status in ("done", "diverged") or "No space left on device" in message
    resume_and_compare(list(stores.values()), data, whole)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_a_kill_leaves_what_was_recorded(part: int, data, whole: Whole, tmp_path: Path) -> None:
    """Of every other operation, in five parts: a process that is really killed there."""
    for at in range(1 + 2 * part, len(whole.operations) + 1, 10):
        out = tmp_path / str(at)
        assert in_child(killed, data, out, at) == (-signal.SIGKILL, None)
        state = whole.states["kill"][at - 1]
        assert names(out) == names(state), f"operation {at}"
        # a checkpoint says how long it took
        finished = [name for name in content(out) if not name.endswith((".tmp", CHECKPOINT))]
        assert all(content(out)[name] == content(state)[name] for name in finished)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_killed_at_random_moments(part: int, data, whole: Whole, tmp_path: Path) -> None:
    """Ten a part. A run that was ended before the kill is not trained again."""
    moments, killed_in_time, ended = random.Random(part), 0, []
    stores = [tmp_path / str(number) for number in range(10)]
    for out in stores:
        moment = moments.uniform(0, whole.seconds)
        code, _ = in_child(killed, data, out, 0, kill_after=moment)
        killed_in_time += code == -signal.SIGKILL
        ended.append(sum(read_json(path)["status"] == "done" for path in out.glob("*/status.json")))
    for number, outcomes in zip(ended, resume_and_compare(stores, data, whole), strict=True):
        assert sum(reused for _, reused, _ in outcomes) >= number
    assert killed_in_time > 0


# ------------------------------------------------------------------ workers that die, runs that
# cannot be


TINY = {
    "n_train": 48,
    "n_valid": 12,
    "n_test": 12,
    "width": 8,
    "depth": 1,
    "steps": 40,
    "eval_every": 20,
    "batch_size": 16,
    "warmup": 0,
}
FLAGS = [word for key, value in TINY.items() for word in (f"--{key.replace('_', '-')}", str(value))]


@pytest.fixture
def configs() -> list[RunConfig]:
    base = base_config("latin_square")[0].override(TINY)
    return grid(base, [], {"sigma": [0.1, 2.0]}, seeds=2)


def deadly(victim: str | None, often: int):
    """A back end of two workers, of which one that has begun `victim` (any, if None) is killed so
    many times."""
    killed: list[str] = []

    class Deadly(Local):
        def wait(self, seconds: float):
            for one in self.processes:
                if (
                    one.name is not None
                    and victim in (None, one.name)
                    and len(killed) < often
                    and self.begun(one.name)
                ):
                    killed.append(one.name)
                    os.kill(one.process.pid, signal.SIGKILL)
            return super().wait(min(seconds, 0.01))

        def begun(self, name: str) -> bool:
            """Whether this attempt at the run is in its folder; those before it were all killed."""
            folder = self.job.out / name
            if (
                not (folder / "status.json").exists()
                or read_json(folder / "status.json")["status"] == "done"
            ):
                return False
            return len(read_json(folder / "environment.json")["attempts"]) > killed.count(name)

    return killed, lambda job, asked: Deadly(job, asked, workers=2)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_its_run_begun_again(
    configs, tmp_path: Path
) -> None:
    longer = [config.override({"steps": 150}) for config in configs]
    killed, backend = deadly(None, often=2)
    outcomes = sweep(longer, tmp_path / "killed", backend, checkpoint_seconds=0.05)
    assert len(killed) == 2
    assert [o.status for o in outcomes] == ["done"] * 4
    sweep(longer, tmp_path / "whole", local(0))
    assert content(tmp_path / "killed") == content(tmp_path / "whole")
    attempts = [
        len(read_json(path)["attempts"])
        for path in (tmp_path / "killed").glob("*/environment.json")
    ]
    assert sum(attempts) == 6


@pytest.mark.slow
def test_a_run_that_kills_its_worker_every_time_fails_and_the_others_finish(
    configs, tmp_path: Path
) -> None:
    victim = configs[1].override({"steps": 100_000})
    killed, backend = deadly(victim.name, often=99)
    outcomes = {o.config.name: o for o in sweep([victim, *configs], tmp_path, backend, retries=1)}
    assert len(killed) == 2
    assert outcomes[victim.name].status == "failed"
    assert "killed by SIGKILL (out of memory?), 2 times in a row" in outcomes[victim.name].message
    assert all(outcomes[config.name].status == "done" for config in configs)
    row = next(row for row in Store(tmp_path).rows() if row["name"] == victim.name)
    assert (row["status"], row["message"]) == ("failed", outcomes[victim.name].message)


@pytest.mark.slow
def test_a_run_that_runs_out_of_memory_fails_and_the_others_finish(configs, tmp_path: Path) -> None:
    """A worker with 3 GB of addresses, and a model whose weights alone are more."""

    class Poor(Local):
        def start(self, config: RunConfig) -> None:
            super().start(config)
            for one in self.processes:
                resource.prlimit(one.process.pid, resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))

    huge = configs[0].override({"width": 8192})
    backend = partial(Poor, workers=1)
    outcomes = {o.config.name: o for o in sweep([huge, *configs], tmp_path, backend)}
    assert outcomes[huge.name].status == "failed"
    assert "memory" in outcomes[huge.name].message
    assert all(outcomes[config.name].status == "done" for config in configs)


# ------------------------------------------------------------------ crowds


@pytest.mark.slow
def test_four_processes_on_one_store_commit_each_run_once(tmp_path: Path) -> None:
    """Two train by themselves, two have a worker each."""
    command = [sys.executable, "-m", "placecell", "sweep", "latin_square", *FLAGS]
    command += ["--encoding", "learnable", "--sigma", "0.1,1,2", "--seeds", "2"]
    command += ["--out", str(tmp_path), "--json", "--workers"]
    crowd = [
        subprocess.Popen([*command, workers], stdout=subprocess.PIPE, text=True)
        for workers in ("0", "1", "0", "1")
    ]
    reports = [json.loads(process.communicate(timeout=300)[0]) for process in crowd]
    assert [process.returncode for process in crowd] == [0] * 4
    assert all(one["counts"] == {"done": 6} for one in reports)
    assert sum(6 - one["reused"] for one in reports) == 6, "each run was trained by one of them"
    attempts = [read_json(path)["attempts"] for path in tmp_path.glob("*/environment.json")]
    assert [len(one) for one in attempts] == [1] * 6


# ------------------------------------------------------------------ stores that cannot be written


def test_a_read_only_store_is_refused_before_anything_is_trained(
    configs, tmp_path: Path, monkeypatch
) -> None:
    def read_only(*paths: Path) -> None:
        raise OSError(30, "Read-only file system")

    def never(job, asked):
        raise AssertionError("a worker was started")

    monkeypatch.setattr(disk, "write", read_only)
    with pytest.raises(InputError, match=r"cannot be written \(Read-only file system\)"):
        sweep(configs, tmp_path, never)
    monkeypatch.undo()
    with pytest.raises(InputError, match="cannot be written"):
        sweep(configs, Path("/proc/placecell"), never)


@pytest.mark.slow
def test_a_full_disk(configs, tmp_path: Path) -> None:
    """A real one, of 200 kB: what did not fit says so, and is made when there is space."""
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", tmp_path]).returncode
    ):
        pytest.skip("mounting a small disk is not allowed here")
    try:
        several = [configs[0].override({"seed": seed}) for seed in range(12)]
        outcomes = sweep(several, tmp_path, local(1))
        failed = [o for o in outcomes if o.status == "failed"]
        assert 0 < len(failed) < len(several)
        assert all("No space left on device" in o.message for o in failed)
        subprocess.run(["mount", "-o", "remount,size=20m", tmp_path], check=True)
        again = sweep(several, tmp_path, local(1))
        assert [o.status for o in again] == ["done"] * len(several)
        assert sum(o.reused for o in again) == len(several) - len(failed)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


# ------------------------------------------------------------------ Ctrl-C


def group_commands(group: int) -> list[bytes]:
    """The command line of every process of a group."""
    commands = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            if os.getpgid(int(path.name)) == group:
                commands.append((path / "cmdline").read_bytes())
    return commands


@pytest.fixture
def long_sweep(tmp_path: Path):
    """A sweep of two runs that would take for ever, in a process group of its own, both under
    way."""
    command = [
        sys.executable,
        "-m",
        "placecell",
        "sweep",
        "latin_square",
        *FLAGS,
        "--steps",
        "1000000",
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
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(1200):
        if len(list(tmp_path.glob("*/status.json"))) == 2:
            break
        time.sleep(0.1)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_ctrl_c_once_saves_all_runs(long_sweep: subprocess.Popen, tmp_path: Path) -> None:
    os.killpg(long_sweep.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, err = long_sweep.communicate(timeout=60)
    assert long_sweep.returncode == 130
    assert "the same command goes on from here" in err
    assert {row["status"] for row in Store(tmp_path).rows()} == {"interrupted"}
    assert len(list(tmp_path.glob("*/checkpoint.safetensors"))) == 2


@pytest.mark.slow
def test_ctrl_c_while_workers_are_being_made(tmp_path: Path) -> None:
    """The server that they fork from is then among its imports, and must not die of it."""
    command = [
        sys.executable,
        "-m",
        "placecell",
        "sweep",
        "latin_square",
        *FLAGS,
        "--seeds",
        "1",
        "--workers",
        "1",
    ]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not any(
        b"forkserver" in words for words in group_commands(process.pid)
    ):
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "the same command goes on from here" in err


@pytest.mark.slow
def test_ctrl_c_twice_stops_at_once_and_leaves_no_process(
    long_sweep: subprocess.Popen, tmp_path: Path
) -> None:
    for pid in workers_of(long_sweep.pid):
        os.kill(pid, signal.SIGSTOP)  # so that the second comes before anything is saved
    os.kill(long_sweep.pid, signal.SIGINT)
    assert "once more stops at once" in _line(long_sweep, "once more")
    assert {row["status"] for row in Store(tmp_path).rows()} == {"running"}
    os.kill(long_sweep.pid, signal.SIGINT)
    _, err = long_sweep.communicate(timeout=60)
    assert long_sweep.returncode == 130
    assert "stopped at once" in err
    rows = Store(tmp_path).rows()
    assert {row["status"] for row in rows} == {"stopped"}, "a worker is still holding its run"


def workers_of(pid: int) -> list[int]:
    """The worker processes of a sweep: the children of its fork server."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # of one that has ended meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return [one for one, parent in parents.items() if parents.get(parent) == pid]


def _line(process: subprocess.Popen, words: str) -> str:
    assert process.stderr is not None
    while line := process.stderr.readline():
        if words in line:
            return line
    return ""


def test_the_small_sweep_is_what_the_faults_need() -> None:
    assert len({config.name for config in small_sweep()}) == 2
