"""fMRI on the library's interface: regions are tokens, volumes are samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy
import torch
from numpy.typing import NDArray

from placecell import analysis
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.seeds import numpy_stream
from placecell.tasks.base import Truth, counted
from placecell.tasks.fmri.config import HCP_SECONDS, Config
from placecell.tasks.fmri.datasets import (
    GAP,
    Regions,
    Run,
    digest,
    load_regions,
    load_runs,
    named_regions,
)
from placecell.tasks.fmri.fetch import folder_of
from placecell.tasks.fmri.preprocess import preprocess
from placecell.tasks.masked import NULLS, MaskedValues

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
FEWEST_SPUN = 4  # regions of a hemisphere: fewer have hardly another order


class Fmri(MaskedValues):
    """Predict masked brain regions of a volume from the visible ones.

    The networks of the regions are the reference that tables are compared with.
    """

    title = "Brain regions (fMRI)"
    group_noun = "person"

    def __init__(self, config: Config) -> None:
        if config.dataset != "files":
            config = replace(config, split=config.split or "session", repetition_time=HCP_SECONDS)
        self.runs: dict[str, list[Run]] = load_runs(config)
        self.regions: Regions = load_regions(config, self.runs["train"][0].series.shape[1])
        self.places = positions(self.regions)
        if config.dataset == "files":
            now = digest(self.runs, self.regions)
            if config.contents not in (None, now):
                patterns = (*(config.train_files or ()), *(config.test_files or ()))
                raise InputError(
                    f"{', '.join(patterns)}: these files, or what describes their regions, have "
                    f"changed since the run was made (contents {now}, expected "
                    f"{config.contents}). Bring the old "
                    "ones back, or train on the new ones with the command that made it."
                )
            config = replace(config, contents=now)  # so that other data are another run
        self.config = config

    @property
    def flip(self) -> bool:
        """Whether training flips the sign of samples at random."""
        return self.config.flip

    @property
    def groups(self) -> tuple[str, ...]:  # type: ignore[override]
        """The people whose data are scored."""
        return tuple(dict.fromkeys(run.subject for part in self.runs.values() for run in part))

    def names(self) -> list[str]:
        """Return the name of each region (n): of its column in the files, or its number."""
        every = [run for part in self.runs.values() for run in part]
        return named_regions(
            next((run.regions for run in every if run.regions), ()), self.regions.n
        )

    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """Return the samples: training runs without their last part, that part, and test runs."""
        parts: dict[str, list[tuple[Array, str]]] = {"train": [], "valid": [], "test": []}
        for split, runs in self.runs.items():
            for run in runs:
                clean = preprocess(run.series, run.confounds, self.config, run.name, run.seconds)
                if split == "test":
                    parts["test"].append((clean, run.subject))
                    continue
                n_valid = max(2, round(self.config.valid_share * len(clean)))
                parts["train"].append((clean[: -n_valid - GAP], run.subject))
                parts["valid"].append((clean[-n_valid:], run.subject))
        groups = self.groups
        return {
            split: (
                np.concatenate([values for values, _ in runs]),
                np.concatenate(
                    [np.full(len(values), groups.index(subject)) for values, subject in runs]
                ),
            )
            for split, runs in parts.items()
        }

    @cached_property
    def networks(self) -> NDArray[np.int64]:
        """The network of each region: known, or a community of the training data's correlations."""
        if self.regions.networks is not None:
            return self.regions.networks
        return analysis.louvain(self.fc("train"), numpy_stream(0, "communities"))

    def other_fc(self) -> dict[str, Array]:
        """Return the functional connectivity of a group of people.

        It is not known whether the people of the data belong to that group.
        """
        return {} if self.regions.group_fc is None else {"group": self.regions.group_fc}

    def spatial_orders(self) -> NDArray[np.intp] | None:
        """Return spins: random rotations of the spheres of both hemispheres."""
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
        """Return the reference: two regions belong together if they are of one network.

        Without known networks these are communities of the training data's own correlations.
        """
        together = self.networks[:, None] == self.networks
        np.fill_diagonal(together, False)
        from_data = self.regions.networks is None
        partition = "community" if from_data else "network"
        labels = {partition: self.networks}
        if self.regions.mirror is not None:
            labels["mirror"] = self.regions.mirror
        value_names = {name: counted(values) for name, values in labels.items()}
        if not from_data:
            value_names[partition] = list(self.regions.names)
        return Truth(
            together.astype(float),
            labels,
            partition=partition,
            spatial=self.regions.centroids is not None,
            from_data=from_data,
            together=f"are of one {partition}",
            value_names=value_names,
        )

    def draw(self, partitions: Mapping[str, NDArray[np.int64]]) -> Figure | None:
        """Draw partitions on the cortex; None unless the surfaces of the atlas were fetched."""
        if self.config.dataset != "hcp-schaefer100":
            return None
        try:
            from placecell.tasks.fmri.surface import draw_cortex
        except ImportError:
            return None  # without the extra `fmri` there is no picture, but all the rest
        return draw_cortex(folder_of(self.config.dataset), partitions, self.regions.names)


TASK = Fmri


def onto_sphere(centroids: Array, left: NDArray[np.bool_]) -> Array:
    """Project centroids onto a sphere around the middle of their hemisphere.

    For spins where no spherical surface is known. It is less exact, because folds and the medial
    wall bend distances.

    Parameters
    ----------
    centroids : ndarray
        Coordinates (n 3).
    left : ndarray
        Whether a region is in the left hemisphere (n).

    Returns
    -------
    ndarray
        Points of length 1 (n 3).
    """
    points = np.empty_like(centroids)
    for side in (left, ~left):
        away = (
            centroids[side] - (centroids[side].min(0) + centroids[side].max(0)) / 2
            if side.any()
            else centroids[side]
        )
        points[side] = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
    return points


def positions(regions: Regions) -> Positions:
    """Place regions at their centroids, in units of the mean distance to the nearest one.

    Parameters
    ----------
    regions : Regions
        What is known of the regions.

    Returns
    -------
    Positions
        In a row if there are no centroids.
    """
    if regions.centroids is None:
        return Positions.sequence(regions.n)
    apart = scipy.spatial.distance.cdist(regions.centroids, regions.centroids)
    np.fill_diagonal(apart, np.inf)
    coords = (regions.centroids - regions.centroids.mean(0)) / apart.min(1).mean()
    return Positions(torch.arange(regions.n), torch.from_numpy(coords.astype(np.float32)))
