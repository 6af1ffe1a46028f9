"""The table that comes with the package, to try `placecell discover sample` on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

STATIONS = (
    "harbour", "market", "mill", "bridge", "church", "school", "park", "station",
    "lake", "hill", "forest", "farm", "tower", "quarry", "meadow", "ferry",
)  # fmt: skip


def sample_path() -> Path:
    """Where the sample lies."""
    return Path(__file__).parent / "sample.csv"


def make_sample(seed: int = 0, rows: int = 600) -> str:
    """Make the sample: temperatures of sixteen stations on a 4 × 4 grid, in no order.

    Weather is a smooth random field, and every station adds noise of its own. The grid is not in
    the file: the stations stand in the order of their names.

    Parameters
    ----------
    seed : int
        Of the weather.
    rows : int
        Number of days.

    Returns
    -------
    str
        CSV: a row a day.
    """
    rng = np.random.default_rng(seed)
    at = np.array([(i // 4, i % 4) for i in range(16)], dtype=float)
    apart = ((at[:, None] - at) ** 2).sum(-1)
    root = np.linalg.cholesky(np.exp(-apart / 2) + 1e-9 * np.eye(16))
    weather = rng.normal(size=(rows, 16)) @ root.T + 0.4 * rng.normal(size=(rows, 16))
    order = np.argsort(STATIONS)
    lines = [",".join(["day", *(STATIONS[i] for i in order)])]
    for day, row in enumerate(12 + 5 * weather, 1):
        lines.append(",".join([str(day), *(f"{row[i]:.1f}" for i in order)]))
    return "\n".join(lines) + "\n"


def true_places() -> dict[str, tuple[int, int]]:
    """Row and column of each station on the hidden grid."""
    return {name: divmod(i, 4) for i, name in enumerate(STATIONS)}
