"""What `lazy_rich` measured, as a table with one row per configuration and measure, and as text."""

from __future__ import annotations

from typing import Any

import numpy as np

from placecell.analysis import regimes
from placecell.store.table import Table
from placecell.study.kernels import WHOLE, LazyRich


def measures(lazy: LazyRich) -> dict[str, tuple[str, str, int | None]]:
    """List what the table shows.

    Parameters
    ----------
    lazy : LazyRich
        What was measured.

    Returns
    -------
    dict
        Heading to measure, block and step; the step None is the last one of each run.
    """
    headline = lazy.task.headline
    return {
        f"test {headline}": (f"test/{headline}", WHOLE, None),
        "kernel distance": ("kernel_distance", WHOLE, None),
        "kernel distance, PE block": ("kernel_distance", "PE", None),
        "PE share of the kernel, start": ("kernel_share", "PE", 0),
        "PE share of the kernel, end": ("kernel_share", "PE", None),
        "table moved": ("moved", "PE", None),
        "all moved": ("moved", WHOLE, None),
        "table CKA": ("cka", "PE", None),
        "stable rank of its change": ("stable_rank", "PE", None),
        "alignment, start": ("target_alignment", WHOLE, 0),
        "alignment, end": ("target_alignment", WHOLE, None),
        "ridge, first kernel": ("ridge", WHOLE, 0),
        "ridge, last kernel": ("ridge", WHOLE, None),
        "gradient into the table, step 1": ("table_gradient", "PE", 1),
        "table moves at step": ("moves_at", "PE", None),
        "σ / token scale": ("sigma_over_tokens", WHOLE, None),
    }


def kernel_table(lazy: LazyRich) -> Table:
    """One row per configuration and measure: the mean over seeds with its interval.

    Parameters
    ----------
    lazy
        What `placecell.study.kernels.lazy_rich` measured.

    Returns
    -------
    Table
        With the columns `label`, `label_without_sigma`, `encoding`, `sigma` (None for an encoding
        without one), `measure`, `block`, `step`, `heading`, `seeds`, `mean`, `low` and `high`.
    """
    rows: list[dict[str, Any]] = []
    for label in lazy.labels:
        encoding = lazy.config(label).encoding
        configuration = {
            "label": label,
            "label_without_sigma": lazy.rest[label],
            "encoding": encoding.name,
            "sigma": encoding.sigma,
        }
        for heading, (measure, block, step) in measures(lazy).items():
            interval = lazy.interval(label, measure, block, step)
            rows.append(
                configuration
                | {"measure": measure, "block": block, "step": "end" if step is None else step}
                | {"heading": heading, "seeds": len(lazy.values(label, measure, block, step))}
                | {"mean": interval.estimate, "low": interval.low, "high": interval.high}
            )
    return Table.from_rows(rows)


def as_text(lazy: LazyRich) -> str:
    """Write the table as Markdown with one row per configuration, and how to read it.

    Parameters
    ----------
    lazy : LazyRich
        What was measured.

    Returns
    -------
    str
    """
    shown = {
        heading: one
        for heading, one in measures(lazy).items()
        if any(np.isfinite(lazy.values(label, *one)).any() for label in lazy.labels)
    }
    lines = ["| | seeds | " + " | ".join(shown) + " |", "|---|---|" + "---|" * len(shown)]
    for label in lazy.labels:
        seeds = len(lazy.values(label, f"test/{lazy.task.headline}"))
        intervals = [lazy.interval(label, *one) for one in shown.values()]
        cells = [cell(i.estimate, i.low, i.high) for i in intervals]
        lines.append(f"| {label} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *_half_ways(lazy)])


def _half_ways(lazy: LazyRich) -> list[str]:
    """When the kernel turns to the task, beside when the loss falls; where snapshots of weights
    were kept."""
    lines = []
    for label in lazy.labels:
        steps = lazy.steps(label, "target_alignment")
        if len(steps) < 4:
            continue
        half_way = {}
        for measure in ("target_alignment", "train_loss", "kernel_distance"):
            means = [float(np.mean(lazy.values(label, measure, WHOLE, step))) for step in steps]
            half_way[measure] = regimes.half_way(steps, means)
        lines.append(
            f"{label}: half-way at step {half_way['kernel_distance']:.0f} (kernel distance), "
            f"{half_way['target_alignment']:.0f} (alignment), "
            f"{half_way['train_loss']:.0f} (training loss)."
        )
    return lines or [
        "Only the first and the last weights are there; train with snapshots = weights to see the "
        "way between."
    ]


def cell(mean: float, low: float, high: float) -> str:
    """Write a mean with its interval, if it has one.

    Parameters
    ----------
    mean, low, high : float
        The numbers; low equals high if there is no interval.

    Returns
    -------
    str
        "–" if the mean is not finite.
    """
    if not np.isfinite(mean):
        return "–"
    return f"{number(mean)} [{number(low)}, {number(high)}]" if low < high else number(mean)


def number(value: float) -> str:
    """Write a number with about three digits.

    Parameters
    ----------
    value : float
        The number.

    Returns
    -------
    str
    """
    if 0 < abs(value) < 0.001:  # a kernel that hardly moved is not one that did not
        return f"{value:.1g}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.3f}"
