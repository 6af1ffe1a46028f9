"""Shared by all tests: one thread (so that results repeat bit for bit), a disk that is not waited
for, one tiny Latin-square task, and the example task and encoding of the docs, so that whatever
runs over all tasks or encodings runs over some from outside too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from threadpoolctl import threadpool_limits

from placecell.config import RunConfig
from placecell.plugins import load_plugin
from placecell.tasks.base import Examples, Task

settings.register_profile("tests", deadline=None)  # a busy machine is not a failing test
settings.load_profile("tests")

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
for example in ("fourier_encoding.py", "ring_task.py"):
    load_plugin(str(EXAMPLES / example))

TINY = {
    "task": "latin_square",
    "data": {"n_train": 64, "n_valid": 16, "n_test": 16},
    "model": {"width": 16, "depth": 2},
    "train": {"steps": 12, "eval_every": 4, "batch_size": 16},
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Ray, which mostly wait, come first: at the end they would leave a core idle."""
    items.sort(key=lambda item: item.path.name != "test_sweep_ray.py")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """NumPy's, SciPy's and torch's threads: those of two test processes only get in each other's
    way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # imported or started later
            patch.setenv(name, "1")
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def quick_disk() -> Iterator[None]:
    """No test waits for the disk: only a loss of power would show it, and that is simulated
    (sweep_faults.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


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


@pytest.fixture(scope="session")
def hcp() -> Callable[[str], Path]:
    """The folder of a fetched dataset; the test skips, saying how to fetch it, where it is not
    there."""
    from placecell.tasks.fmri.fetch import folder_of, is_fetched

    def find(name: str) -> Path:
        if not is_fetched(name):
            pytest.skip(f"needs real data: placecell fetch {name} --accept-hcp-terms")
        return folder_of(name)

    return find
