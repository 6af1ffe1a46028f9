"""fMRI on the library's interface: regions are tokens, volumes are samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from placecell import analysis
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.seeds import numpy_stream
from placecell.tasks.base import Truth
from placecell.tasks.fmri.config import HCP_SECONDS, Config
from placecell.tasks.fmri.datasets import Regions, Run, digest, load_regions, load_runs
from placecell.tasks.fmri.fetch import folder_of
from placecell.tasks.fmri.preprocess import preprocess
from placecell.tasks.masked import NULLS, MaskedValues

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
FEWEST_SPUN = 4  # regions of a hemisphere: fewer have hardly another order
GAP = 20  # volumes left out between the training and the validation part of a run


class Fmri(MaskedValues):
    """Predict masked brain regions of a volume from the visible ones; their networks are the
    reference."""

    def __init__(self, config: Config) -> None:
        if config.dataset != "files":
            config = replace(config, split=config.split or "session", repetition_time=HCP_SECONDS)
        self.runs: dict[str, list[Run]] = load_runs(config)
        self.regions: Regions = load_regions(config, self.runs["train"][0].series.shape[1])
        self.places = positions(self.regions)
        if config.dataset == "files":
            found = digest(self.runs, self.regions)
            if config.contents not in (None, found):
                patterns = (*(config.train_files or ()), *(config.test_files or ()))
                raise InputError(
                    f"{', '.join(patterns)}: these files, or what describes their regions, have "
                    f"changed since the run was made (contents {found}, expected "
                    f"{config.contents}). Bring the old "
                    "ones back, or train on the new ones with the command that made it."
                )
            config = replace(config, contents=found)  # so that other data are another run
        self.config = config

    @property
    def flip(self) -> bool:
        return self.config.flip

    @property
    def groups(self) -> tuple[str, ...]:  # type: ignore[override]
        """The people whose data are scored."""
        return tuple(dict.fromkeys(run.subject for part in self.runs.values() for run in part))

    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """Training runs without their last part, that part (after a gap), and the test runs."""
        parts: dict[str, list[tuple[Array, str]]] = {"train": [], "valid": [], "test": []}
        for split, runs in self.runs.items():
            for run in runs:
                clean = preprocess(run.series, run.confounds, self.config, run.name, run.seconds)
                if split == "test":
                    parts["test"].append((clean, run.subject))
                    continue
                held = max(2, round(self.config.valid_share * len(clean)))
                parts["train"].append((clean[: -held - GAP], run.subject))
                parts["valid"].append((clean[-held:], run.subject))
        groups = self.groups
        return {
            split: (
                np.concatenate([values for values, _ in found]),
                np.concatenate(
                    [np.full(len(values), groups.index(subject)) for values, subject in found]
                ),
            )
            for split, found in parts.items()
        }

    @cached_property
    def networks(self) -> NDArray[np.int64]:
        """The network of each region: known, or the communities of the training data's functional
        connectivity."""
        if self.regions.networks is not None:
            return self.regions.networks
        return analysis.louvain(self.fc("train"), numpy_stream(0, "communities"))

    def other_fc(self) -> dict[str, Array]:
        """The functional connectivity of a group; whether the people of the data belong to it is
        not known."""
        return {} if self.regions.group_fc is None else {"group": self.regions.group_fc}

    def spatial_orders(self) -> NDArray[np.intp] | None:
        """Spins: random rotations of the two hemispheres' spheres."""
        if self.regions.centroids is None:
            return None
        left = self.regions.centroids[:, 0] < 0
        if max(left.sum(), (~left).sum()) < FEWEST_SPUN:
            return None
        sphere = (
            onto_sphere(self.regions.centroids, left)
            if self.regions.sphere is None
            else self.regions.sphere
        )
        return analysis.spin_orders(sphere, ~left, NULLS, numpy_stream(0, "spins"))

    def truth(self) -> Truth:
        """Two regions belong together when they are of one network."""
        together = self.networks[:, None] == self.networks
        np.fill_diagonal(together, False)
        labels = {"network": self.networks}
        if self.regions.mirror is not None:
            labels["mirror"] = self.regions.mirror
        return Truth(
            together.astype(float),
            labels,
            partition="network",
            spatial=self.regions.centroids is not None,
        )

    def draw(self, partitions: Mapping[str, NDArray[np.int64]]) -> Figure | None:
        """The partitions on the cortex, for the atlas whose surfaces are fetched."""
        if self.config.dataset != "hcp-schaefer100":
            return None
        try:
            from placecell.tasks.fmri.surface import draw_cortex
        except ImportError:
            return None  # without the extra `fmri` there is no picture, but all the rest
        return draw_cortex(folder_of(self.config.dataset), partitions)


TASK = Fmri


def onto_sphere(centroids: Array, left: NDArray[np.bool_]) -> Array:
    """Centroids (n 3) seen from the middle of their hemisphere, as points of a sphere: what there
    is to spin where no spherical surface is known. Rougher than that, since folds and the medial
    wall bend distances."""
    found = np.empty_like(centroids)
    for side in (left, ~left):
        away = (
            centroids[side] - (centroids[side].min(0) + centroids[side].max(0)) / 2
            if side.any()
            else centroids[side]
        )
        found[side] = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    return found


def positions(regions: Regions) -> Positions:
    """Regions at their centroids, in units of the mean distance of nearest neighbours; in a row
    where unknown."""
    if regions.centroids is None:
        return Positions.sequence(regions.n)
    apart = cdist(regions.centroids, regions.centroids)
    np.fill_diagonal(apart, np.inf)
    coords = (regions.centroids - regions.centroids.mean(0)) / apart.min(1).mean()
    return Positions(torch.arange(regions.n), torch.from_numpy(coords.astype(np.float32)))
