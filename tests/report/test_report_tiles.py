"""Similarity tiles and the table of places, from small sweeps of tasks on a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placecell
from placecell import analysis
from placecell.report.figures import tiles
from placecell.report.write import write_analysis
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
    figure = tiles.pictures(findings.summary)["tiles"]
    parts = figure.subfigs[:-1]  # the last has the colour scale
    assert [part.get_suptitle() for part in parts] == ["learnable σ=0.1", "learnable σ=2.0"]
    coords = findings.summary.task.places.coords.int().numpy()
    limits = set()
    for part, run in zip(parts, findings.summary.runs, strict=True):
        similarity = analysis.row_similarity(run.table)
        images = [axis.images[0] for axis in part.axes]
        assert len(images) == 16
        limits |= {image.get_clim() for image in images}
        for token, (row, column) in enumerate(coords):
            tile = np.asarray(images[row * 4 + column].get_array())
            for other, (r, c) in enumerate(coords):
                if other == token:
                    assert np.isnan(tile[r, c])
                else:
                    assert tile[r, c] == pytest.approx(similarity[token, other])
    assert len(limits) == 1, "one colour scale for all"


def test_tiles_need_a_whole_grid() -> None:
    grid = np.array([[r, c] for r in range(2) for c in range(3)], dtype=float)
    cells, shape = tiles.grid_of(grid[::-1])
    assert (cells.tolist(), shape) == ([5, 4, 3, 2, 1, 0], (2, 3))
    assert tiles.grid_of(grid[:-1]) is None
    assert tiles.grid_of(grid + 0.5) is None
    assert tiles.grid_of(grid[:, :1]) is None


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
