"""The page as text: what it says, that it says otherwise when the data do, and that bad input gives
a sentence."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import placecell
from placecell import analysis
from placecell.config import RunConfig, read_toml
from placecell.errors import InputError
from placecell.report import sentences
from placecell.report.figures import finding as figures
from placecell.report.page import arrays, panels, training
from placecell.report.page.build import Page, build_page
from placecell.report.page.html import embed
from placecell.store import RunSet, Store, files
from placecell.study.findings import as_text, sweep_facts
from placecell.study.known import known_measures
from placecell.study.records import RunSummary, Summary
from placecell.study.summary import map_sample, measure, read_run
from placecell.sweep import grid
from placecell.train import Row, RunResult, load_snapshots


def embedded(page: Page) -> dict[str, Any]:
    """The data inside the page."""
    match = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.html, re.DOTALL
    )
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


def scored(summary: Summary, scores: dict[str, float], name: str = "test/accuracy") -> Summary:
    """The same runs with other values of a measurement, by label; seeds differ a little."""

    def other(run: RunSummary) -> dict[str, float]:
        return (
            {name: scores[run.label] + 0.001 * run.result.config.seed}
            if run.label in scores
            else {}
        )

    return replace(
        summary, runs=[replace(run, values=run.values | other(run)) for run in summary.runs]
    )


def many(summary: Summary, seeds: int) -> Summary:
    """The same configurations under more seeds."""
    runs: list[RunSummary] = []
    for seed in range(seeds):
        for run in (r for r in summary.runs if r.result.config.seed == 0):
            result = replace(run.result, config=replace(run.result.config, seed=seed))
            runs.append(replace(run, result=result, values=dict(run.values)))
    return replace(summary, runs=runs)


@pytest.fixture
def summary(page: Page) -> Summary:
    assert page.summary is not None
    return page.summary


Known = dict[str, dict[str, float]]
SMALL, MIDDLE, LARGE = "learnable σ=0.1", "learnable σ=0.5", "learnable σ=2.0"

# ------------------------------------------------------------------ what is there


def test_the_page_stands_alone(page: Page) -> None:
    head = page.html.split("<style>")[0]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', head)
    assert policy is not None
    words = policy[1].replace("&#39;", "'")
    assert words.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in words
    assert "connect-src" not in words
    assert "http:" not in words
    assert page.html.count("plotly.js v") >= 1
    rest = page.html.replace(_plotly(), "")
    assert len(rest) < len(page.html), "plotly is embedded as it is"
    assert _plotly() not in rest, "plotly is embedded once"
    assert not re.search(r'(src|href)="(?!#|data:,)', rest)
    assert "@import" not in rest
    assert "url(" not in rest


def _plotly() -> str:
    import plotly

    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text()


def test_the_page_is_at_most_6_megabytes_beside_its_data(page: Page) -> None:
    data = len(json.dumps(embedded(page)).encode())
    assert len(page.html.encode()) - data < 6_000_000


def test_every_section_and_every_figure_has_its_words(page: Page) -> None:
    for name in (
        "headline",
        "diagnosis",
        "training",
        "tables",
        "attention",
        "agreement",
        "conditions",
        "runs",
        "repeat",
    ):
        assert f'id="{name}"' in page.html, name
    alts = re.findall(r'role="img" aria-label="([^"]*)"', page.html)
    assert len(alts) == page.html.count('role="img"') == 8
    assert all(len(alt) > 40 for alt in alts)
    for control in re.findall(r"<(?:select|input)[^>]*>", page.html.split("<script")[0]):
        assert "id=" in control
    assert page.html.count("<h1") == 1


def test_the_headline_panel_has_every_seed_and_the_mean(page: Page, summary: Summary) -> None:
    columns = page.panels["headline"].columns
    rows = list(zip(columns["configuration"], columns["seed"], columns["value"], strict=True))
    for run in summary.runs:
        assert (
            run.label,
            run.result.config.seed,
            pytest.approx(run.values["test/accuracy"], rel=1e-6),
        ) in rows
    for label in summary.labels:
        assert (
            label,
            "mean",
            pytest.approx(summary.values(label, "test/accuracy").mean(), rel=1e-6),
        ) in rows
    kinds = [(t["kind"], t["name"]) for t in page.panels["headline"].traces]
    assert ("line", "sinusoidal") in kinds
    assert ("means", "learnable") in kinds


def test_intervals_are_shown_when_there_are_seeds_for_them(page: Page, summary: Summary) -> None:
    assert not any(t["kind"] == "band" for t in page.panels["headline"].traces)
    spread = many(summary, 3)
    for run in spread.runs:
        run.values["test/accuracy"] = 0.5 + 0.1 * run.result.config.seed
    panel = panels.headline_panel(spread)
    (band,) = [t for t in panel.traces if t["kind"] == "band"]
    for row in band["rows"]:
        assert panel.columns["low"][row] < panel.columns["value"][row] < panel.columns["high"][row]


def test_packed_tables_are_the_snapshots(page: Page, summary: Summary) -> None:
    """What the page shows at every step is what the run kept, to the precision of 16 bits."""
    import base64

    packed = {(run["label"], run["seed"]): run for run in embedded(page)["tables"]["runs"]}
    above = np.triu_indices(16, 1)
    for run in summary.runs:
        kept = load_snapshots(run.result.folder)
        shown = packed[run.label, run.result.config.seed]
        assert shown["steps"] == list(kept) == [0, 1, 2, 4, 8, 16, 24]
        raw = (
            np.frombuffer(base64.b64decode(shown["similarity"]), "<i2").reshape(len(kept), -1)
            / 32767
        )
        for step, values in zip(kept, raw, strict=True):
            rows = kept[step].double().numpy()
            rows = rows - rows.mean(0)
            np.testing.assert_allclose(values, _cosines(rows)[above], atol=4e-5)
    maps = {(run["label"], run["seed"]): run for run in embedded(page)["attention"]["runs"]}
    for run in summary.runs:
        raw = (
            np.frombuffer(base64.b64decode(maps[run.label, run.result.config.seed]["maps"]), "<i2")
            / 32767
        )
        np.testing.assert_allclose(raw.reshape(2, 2, 16, 16).sum(-1), 1, atol=5e-4)
        np.testing.assert_allclose(raw.reshape(2, 2, 16, 16), run.heads, atol=4e-5)


def _cosines(rows: Any) -> Any:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def test_a_large_store_shows_fewer_seeds_of_every_configuration(summary: Summary) -> None:
    twenty = many(summary, 20)
    assert len(panels.shown(twenty.runs, 1000, 10**9)) == 80
    few = panels.shown(twenty.runs, 1000, 8000)
    assert len(few) == 8
    assert {r.label for r in few} == set(summary.labels)
    assert len(panels.shown(twenty.runs, 10**9, 1)) == 4


def test_settings_in_the_page_make_the_same_runs_again(
    page: Page, store: Path, tmp_path: Path
) -> None:
    match = re.search(r'<pre tabindex="0" id="sweep-toml"><code>(.*?)</code>', page.html, re.DOTALL)
    assert match is not None
    import html

    (tmp_path / "sweep.toml").write_text(html.unescape(match[1]))
    values = read_toml(tmp_path / "sweep.toml")
    plan = values.pop("sweep")
    configs = grid(RunConfig.from_dict(values), plan["grid"], {}, plan["seeds"])
    assert {c.name for c in configs} == {path.name for path in store.iterdir() if path.is_dir()}


# ------------------------------------------------------------------ sentences follow the data


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({SMALL: 0.6, MIDDLE: 0.9, LARGE: 0.7}, "An inverted U"),
        (
            {SMALL: 0.9, MIDDLE: 0.8, LARGE: 0.7},
            "The smallest σ tried does best (no inverted U)",
        ),
        ({SMALL: 0.5, MIDDLE: 0.6, LARGE: 0.7}, "against the paper"),
    ],
)
def test_the_headline_sentence(summary: Summary, scores: dict[str, float], says: str) -> None:
    sentence = sentences.headline(scored(summary, scores))
    assert says in sentence
    assert f"{max(scores.values()):.2f}" in sentence
    assert "sinusoidal reaches" in sentence


def test_the_headline_sentence_of_an_error(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(summary.task), "headline_lower_is_better", True)
    sentence = sentences.headline(scored(summary, {SMALL: 0.6, MIDDLE: 0.2, LARGE: 0.7}))
    assert sentence.startswith(
        "A U (an error, so less is better): test accuracy is best at σ = 0.5 (0.20"
    )
    none = sentences.headline(scored(summary, {SMALL: 0.2, MIDDLE: 0.6, LARGE: 0.7}))
    assert none.startswith("The smallest σ tried does best (no U)")


def test_other_methods_are_lines_and_are_beaten_or_not(summary: Summary) -> None:
    """Some tasks have baselines; the summary then has them by name."""
    ours = scored(summary, {SMALL: 0.6, MIDDLE: 0.9, LARGE: 0.7})
    for value, says in ((0.95, "is not beaten"), (0.5, "it is beaten")):
        object.__setattr__(
            ours, "baselines", {"linear": {"test/accuracy": value}, "unscored": {"table/fc": 1.0}}
        )
        assert (
            f"The best baseline, linear, has {value:.3f}: it {says.removeprefix('it ')}"
            in sentences.headline(ours)
        )
        panel = panels.headline_panel(ours)
        (line,) = [t for t in panel.traces if t["name"] == "linear"]
        assert line["y"] == [value, value]
        assert ("linear", "baseline", value) in zip(
            *(panel.columns[k] for k in ("configuration", "seed", "value")), strict=True
        )


def test_the_headline_sentence_gives_the_interval_and_what_it_excludes(summary: Summary) -> None:
    three = many(summary, 4)
    clear = scored(three, {SMALL: 0.9, MIDDLE: 0.8, LARGE: 0.7})
    for run in clear.runs:
        run.values["test/accuracy"] += 0.01 * run.result.config.seed * (run.label == LARGE)
    assert ", without 0; 4 seeds" in sentences.headline(clear)
    for run in clear.runs:
        run.values["test/accuracy"] = 0.7 + (
            0.2 if (run.result.config.seed % 2) == (run.label == SMALL) else 0.0
        )
        run.values["test/accuracy"] += 0.01 * (run.label == SMALL)
    assert "there may be no difference" in sentences.headline(clear)


@pytest.mark.parametrize(
    ("p", "says"),
    [
        (
            {SMALL: 0.01, MIDDLE: 0.4, LARGE: 0.6},
            "at σ = 0.1 and stays like noise at σ = 0.5 and σ = 2",
        ),
        ({SMALL: 0.4, MIDDLE: 0.4, LARGE: 0.6}, "No learned table shows the true arrangement"),
        ({SMALL: 0.0, MIDDLE: 0.0, LARGE: 0.0}, "Every learned table shows"),
    ],
)
def test_the_sentence_on_tables(summary: Summary, p: dict[str, float], says: str) -> None:
    related = scored(summary, {SMALL: 0.8, MIDDLE: 0.3, LARGE: 0.25}, "table/relation")
    assert says in sentences.tables(scored(related, p, "table/relation_p"))
    weak = scored(related, {SMALL: 0.19, MIDDLE: 0.19, LARGE: 0.19}, "table/relation")
    assert "No learned table shows" in sentences.tables(scored(weak, p, "table/relation_p"))


@pytest.mark.parametrize(
    ("p", "says"),
    [
        (
            {SMALL: 0.01, LARGE: 0.6},
            "At σ = 0.1 the learned table becomes a map, at σ = 2 it stays",
        ),
        ({SMALL: 0.0, LARGE: 0.0}, "The learned table becomes a map at σ = 0.1 and σ = 2"),
        ({SMALL: 0.4, LARGE: 0.6}, "The learned table shows no map at"),
    ],
)
def test_the_heading_of_the_picture_says_what_became_of_its_tables(
    summary: Summary, p: dict[str, float], says: str
) -> None:
    ours = scored(summary, {SMALL: 0.8, MIDDLE: 0.3, LARGE: 0.25}, "table/relation")
    assert sentences.claim(scored(ours, {MIDDLE: 0.5} | p, "table/relation_p")).startswith(says)


def test_the_first_sentence_says_what_is_compared(page: Page, summary: Summary) -> None:
    said = sentences.compared(summary)
    assert "a row of numbers for each of 16 positions" in said
    assert "σ is 0.1, 0.5 or 2." in said
    assert said.endswith("Beside it: sinusoidal.")
    assert said.replace("σ = ", "σ\u00a0=\u00a0") in page.html
    fixed = replace(summary, runs=[run for run in summary.runs if run.label == "sinusoidal"])
    assert sentences.compared(fixed).endswith("Shown here: sinusoidal.")


def test_the_headline_can_be_read_against_the_share_of_position(summary: Summary) -> None:
    shares = {SMALL: 0.1, MIDDLE: 0.6, LARGE: 0.9}
    panel = panels.headline_panel(scored(summary, shares, "rho"))
    along = panel.axes["along"]
    assert along["rho"]["ends"] == pytest.approx([0.1, 0.9], abs=1e-3)
    means = next(trace for trace in panel.traces if trace["kind"] == "means")
    assert [panel.columns["rho"][row] for row in means["rows"]] == pytest.approx(
        [0.1, 0.6, 0.9], abs=1e-3
    )
    without = scored(summary, {SMALL: float("nan")}, "rho")
    assert "along" not in panels.headline_panel(without).axes


def test_the_sentence_on_attention(summary: Summary) -> None:
    name = "attention/relation"
    all_low = dict.fromkeys(summary.labels, 0.01)
    assert "nowhere" in sentences.attention(scored(summary, all_low, name))
    assert f"most in {MIDDLE} (correlation 0.60" in sentences.attention(
        scored(summary, all_low | {MIDDLE: 0.6}, name)
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((0.9, 0.8, 0.1), "go together as the paper says"),
        ((0.1, 0.5, 0.9), "go against each other"),
    ],
)
def test_the_sentence_on_agreement(summary: Summary, values: tuple[float, ...], says: str) -> None:
    ordered = scored(summary, {SMALL: 0.9, MIDDLE: 0.8, LARGE: 0.1})
    measured = dict(zip((SMALL, MIDDLE, LARGE), values, strict=True))
    for name, other in (("attention/relation", says), ("table/procrustes", None)):
        sentence = sentences.agreement(scored(ordered, measured, name), name, "measure")
        if other is None:  # a distance: less is better, so the same numbers mean the opposite
            assert says not in sentence
        else:
            assert other in sentence


def test_the_sentence_on_training(summary: Summary) -> None:
    pairs = [(r.label, r.result) for r in summary.runs]
    sentence = sentences.training(pairs, "accuracy", "accuracy")
    whole = sum(r.result.final("train", "accuracy") == 1 for r in summary.runs)
    assert sentence.startswith(f"{whole} of {len(pairs)} runs end with every training sample right")
    perfect = [(n, replace(r, rows=tuple(x._replace(value=1.0) for x in r.rows))) for n, r in pairs]
    assert sentences.training(perfect, "accuracy", "accuracy").startswith(
        f"{len(pairs)} of {len(pairs)}"
    )
    assert "gradient into the table" in sentences.training(pairs, "table_gradient", "accuracy")
    bare = [(n, replace(r, rows=())) for n, r in pairs]
    assert sentences.training(bare, "accuracy", "accuracy") == "Nothing has been evaluated yet."


def test_the_sentence_on_conditions() -> None:
    rows = [{"a": 0.9, "b": 0.5}, {"a": 0.8, "b": 0.6}]
    assert (
        sentences.conditions(rows, ["a", "b"], True)
        == "b is the hardest condition for every one of the 2 configurations."
    )
    rows[0]["b"] = 1.0
    assert sentences.conditions(rows, ["a", "b"], True).endswith("for 1 of 2 configurations.")
    assert sentences.conditions(rows, ["a", "b"], False).startswith("b is the hardest")
    assert sentences.conditions([{}], ["a"], True) == "No scores by condition."
    assert sentences.conditions([rows[0]], ["a", "b"], True, "person").endswith("hardest person.")
    assert sentences.metric("mse") == "mean squared error"
    assert sentences.metric("cross_entropy") == "cross entropy"


# ------------------------------------------------------------------ other stores


def test_runs_that_kept_no_tables_still_give_a_page(copy: Path, known: Known) -> None:
    for path in copy.glob("*/snapshots.safetensors"):
        path.unlink()
    for path in copy.glob("*/metrics.csv"):
        path.write_text(
            "\n".join(
                line for line in path.read_text().splitlines() if "table_gradient" not in line
            )
            + "\n"
        )
    page = build_page(Store(copy).run_set(), known=known)
    assert 'id="tables-step"' not in page.html
    assert "no slider over steps" in page.html
    assert all(len(run["steps"]) == 1 for run in embedded(page)["tables"]["runs"])
    assert "table_gradient" not in page.panels["training"].choices["metrics"]


def test_a_store_without_sigma_has_a_place_for_every_configuration(
    store: Path, known: Known
) -> None:
    results = [r for r in Store(store).run_set().results if r.config.encoding.name == "sinusoidal"]
    page = build_page(RunSet("x", results), known=known)
    assert page.panels["headline"].axes["names"]
    assert "No learned table is among these runs" in page.html
    assert page.figure("headline").data[0].y[0] == "sinusoidal"


def test_one_run_is_enough(store: Path, known: Known) -> None:
    (first, *_) = Store(store).run_set().results
    page = build_page(RunSet("x", [first]), known=known)
    assert "1 run of the task latin_square: 1 configuration, 1 seed each." in page.html


def test_only_failed_runs_give_a_page_that_says_so(copy: Path) -> None:
    for path in copy.glob("*/status.json"):
        files.write_json(
            path,
            files.read_json(path) | {"status": "failed", "message": "RuntimeError: out of luck"},
        )
    page = build_page(Store(copy).run_set())
    assert "No run here is finished, so there is nothing to compare yet." in page.html
    assert "RuntimeError: out of luck" in page.html
    assert page.summary is None
    assert "8 failed" in page.html
    assert 'id="headline"' not in page.html


def test_failed_diverged_running_and_interrupted_runs_are_listed(copy: Path, known: Known) -> None:
    paths = sorted(copy.glob("*/status.json"))
    for path, status in zip(paths, ("failed", "diverged", "running", "interrupted"), strict=False):
        files.write_json(
            path, files.read_json(path) | {"status": status, "message": f"because of {status}"}
        )
    page = build_page(Store(copy).run_set(), known=known)
    assert "4 done, 1 diverged, 1 failed, 1 interrupted, 1 stopped. 2 did not end well" in page.html
    for status in ("failed", "diverged", "running", "interrupted"):
        assert f"because of {status}" in page.html
    assert [row["signature"] for row in _diagnoses(page)].count("diverged") == 1


def _diagnoses(page: Page) -> list[dict[str, Any]]:
    columns = embedded(page)["grids"]["diagnosis"]["columns"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.95])
def test_a_truncated_metrics_file_hides_one_run_only(copy: Path, cut: float, known: Known) -> None:
    path = sorted(copy.glob("*/metrics.csv"))[0]
    text = path.read_text()
    kept = text[: int(len(text) * cut)]
    path.write_text(kept[: kept.rindex(",")])  # in the middle of a line, whatever its length
    run_set = Store(copy).run_set()
    assert len(run_set.results) == 7
    page = build_page(run_set, known=known)
    assert "not a metrics file" in page.html
    assert "1 run could not be read; see the runs below." in page.html


def test_metrics_and_weights_that_are_not_whole_are_noticed(copy: Path, known: Known) -> None:
    first, second, third = sorted(path for path in copy.iterdir() if path.is_dir())[:3]
    lines = (first / "metrics.csv").read_text().splitlines(keepends=True)
    (first / "metrics.csv").write_text(
        "".join(line for line in lines if not line.startswith("24,"))
    )
    (second / "metrics.csv").write_text("")
    (third / "weights.safetensors").unlink()
    run_set = Store(copy).run_set()
    assert len(run_set.results) == 5
    assert "ended at step 24, the last measurement is of step 18" in run_set.unreadable[first.name]
    assert "metrics.csv: not a metrics file" in run_set.unreadable[second.name]
    assert "weights" in run_set.unreadable[third.name]
    assert (
        build_page(run_set, known=known).html.count('<span class="mark ill">unreadable</span>') == 3
    )


def test_a_whole_store_that_cannot_be_read_gives_a_page_that_says_so(copy: Path) -> None:
    for path in copy.glob("*/metrics.csv"):
        path.write_text("rubbish")
    page = build_page(Store(copy).run_set())
    assert "No run here can be read." in page.html
    assert page.html.count('<span class="mark ill">unreadable</span>') == 8


def test_runs_of_different_tasks_are_refused(store: Path) -> None:
    results = Store(store).run_set().results
    other = replace(results[0], config=replace(results[0].config, task="another"))
    with pytest.raises(InputError, match="runs of different tasks \\(another, latin_square\\)"):
        build_page(RunSet("here", [*results, other]))


def test_folders_that_hold_nothing(tmp_path: Path, store: Path) -> None:
    with pytest.raises(InputError, match="no runs here"):
        Store(tmp_path).run_set()
    with pytest.raises(InputError, match="no such folder"):
        Store(tmp_path / "absent").run_set()
    with pytest.raises(InputError, match="one run; give the folder that holds it"):
        Store(next(path for path in store.iterdir() if path.is_dir()))


@pytest.mark.parametrize(
    ("module", "verb"), [("plotly", "report"), ("jinja2", "report"), ("matplotlib", "figures")]
)
def test_without_its_extra_a_verb_says_what_to_install(
    store: Path, module: str, verb: str, tmp_path: Path
) -> None:
    script = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        "from placecell.cli import call\n"
        f"sys.exit(call([{verb!r}, {str(store)!r}, '--out', {str(tmp_path / 'r.html')!r}]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert "pip install 'placecell[report]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_what_analyse_measured_is_taken_over(copy: Path) -> None:
    from placecell.report import analyse

    analyse(str(copy), str(copy / "analysis"), quiet=True)
    known = known_measures(copy)
    assert len(known) == 8
    results = Store(copy).run_set().results
    fresh, reused = measure(results, "x"), measure(results, "x", known=known)
    for a, b in zip(fresh.runs, reused.runs, strict=True):
        assert a.values.keys() == b.values.keys()
        for name in a.values:
            assert a.values[name] == pytest.approx(b.values[name], nan_ok=True), name
    name = next(iter(known))
    changed = {name: known[name] | {"table/relation": 0.123}}
    run_set = measure(Store(copy).run_set().results, "x", known=changed)
    assert [r.values["table/relation"] for r in run_set.runs if r.result.config.name == name] == [
        0.123
    ]
    shutil.rmtree(copy / "analysis")
    assert known_measures(copy) == {}


def test_converged_is_explained_as_it_is_counted(summary: Summary) -> None:
    """Every training sample right is not enough: the loss has to have stopped changing."""
    learned = summary.runs[0].result
    values = {
        ("train", "accuracy"): [0.3, 1.0, 1.0],
        ("train", "loss"): [1.4, 0.5, 0.2],
        ("test", "accuracy"): [0.3] * 3,
    }
    rows = tuple(
        Row(step, *key, value)
        for key, by_step in values.items()
        for step, value in enumerate(by_step)
    )
    one = read_run(replace(learned, rows=rows), summary.task, map_sample(summary.task))
    assert one.values["converged"] == 0
    text = as_text(sweep_facts(replace(summary, runs=[replace(one, label=SMALL)])))
    assert "(every training sample scored is right, and the loss has stopped changing)" in text


def test_similarity_in_the_figure_is_that_of_the_analysis(summary: Summary) -> None:
    """A row that is the mean row has no direction: it is like no other, rather than not a
    number."""
    table = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], *[[0.0, 0.0]] * 12])
    run = replace(next(r for r in summary.runs if r.label == SMALL), table=table)
    figure = Figure()
    axis = figure.subplots()
    figures._similarity(axis, summary, run, "black", figure)
    shown = np.array(axis.images[0].get_array())
    assert np.isnan(np.diag(shown)).all()
    np.testing.assert_allclose(np.nan_to_num(shown), analysis.row_similarity(table), atol=1e-12)


# ------------------------------------------------------------------ from Python


def test_report_is_a_function_and_a_module(
    store: Path, tmp_path: Path, known: Known, monkeypatch: Any
) -> None:
    monkeypatch.setattr(placecell.report, "known_measures", lambda folder: known)
    page = placecell.report(str(store), str(tmp_path / "page.html"), title="My sweep")
    assert (tmp_path / "page.html").read_text() == page.html
    assert '<h1 id="what-h">My sweep</h1>' in page.html
    results: list[RunResult] = Store(store).run_set().results
    again = placecell.report(results[:2], title="My sweep")
    assert len(embedded(again)["tables"]["runs"]) == 2
    assert embedded(again)["tables"]["runs"][0] in embedded(page)["tables"]["runs"]
    assert placecell.report.summarise(store).labels == page.summary.labels
    frame = again._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html')
    assert "<script" not in frame


def test_outcomes_of_a_sweep_are_results_too(store: Path) -> None:
    from placecell.sweep import Outcome

    results = Store(store).run_set().results
    outcomes = [Outcome(r.config, r) for r in results[1:]] + [
        Outcome(results[0].config, None, "RuntimeError: it broke")
    ]
    page = placecell.report(outcomes)
    assert "RuntimeError: it broke" in page.html
    for bad in ([], [3]):
        with pytest.raises(InputError):
            placecell.report(bad)


def test_training_curves_are_means_with_bands_over_seeds(page: Page) -> None:
    panel = page.panels["training"]
    columns = panel.columns
    for trace in panel.traces:
        rows = trace.get("rows", range(*trace.get("span", (0, 0))))
        seeds = {columns["seed"][row] for row in rows}
        assert seeds == ({0, 1} if trace["of"] == "seed" else {"mean"})
    band = next(t for t in panel.traces if t["kind"] == "band" and t["metric"] == "loss")
    for row in band["rows"]:
        same = [
            value
            for value, *key in zip(
                columns["value"],
                columns["metric"],
                columns["configuration"],
                columns["split"],
                columns["step"],
                columns["seed"],
                strict=True,
            )
            if key[:4] == ["loss", band["name"], "test", columns["step"][row]] and key[4] != "mean"
        ]
        assert len(same) == 2
        assert (columns["low"][row], columns["high"][row]) == (min(same), max(same))
        assert columns["value"][row] == pytest.approx(sum(same) / 2, rel=1e-6)
    assert training.BANDS in panel.sentence


def test_figures_in_a_notebook(page: Page) -> None:
    figure = page.figure("headline")
    learnable = next(t for t in figure.data if t.name == "learnable")
    assert list(learnable.x) == [0.1, 0.5, 2.0]
    assert figure.layout.xaxis.type == "log"
    loss = page.figure("training", "loss")
    assert {t.name for t in loss.data} == {t["name"] for t in page.panels["training"].traces}
    assert loss.layout.yaxis.title.text == "loss"
    agreed = page.figure("agreement", "attention/relation")
    assert agreed.layout.xaxis.title.text == panels.MEASURES["attention/relation"]
    with pytest.raises(InputError, match="no figure 'nothing'"):
        page.figure("nothing")


def test_a_page_is_written_only_where_it_can_be(page: Page, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        page.write(tmp_path / "absent" / "r.html")
    with pytest.raises(InputError, match="a folder; expected the name of a file"):
        page.write(tmp_path)


# ------------------------------------------------------------------ names with markup


def test_data_cannot_end_the_element_it_is_in() -> None:
    evil = {"a</script><script>alert(1)</script>": ["<!--", "σ & <b>"]}
    text = embed(evil)
    assert "<" not in text
    assert json.loads(text) == evil


def test_packing_keeps_16_bits() -> None:
    import base64

    values = np.array([-2.0, -1.0, 0.0, 0.5, 2.0, 9.0])
    raw = np.frombuffer(base64.b64decode(arrays.pack(values, 2.0)), "<i2") * 2.0 / 32767
    np.testing.assert_allclose(raw, [-2, -1, 0, 0.5, 2, 2], atol=1e-4)
