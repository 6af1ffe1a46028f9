"""What commands print is what public functions return: sweep, analyse, diagnose, transplant."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import placecell
from placecell.analysis import Diagnosis
from placecell.cli import call
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.store import RunResult, Store, files
from placecell.study import Findings, RunDiagnosis
from placecell.study.diagnosis import Diagnoses, diagnose_results, lines
from placecell.study.findings import sweep_facts
from placecell.sweep import Outcome, Outcomes, local

EVIL = "<img src=x onerror=alert(1)>"
FLAGS = [
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
    "--steps",
    "12",
    "--eval-every",
    "4",
    "--batch-size",
    "16",
]
Make = Callable[..., RunConfig]


def printed(capsys: Any, *argv: str) -> str:
    capsys.readouterr()
    assert call(list(argv)) == 0
    return str(capsys.readouterr().out)


@pytest.fixture(scope="module")
def findings(store: Path) -> Findings:
    return placecell.analyse(store)


# ------------------------------------------------------------------ sweep


def test_a_sweep_returns_its_outcomes(swept: Outcomes, store: Path) -> None:
    assert swept.counts == {"done": 6}
    assert str(swept) == f"{store}: 6 done; 0 were there already"
    again = placecell.sweep([outcome.config for outcome in swept], store, local(0))
    assert str(again) == f"{store}: 6 done; 6 were there already"
    frame = again.to_frame()
    assert frame["reused"].all()
    assert frame["headline"].tolist() == [outcome.headline for outcome in swept]
    assert again.to_dict()["runs"][0] == {"name": frame["name"][0], "status": "done", "message": ""}


def test_messages_of_outcomes_are_escaped(swept: Outcomes) -> None:
    failed = Outcomes([*swept, Outcome(swept[0].config, None, EVIL)], swept.folder)
    assert failed.counts == {"done": 6, "failed": 1}
    assert EVIL not in failed._repr_html_()
    assert "&lt;img src=x" in failed._repr_html_()


def test_a_sweep_without_a_back_end_takes_every_core(
    tiny: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[int] = []
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    monkeypatch.setattr(placecell.sweep, "local", lambda n: (workers.append(n), local(0))[1])
    assert placecell.sweep([], tmp_path) == []
    assert (
        str(placecell.sweep([], tmp_path, threads=2))
        == f"{tmp_path}: none ended; 0 were there already"
    )
    assert workers == [6, 3]


# ------------------------------------------------------------------ analyse


def test_analyse_returns_what_the_command_prints(
    findings: Findings, store: Path, tmp_path: Path, capsys: Any
) -> None:
    out = str(tmp_path / "analysis")
    text, _, last = (
        printed(capsys, "analyse", str(store), "--out", out).rstrip("\n").rpartition("\n")
    )
    assert last.startswith("written: ")
    assert text == str(findings)
    written = files.read_json(tmp_path / "analysis" / "summary.json")
    assert written == files.finite(findings.facts)
    assert (tmp_path / "analysis" / "summary.md").read_text() == str(findings) + "\n"


def test_findings_as_tables(findings: Findings) -> None:
    assert findings.configurations["label"] == [f"learnable σ={sigma}" for sigma in (0.1, 0.5, 2.0)]
    frame = findings.to_frame()
    assert frame["seeds"].tolist() == [2, 2, 2]
    runs = findings.runs.to_frame()
    assert (len(runs), runs["run"].is_unique) == (6, True)
    by_label = runs.groupby("label")["test/accuracy"].mean()
    assert frame.set_index("label")["test/accuracy"].to_dict() == pytest.approx(by_label.to_dict())


def test_outcomes_and_results_are_analysed_as_their_folder_is(
    swept: Outcomes, findings: Findings
) -> None:
    ordered = sorted(swept, key=lambda outcome: outcome.config.name)
    failed = Outcome(replace(swept[0].config, seed=9), None, "it broke")
    assert str(placecell.analyse([*ordered, failed])) == str(findings)
    with pytest.raises(InputError, match="no run here is finished yet"):
        placecell.analyse([failed])
    with pytest.raises(InputError, match="found int"):
        placecell.analyse([3])


def test_labels_of_findings_are_escaped(findings: Findings) -> None:
    summary = findings.summary
    runs = [replace(run, label=EVIL) for run in summary.runs[:1]]
    evil = replace(summary, runs=runs)
    html = Findings(evil, sweep_facts(evil))._repr_html_()
    assert EVIL not in html
    assert "&lt;img src=x" in html
    assert "Best σ" in findings._repr_html_()


# ------------------------------------------------------------------ diagnose


def test_diagnoses_of_a_folder_of_results_and_of_one_run(swept: Outcomes, store: Path) -> None:
    diagnoses = placecell.diagnose(store)
    results = Store(store).results()
    pairs = diagnose_results(results, ["encoding.sigma"])
    assert [(one.label, one.diagnosis) for one in diagnoses] == pairs
    assert str(diagnoses) == "\n".join(lines(pairs))
    by_run = {one.run: one for one in placecell.diagnose(swept)}
    assert by_run == {one.run: one for one in diagnoses}
    [alone] = placecell.diagnose(results[0])
    assert alone.diagnosis == diagnoses[0].diagnosis
    assert [alone] == placecell.diagnose(results[0].folder)
    frame = diagnoses.to_frame()
    assert list(frame) == ["run", "label", "seed", "diagnosis", "healthy", "seen", "advice"]
    assert frame["run"].tolist() == [result.config.name for result in results]


def test_what_is_well_and_what_has_not_ended(swept: Outcomes) -> None:
    well = Diagnoses([RunDiagnosis("a", Diagnosis("learned", EVIL, ""), "run", 0)])
    assert str(well) == "diagnosis: no sign of trouble"
    assert EVIL not in well._repr_html_()
    stopped = [replace(outcome.result, status="interrupted") for outcome in swept if outcome.result]
    with pytest.raises(InputError, match="no run here is finished yet"):
        placecell.diagnose(stopped)
    [one] = placecell.diagnose(stopped[0])
    assert one.diagnosis.name == "interrupted"


def test_a_sweep_prints_the_diagnoses(tmp_path: Path, capsys: Any, tiny: Make) -> None:
    argv = ["sweep", "latin_square", *FLAGS, "--encoding", "learnable", "--sigma", "0.1,2"]
    text = printed(capsys, *argv, "--out", str(tmp_path), "--workers", "0")
    assert str(placecell.diagnose(tmp_path)) in text


# ------------------------------------------------------------------ transplant


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_transplant_returns_what_the_command_prints(
    tmp_path: Path, capsys: Any, seeds: int
) -> None:
    argv = ["transplant", "latin_square", *FLAGS, "--seeds", str(seeds), "--workers", "0"]
    argv += ["--small", "0.2", "--large", "1.5", "--out", str(tmp_path / "command")]
    text = printed(capsys, *argv)
    content = json.loads(printed(capsys, *argv, "--json"))
    name = next(path.name for path in (tmp_path / "command").iterdir() if path.is_dir())
    base = RunConfig.from_toml(tmp_path / "command" / name / "config.toml")
    base = replace(base, weights_seed=None, donor=None, donor_change=None)
    rounds: list[str] = []
    transplant = placecell.transplant(
        base,
        tmp_path / "python",
        small=0.2,
        large=1.5,
        seeds=seeds,
        backend=local(0),
        on_round=lambda name, outcomes: rounds.append(f"{name} {outcomes.counts}"),
    )
    assert text.endswith(str(transplant) + "\n")
    assert content == files.finite(transplant.to_dict())
    assert rounds == [f"donors {{'done': {2 * seeds}}}", f"receivers {{'done': {4 * seeds}}}"]
    frame = transplant.to_frame()
    assert len(frame) == 4 * seeds
    means = frame.groupby("arm")["accuracy"].mean().to_dict()
    assert means == pytest.approx({name: arm.mean for name, arm in transplant.arms.items()})
    first, second, *_ = transplant.arms.values()
    assert first.first_minus_this is None
    assert second.first_minus_this is not None
    assert second.first_minus_this.mean == pytest.approx(first.mean - second.mean)
    assert "<td>the same, rows shuffled</td>" in transplant._repr_html_()


def test_a_transplant_of_bad_input(tiny: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="small σ must be below"):
        placecell.transplant(tiny(), tmp_path, small=2.0, large=0.1)
    with pytest.raises(InputError, match="seeds must be at least 1"):
        placecell.transplant(tiny(), tmp_path, seeds=0)


def test_a_transplant_whose_donor_fails_says_which(
    tiny: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from placecell.study import transplant as module

    def fail(configs: list[RunConfig], out: Path, backend: Any, **options: Any) -> Outcomes:
        return Outcomes([Outcome(configs[0], None, "RuntimeError: it broke")], out)

    monkeypatch.setattr(module, "sweep", fail)
    with pytest.raises(InputError, match="failed: RuntimeError: it broke"):
        placecell.transplant(tiny(), tmp_path)
    monkeypatch.setattr(module, "sweep", lambda configs, out, backend, **options: Outcomes([], out))
    with pytest.raises(InputError, match="interrupted; the same call goes on"):
        placecell.transplant(tiny(), tmp_path)


# ------------------------------------------------------------------ the room


def test_runs_that_cannot_be_read_do_not_hide_the_others(store: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(store, tmp_path / "copy"))
    cut, gone, *_ = Store(folder).folders()
    (cut / "metrics.csv").write_text("step,split,name,value\n0,test,accuracy,0.5\n")
    (gone / "weights.safetensors").unlink()
    run_set = Store(folder).run_set()
    assert len(run_set.results) == 4
    assert "cut off" in run_set.unreadable[cut.name]
    assert "weights are missing" in run_set.unreadable[gone.name]
    assert run_set.folder == folder
    assert len(placecell.diagnose(folder)) == 4
    result = run_set.results[0]
    assert isinstance(result, RunResult)


def test_measuring_imports_nothing_that_draws() -> None:
    code = """
import importlib, pkgutil, sys
for name in ("matplotlib", "plotly", "jinja2", "pandas"):
    sys.modules[name] = None  # as if it were not installed
import placecell.study
for module in pkgutil.iter_modules(placecell.study.__path__):
    importlib.import_module(f"placecell.study.{module.name}")
print(*(name for name in ("placecell.report", "placecell.cli") if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_public_names() -> None:
    for name in ("analyse", "diagnose", "report", "run", "sweep", "transplant"):
        assert callable(getattr(placecell, name))
        assert name in placecell.__all__
    assert callable(placecell.sweep.grid)
