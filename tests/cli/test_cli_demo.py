"""The demo: results as they come, a page, and sentences that follow from the numbers."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from placecell.cli import demo
from placecell.cli.app import call
from placecell.cli.progress import ResultTable
from placecell.config import RunConfig
from placecell.report.page.growing import GrowingPage
from placecell.report.plain_words import percent, what_was_seen
from placecell.store.runs import Row, RunResult
from placecell.study.records import RunSummary, Summary
from placecell.sweep import Outcome, Tally, grid
from placecell.train import make_task

SMALL = {
    "n_train": 64,
    "n_valid": 16,
    "n_test": 30,
    "width": 16,
    "depth": 1,
    "batch_size": 16,
    "steps": 4,
    "eval_every": 2,
    "warmup": 1,
}


@pytest.fixture(scope="module")
def configs() -> list[RunConfig]:
    """The demo's own plan with tiny models and one seed."""
    base, plan = demo.base_config(demo.TASK, demo.PRESET)
    return grid(base.override(SMALL), plan["grid"], {}, seeds=1)


@pytest.fixture
def small(configs: list[RunConfig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "planned", lambda: configs)


@pytest.fixture(scope="module")
def stopped(configs: list[RunConfig], tmp_path_factory) -> tuple[Path, int]:
    """A demo that was stopped after its first run, and its exit code."""
    out: Path = tmp_path_factory.mktemp("demo") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "planned", lambda: configs)
        patch.setattr(ResultTable, "on_done", lambda *_: os.kill(os.getpid(), signal.SIGINT))
        code = call(["demo", "--workers", "0", "--out", str(out)])
    return out, code


@pytest.mark.usefixtures("small")
def test_a_stopped_demo_goes_on_and_ends_with_three_sentences_and_a_page(
    stopped: tuple[Path, int], capsys, monkeypatch
) -> None:
    out, code = stopped
    page = out / "report.html"
    assert code == 130
    assert "1 run of the task" in page.read_text(), "what there was is on the page"
    capsys.readouterr()
    assert call(["demo", "--workers", "0", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    assert f"The page, for any browser: {page}" in shown.out
    assert [line[:2] for line in shown.out.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert re.findall(r"^\[\d/4\].*: (\w+), test", shown.err, re.M) == ["reused", *3 * ["done"]]
    assert 'http-equiv="refresh"' not in page.read_text()
    monkeypatch.setattr(GrowingPage, "finish", None)  # nothing is measured a second time
    assert call(["demo", "--workers", "0", "--out", str(out), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["reused"], len(again["seen"]), again["report"]) == (4, 3, str(page))


def test_a_growing_page_reads_itself_again_until_it_is_finished(
    stopped: tuple[Path, int], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    with GrowingPage(stopped[0], path) as page:
        page.news()
        end = time.monotonic() + 60
        while not page.written and time.monotonic() < end:
            time.sleep(0.05)
    assert '<meta http-equiv="refresh" content="10">' in path.read_text()
    page.finish()
    assert 'http-equiv="refresh"' not in path.read_text()


@pytest.mark.usefixtures("small")
def test_a_demo_that_cannot_begin_says_what_to_do(tmp_path: Path, capsys, monkeypatch) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "new"
    assert call(["demo", "--workers", "0", "--out", str(tmp_path / "file" / "below")]) == 2
    assert "--out FOLDER" in capsys.readouterr().err
    assert call(["demo", "--seed", "1", "--out", str(out)]) == 2
    assert "seeds of its own" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert call(["demo", "--workers", "0", "--out", str(out)]) == 2
    assert "pip install 'placecell[report]'" in capsys.readouterr().err
    assert not out.exists(), "nothing was trained in vain"


def test_the_table_has_a_row_for_each_configuration_and_a_column_for_each_seed(
    configs: list[RunConfig], tmp_path: Path
) -> None:
    both = [replace(config, seed=seed) for seed in (0, 1) for config in configs]
    shown = ResultTable(both, demo.name, percent, "solved")
    done = RunResult(both[0], tmp_path, "done", 4, 1.0, (Row(4, "test", "accuracy", 0.9425),))
    failed = Outcome(both[1], None, "no memory")
    tally = Tally(8, [Outcome(both[0], done), failed], {both[4].name: both[4]}, {both[4].name: 2})
    text = io.StringIO()
    Console(file=text, width=80).print(shown._table(tally))
    lines = text.getvalue().splitlines()
    assert lines[1].split() == ["solved", "seed", "0", "seed", "1"]
    assert "94.2 %" in lines[3]
    assert "━" in lines[3], "the bar of the run that is in work"
    assert [line.split()[-2:] for line in lines[4:7]] == [["failed", "·"], ["·", "·"], ["·", "·"]]


# ------------------------------------------------------------------ what was seen


def summary(
    configs: list[RunConfig],
    accuracy: dict[float, list[float]],
    relation: dict[float, float],
    trained: float = 1.0,
    given: float | None = 0.9,
) -> Summary:
    """What a demo would have measured: test accuracy by σ and seed, how far tables show a map."""
    runs = []

    def add(config: RunConfig, label: str, score: float, values: dict[str, float]) -> None:
        rows = (Row(4, "train", "accuracy", trained), Row(4, "test", "accuracy", score))
        result = RunResult(config, Path(), "done", 4, 1.0, rows)
        values = values | {"test/accuracy": score}
        runs.append(RunSummary(result, label, values, {}, None, None))

    by_sigma = {config.encoding.sigma: config for config in configs}
    for sigma, scores in accuracy.items():
        shows = {"table/relation": relation[sigma], "table/relation_p": 0.01}
        for seed, score in enumerate(scores):
            add(replace(by_sigma[sigma], seed=seed), f"σ={sigma}", score, shows)
    if given is not None:
        add(by_sigma[None], "sinusoidal", given, {})
    return Summary(make_task(configs[0]), runs, [])


def test_the_sentences_say_the_finding_where_it_is_there(configs: list[RunConfig]) -> None:
    seen = what_was_seen(
        summary(configs, {0.1: [0.95, 0.97], 2.0: [0.88, 0.86]}, {0.1: 0.8, 2.0: -0.05})
    )
    assert len(seen) == 3
    assert "(σ = 0.1) solved 96.0 %" in seen[0]
    assert "(σ = 2) 87.0 %: small did better with each of 2 seeds." in seen[0]
    assert seen[1].startswith("The table that began small became a map")
    assert "the table that began large did not (correlation 0.80 for small, -0.05" in seen[1]
    assert seen[2].startswith("All 5 models learned their own training puzzles")
    assert seen[2].endswith("told where each cell lies solved 90.0 %.")


def test_the_sentences_say_so_where_the_finding_is_not_there(configs: list[RunConfig]) -> None:
    neither = {0.1: 0.1, 2.0: 0.0}
    seen = what_was_seen(summary(configs, {0.1: [0.80], 2.0: [0.88]}, neither, 0.97, None))
    assert "small did no better with its one seed, which is not what the paper found" in seen[0]
    assert seen[1].startswith("Neither table became a map")
    assert seen[2].startswith("2 of 2 models had not learned")
    assert "told where" not in seen[2]
    mixed = {0.1: [0.95, 0.85], 2.0: [0.88, 0.88]}
    seen = what_was_seen(summary(configs, mixed, {0.1: 0.5, 2.0: 0.6}))
    assert "with 1 of 2 seeds only, so this settles nothing" in seen[0]
    assert seen[1].startswith("Both tables became a map")
    seen = what_was_seen(summary(configs, mixed, {0.1: 0.0, 2.0: 0.6}))
    assert seen[1].startswith("The table that began large became a map")
    assert len(what_was_seen(summary(configs, {0.1: [0.9]}, {0.1: 0.5}))) == 1
