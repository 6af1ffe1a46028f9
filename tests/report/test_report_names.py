"""Names of one's own regions, nodes and networks reach tables, figures and the page, as text."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import placecell
from placecell.config import RunConfig
from placecell.report import Page, report
from placecell.report.figures import finding, networks
from placecell.report.names import MARK, as_drawn, marks, shortened
from placecell.report.write import write_analysis
from placecell.study.findings import Findings
from placecell.study.networks import networks as measured
from placecell.train import run

LONG = "an area with a name that is far too long for any picture of it, on the "
REGIONS = ["<b>V1</b>", "V2 & V3", "$M1$", "S1", "A1", "PFC", "Tha", "Cau", LONG + "left", "Put"]
NETWORKS = ["vision<i>", "motor $y$", "rest"]
OF_NETWORK = [NETWORKS[i] for i in (0, 0, 1, 1, 2, 2, 2, 1, 0, 2)]
SMALL: dict[str, Any] = {
    "encoding": {"sigma": 0.1},
    "model": {"width": 8, "depth": 1},
    "train": {"steps": 4, "eval_every": 2, "batch_size": 16},
}


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a file of regions that have names, with a file of networks."""
    folder = tmp_path_factory.mktemp("brain")
    series = np.random.default_rng(0).normal(size=(400, 10)).round(3)
    rows = ["\t".join(REGIONS), *("\t".join(map(str, row)) for row in series)]
    (folder / "run.tsv").write_text("\n".join(rows), encoding="utf-8")
    (folder / "networks.txt").write_text("\n".join(OF_NETWORK), encoding="utf-8")
    data = {"dataset": "files", "train_files": [str(folder / "run.tsv")], "test_share": 0.2}
    data |= {"networks": str(folder / "networks.txt")}
    run(RunConfig.from_dict(SMALL | {"task": "fmri", "data": data}), folder / "runs")
    return folder / "runs"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a graph whose nodes have the same names."""
    folder = tmp_path_factory.mktemp("graph")
    ring = nx.to_numpy_array(nx.cycle_graph(10)).astype(int).astype(str)
    rows = ["\t".join(REGIONS), *map("\t".join, ring)]
    (folder / "ring.tsv").write_text("\n".join(rows), encoding="utf-8")
    data = {"graph": "files", "adjacency": str(folder / "ring.tsv"), "n_train": 60}
    data |= {"n_valid": 20, "n_test": 20}
    run(RunConfig.from_dict(SMALL | {"task": "graph", "data": data}), folder / "runs")
    return folder / "runs"


@pytest.fixture(scope="module")
def findings(brain: Path) -> Findings:
    return placecell.analyse(brain)


@pytest.fixture(scope="module")
def page(brain: Path) -> Page:
    return report(brain)


def data_of(page: Page) -> dict[str, Any]:
    text = page.html.split('id="data">')[1].split("</script>")[0]
    data: dict[str, Any] = json.loads(text)
    return data


# ------------------------------------------------------------------ short names


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("left hemisphere, area V1", 12) == "left h…ea V1"
    assert shortened("a" * 12, 12) == "a" * 12
    assert len(shortened(LONG, 30)) <= 30
    assert shortened("pariet  xxxxxxxxx  right", 16) == "pariet…right"


def test_a_mark_is_the_name_in_short_and_no_two_are_the_same() -> None:
    assert marks([f"node {i + 1}" for i in range(3)]) == ["1", "2", "3"]
    assert marks(["row 1, column 1", "row 1, column 2"]) == ["1,1", "1,2"]
    assert marks(["V1", "region 2"]) == ["V1", "region 2"], "not all are numbered"
    assert marks(["12", "7"]) == ["12", "7"]
    both = [f"{start} beginning {side} and end of two" for start in "ab" for side in "cd"]
    assert marks(both) == ["1", "2", "3", "4"], "shortened two would be one"
    atlas = [f"7Networks_{side}_Vis_{i}" for side in ("LH", "RH") for i in (1, 2)]
    assert marks(atlas) == ["LH_Vis_1", "LH_Vis_2", "RH_Vis_1", "RH_Vis_2"]
    assert marks([LONG, "S1"])[1] == "S1"
    assert max(map(len, marks([LONG, "S1"]))) <= MARK


# ------------------------------------------------------------------ tables


def test_the_table_of_places_has_names_of_regions_and_networks(
    findings: Findings, tmp_path: Path
) -> None:
    assert findings.places["name"] == REGIONS
    assert findings.places["network"] == OF_NETWORK
    assert set(findings.places["nearest, learnable"]) <= set(REGIONS)
    written = write_analysis(findings, tmp_path)
    assert tmp_path / "places.csv" in written.paths
    with (tmp_path / "places.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == REGIONS
    assert [row["network"] for row in rows] == OF_NETWORK


def test_a_task_without_names_has_a_table_of_places_too(tmp_path: Path) -> None:
    tiny = SMALL | {"task": "ring", "data": {"n_train": 60, "n_valid": 20, "n_test": 20}}
    run(RunConfig.from_dict(tiny), tmp_path)
    assert placecell.analyse(tmp_path).places["name"] == [f"position {i + 1}" for i in range(8)]


def test_nodes_of_ones_own_graph_have_their_names(graph: Path) -> None:
    places = placecell.analyse(graph).places
    assert places["name"] == REGIONS
    assert set(places["nearest, learnable"]) <= set(REGIONS)
    assert data_of(report(graph))["tables"]["names"] == REGIONS


# ------------------------------------------------------------------ figures


def words(figure: Any) -> list[str]:
    """All text of a figure as it is drawn, without the marks of formulas."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    found = [one for one in figure.findobj(Text) if one.get_visible()]
    formulas = [one.get_text() for one in found if one._preprocess_math(one.get_text())[1]]
    assert all("mathdefault" in text for text in formulas), "only numbers along an axis are"
    return [one.get_text().replace(r"\$", "$") for one in found]


def test_figures_show_names(findings: Findings) -> None:
    summary = findings.summary
    short = marks(REGIONS)
    assert set(short) <= set(words(finding.fig_tables(summary)))
    assert set(short) <= set(words(finding.fig_finding(summary)))
    shown = measured(summary)
    assert shown is not None
    assert shown.names == sorted(NETWORKS)
    drawn = words(networks.fig_networks(shown))
    assert set(short) <= set(drawn)
    assert all(drawn.count(name) == 3 for name in NETWORKS), "two axes, and the legend"
    assert set(NETWORKS) <= set(words(finding.fig_tables(summary)))


def test_many_rows_are_named_by_their_groups() -> None:
    from matplotlib.figure import Figure

    from placecell.report.figures.rows import name_rows

    axis = Figure().subplots()
    groups = [*["front"] * 20, *["back"] * 11, "$top$"]
    name_rows(axis, [str(i) for i in range(32)], np.arange(32), groups)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["front", "back", r"\$top\$"]
    assert axis.get_yticks().tolist() == [9.5, 25, 31]
    name_rows(axis, [str(i) for i in range(32)], np.arange(32))
    assert not len(axis.get_yticks())
    name_rows(axis, list("abc"), np.array([2, 0, 1]), ["x", "y", "y"])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["c", "a", "b"]


def test_dollar_signs_are_no_formulas() -> None:
    assert as_drawn("$x$") == r"\$x\$"


def test_letters_that_the_font_lacks_are_said_in_one_sentence(
    findings: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = findings.summary
    strange = [f"{chr(0x13000 + i)}{chr(0x13100 + i)}" for i in range(summary.n_places)]
    monkeypatch.setattr(type(summary.task), "names", lambda task: strange)
    with pytest.warns(UserWarning, match="the font of the figures lacks") as caught:
        write_analysis(Findings(replace(summary), findings.facts), tmp_path)
    said = [str(one.message) for one in caught]
    assert sum("the font of the figures lacks letters" in text for text in said) == 1
    assert not any(text.startswith("Glyph") for text in said)
    assert strange[3] in (tmp_path / "places.csv").read_text(encoding="utf-8")


# ------------------------------------------------------------------ the page


def test_the_page_has_the_names_as_text(page: Page) -> None:
    tables, attention = (data_of(page)[part] for part in ("tables", "attention"))
    assert tables["names"] == attention["names"] == REGIONS
    assert tables["labels"]["network"] == OF_NETWORK
    assert tables["marks"] == marks(REGIONS)
    assert tables["groups"] == attention["groups"] == sorted(NETWORKS)
    for name in ("<b>V1", "vision<i>"):
        assert name not in page.html


def test_hover_ticks_and_downloads_show_names(
    page: Page, tab: Callable[..., Any], tmp_path: Path
) -> None:
    one = tab()
    shown = one.open(page.write(tmp_path / "page.html"))
    one.see_all()

    def plot(id: str) -> dict[str, Any]:
        found: dict[str, Any] = shown.evaluate(
            f"""(() => {{ const p = document.getElementById("{id}");
            return {{ data: p.data, ticks: p.layout.yaxis.ticktext || [] }}; }})()"""
        )
        return found

    matrix, attention = plot("tables-a-plot"), plot("attention-map")
    hovers = {cell for row in matrix["data"][0]["text"] for cell in row}
    assert any(cell.startswith("&lt;b&gt;V1&lt;/b&gt;, S1: ") for cell in hovers)
    assert not any("<" in cell for cell in hovers)
    assert "A1" in matrix["ticks"]
    assert any(
        "attention of V2 &amp; V3 to S1" in cell
        for row in attention["data"][0]["text"]
        for cell in row
    )
    assert max(len(cell) for row in attention["data"][0]["text"] for cell in row) < 170
    shown.locator("#tables-view").select_option("points")
    cloud = plot("tables-a-plot")["data"]
    assert {trace["name"] for trace in cloud if "name" in trace} >= {"network rest"}
    hover = [text for trace in cloud for text in trace.get("hovertext", [])]
    assert "S1<br>network: motor $y$" in hover
    assert "&lt;b&gt;V1&lt;/b&gt;<br>network: vision&lt;i&gt;" in hover
    for id, column in (("tables-a", "name"), ("attention", "query")):
        with shown.expect_download() as waiting:
            shown.locator(f'[data-csv="{id}"]').click()
        with open(waiting.value.path(), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(dict.fromkeys(row[column] for row in rows)) == REGIONS
        assert id == "attention" or rows[0][f"similarity to {REGIONS[8]}"]
    assert not one.errors


def test_of_many_places_the_groups_are_named(tab: Callable[..., Any], tmp_path: Path) -> None:
    data = {"modules": "10+6+4", "n_train": 60, "n_valid": 20, "n_test": 20}
    run(RunConfig.from_dict(SMALL | {"task": "nmar", "data": data}), tmp_path / "runs")
    one = tab()
    shown = one.open(report(tmp_path / "runs").write(tmp_path / "page.html"))
    one.see_all()
    for id in ("tables-a-plot", "attention-map"):
        axis = shown.evaluate(f'document.getElementById("{id}").layout.yaxis')
        assert axis["ticktext"] == ["1", "2", "3"]
        assert axis["tickvals"] == [4.5, 12.5, 17.5]
        assert axis["showticklabels"]
    assert not one.errors
