"""What the curve over σ says: the best σ against the largest, and measures with the headline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from placecell.study.records import Summary


@dataclass(frozen=True)
class Gain:
    """One configuration's headline minus another's, over `seeds` seeds that both have."""

    interval: analysis.Interval
    seeds: int


def headline_gain(summary: Summary, label: str, other: str) -> Gain | None:
    """Compare the test headline of two configurations, paired by seed.

    Parameters
    ----------
    summary : Summary
        A sweep.
    label : str
        The configuration.
    other : str
        The one that is subtracted.

    Returns
    -------
    Gain or None
        None if fewer than two seeds have both.
    """
    both = summary.paired([label, other], f"test/{summary.task.headline}")
    both = both[:, np.isfinite(both).all(axis=0)]
    if both.shape[1] < 2:
        return None
    gain = analysis.paired_difference(both[0], both[1], numpy_stream(0, "sentence"))
    return Gain(gain.interval, both.shape[1])


def rank_correlation(summary: Summary, measure: str) -> analysis.Interval | None:
    """Rank-correlate a measure with the test headline over σ.

    Parameters
    ----------
    summary : Summary
        A sweep.
    measure : str
        Name of the measure, such as `table/relation`.

    Returns
    -------
    analysis.Interval or None
        Over the seeds in which both were measured at every σ; None if there is no such seed. NaN if
        one of the two is the same at every σ.
    """
    labels = [label for _, label in summary.sigma_curve()]
    x = summary.paired(labels, measure)
    y = summary.paired(labels, f"test/{summary.task.headline}")
    kept = np.isfinite(x).all(axis=0) & np.isfinite(y).all(axis=0) if x.size else np.zeros(0, bool)
    if not kept.any():
        return None
    return analysis.spearman_interval(
        x[:, kept], y[:, kept], numpy_stream(0, f"sentence/{measure}")
    )
