"""Means over the seeds of each configuration, with intervals, of everything measured of runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from placecell import analysis
from placecell.seeds import numpy_stream
from placecell.store.table import Table


def mean_interval(values: ArrayLike, label: str, name: str) -> analysis.Interval:
    """Average a measurement over seeds, with a bootstrap interval.

    Parameters
    ----------
    values : array of shape (seeds,)
        The measurement of each seed; NaN where it was not measured.
    label, name : str
        The configuration and the measurement, which name the random draws.

    Returns
    -------
    analysis.Interval
        NaN if it was never measured.
    """
    values = np.asarray(values, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return analysis.Interval(math.nan, math.nan, math.nan, 0.95, "not measured")
    return analysis.bootstrap_interval(finite, numpy_stream(0, f"interval/{label}/{name}"))


def interval_table(runs: Iterable[tuple[str, Mapping[str, float]]]) -> Table:
    """Average every measurement over the runs of each configuration.

    Parameters
    ----------
    runs : iterable of (str, mapping of str to float)
        The configuration and the measurements of each run, in the order of seeds.

    Returns
    -------
    Table
        One row for each configuration and measurement: `label`, `measure`, `seeds` (that have it),
        `mean`, and the 95 % bootstrap interval from `low` to `high`, NaN below three seeds.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for label, values in runs:
        for name, value in values.items():
            if math.isfinite(value):
                found.setdefault(label, {}).setdefault(name, []).append(value)
    rows = []
    for label, measures in found.items():
        for name, seeds in measures.items():
            mean = mean_interval(seeds, label, name)
            row = {"label": label, "measure": name, "seeds": len(seeds)}
            rows.append(row | {"mean": mean.estimate, "low": mean.low, "high": mean.high})
    return Table.from_rows(rows)
