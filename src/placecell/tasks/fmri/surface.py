"""Draw the cortex, coloured by partitions of its regions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from nilearn import plotting
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Labels = NDArray[np.int64]
VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
GREY = 19  # last of the colours 10 to 19, which are grey


def draw_cortex(
    folder: Path, partitions: Mapping[str, Labels], names: Sequence[str] = ()
) -> Figure:
    """Draw partitions of the regions on the four sides of the cortex.

    A cluster has the colour of the part of the first partition that it overlaps most. Each colour
    is used once per partition, and clusters that are left over are grey.

    Parameters
    ----------
    folder : Path
        Folder of the fetched dataset, with the surfaces.
    partitions : mapping of str to int array of shape (n,)
        Title and labels of each partition; the first is the reference for the colours.
    names : sequence of str
        What the parts 0, 1, … of the first partition are called: a legend says their colours.

    Returns
    -------
    matplotlib.figure.Figure
        One row per partition.
    """
    regions = np.loadtxt(folder / "schaefer_100_conte69.csv").astype(int)
    half = len(regions) // 2
    images: dict[str, Any] = {
        side: nibabel.load(folder / f"conte69_32k_{short}.gii")
        for side, short in (("left", "lh"), ("right", "rh"))
    }
    meshes = {
        side: tuple(part.data for part in image.darrays[:2]) for side, image in images.items()
    }
    parts = {"left": regions[:half], "right": regions[half:]}
    reference = next(iter(partitions.values()))
    colours = ListedColormap(
        [*colormaps["tab10"](range(10)), *colormaps["Greys"](np.linspace(0.35, 0.85, 10))]
    )
    figure = Figure(figsize=(9.5, 2.3 * len(partitions)))
    for row, (title, labels) in enumerate(partitions.items()):
        shade = coloured(labels, reference)
        for column, (side, view) in enumerate(VIEWS):
            axis = figure.add_subplot(
                len(partitions), len(VIEWS), 1 + row * len(VIEWS) + column, projection="3d"
            )
            # Colours start at 1, because nilearn does not draw 0.
            vertex = np.where(parts[side] > 0, shade[parts[side] - 1] + 1.0, np.nan)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plotting.plot_surf_roi(
                    meshes[side],
                    vertex,
                    hemi=side,
                    view=view,
                    axes=axis,
                    figure=figure,
                    cmap=colours,
                    vmin=1,
                    vmax=20,
                    colorbar=False,
                    avg_method="median",
                )
            if column == 0:
                axis.set_title(title, fontsize=9, loc="left")
    figure.subplots_adjust(0, 0.08 / len(partitions) if names else 0, 1, 0.94, 0, 0.12)
    if names:
        patches = [
            Patch(color=colours(i % 10), label=name.replace("$", r"\$"))
            for i, name in enumerate(names)
        ]
        figure.legend(handles=patches, loc="lower center", ncols=7, frameon=False, fontsize=8)
    return figure


def coloured(labels: Labels, reference: Labels) -> Labels:
    """Choose a colour for each region so that clusters match the parts of a reference.

    Parameters
    ----------
    labels : int array of shape (n,)
        The cluster of each region.
    reference : int array of shape (n,)
        The part of the reference of each region.

    Returns
    -------
    int array of shape (n,)
        0 to 9 for the colour of a part of the reference, 10 to 19 for grey.

    Examples
    --------
    >>> coloured(np.array([0, 0, 1, 2]), np.array([5, 5, 3, 3])).tolist()
    [5, 5, 3, 10]
    """
    kinds, known = np.unique(labels), np.unique(reference)
    overlap = np.array([[np.sum((labels == k) & (reference == r)) for r in known] for k in kinds])
    places, taken = linear_sum_assignment(-overlap)
    colour = {kinds[p]: int(known[t]) % 10 for p, t in zip(places, taken, strict=True)}
    grey = iter(range(10, GREY + 1))
    return np.array(
        [colour[k] if k in colour else colour.setdefault(k, next(grey, GREY)) for k in labels]
    )
