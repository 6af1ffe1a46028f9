"""Runs that cannot be read are named with the reason, and do not hide the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placecell.cli import call
from placecell.config import RunConfig
from placecell.store import Store, files, index, locks
from placecell.train import run


@pytest.fixture
def store(tiny, tiny_task, tiny_splits, tmp_path: Path) -> Path:
    """Two runs that are done."""
    folder = tmp_path / "store"
    for sigma in (0.1, 2.0):
        run(tiny(sigma=sigma), folder, device="cpu", task=tiny_task, splits=tiny_splits)
    return folder


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def rename_encoding(path: Path) -> None:
    path.write_text(path.read_text().replace('"learnable"', '"learnabel"'))


PROBLEMS = {
    "weights cut off": ("weights.safetensors", shorten, "not a whole safetensors file"),
    "snapshots cut off": ("snapshots.safetensors", shorten, "not a whole safetensors file"),
    "no weights": ("weights.safetensors", Path.unlink, "the weights are missing"),
    "no metrics": ("metrics.csv", Path.unlink, "missing, of a run that is done"),
    "unknown encoding": ("config.toml", rename_encoding, "learnabel"),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_is_noticed_and_named(
    problem: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, damage, message = PROBLEMS[problem]
    assert {row["status"] for row in Store(store).rows()} == {"done"}  # and is in the index
    bad, good = Store(store).folders()
    damage(bad / file)
    if file == "config.toml":  # as a run of a plugin has it: its name is that of its settings
        bad = bad.rename(store / RunConfig.from_toml(bad / file).name)
    rows = {row["name"]: row for row in Store(store).rows()}
    assert rows[bad.name]["status"] == "unreadable"
    assert message in rows[bad.name]["message"]
    assert rows[good.name]["status"] == "done"
    runs = Store(store).run_set()
    assert [result.folder for result in runs.results] == [good]
    assert runs.unreadable == {bad.name: rows[bad.name]["message"]}
    assert set(Store(store).points()["run"]) == {good.name}
    capsys.readouterr()
    assert call(["status", str(store)]) == 0
    assert "1 unreadable" in (text := capsys.readouterr().out)
    assert message in text
    assert call(["export", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unreadable"] == [bad.name]


def test_an_encoding_of_a_plugin_that_is_not_loaded_is_named_with_its_source(store: Path) -> None:
    bad = Store(store).folders()[0]
    rename_encoding(bad / "config.toml")
    bad = bad.rename(store / RunConfig.from_toml(bad / "config.toml").name)
    facts = files.read_json(bad / "environment.json") | {"plugins": {"encoding": "their_module"}}
    files.write_json(bad / "environment.json", facts)
    message = Store(store).run_set().unreadable[bad.name]
    assert "unknown encoding 'learnabel', which was of their_module" in message
    assert "--plugin" in message


def test_a_plugin_that_is_loaded_later_makes_its_runs_readable(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.ENCODINGS, "names", lambda: ["nope"])
    assert {row["status"] for row in Store(store).rows()} == {"unreadable"}
    monkeypatch.undo()
    assert {row["status"] for row in Store(store).rows()} == {"done"}
    monkeypatch.setattr(index.ENCODINGS, "names", lambda: ["nope"])
    assert {row["status"] for row in Store(store).rows()} == {"unreadable"}


QUICK = """
import sys
from placecell.cli import call
from placecell.config import RunConfig
assert call(sys.argv[1:]) == 0
heavy = {'torch', 'scipy', 'sklearn', 'networkx', 'pandas', 'matplotlib'} & sys.modules.keys()
assert not heavy, heavy
"""


@pytest.mark.parametrize("words", [["list"], ["status", "STORE"], ["export", "STORE"]])
def test_quick_commands_import_nothing_heavy(words: list[str], store: Path) -> None:
    words = [str(store) if word == "STORE" else word for word in words]
    (store / "index.json").unlink(missing_ok=True)  # so that every run is read
    done = subprocess.run([sys.executable, "-c", QUICK, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SETTINGS = """
import sys
from placecell.registry import TASKS
for name in TASKS.names():
    TASKS.config_class(name)
heavy = {'torch', 'scipy', 'sklearn', 'networkx', 'pandas', 'matplotlib'} & sys.modules.keys()
assert not heavy, heavy
"""


def test_the_settings_of_every_task_are_read_without_anything_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", SETTINGS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs files it may not write")
def test_a_lock_of_another_user_is_seen(tmp_path: Path) -> None:
    with locks.lock(tmp_path):
        (tmp_path / locks.NAME).chmod(0o444)
        assert locks.is_locked(tmp_path)
    assert not locks.is_locked(tmp_path)


def test_a_lock_that_may_only_be_read_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of another user: filelock may not open it."""
    import filelock

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    with locks.lock(tmp_path):
        monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
        assert locks.is_locked(tmp_path)
    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    assert not locks.is_locked(tmp_path)
