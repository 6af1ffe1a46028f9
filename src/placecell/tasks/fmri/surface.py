"""The cortex, coloured by partitions of its regions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from nilearn import plotting
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Labels = NDArray[np.int64]
VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
GREY = 19  # colours of clusters that go with no network


def draw_cortex(at: Path, partitions: Mapping[str, Labels]) -> Figure:
    """Each partition (title -> n regions) on the four sides of the cortex. Clusters have the colour of the network of
    the first partition that they overlap most, each colour once; those left over are grey."""
    regions = np.loadtxt(at / "schaefer_100_conte69.csv").astype(int)
    half = len(regions) // 2
    images: dict[str, Any] = {
        side: nibabel.load(at / f"conte69_32k_{short}.gii") for side, short in (("left", "lh"), ("right", "rh"))
    }
    meshes = {side: tuple(part.data for part in image.darrays[:2]) for side, image in images.items()}
    parts = {"left": regions[:half], "right": regions[half:]}
    reference = next(iter(partitions.values()))
    colours = ListedColormap([*colormaps["tab10"](range(10)), *colormaps["Greys"](np.linspace(0.35, 0.85, 10))])
    figure = Figure(figsize=(9.5, 2.3 * len(partitions)))
    for row, (title, labels) in enumerate(partitions.items()):
        shade = coloured(labels, reference)
        for column, (side, view) in enumerate(VIEWS):
            axis = figure.add_subplot(len(partitions), len(VIEWS), 1 + row * len(VIEWS) + column, projection="3d")
            vertex = np.where(parts[side] > 0, shade[parts[side] - 1] + 1.0, np.nan)  # nilearn leaves 0 out
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plotting.plot_surf_roi(
                    meshes[side], vertex, hemi=side, view=view, axes=axis, figure=figure, cmap=colours,
                    vmin=1, vmax=20, colorbar=False, avg_method="median",
                )  # fmt: skip
            if column == 0:
                axis.set_title(title, fontsize=9, loc="left")
    figure.subplots_adjust(0, 0, 1, 0.94, 0, 0.12)
    return figure


def coloured(labels: Labels, reference: Labels) -> Labels:
    """A colour (0 to 9: that of a part of the reference; 10 to 19: grey) for each region."""
    kinds, known = np.unique(labels), np.unique(reference)
    overlap = np.array([[np.sum((labels == k) & (reference == r)) for r in known] for k in kinds])
    places, taken = linear_sum_assignment(-overlap)
    colour = {kinds[p]: int(known[t]) % 10 for p, t in zip(places, taken, strict=True)}
    grey = iter(range(10, GREY + 1))
    return np.array([colour[k] if k in colour else colour.setdefault(k, next(grey, GREY)) for k in labels])
