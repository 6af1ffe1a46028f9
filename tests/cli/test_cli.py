"""The command line from outside: what it prints, how it exits, and what it leaves on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import placecell
from placecell import encodings, tasks
from placecell.cli import call
from placecell.errors import InputError

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
    "2",
    "--batch-size",
    "16",
    "--steps",
    "6",
    "--eval-every",
    "3",
]
RUN = ["run", "latin_square", *SMALL]


def outside(*argv: str, **kwargs) -> subprocess.CompletedProcess[str]:
    """A real process."""
    return subprocess.run(
        [sys.executable, "-m", "placecell", *argv],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **kwargs,
    )


@pytest.fixture
def cli(capsys, tmp_path: Path, monkeypatch):
    """The same in this process, in tmp_path: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = call(list(argv))
        except SystemExit as exit:  # argparse, after --help
            code = int(exit.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def refused(result: tuple[int, str, str], *words: str) -> None:
    """Exit 2, nothing on standard output, one line on standard error that has these words."""
    code, out, err = result
    assert code == 2, err
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("placecell: ")
    assert "Traceback" not in err
    for word in words:
        assert word in err, f"{word!r} is not in {err!r}"


# ------------------------------------------------------------------ help, list, run


@pytest.mark.parametrize(
    "argv", [["--help"], ["run", "--help"], ["run", "latin_square", "--help"], []]
)
def test_help_does_not_import_torch(argv: list[str]) -> None:
    script = (
        "import sys\nfrom placecell.cli import call\n"
        "try:\n    call(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'matplotlib'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage: placecell" in done.stdout


def test_a_run_imports_no_statistics_and_threads_bind_what_is_imported_later() -> None:
    script = (
        "import argparse, sys\n"
        "from placecell.cli.common import setup_torch\n"
        "setup_torch(argparse.Namespace(threads='1', device='cpu'))\n"
        "import placecell.sweep, placecell.tasks.fmri.task, placecell.tasks.latin_square.task\n"
        "late = {'networkx', 'pandas', 'scipy.stats', 'sklearn', 'torch._dynamo'}\n"
        "assert not late & sys.modules.keys(), late & sys.modules.keys()\n"
        "import scipy.linalg, sklearn.cluster\n"
        "from threadpoolctl import threadpool_info\n"
        "pools = threadpool_info()\n"
        "assert {one['num_threads'] for one in pools} == {1}, pools\n"
    )
    free = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", script], env=free, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_of_a_task_shows_every_key(cli) -> None:
    from placecell.config import RunConfig, keys

    code, out, _ = cli("run", "latin_square", "--help")
    assert code == 0
    for key in keys(RunConfig.from_dict({"task": "latin_square"})):
        assert f"--{key.replace('_', '-')} " in out, key
    for flag in ("--json", "--device", "--seed", "--out", "--threads", "--preset"):
        assert flag in out
        assert flag in cli("--help")[1] or flag == "--preset"


def test_the_installed_command_and_the_module_are_the_same() -> None:
    script = Path(sys.executable).with_name("placecell")
    if not script.exists():
        pytest.skip("not installed with its script")
    one = subprocess.run(
        [script, "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    two = outside("--help")
    assert one.returncode == two.returncode == 0
    assert one.stdout == two.stdout


def test_list(cli) -> None:
    code, out, err = cli("list")
    assert (code, err) == (0, "")
    for name in (*encodings.available(), *tasks.available(), "--preset quick"):
        assert name in out


def test_list_as_json(cli) -> None:
    for argv in (["list", "--json"], ["--json", "list"]):
        code, out, _ = cli(*argv)
        content = json.loads(out)
        assert code == 0
        assert set(content["encodings"]) == set(encodings.available())
        assert set(content["tasks"]) == set(tasks.available())
        assert all(about for section in content.values() for about in section.values())


def test_run_and_run_again(cli, tmp_path: Path) -> None:
    code, out, err = cli(*RUN, "--out", "here")
    assert code == 0
    assert "done" in out
    assert "test/accuracy" in out
    assert "step 0 of 6" in err
    assert "\r" not in err, "no bar where there is no terminal"
    folder = next((tmp_path / "here").iterdir())
    before = content(folder)
    code, out, err = cli(*RUN, "--out", "here")
    assert code == 0
    assert "already there" in out
    assert content(folder) == before
    assert not (tmp_path / "runs").exists()


def test_run_as_json(cli, tmp_path: Path) -> None:
    code, out, err = cli("--json", *RUN, "--sigma", "0.3", "--encoding", "learnable")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["status"] == "done"
    assert content["step"] == 6
    assert not content["reused"]
    assert Path(tmp_path, content["folder"]).is_dir()
    assert content["folder"] == str(Path("runs", content["name"]))
    assert 0 <= content["metrics"]["test/accuracy"] <= 1


def test_global_flags_stand_before_or_after_the_verb(cli, tmp_path: Path) -> None:
    flags = ["--seed", "3", "--out", "there", "--device", "cpu", "--threads", "1", "--json"]
    first = json.loads(cli(*flags, *RUN)[1])
    second = json.loads(cli(*RUN, *flags)[1])
    third = json.loads(cli(*flags[:4], *RUN, *flags[4:])[1])
    assert (first["reused"], second["reused"], third["reused"]) == (False, True, True)
    assert first["folder"] == second["folder"] == third["folder"]
    assert "seed = 3\n" in (tmp_path / first["folder"] / "config.toml").read_text()


def test_a_run_can_be_repeated_from_its_config(cli, tmp_path: Path) -> None:
    first = json.loads(cli(*RUN, "--json", "--sigma", "0.7", "--optimizer", "sgd")[1])
    saved = tmp_path / first["folder"] / "config.toml"
    again = json.loads(cli("run", "latin_square", "--config", str(saved), "--json")[1])
    assert again["reused"]
    assert again["name"] == first["name"]


def test_order_of_flags_does_not_matter(cli) -> None:
    """Neither on the way is valid with the preset's other values, both together are."""
    rest = ["--steps", "1", *SMALL[:6], "--json"]
    one = cli("run", "latin_square", "--heads", "5", "--width", "15", *rest)
    two = cli("run", "latin_square", "--width", "15", "--heads", "5", *rest)
    assert (one[0], two[0]) == (0, 0), one[2] + two[2]
    assert json.loads(one[1])["name"] == json.loads(two[1])["name"]


def test_a_diverged_run_is_reported(cli) -> None:
    for reused in (False, True):
        code, out, err = cli(*RUN, "--optimizer", "sgd", "--lr", "1e30", "--json")
        content = json.loads(out)
        assert (code, content["status"], content["reused"]) == (1, "diverged", reused)
        assert content["metrics"]["train/loss"] is None
        assert "not finite" in err
    assert cli(*RUN, "--optimizer", "sgd", "--lr", "1e30")[0] == 1


# ------------------------------------------------------------------ Ctrl-C


@pytest.mark.slow
def test_control_c_leaves_a_run_that_goes_on(cli, tmp_path: Path) -> None:
    argv = [*RUN[:-4], "--steps", "400", "--eval-every", "20"]
    command = [sys.executable, "-m", "placecell", *argv]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("step 20 of"):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "same command" in err
    assert "interrupted" in out
    folder = next((tmp_path / "runs").iterdir())
    assert json.loads((folder / "status.json").read_text())["status"] == "interrupted"
    assert (folder / "checkpoint.safetensors").exists()

    code, out, err = cli(*argv, "--json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert (content["status"], content["step"], content["reused"]) == ("done", 400, False)
    assert Path(tmp_path, content["folder"]) == folder
    rows = (folder / "metrics.csv").read_text().splitlines()
    assert len(rows) == len(set(rows))
    assert rows[1].startswith("0,train,loss")


# ------------------------------------------------------------------ bad input

BAD = [
    (["--sigma", "-0.1"], ["sigma", "-0.1"]),
    (["--sigma", "nan"], ["sigma", "nan"]),
    (["--sigma", "inf"], ["sigma", "inf"]),
    (["--sigma", "large"], ["sigma", "large"]),
    (["--sigma=-1"], ["sigma", "-1"]),
    (["--heads", "3"], ["width 16", "heads 3"]),
    (["--heads", "0"], ["heads"]),
    (["--encoding", "rotary", "--width", "15", "--axes", "1"], ["rotary", "15"]),
    (["--encoding", "rotary", "--width", "18"], ["rotary", "18"]),
    (["--encoding", "rotary", "--width", "12", "--axes", "3"], ["axes"]),
    (["--encoding", "learnabel"], ["learnabel", "'learnable'"]),
    (["--sgima", "2"], ["--sgima", "'--sigma'"]),
    (["--sgima=2"], ["--sgima", "'--sigma'"]),
    (["--preset", "quik"], ["quik", "'quick'"]),
    (["--norm", "prea"], ["prea", "'pre'"]),
    (["--steps", "1.5"], ["steps", "1.5"]),
    (["--steps", "0"], ["steps"]),
    (["--warmup", "-1"], ["warmup"]),
    (["--seed", "one"], ["seed", "one"]),
    (["--threads", "0"], ["--threads"]),
    (["--threads", "two"], ["--threads"]),
    (["--threads", "99999999999"], ["--threads", "1024"]),
    (["--mlp-ratio", "1e300"], ["mlp_ratio"]),
    (["--width", "1000000000"], ["width", "65536"]),
    (["--width", "65536"], ["weights"]),
    (["--encoding", "relative", "--max-distance", "1000000000000"], ["max_distance"]),
    (["--n-train", "99999999999999999999"], ["n_train"]),
    (["--encoding", "sinusoidal", "--base", "nan"], ["base", "nan"]),
    (["--clip", "0"], ["clip"]),
    (["--momentum", "5"], ["momentum"]),
    (["--preset"], ["--preset", "`placecell run --help`"]),
    (["extra"], ["'extra'", "word"]),
    (["--device", "tpu"], ["tpu"]),
    (["--lr", "nan"], ["lr"]),
    (["--output-scale", "0"], ["output_scale", "0"]),
    (["--weight-scale", "-1"], ["weight_scale", "-1"]),
    (["--sigma"], ["--sigma"]),
    (["--config", "absent.toml"], ["absent.toml"]),
    (["--conditions", "1v9s"], ["1v9s"]),
    (["--n-train", "0"], ["n_train"]),
]


@pytest.mark.parametrize(("argv", "words"), BAD, ids=[" ".join(argv) for argv, _ in BAD])
def test_bad_input_is_one_sentence_and_leaves_nothing(
    cli, tmp_path: Path, argv: list[str], words: list[str]
) -> None:
    refused(cli(*RUN, *argv), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "latin_sqare"], ["latin_sqare", "'latin_square'"]),
        (["run", "latin_sqare", "--sigma", "2"], ["latin_sqare", "'latin_square'"]),
        (["run"], ["TASK"]),
        (["rum", "latin_square"], ["rum", "'run'"]),
        (["swep", "latin_square"], ["swep", "'sweep'"]),
        (["list", "--jsn"], ["--jsn", "'--json'"]),
        (["--jsn", "list"], ["--jsn", "'--json'"]),
        (["--jsn"], ["--jsn", "'--json'"]),
        (
            ["sweep", *RUN[1:], "--encoding", "sinusoidal", "--base", "nan", "--dry-run"],
            ["base", "nan"],
        ),
        (["sweep", *RUN[1:], "--retries", "-1"], ["--retries", "-1"]),
    ],
)
def test_bad_words_get_the_nearest(cli, tmp_path: Path, argv: list[str], words: list[str]) -> None:
    refused(cli(*argv), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[encoding]\nsgima = 1\n", ["sgima", "'sigma'"]),
        ("[encoding]\nsigma = -1\n", ["sigma"]),
        ("[encoding]\nsigma = nan\n", ["sigma"]),
        ("[model]\nwidth = '16'\nheads = 3\n", ["heads 3"]),
        ("[mdoel]\n", ["mdoel", "'model'"]),
        ("[model\n", ["TOML"]),
        ("task = 'another'\n", ["another"]),
        ("task = 3\n", ["task"]),
        ("extends = 'quik'\n", ["quik", "'quick'"]),
        ("extends = 3\n", ["extends", "3"]),
        ("extends = 'controls'\n", ["extends", "controls"]),
    ],
)
def test_bad_config_files(cli, tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    refused(cli("run", "latin_square", "--config", str(path)), *words)
    assert content(tmp_path) == {"mine.toml": text.encode()}


def test_out_that_cannot_be_written(cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below", "file/far/below", "/proc/placecell"):
        refused(cli(*RUN, "--out", out), out, "cannot be written")
    assert content(tmp_path) == {"file": b"mine"}


@pytest.fixture(scope="module")
def halfway(tmp_path_factory) -> tuple[Path, bytes]:
    """A run that was stopped, as Ctrl-C leaves it; and the checkpoint of a wider one."""
    from placecell.config.presets import base_config
    from placecell.train import Watch, run

    folder = tmp_path_factory.mktemp("halfway")
    pairs = zip(RUN[2::2], RUN[3::2], strict=True)
    config = base_config("latin_square")[0].override(
        {flag[2:].replace("-", "_"): value for flag, value in pairs}
    )
    stop = Watch(on_step=lambda state: state.step < 2)
    assert run(config, folder / "runs", device="cpu", watch=stop).status == "interrupted"
    wider = run(config.override({"width": 32}), folder / "wider", device="cpu", watch=stop)
    return folder / "runs", (wider.folder / "checkpoint.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("truncated", "not a whole"),
        ("empty", "not a whole"),
        ("wider", "another run"),
        ("pickle", "a pickle"),
    ],
)
def test_a_checkpoint_that_cannot_be_used(
    cli, tmp_path: Path, halfway, kind: str, words: str
) -> None:
    runs, wider = halfway
    for path in runs.rglob("*"):
        if path.is_file():
            copy = tmp_path / "runs" / path.relative_to(runs)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    saved = next((tmp_path / "runs").rglob("checkpoint.safetensors"))
    if kind == "pickle":
        torch.save({"w": torch.ones(2)}, saved)
    else:
        saved.write_bytes(
            {"truncated": saved.read_bytes()[:-7], "empty": b"", "wider": wider}[kind]
        )
    before = content(tmp_path)
    refused(cli(*RUN), "checkpoint.safetensors", words)
    assert content(tmp_path) == before


def test_no_compiler_is_one_sentence(tmp_path: Path) -> None:
    nowhere = {"CXX": str(tmp_path / "g++"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = outside(*RUN, "--compile", "--out", str(tmp_path), env=os.environ | nowhere)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "train without compile" in done.stderr.splitlines()[-1]


def test_bad_input_in_a_real_process(tmp_path: Path) -> None:
    done = outside(*RUN, "--sigma", "-1", cwd=tmp_path)
    refused((done.returncode, done.stdout, done.stderr), "sigma")
    assert list(tmp_path.iterdir()) == []


def unread(*argv: str, stderr: int | None = None, **kwargs) -> tuple[int, str]:
    """The exit code and standard error of a real process whose standard output nobody reads."""
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "placecell", *argv],
        stdout=write,
        stderr=write if stderr is None else stderr,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        **kwargs,
    )
    os.close(write)
    err = process.communicate(timeout=120)[1]
    return process.returncode, err or ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`placecell --help | head -1`"""
    assert unread("--help", stderr=subprocess.PIPE) == (0, "")


def test_training_goes_on_when_nobody_reads_how(cli, tmp_path: Path) -> None:
    """`placecell run latin_square 2>&1 | head -1`"""
    assert unread(*RUN, cwd=tmp_path)[0] == 0
    folder = next((tmp_path / "runs").iterdir())
    assert json.loads((folder / "status.json").read_text())["status"] == "done"
    assert json.loads(cli(*RUN, "--json")[1])["reused"]


def test_a_verb_that_could_not_say_all_has_failed(cli, monkeypatch) -> None:
    def broken(*args, **kwargs) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", broken)
    assert cli("list")[0] == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), 1),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"), 1),
    ],
)
def test_too_little_memory_is_one_sentence(cli, monkeypatch, error: Exception, code: int) -> None:
    def full(*args, **kwargs) -> None:
        raise error

    monkeypatch.setattr("placecell.train.make_task", full)
    outcome = cli(*RUN)
    assert outcome[:2] == (code, "")
    assert outcome[2].startswith("placecell: out of memory")
    assert outcome[2].count("\n") == 1
    error.args = ("another error",)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError, match="another error"):
            cli(*RUN)


def test_letters_that_a_terminal_does_not_have_are_no_error() -> None:
    done = outside("list", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "learnable" in done.stdout


@pytest.mark.parametrize("flag", ["--out", "--encoding", "--donor"])
def test_the_value_of_an_option_is_not_the_task(cli, tmp_path: Path, flag: str) -> None:
    """A folder, say, that is called as a task is."""
    code, out, err = cli(*RUN[:1], flag, "nmar", *RUN[1:], "--conditions", "1v1s", "--json")
    if flag == "--out":
        assert (code, err) == (0, "")
        assert json.loads(out)["folder"].startswith("nmar/latin_square-")
    else:
        assert "nmar" in err
        assert "--conditions" not in err


def test_the_parts_of_the_package_are_found_without_importing_each() -> None:
    script = (
        "import sys, placecell\n"
        "assert 'torch' not in sys.modules\n"
        "parts = 'config tasks encodings model train sweep analysis report'\n"
        "for name in parts.split():\n"
        "    assert name in dir(placecell)\n"
        "    assert getattr(placecell, name).__name__ == f'placecell.{name}'\n"
        "assert not hasattr(placecell, 'nothing')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_evaluate(cli, tmp_path: Path) -> None:
    content = [json.loads(cli(*RUN, "--seed", seed, "--json")[1]) for seed in "01"]
    folders = [one["folder"] for one in content]
    code, out, _ = cli("evaluate", *folders, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, [line["run"] for line in lines]) == (0, folders)
    for one, line in zip(content, lines, strict=True):
        assert line["metrics"]["test/accuracy"] == one["metrics"]["test/accuracy"]
    assert "one object per run" in " ".join(cli("evaluate", "--help")[1].split())
    for verb in (["evaluate", *folders], ["analyse", "runs"]):
        refused(cli(*verb, "--device", "tpu"), "tpu")


def test_evaluate_computes_where_it_is_told(cli, monkeypatch) -> None:
    folder, seen = json.loads(cli(*RUN, "--json")[1])["folder"], []

    def note(model, task, splits, positions, step):
        parts = [
            next(model.parameters()),
            positions.index,
            *(split.tokens for split in splits.values()),
        ]
        seen.extend(part.device.type for part in parts)
        return []

    monkeypatch.setattr(
        sys.modules["placecell.train.device"], "pick_device", lambda device: torch.device("meta")
    )
    monkeypatch.setattr("placecell.train.evaluate_splits", note)
    assert cli("evaluate", folder)[0] == 0
    assert set(seen) == {"meta"}


def test_version_is_shown(cli) -> None:
    assert cli("--version") == (0, f"placecell {placecell.__version__}\n", "")


def test_a_preset_from_python_is_that_of_the_command_line(cli) -> None:
    config = placecell.preset("latin_square", "adam").override({"sigma": 0.3})
    flags = ["--preset", "adam", "--encoding", "learnable", "--sigma", "0.3", "--seeds", "1"]
    _, out, _ = cli("sweep", "latin_square", *flags, "--dry-run", "--json")
    assert [run["name"] for run in json.loads(out)["runs"]] == [config.name]
    with pytest.raises(InputError, match="latin_square"):
        placecell.preset("latin_sqare")


def test_a_number_of_workers_that_cannot_be(cli, tmp_path: Path) -> None:
    for dry in ([], ["--dry-run"]):
        refused(cli("sweep", "latin_square", "--workers", "-3", *dry), "--workers", "-3")
    assert list(tmp_path.iterdir()) == []


def test_version_is_the_packages() -> None:
    import importlib.metadata

    assert placecell.__version__ == importlib.metadata.version("placecell")
