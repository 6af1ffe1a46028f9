"""Sweeps on a real Ray: the bits of a sweep without it, whatever dies on the way, and nobody else
can reach it."""

from __future__ import annotations

import http.server
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placecell.cli import call
from placecell.config import RunConfig
from placecell.config.presets import base_config
from placecell.errors import InputError
from placecell.store import files
from placecell.sweep import grid, local, sweep
from placecell.sweep.backends.ray import on_ray

SETTINGS = {
    "n_train": 96,
    "n_valid": 24,
    "n_test": 48,
    "width": 8,
    "depth": 1,
    "steps": 1500,
    "eval_every": 500,
    "batch_size": 32,
    "warmup": 0,
    "encoding": "learnable",
    "sigma": 0.1,
}
FLAGS = [
    word for key, value in SETTINGS.items() for word in (f"--{key.replace('_', '-')}", str(value))
]
SWEEP = [
    sys.executable,
    "-m",
    "placecell",
    "sweep",
    "latin_square",
    *FLAGS,
    "--seeds",
    "2",
    "--checkpoint-seconds",
]
SWEEP += ["0.2", "--backend", "ray"]
COMPARED = ("config.toml", "metrics.csv", "snapshots.safetensors", "weights.safetensors")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/fd").exists(), reason="looks at processes as Linux shows them"
    ),
]


@pytest.fixture(scope="module")
def configs() -> list[RunConfig]:
    return grid(base_config("latin_square")[0].override(SETTINGS), [], {}, seeds=2)


@pytest.fixture(scope="module")
def whole(configs: list[RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sweep in this process, with nothing to disturb it."""
    out = tmp_path_factory.mktemp("whole")
    assert [o.status for o in sweep(configs, out, local(0))] == ["done"] * 2
    return out


def check_same(one: Path, other: Path, names: list[str]) -> None:
    for name in names:
        assert files.read_json(one / name / "status.json")["status"] == "done"
        assert {path.name for path in (one / name).glob("[!.]*")} == {
            p.name for p in (other / name).glob("[!.]*")
        }
        for file in COMPARED:
            assert (one / name / file).read_bytes() == (other / name / file).read_bytes(), (
                f"{name}/{file}"
            )


def until(what: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def attempts(folder: Path) -> list[dict[str, int]]:
    path = folder / "environment.json"
    return json.loads(path.read_text())["attempts"] if path.exists() else []


def holder(folder: Path) -> int:
    """The process that works on a run."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(folder / ".lock"):
                return int(link.parts[2])
        except OSError:
            continue
    raise AssertionError(f"nobody holds {folder}")


def listeners(mark: str) -> dict[str, str]:
    """Every address that a process with `mark` in its environment listens at, and what it is
    called."""
    addresses = {}
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":  # LISTEN
                addresses[f"socket:[{words[9]}]"] = words[1].rpartition(":")[0]
    there = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() not in (process / "environ").read_bytes():
                continue
            for link in (process / "fd").iterdir():
                target = os.readlink(link)
                if target in addresses:
                    there[f"{target} {(process / 'comm').read_text().strip()}"] = addresses[target]
        except OSError:
            continue
    return there


LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


def test_a_killed_worker_and_ctrl_c_cost_nothing_and_only_this_machine_reaches_it(
    configs: list[RunConfig], whole: Path, tmp_path: Path
) -> None:
    mark = secrets.token_hex(16)
    home = tmp_path / "home"
    home.mkdir()
    command = [*SWEEP, "--workers", "2", "--out", str(tmp_path)]
    environ = os.environ | {"MARK": mark, "HOME": str(home)}
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    folders = [tmp_path / config.name for config in configs]
    until(lambda: all((folder / "checkpoint.safetensors").exists() for folder in folders))
    there = listeners(mark)
    victim = folders[0]
    os.kill(holder(victim), signal.SIGKILL)
    assert len(there) >= 4  # Ray's servers and the workers
    assert set(there.values()) <= set(LOOPBACK), there
    until(lambda: len(attempts(victim)) == 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    assert "raylet" not in out + err  # Ray's own messages
    assert attempts(victim)[1]["from_step"] > 0
    assert files.read_json(victim / "status.json")["status"] == "interrupted"
    assert not list(tmp_path.glob(".ray-*"))
    assert not list(home.iterdir())
    until(lambda: not listeners(mark), 20)  # nothing of it is left
    assert all(o.status == "done" for o in sweep(configs, tmp_path, local(0)))
    check_same(tmp_path, whole, [config.name for config in configs])


CLUSTER = """
import os
os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
import ray
from ray.cluster_utils import Cluster
options = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=options)
other = cluster.add_node(**options)
print(cluster.address, flush=True)
input()
cluster.remove_node(other, allow_graceful=False)
print("removed", flush=True)
input()
cluster.shutdown()
"""


@pytest.fixture
def cluster() -> Iterator[subprocess.Popen[str]]:
    """Two nodes of one CPU each. It says its address, and a line to it takes a node away."""
    command = [sys.executable, "-c", CLUSTER]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        yield process
        process.stdin.write("\n\n")
        process.stdin.flush()
        process.communicate(timeout=60)


def test_a_node_removed_in_mid_sweep_costs_nothing(
    configs: list[RunConfig], whole: Path, tmp_path: Path, cluster: subprocess.Popen[str]
) -> None:
    assert cluster.stdin is not None
    assert cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    command = [*SWEEP, "--address", address, "--json", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folders = [tmp_path / config.name for config in configs]
    until(lambda: all((folder / "checkpoint.safetensors").exists() for folder in folders))
    cluster.stdin.write("\n")
    cluster.stdin.flush()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads(out)["counts"] == {"done": 2}
    assert sorted(len(attempts(folder)) for folder in folders) == [1, 2]
    check_same(tmp_path, whole, [config.name for config in configs])


RETURNED = """
import json, os, signal, sys
from dataclasses import replace
from pathlib import Path
from placecell.errors import InputError
from placecell.sweep import grid, sweep
from placecell.sweep.backends.ray_connection import connect
from placecell.sweep.backends.ray import on_ray
from placecell.config.presets import base_config

out, settings, receiver = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
configs = grid(base_config("latin_square")[0].override(settings), [], {}, seeds=2)
ray, _ = connect(None, 1.0, 2)  # one Ray for all that follows

def unseen(job, asked):
    backend = on_ray(None, 1.0, 0.0, None)(job, asked)
    backend.token.unlink()  # as on a node that has no such folder
    return backend

def stop(tally):
    if len(tally.steps) == 2 and not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGINT)

stopped = []
report = {"stopped": [o.status for o in sweep(configs, out, unseen, on_tick=stop)]}
report["files"] = sorted(path.name for path in (out / configs[0].name).glob("[!.]*"))
report["resumed"] = [o.status for o in sweep(configs, out, unseen)]
takes = configs[0].override(receiver)
orphan = replace(takes, donor="latin_square-000000000000")
outcomes = sweep([orphan, takes], out, unseen)
report["donor"] = {o.config.name: (o.status, o.message) for o in outcomes}
report["nodes"] = len(ray.nodes())  # the back end has left it running
try:
    sweep([configs[0].override({"seed": 5})], out, on_ray(None, 64.0, 0.5, None))
except InputError as error:
    report["refused"] = str(error)
print(json.dumps(report))
"""


def test_nodes_that_do_not_see_the_store_send_their_files_back(
    configs: list[RunConfig], whole: Path, tmp_path: Path
) -> None:
    receiver = {"donor": configs[0].name, "donor_change": "shuffled", "steps": 20}
    out = tmp_path / "store"
    command = [sys.executable, "-c", RETURNED, str(out), json.dumps(SETTINGS), json.dumps(receiver)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["stopped"] == ["interrupted"] * 2
    assert report["files"] == [
        "checkpoint.safetensors",
        "config.toml",
        "environment.json",
        "metrics.csv",
        "status.json",
    ]
    assert report["resumed"] == ["done"] * 2
    assert all(len(attempts(out / config.name)) == 2 for config in configs)
    assert all(attempts(out / config.name)[1]["from_step"] > 0 for config in configs)
    takes = configs[0].override(receiver)
    assert report["donor"].pop(takes.name) == ["done", ""]
    ((status, message),) = report["donor"].values()
    assert status == "failed"
    assert "run the donor first" in message
    assert report["nodes"] == 1
    assert (
        "a run asks for 64 CPUs and 0.5 GPUs, more than any node of the Ray cluster has: 2 CPUs"
        in report["refused"]
    )
    assert not list(out.glob(".ray-*"))
    assert all(o.status == "done" for o in sweep([takes], whole, local(0)))
    check_same(out, whole, [config.name for config in (*configs, takes)])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--cpus-per-run", "0"], "the CPUs of a run must be above 0, not 0"),
        (["--cpus-per-run", "1.5"], "must be a whole number, not 1.5"),
        (["--cpus-per-run", "inf"], "above 0, not inf"),
        (["--gpus-per-run", "-1"], "the GPUs of a run must be at least 0, not -1"),
        (["--workers", "0"], "workers must be at least 1, not 0"),
        (["--address", "nowhere"], "HOST:PORT or auto, not 'nowhere'"),
        (["--address", "ray://127.0.0.1:10001"], "HOST:PORT or auto"),
        (["--address", "127.0.0.1:FREE"], "no Ray cluster answers at 127.0.0.1"),
        (["--address", "127.0.0.1:HTTP"], "is not Ray"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free, http.server.HTTPServer(("127.0.0.1", 0), Silent) as server:
        free.bind(("127.0.0.1", 0))  # and does not listen
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ports = {"FREE": str(free.getsockname()[1]), "HTTP": str(server.server_port)}
        for word, port in ports.items():
            flags = [flag.replace(word, port) for flag in flags]
        words = [
            "sweep",
            "latin_square",
            *FLAGS,
            "--seeds",
            "1",
            "--backend",
            "ray",
            "--out",
            str(tmp_path / "store"),
        ]
        assert call([*words, *flags]) == 2
        server.shutdown()
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("store/*"))


class Silent(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


def test_ray_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "placecell\[ray\]"'):
        on_ray(None, 1.0, 0.0, None)
