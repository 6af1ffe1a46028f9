"""A small finished sweep, made once for all tests of measuring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import placecell
from placecell.config import RunConfig
from placecell.sweep import Outcomes, local


@pytest.fixture(scope="session")
def swept(tiny: Callable[..., RunConfig], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Three σ, two seeds each."""
    axes = {"encoding": "learnable", "sigma": [0.1, 0.5, 2.0]}
    configs = placecell.sweep.grid(tiny(), [], axes, seeds=2)
    return placecell.sweep(configs, tmp_path_factory.mktemp("swept"), local(0))


@pytest.fixture(scope="session")
def store(swept: Outcomes) -> Path:
    """The folder of the sweep."""
    return swept.folder
