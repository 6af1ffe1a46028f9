"""Sweeps of scripts: with and without a guard, from standard input, and without what Windows
lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from placecell.store import Store
from placecell.store.runs import read_status

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "python_sweep.py"
OWN = """
from placecell import LearnablePE, register_encoding

@register_encoding("mine")
class Mine(LearnablePE):
    '''A table under another name.'''
"""
SWEEP = """
from placecell import RunConfig
from placecell.sweep import grid, local, sweep

base = RunConfig.from_dict({
    "task": "latin_square", "data": {"n_train": 32, "n_valid": 8, "n_test": 8},
    "model": {"width": 8, "depth": 1}, "train": {"steps": 2, "eval_every": 1, "batch_size": 8},
})
configs = grid(base, [], {"encoding": "NAME", "sigma": [0.1, 2.0]}, seeds=1)
"""
CALL = 'print(sweep(configs, "runs", local(2)))\n'


def python(cwd: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, text=True, timeout=300)


def test_the_script_of_the_docs(tmp_path: Path) -> None:
    done = python(tmp_path, str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert "4 done" in done.stdout
    assert done.stderr == ""


def test_standard_input_needs_no_guard(tmp_path: Path) -> None:
    """Workers do not import a script that registers nothing."""
    done = python(tmp_path, text=SWEEP.replace("NAME", "learnable") + CALL)
    assert done.returncode == 0, done.stderr
    assert "2 done" in done.stdout


@pytest.mark.slow
def test_an_encoding_of_the_script_with_a_guard(tmp_path: Path) -> None:
    guarded = f'if __name__ == "__main__":\n    {CALL}'
    (tmp_path / "script.py").write_text(OWN + SWEEP.replace("NAME", "mine") + guarded)
    done = python(tmp_path, "script.py")
    assert done.returncode == 0, done.stderr
    assert "2 done" in done.stdout


def test_an_encoding_of_the_script_without_a_guard_is_one_sentence_and_failed_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / "script.py").write_text(OWN + SWEEP.replace("NAME", "mine") + CALL)
    done = python(tmp_path, "script.py")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "script.py: worker processes import this script" in last
    assert 'if __name__ == "__main__":' in last
    assert done.stderr.count("Traceback") == 1, done.stderr
    folders = Store(tmp_path / "runs").folders()
    assert len(folders) == 2
    for folder in folders:
        assert read_status(folder)["status"] == "failed"
        assert "worker processes import this script" in read_status(folder)["message"]
    assert {row["status"] for row in Store(tmp_path / "runs").rows()} == {"failed"}


def test_an_encoding_from_standard_input_is_one_sentence(tmp_path: Path) -> None:
    done = python(tmp_path, text=OWN + SWEEP.replace("NAME", "mine") + CALL)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "from standard input, which worker processes cannot import" in last
    assert "0 workers" in last


# Windows has no fcntl, no fork, no pthread_sigmask and no SIGKILL.
WINDOWS = """
import multiprocessing, signal, sys
for name in ("fcntl", "multiprocessing.forkserver"):
    sys.modules[name] = None
for name in ("pthread_sigmask", "SIGKILL"):
    delattr(signal, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]
multiprocessing.context._concrete_contexts.pop("forkserver")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="is on Windows")
def test_run_and_sweep_without_what_windows_lacks(tmp_path: Path) -> None:
    code = SWEEP.replace("NAME", "learnable") + (
        'if __name__ == "__main__":\n'
        "    import placecell\n"
        "    from placecell.store import locks\n"
        '    assert placecell.run(configs[0], "runs").status == "done"\n'
        f"    {CALL}"
        '    assert not locks.is_locked(placecell.Store("runs").folders()[0])\n'
    )
    (tmp_path / "script.py").write_text(WINDOWS + code)
    done = python(tmp_path, "script.py")
    assert done.returncode == 0, done.stderr
    assert "2 done; 1 were there already" in done.stdout
