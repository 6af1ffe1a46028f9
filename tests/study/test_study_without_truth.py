"""A task that knows nothing of the arrangement of its places is trained, read back, analysed and
shown all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from placecell import tasks
from placecell.config import ModelConfig, RunConfig, TrainConfig, option
from placecell.encodings import Positions
from placecell.errors import InputError
from placecell.registry import TASKS
from placecell.report.page.build import build_page
from placecell.seeds import numpy_stream
from placecell.store import Store, load_store
from placecell.study.summary import summarise
from placecell.tasks.masked import MaskedValues
from placecell.tasks.optional import need_truth
from placecell.train import run
from placecell.train.run import load_model


@dataclass(frozen=True)
class Config:
    n_nodes: int = option(6, "nodes of the chain", at_least=2)
    mask: float = option(0.3, "share masked", above=0, below=1)
    split_seed: int = option(0, "seed of the draw")


class Chain(MaskedValues):
    """A chain of noisy copies, whose order it does not say."""

    Config = Config

    def __init__(self, config: Config) -> None:
        self.config, self.places = config, Positions.sequence(config.n_nodes)

    def fields(self) -> dict:
        rng = numpy_stream(self.config.split_seed, "chain")
        walks = {
            name: np.cumsum(rng.normal(size=(40, self.n_tokens)), 1)
            for name in ("train", "valid", "test")
        }
        return {name: (walk / walk.std(), np.zeros(40, np.int64)) for name, walk in walks.items()}


@pytest.fixture
def chain() -> Iterator[None]:
    tasks.register("chain")(Chain)
    yield
    del TASKS._registered["chain"]


def configs() -> list[RunConfig]:
    base = RunConfig(
        "chain",
        Config(),
        model=ModelConfig(width=8, depth=1),
        train=TrainConfig(steps=4, eval_every=2),
    )
    return [
        base.override({"sigma": sigma, "seed": seed}) for sigma in (0.1, 2.0) for seed in (0, 1)
    ]


@pytest.mark.usefixtures("chain")
def test_a_task_without_truth_goes_all_the_way(tmp_path: Path) -> None:
    for config in configs():
        assert run(config, tmp_path).status == "done"
    assert len(load_store(tmp_path)) == 4
    config, task, model = load_model(next(tmp_path.glob("chain-*")))
    assert isinstance(task, Chain)
    assert model.table(task.places) is not None
    summary = summarise(tmp_path)
    assert np.isfinite(summary.interval("learnable σ=0.1", "test/mse").estimate)
    assert "table/relation" not in summary.runs[0].values
    assert "table/louvain_clusters" in summary.runs[0].values
    assert {"ridge", "linear Gaussian"} <= summary.baselines.keys()
    page = build_page(Store(tmp_path).run_set())
    assert "learnable σ=0.1" in page.html


@pytest.mark.usefixtures("chain")
def test_what_needs_the_truth_says_so() -> None:
    with pytest.raises(InputError, match=r"this picture needs to know how the places are arranged"):
        need_truth(Chain(Config()), "this picture")


@pytest.mark.usefixtures("chain")
def test_a_task_from_outside_handed_in_is_read_back(tmp_path: Path) -> None:
    config = replace(configs()[0], seed=5)
    done = run(config, tmp_path, task=Chain(Config()))
    assert load_model(done.folder)[0] == done.config
