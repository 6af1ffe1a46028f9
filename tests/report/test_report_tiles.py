"""Similarity tiles and the table of places, from small sweeps of tasks on a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placecell
from placecell import analysis
from placecell.report.figures.tiles import fig_tiles
from placecell.report.write import write_analysis
from placecell.study.arrangement import contrast
from placecell.study.places import place_table

SMALL = {
    "n_train": 40,
    "n_valid": 10,
    "n_test": 20,
    "width": 16,
    "depth": 1,
    "heads": 1,
    "steps": 4,
    "eval_every": 4,
    "warmup": 0,
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiles")
    for settings in ({"sigma": 0.1}, {"sigma": 2.0}):
        config = placecell.preset("images").override(SMALL | {"encoding": "learnable"} | settings)
        placecell.run(config, folder)
    return placecell.analyse(folder)


def test_a_tile_is_one_row_of_the_similarity_laid_out_on_the_grid(findings) -> None:
    summary = findings.summary
    figure = fig_tiles(summary)
    *panels, scale = figure.axes
    assert [panel.get_title().split("\n")[0] for panel in panels] == [
        *(f"learned from σ = {run.result.config.encoding.sigma:g}" for run in contrast(summary)),
        "the ideal:",
    ]
    assert "share an edge" in panels[2].get_title()
    relation = summary.truth.relation
    tables = [run.table for run in contrast(summary)] + [relation + np.eye(len(relation))]
    coords = summary.task.places.coords.int().numpy()
    limits = set()
    for panel, table in zip(panels, tables, strict=True):
        similarity = analysis.row_similarity(table)
        image, own = (np.asarray(one.get_array()) for one in panel.images)
        limits.add(panel.images[0].get_clim())
        assert image.shape == (19, 19), "four maps of four cells and three gaps"
        assert np.isnan(image[4]).all()
        for token, (row, column) in enumerate(coords):
            tile = image[row * 5 : row * 5 + 4, column * 5 : column * 5 + 4]
            for other, (r, c) in enumerate(coords):
                if other == token:
                    assert np.isnan(tile[r, c])
                    assert own[row * 5 + r, column * 5 + c] == 1
                else:
                    assert tile[r, c] == pytest.approx(similarity[token, other])
    assert len(limits) == 1, "one colour scale for all"
    assert scale.get_ylabel() == "similarity of the rows"


def test_names_reach_the_table_of_places(findings, tmp_path: Path) -> None:
    written = write_analysis(findings, tmp_path)
    assert {"places.csv", "tiles.png"} <= {path.name for path in written.paths}
    rows = place_table(findings.summary).rows()
    assert [row["name"] for row in rows] == findings.summary.task.names()
    similarity = analysis.row_similarity(findings.summary.runs[0].table)
    np.fill_diagonal(similarity, -1)
    nearest = int(similarity[3].argmax())
    assert rows[3]["nearest, learnable σ=0.1"] == rows[nearest]["name"]
    assert "row 1, column 1" in (tmp_path / "places.csv").read_text()
