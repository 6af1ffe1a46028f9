"""The colours of configurations: a ramp over σ, and a list for the others."""

from __future__ import annotations

import numpy as np

from placecell.study.records import Summary

# σ from small to large; readable on light and dark
RAMP = ("#12908e", "#3f7fc4", "#8a63b8", "#c94f7c", "#d9642c")
OTHERS = ("#a98307", "#7c8894", "#4f9d5d", "#9b7653", "#b0709b", "#5d8a9b")


def colours(summary: Summary) -> dict[str, str]:
    """Choose a colour for every configuration: a ramp over σ, and a list for the others."""
    curve = [label for _, label in summary.sigma_curve()]
    on_curve = dict(zip(curve, ramp(len(curve)), strict=True))
    rest = [label for label in summary.labels if label not in on_curve]
    return on_curve | {label: OTHERS[i % len(OTHERS)] for i, label in enumerate(rest)}


def ramp(n: int) -> list[str]:
    """Return colours from small to large."""
    return [between(place) for place in np.linspace(0, len(RAMP) - 1, n)]


def between(place: float) -> str:
    """A colour on the ramp."""
    low = min(int(place), len(RAMP) - 2)
    pair = [[int(RAMP[low + k][i : i + 2], 16) for i in (1, 3, 5)] for k in (0, 1)]
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(*pair, strict=True)]
    return "#" + "".join(f"{v:02x}" for v in mixed)
