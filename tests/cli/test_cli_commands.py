"""The set of commands: which there are, what their help teaches, what they read and import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import placecell.cli
from placecell import tasks
from placecell.cli.app import all_commands, build_parser, call, task_commands
from placecell.command import Command
from placecell.config import presets

SHARED = {"__init__", "app", "common", "options", "parser", "progress"}  # files without a command
SMALL = [
    "--n-train",
    "64",
    "--n-valid",
    "16",
    "--n-test",
    "16",
    "--width",
    "16",
    "--depth",
    "1",
    "--batch-size",
    "16",
    "--steps",
    "2",
    "--eval-every",
    "2",
]
NAMES = [command.name for command in all_commands()]


def test_every_file_is_a_command_and_every_command_a_file_or_a_tasks() -> None:
    files = {path.stem for path in Path(placecell.cli.__file__).parent.glob("*.py")}
    contributed = {command.name for command in task_commands()}
    _, parsers = build_parser()
    assert files >= SHARED
    assert list(parsers) == NAMES
    assert set(parsers) == (files - SHARED) | contributed
    assert not files & contributed


def test_fetch_is_the_fmri_tasks() -> None:
    from placecell.tasks.fmri import commands

    assert [command.name for command in commands.COMMANDS] == ["fetch"]
    assert commands.COMMANDS[0] in task_commands()
    for path in Path(placecell.cli.__file__).parent.glob("*.py"):
        assert "placecell.tasks.fmri" not in path.read_text(), path.name


def test_two_commands_of_one_name_are_refused(capsys, monkeypatch) -> None:
    mine = Command("run", "another", "", lambda args: 0)
    monkeypatch.setattr("placecell.cli.app.task_commands", lambda: [mine])
    assert call(["list"]) == 2
    assert "two commands are called 'run'" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_help_of_every_command_teaches(name: str, capsys) -> None:
    command = next(command for command in all_commands() if command.name == name)
    with pytest.raises(SystemExit, match="0"):
        call([name, "--help"])
    out = capsys.readouterr().out
    assert out.startswith(f"usage: placecell {name} {command.usage}\n")
    assert len(command.description) > 20
    assert command.description in " ".join(out.split())
    for flag in ("--json", "--out", "--plugin"):
        assert flag in out
    if command.configured:
        assert "Name a task to see its settings" in out


def test_help_of_all_commands_names_each(capsys) -> None:
    assert call([]) == 0
    out = capsys.readouterr().out
    for command in all_commands():
        assert f"\n    {command.name} " in out
        assert f"  {command.help}\n" in out


# ------------------------------------------------------------------ what is read and imported


@pytest.fixture
def presets_read(monkeypatch) -> list[tuple[str, str]]:
    read, seen = presets._parsed, []

    def count(texts, task: str, name: str):
        seen.append((task, name))
        return read(texts, task, name)

    monkeypatch.setattr(presets, "_parsed", count)
    return seen


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["run", "latin_square", *SMALL], [("latin_square", "quick")]),
        (
            [
                "sweep",
                "latin_square",
                *SMALL,
                "--preset",
                "paper",
                "--seeds",
                "1",
                "--encoding",
                "nope",
                "--dry-run",
            ],
            [("latin_square", "paper")],
        ),
        (["transplant", "latin_square", "--sigma", "1"], [("latin_square", "quick")]),
        (["status", "absent"], []),
        (["list"], []),
    ],
)
def test_a_preset_is_read_once_and_only_where_it_is_used(
    argv: list[str], expected: list, presets_read: list, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call([*argv, "--json"])
    assert presets_read == expected


def modules_of(*argv: str, cwd: Path | None = None) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and what it imported."""
    script = (
        "import sys\nfrom placecell.cli import call\n"
        "try:\n    code = call(sys.argv[1:])\nexcept SystemExit as end:\n    code = end.code or 0\n"
        "print('modules', *sys.modules)\nsys.exit(code)\n"
    )
    command = [sys.executable, "-c", script, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)
    assert "Traceback" not in done.stderr
    return done.returncode, set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "argv", [["--help"], ["fetch", "--help"], ["sweep", "fmri", "--help"], ["report", "--help"]]
)
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    code, modules = modules_of(*argv)
    assert code == 0
    heavy = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "rich", "nibabel"}
    assert not heavy & modules


def test_status_and_export_import_what_the_store_does(tmp_path: Path) -> None:
    script = "import sys, placecell.store\nprint(*sys.modules)"
    store = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    allowed = {"torch", "scipy", "sklearn"} & set(store.stdout.split())
    for command in ("status", "export"):
        code, modules = modules_of(command, str(tmp_path))
        assert code == 2  # no runs here
        assert {"torch", "scipy", "sklearn"} & modules <= allowed


# ------------------------------------------------------------------ plugins, dry runs


@pytest.fixture
def loaded(monkeypatch) -> list[str]:
    """What was asked to be loaded, in its order."""
    asked: list[str] = []

    def load_plugin(text: str) -> str:
        asked.append(text)
        return text.removesuffix(".py")

    monkeypatch.setattr("placecell.cli.app.load_plugin", load_plugin)
    return asked


@pytest.mark.parametrize(
    "argv",
    [
        ["--plugin", "a.py", "--plugin=b", "list"],
        ["--plugin", "a.py", "list", "--plugin", "b"],
        ["list", "--json", "--plugin", "a.py", "--plugin=b"],
    ],
)
def test_plugins_are_loaded_wherever_they_stand(argv: list[str], loaded: list, monkeypatch) -> None:
    given = []

    def run(args) -> int:
        """Note what there is."""
        given.append((args.plugin, list(loaded)))
        return 0

    import placecell.cli.list

    monkeypatch.setattr(placecell.cli.list, "COMMAND", Command("list", "what there is", "", run))
    assert call(argv) == 0
    assert given == [(["a", "b"], ["a.py", "b"])]


def test_a_plugin_without_a_name_is_one_sentence(loaded: list, capsys) -> None:
    assert call(["list", "--plugin"]) == 2
    out, err = capsys.readouterr()
    assert (out, loaded, err.count("\n")) == ("", [], 1)
    assert "--plugin" in err


def test_the_value_of_plugin_is_not_the_task(loaded: list, capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        call(["run", "--plugin", "nmar", "latin_square", "--help"])
    assert "--conditions" in capsys.readouterr().out
    assert loaded == ["nmar"]


def test_a_dry_run_changes_nothing_on_disk(tmp_path: Path, capsys) -> None:
    sweep = ["sweep", "latin_square", *SMALL, "--encoding", "nope", "--out", str(tmp_path)]
    assert call([*sweep, "--seeds", "1", "--workers", "0", "--json"]) == 0
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    (folder / "checkpoint.safetensors").write_bytes(b"what a kill just before the end left")

    def disk() -> dict[Path, tuple[int, bytes]]:
        return {
            path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in (tmp_path, *tmp_path.rglob("*"))
        }

    before = disk()
    capsys.readouterr()
    assert call([*sweep, "--seeds", "2", "--dry-run"]) == 0
    assert "where 1 are done" in capsys.readouterr().out
    assert disk() == before


def test_tasks_with_commands_are_tasks() -> None:
    for command in task_commands():
        assert command.run.__module__.split(".")[2] in tasks.available()
