"""Small runs of every encoding on every task, and analyses of some: names, and sha256 of files.

    python tests/golden/record.py OUT.json

Every run is made twice, straight through and interrupted halfway; both must agree byte for byte.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import torch
from threadpoolctl import threadpool_limits

import placecell
from placecell.train import Watch

# Of OpenBLAS, which numpy and scipy use: processors of one name have different ones by default.
KERNELS = "Haswell"
ENCODINGS = (
    "learnable",
    "random",
    "sinusoidal",
    "rotary",
    "relative",
    "alibi",
    "nope",
    "nope-causal",
)
FILES = ("weights.safetensors", "metrics.csv", "snapshots.safetensors")
REGIONS, VOLUMES, NETWORKS = 24, 100, 3

SMALL = {
    "width": 24,
    "depth": 2,
    "steps": 6,
    "eval_every": 3,
    "batch_size": 8,
    "warmup": 2,
    "snapshots": "table",
}
PRESETS = {"latin_square": "adam", "nmar": "quick", "fmri": "long"}
DATA: dict[str, dict[str, Any]] = {
    "latin_square": {"n_train": 48, "n_valid": 16, "n_test": 16},
    "nmar": {
        "modules": "3x6",
        "n_train": 60,
        "n_valid": 20,
        "n_test": 20,
        "optimizer": "adam",
        "lr": 3e-3,
    },
    "fmri": {
        "dataset": "files",
        "train_files": "data/train-*.npy",
        "test_files": "data/test-*.csv",
        "networks": "data/networks.txt",
        "centroids": "data/centroids.txt",
    },
}
MORE: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "muon": {"optimizer": "muon"},
    "sgd": {"optimizer": "sgd"},
    "pre-norm": {"norm": "pre"},
    "all weights": {"snapshots": "weights"},
    "many settings": {
        "activation": "gelu",
        "schedule": "constant",
        "clip": 0.5,
        "pe_lr": 0.01,
        "mlp_ratio": 1.0,
        "weight_scale": 0.5,
        "output_scale": 2.0,
        "pe_seed": 1,
        "weights_seed": 2,
        "data_seed": 3,
    },
}
SWEEP: tuple[dict[str, Any], ...] = (
    {"encoding": "learnable", "sigma": 0.1},
    {"encoding": "learnable", "sigma": 2.0},
    {"encoding": "sinusoidal"},
)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_data() -> None:
    """Time series of regions in this folder: a run's name depends on their relative paths."""
    rng = np.random.default_rng(0)
    networks = np.arange(REGIONS) % NETWORKS
    Path("data").mkdir()
    for name in ("train-1.npy", "train-2.npy", "test-1.csv"):
        shared = rng.standard_normal((VOLUMES, NETWORKS))[:, networks]
        series = shared + rng.standard_normal((VOLUMES, REGIONS))
        if name.endswith(".npy"):
            np.save(f"data/{name}", series)
        else:
            np.savetxt(f"data/{name}", series, fmt="%.6f", delimiter=",")
    centroids = rng.uniform(10, 60, (REGIONS, 3))
    centroids[: REGIONS // 2, 0] *= -1  # the left hemisphere
    np.savetxt("data/centroids.txt", centroids, fmt="%.3f")
    Path("data/networks.txt").write_text("".join(f"network{n}\n" for n in networks))


def small(task: str, settings: dict[str, Any]) -> Any:
    """One of the task's presets made small, with `settings`."""
    return placecell.preset(task, PRESETS[task]).override(SMALL | DATA[task] | settings)


def hashes(folder: Path) -> dict[str, str]:
    there = [folder / name for name in FILES if (folder / name).exists()]
    return {path.name: sha256(path.read_bytes()) for path in there}


def train_twice(task: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Name and files of a run: the same straight through and with a stop after 3 of its 6 steps."""
    config = small(task, settings)
    straight = placecell.run(config, "straight")
    stop = Watch(on_step=lambda state: state.step < 3)
    stopped = placecell.run(config, "resumed", watch=stop)
    assert (straight.status, stopped.status, stopped.step) == ("done", "interrupted", 3)
    resumed = placecell.run(config, "resumed")
    name, files = straight.config.name, hashes(straight.folder)
    assert (resumed.status, resumed.config.name) == ("done", name)
    assert hashes(resumed.folder) == files, f"{name} is another run when it is resumed"
    return {"name": name, "files": files}


def record_runs() -> dict[str, Any]:
    """What every run is: label -> its name and files."""
    runs = {}
    for task, encoding, heads in product(DATA, ENCODINGS, (1, 2)):
        settings = {"encoding": encoding, "heads": heads}
        runs[f"{task}, {encoding}, heads {heads}"] = train_twice(task, settings)
    donor = runs["latin_square, learnable, heads 1"]["name"]
    more = MORE | {"transplant": {"donor": donor, "donor_change": "shuffled", "seed": 1}}
    for key, settings in more.items():
        runs[f"latin_square, {key}"] = train_twice("latin_square", settings)
    return runs


def as_recorded(content: bytes) -> bytes:
    """A table of runs without times, and with the columns that it had when it was recorded.

    Since then `error_of_mean` has become `chance`, which accuracies have too, and `passes` and
    `rho` have come.
    """
    rows = list(csv.reader(io.StringIO(content.decode())))
    left_out = {"seconds", "passes", "rho"} | (set() if "test/mse" in rows[0] else {"chance"})
    kept = [place for place, name in enumerate(rows[0]) if name not in left_out]
    rows[0] = ["error_of_mean" if name == "chance" else name for name in rows[0]]
    return "\n".join(",".join(row[place] for place in kept) for row in rows).encode()


def record_analysis(task: str) -> dict[str, Any]:
    """The names of the runs of a small sweep, and what `placecell analyse` writes of them."""
    folder = Path("sweeps") / task
    configs = [small(task, settings | {"seed": seed}) for settings in SWEEP for seed in (0, 1)]
    names = [placecell.run(config, folder).config.name for config in configs]
    source = str(Path(placecell.__file__).parents[1])  # the same code there as here
    command = [sys.executable, "-m", "placecell", "analyse", str(folder)]
    where = os.environ | {"PYTHONPATH": source}
    done = subprocess.run(command, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = sorted(p for p in (folder / "analysis").iterdir() if p.suffix in (".csv", ".json"))
    contents = {path.name: path.read_bytes() for path in written}
    del contents["intervals.csv"]  # came later; its means and intervals follow from runs.csv
    contents["runs.csv"] = as_recorded(contents["runs.csv"])
    return {"names": names, "files": {name: sha256(content) for name, content in contents.items()}}


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def make_record() -> dict[str, Any]:
    """Everything, made in this folder, and what its bytes depend on besides the code."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        write_data()
        runs = record_runs()
        analyses = {task: record_analysis(task) for task in DATA}
    packages = {m.__name__: str(m.__version__) for m in (torch, np, scipy, sklearn)}
    return {"machine": packages | {"processor": processor()}, "runs": runs, "analyses": analyses}


def main(out: Path) -> None:
    out = out.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        record = make_record()
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_CORETYPE") != KERNELS:  # read when numpy is imported
        where = os.environ | {"OPENBLAS_CORETYPE": KERNELS}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=where).returncode)
    main(Path(sys.argv[1]))
