"""Shared by all tests: one thread (so that results repeat bit for bit) and one tiny Latin-square task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import settings

from placecell.config import RunConfig
from placecell.tasks.base import Examples, Task

settings.register_profile("tests", deadline=None)  # a busy machine is not a failing test
settings.load_profile("tests")

TINY = {
    "task": "latin_square",
    "data": {"n_train": 64, "n_valid": 16, "n_test": 16},
    "model": {"width": 16, "depth": 2},
    "train": {"steps": 12, "eval_every": 4, "batch_size": 16},
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny() -> Callable[..., RunConfig]:
    """A small configuration with keys overridden: tiny(sigma=0.2, steps=3)."""

    def make(**overrides: Any) -> RunConfig:
        return RunConfig.from_dict(TINY).override(overrides)

    return make


@pytest.fixture(scope="session")
def tiny_task() -> Task:
    """The task of `tiny`."""
    from placecell.train import make_task

    return make_task(RunConfig.from_dict(TINY))


@pytest.fixture(scope="session")
def tiny_splits(tiny_task: Task) -> dict[str, Examples]:
    """The data of `tiny`, drawn once for all tests."""
    return tiny_task.splits()
