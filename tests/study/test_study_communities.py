"""Without known networks the reference is communities of the data's own correlations, and is called
that everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import placecell
from placecell.config import RunConfig
from placecell.report.page.build import build_page
from placecell.store import Store
from placecell.study.networks import networks
from placecell.study.records import OWN_COMMUNITIES
from placecell.train import run

N = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of twelve regions in three groups that fluctuate together."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        shared = rng.normal(size=(300, 3)).repeat(4, axis=1)
        np.save(folder / f"{name}.npy", shared + rng.normal(size=(300, N)))
    (folder / "networks.txt").write_text("\n".join("aaaabbbbcccc"))
    return folder


def train(files: Path, out: Path, **data: str) -> Path:
    settings = {
        "task": "fmri",
        "data": {
            "dataset": "files",
            "train_files": [str(files / "train.npy")],
            "test_files": [str(files / "test.npy")],
        }
        | data,
        "encoding": {"sigma": 0.1},
        "model": {"width": 8, "depth": 1},
        "train": {"steps": 4, "eval_every": 2, "batch_size": 16},
    }
    run(RunConfig.from_dict(settings), out)
    return out


def test_it_is_called_what_it_is(files: Path, tmp_path: Path) -> None:
    folder = train(files, tmp_path)
    findings = placecell.analyse(folder)
    summary = findings.summary
    assert summary.truth.from_data
    assert summary.truth.partition == "community"
    text = str(findings)
    assert f"compared with {OWN_COMMUNITIES}, which is not a known truth" in text
    shown = networks(summary)
    assert shown is not None
    assert next(iter(shown.partitions)) == OWN_COMMUNITIES
    page = build_page(Store(folder).run_set()).html
    body = page.split('<main id="main">')[1].split("<script>")[0]
    assert OWN_COMMUNITIES in body.replace("&#39;", "'")
    for claim in ("true relation", "true arrangement", "ideal relation", "known network"):
        assert claim not in body, claim
    shown = re.sub('(id|for|class)="[^"]*"', "", body.split("<script")[0])  # and what is read aloud
    for claim in ("true ", "ideal", "truth"):
        assert claim not in shown.replace("not a known truth", ""), claim


def test_no_table_and_no_figure_calls_them_true(files: Path, tmp_path: Path) -> None:
    from matplotlib.text import Text

    from placecell.report import write_analysis
    from placecell.report.figures import finding, networks, paper

    findings = placecell.analyse(train(files, tmp_path / "runs"))
    summary = findings.summary
    drawn = [finding.fig_finding(summary), finding.fig_tables(summary)]
    drawn += [*networks.pictures(summary).values(), *paper.paper_panels(summary).values()]
    said = [one.get_text() for figure in drawn for one in figure.findobj(Text)]
    written = write_analysis(findings, tmp_path / "out").paths
    said += [path.read_text() for path in written if path.suffix != ".png"]
    for text in said:
        bare = text.replace("not a known truth", "").replace("No networks are known", "")
        bare = bare.replace('_is_better": true', "").lower()
        assert not {"true", "truth", "ideal", "known"} & set(re.findall("[a-z]+", bare)), text
    assert set(findings.places["community"]) == {"1", "2", "3"}


def test_baselines_that_agree_by_construction_are_marked(files: Path, tmp_path: Path) -> None:
    findings = placecell.analyse(train(files, tmp_path))
    marked = {row["label"] for row in findings.facts["baselines"] if "by_construction" in row}
    assert marked == {
        "correlations of the training data",
        "correlations of the training data, rows as a table",
        "principal components of the training data",
    }
    text = str(findings)
    for name in marked:
        assert f"| {name} * |" in text
    assert "| linear Gaussian |" in text
    assert "* agrees with that by construction" in text


def test_known_networks_are_the_truth(files: Path, tmp_path: Path) -> None:
    folder = train(files, tmp_path, networks=str(files / "networks.txt"))
    findings = placecell.analyse(folder)
    assert not findings.summary.truth.from_data
    assert findings.summary.reference == "the true relation"
    assert "by construction" not in str(findings)
    assert "reference" not in findings.facts
    page = build_page(Store(folder).run_set()).html
    assert OWN_COMMUNITIES not in page.replace("&#39;", "'")
