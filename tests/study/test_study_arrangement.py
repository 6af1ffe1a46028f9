"""How places are laid out by what a task knows of them, and which tables a picture shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from placecell import analysis
from placecell.config import RunConfig
from placecell.encodings import Positions
from placecell.study.arrangement import (
    Arrangement,
    arrangement,
    contrast,
    full_colour,
    grid_of,
    shows_truth,
)
from placecell.study.records import RunSummary, Summary
from placecell.tasks.base import Truth
from placecell.train import make_task


@dataclass
class Places:
    """As much of a task as pictures ask for."""

    coords: Any
    known: Truth | None = None
    shown: tuple[str, ...] = ("table/relation",)
    headline: str = "accuracy"
    headline_lower_is_better: bool = False
    places: Positions = field(init=False)

    def __post_init__(self) -> None:
        coords = torch.tensor(np.asarray(self.coords, dtype=np.float32))
        self.places = Positions(torch.arange(len(coords)), coords)

    def truth(self) -> Truth | None:
        return self.known


def laid_out(coords: Any, **known: Any) -> Arrangement:
    truth = Truth(np.eye(len(coords))[::-1], **known)
    return arrangement(Summary(Places(coords, truth), [], []))  # type: ignore[arg-type]


def test_a_grid_is_one_place_at_each_cell() -> None:
    grid = np.array([[r, c] for r in range(2) for c in range(3)], dtype=float)
    cells, shape = grid_of(grid[::-1])
    assert (cells.tolist(), shape) == ([5, 4, 3, 2, 1, 0], (2, 3))
    assert grid_of(grid[:-1]) is None
    assert grid_of(grid + 0.5) is None
    assert grid_of(grid[:, :1]) is None
    how = laid_out(grid[::-1])
    assert (how.kind, how.shape, how.order.tolist()) == ("grid", (2, 3), [5, 4, 3, 2, 1, 0])
    assert laid_out(grid, spatial=False).kind == "unknown"
    many = [[r, c] for r in range(11) for c in range(10)]
    assert laid_out(many).kind == "plane", "too many maps to see"


def test_an_order_is_along_a_line_or_around_a_circle() -> None:
    how = laid_out([[3.0], [0.0], [2.0], [1.0]])
    assert (how.kind, how.order.tolist()) == ("order", [1, 3, 2, 0])
    around = np.random.default_rng(0).permutation(9)
    circle = np.stack([np.cos(around * 2 * np.pi / 9), np.sin(around * 2 * np.pi / 9)], 1)
    how = laid_out(circle)
    steps = np.diff(around[how.order]) % 9
    assert how.kind == "order"
    assert set(steps) == {1}
    assert laid_out(circle * np.linspace(1, 2, 9)[:, None]).kind == "plane"


def test_groups_stand_together_with_borders_between_them() -> None:
    how = laid_out(np.arange(5)[:, None], labels={"m": np.array([1, 0, 2, 0, 1])}, partition="m")
    assert (how.kind, how.order.tolist(), how.borders) == ("groups", [1, 3, 0, 4, 2], [2, 4])


def test_the_ideal_of_a_latin_square_is_a_cross_in_every_small_map() -> None:
    task = make_task(RunConfig.from_dict({"task": "latin_square"}))
    how = arrangement(Summary(task, [], []))
    alike = analysis.row_similarity(how.ideal_table)
    tiles = how.tiles(alike)
    assert tiles.shape == (19, 19)
    tile = tiles[5:9, 10:14]  # of row 1, column 2
    cross = (np.arange(4)[:, None] == 1) | (np.arange(4) == 2)
    own = np.isnan(tile)
    assert own.sum() == 1
    assert own[1, 2]
    assert (tile[cross & ~own] > 0.2).all()
    assert (tile[~cross] < -0.2).all()
    nothing = arrangement(Summary(Places([[0.0], [1.0]]), [], []))  # type: ignore[arg-type]
    assert nothing.ideal_table is None


def sweep(scores: dict[float, list[float]], tables: set[float]) -> Summary:
    """Runs at some σ, of one seed for each score; those without a table have none."""
    rng, runs = np.random.default_rng(0), []
    for sigma, values in scores.items():
        for seed, value in enumerate(values):
            config = RunConfig.from_dict({"task": "latin_square", "seed": seed})
            config = config.override({"encoding": "learnable", "sigma": sigma})
            result = type("Result", (), {"config": config, "status": "done"})()
            table = rng.normal(size=(4, 3)) if sigma in tables else None
            measured = {"table/relation": value, "table/relation_p": 0.001}
            measured["test/accuracy"] = 1 - sigma / 10
            runs.append(RunSummary(result, f"σ={sigma:g}", measured, {}, table, None))
    return Summary(Places(np.arange(4)[:, None]), runs, ["encoding.sigma"])  # type: ignore[arg-type]


def test_elsewhere_places_that_belong_together_are_near() -> None:
    ring = np.random.default_rng(0).permutation(12)
    relation = np.zeros((12, 12))
    relation[ring, np.roll(ring, 1)] = relation[np.roll(ring, 1), ring] = 1
    truth = Truth(relation, spatial=False)
    how = arrangement(Summary(Places(np.zeros((12, 1)), truth), [], []))  # type: ignore[arg-type]
    assert how.kind == "unknown"
    far = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    assert far[relation[np.ix_(how.order, how.order)] > 0].max() <= 2, "a ring, laid flat"
    nothing = arrangement(Summary(Places(np.zeros((4, 1)), Truth.unknown(4)), [], []))  # type: ignore[arg-type]
    assert nothing.order.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({0.02: [0.3], 0.1: [0.9], 2.0: [0.0]}, ["σ=0.1", "σ=2"]),
        ({0.1: [0.2], 0.5: [0.3], 2.0: [0.9]}, ["σ=2", "σ=0.1"]),
        ({0.1: [float("nan")], 2.0: [0.3]}, ["σ=2", "σ=0.1"]),
        ({0.1: [0.01], 0.5: [0.1], 2.0: [0.15]}, ["σ=0.1", "σ=2"]),  # none shows it
        ({0.1: [0.5]}, ["σ=0.1"]),
    ],
)
def test_pictures_open_on_the_most_readable_table(scores: Any, chosen: list[str]) -> None:
    assert [run.label for run in contrast(sweep(scores, set(scores)))] == chosen


def test_pictures_open_on_a_seed_that_both_have() -> None:
    summary = sweep({0.1: [0.9, 0.8], 2.0: [0.1, 0.2]}, {0.1, 2.0})
    assert [run.result.config.seed for run in contrast(summary)] == [0, 0]
    without = Summary(summary.task, summary.runs[1:], summary.keys)  # σ = 0.1 has seed 1 only
    assert [run.result.config.seed for run in contrast(without)] == [1, 1]
    assert contrast(sweep({0.1: [0.9]}, set())) == []


def test_a_table_shows_the_truth_if_chance_does_not_and_it_is_strong_enough() -> None:
    summary = sweep({0.1: [0.9, 0.8], 2.0: [0.1, 0.2]}, set())
    assert shows_truth(summary, "σ=0.1")
    assert not shows_truth(summary, "σ=2")
    for run in summary.runs:
        run.values["table/relation_p"] = 0.2
    assert not shows_truth(summary, "σ=0.1")


def test_one_pair_in_twenty_is_beyond_the_full_colours() -> None:
    alike = np.zeros((41, 41))
    above = np.triu_indices(41, 1)
    alike[above] = np.linspace(-1, 1, len(above[0]))
    assert full_colour(alike) == pytest.approx(0.95, abs=0.01)
    assert full_colour(np.zeros((3, 3))) == 1.0
