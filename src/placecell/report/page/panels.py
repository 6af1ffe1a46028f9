"""The page's figures as plain values: columns of data, traces that point into them, and a sentence.

A trace names columns and the rows it takes of them, so that a figure and its CSV file have the same
data. The page's script and `plotly_figure` both turn a panel into a plotly figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placecell.report import sentences
from placecell.report.page.colours import OTHERS, colours
from placecell.report.sentences import metric
from placecell.study.records import RunSummary, Summary, more_is_better

DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot", "5px 2px")
SHARE = "ρ, the position’s share of what enters the network before training"
SHARE_TICKS = [0.001, 0.01, 0.1, 0.2, 0.5, 1.0]
MEASURES = {
    "table/relation": "correlation of the table with the true relation",
    "table/procrustes": "distance of the table to the true one, turned to fit (Procrustes)",
    "attention/reference": "attention agreement with the true encoding's model",
    "attention/relation": "attention agreement with the true relation",
}


@dataclass(frozen=True)
class Panel:
    """A figure of the page.

    Attributes
    ----------
    id : str
        Its name.
    title : str
        Its title.
    sentence : str
        What to see in it.
    columns : dict
        Its data by column.
    traces : list of dict
        What is drawn of which rows and columns.
    axes : dict
        Titles and ticks of the axes.
    choices : dict
        What the page's controls choose from.
    """

    id: str
    title: str
    sentence: str
    columns: dict[str, list[Any]]
    traces: list[dict[str, Any]] = field(default_factory=list)
    axes: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)


def headline_panel(summary: Summary) -> Panel:
    """Show the headline against σ with its interval and seeds, other encodings as lines.

    Without a σ curve every configuration has a row of its own.
    """
    name, curve, shades = f"test/{summary.task.headline}", summary.sigma_curve(), colours(summary)
    columns: dict[str, list[Any]] = {
        k: [] for k in ("configuration", "sigma", "rho", "seed", "value", "low", "high")
    }
    traces: list[dict[str, Any]] = []

    def add(label: str, sigma: float | None) -> tuple[int, int]:
        """The rows of a configuration: one a seed, then the mean. Returns where they begin and
        where the mean is."""
        start = len(columns["value"])
        for run in sorted(
            (r for r in summary.runs if r.label == label), key=lambda r: r.result.config.seed
        ):
            rho, value = run.values.get("rho"), run.values.get(name)
            append(columns, label, sigma, rho, run.result.config.seed, value, None, None)
        interval, rho = summary.interval(label, name), _mean_rho(summary, label)
        append(columns, label, sigma, rho, "mean", interval.estimate, interval.low, interval.high)
        return start, len(columns["value"]) - 1

    places = {label: add(label, sigma) for sigma, label in curve}
    rest = [label for label in summary.labels if label not in places]
    places |= {label: add(label, None) for label in rest}
    means = [places[label][1] for _, label in curve]
    for label, value in summary.baseline_headlines().items():
        places[label] = (len(columns["value"]),) * 2
        append(columns, label, None, None, "baseline", value, None, None)
        shades |= {label: OTHERS[1]}
        rest.append(label)
    if curve:
        first, last = curve[0][0], curve[-1][0]
        for i, label in enumerate(rest):
            row = places[label][1]
            value = columns["value"][row]
            line = {"dash": DASHES[i % len(DASHES)], "width": 1.5}
            traces.append(
                {
                    "kind": "line",
                    "name": label,
                    "x": [first, last],
                    "y": [value, value],
                    "line": line,
                    "color": shades[label],
                }
            )
        if any(np.isfinite(columns["low"][row]) for row in means):
            traces.append(
                {
                    "kind": "band",
                    "rows": means,
                    "x": "sigma",
                    "color": "ink",
                    "name": "95 % interval",
                }
            )
        seeds = [row for _, label in curve for row in range(*places[label])]
        traces.append(
            {
                "kind": "points",
                "rows": seeds,
                "x": "sigma",
                "y": "value",
                "color": "ink",
                "name": "one seed",
            }
        )
        traces.append(
            {
                "kind": "means",
                "rows": means,
                "x": "sigma",
                "y": "value",
                "color": "ink",
                "name": "learnable",
            }
        )
        axes = {
            "x": "σ of the initial table",
            "log": first > 0,
            "ticks": [sigma for sigma, _ in curve],
        }
        shares = [columns["rho"][row] for row in means]
        if None not in shares:
            axes["along"] = {
                "sigma": {"x": axes["x"], "ticks": axes["ticks"], "ends": [first, last]},
                "rho": {"x": SHARE, "ticks": SHARE_TICKS, "ends": [min(shares), max(shares)]},
            }
    else:
        for label in rest:
            start, mean = places[label]
            spot = {"x": "value", "y": "configuration", "color": shades[label], "name": label}
            traces.append({"kind": "points", "rows": list(range(start, mean))} | spot)
            traces.append({"kind": "means", "rows": [mean], "interval": True} | spot)
        axes = {"x": score(summary), "names": True}
    axes |= {} if not curve else {"y": score(summary)}
    title = f"Test {metric(summary.task.headline)}{' against σ' if curve else ''}"
    return Panel("headline", title, sentences.headline(summary), columns, traces, axes)


def agreement_panel(summary: Summary) -> Panel:
    """Show every measure of table and attention against the score."""
    name, shades = f"test/{summary.task.headline}", colours(summary)
    wanted = {
        m: MEASURES.get(m, m.replace("/", " ")).replace("the true relation", summary.reference)
        for m in (*MEASURES, *getattr(summary.task, "shown", ()))
    }
    measures = {
        m: words
        for m, words in wanted.items()
        if any(np.isfinite(r.values.get(m, np.nan)) for r in summary.runs)
    }
    columns: dict[str, list[Any]] = {
        k: [] for k in ("configuration", "seed", "headline", *measures)
    }
    traces: list[dict[str, Any]] = []
    for label in summary.labels:
        start = len(columns["seed"])
        for run in sorted(
            (r for r in summary.runs if r.label == label), key=lambda r: r.result.config.seed
        ):
            append(
                columns,
                label,
                run.result.config.seed,
                *(run.values.get(m) for m in (name, *measures)),
            )
        stop = len(columns["seed"])
        append(
            columns,
            label,
            "mean",
            *(summary.interval(label, m).estimate for m in (name, *measures)),
        )
        spot = {
            "x": next(iter(measures), ""),
            "y": "headline",
            "color": shades[label],
            "name": label,
        }
        traces.append({"kind": "points", "rows": list(range(start, stop))} | spot)
        traces.append({"kind": "means", "rows": [stop], "text": label} | spot)
    said = {m: sentences.agreement(summary, m, words) for m, words in measures.items()}
    axes = {"x": next(iter(measures.values()), ""), "y": score(summary)}
    first = next(iter(said.values()), "No table or attention map could be measured here.")
    title = f"Table and attention against test {metric(summary.task.headline)}"
    return Panel(
        "agreement", title, first, columns, traces, axes, {"measures": measures, "sentences": said}
    )


def shown(runs: Sequence[RunSummary], cost: int, budget: int) -> list[RunSummary]:
    """Choose as many seeds of every configuration as fit into a budget, at least one."""
    ranked: dict[str, list[RunSummary]] = {}
    for run in sorted(runs, key=lambda r: r.result.config.seed):
        ranked.setdefault(run.label, []).append(run)
    room = max(1, budget // max(1, cost * max(1, len(ranked))))
    return [run for same in ranked.values() for run in same[:room]]


def _mean_rho(summary: Summary, label: str) -> float | None:
    """The mean over seeds of the position's share; None if it was not measured or is 0."""
    shares = summary.values(label, "rho")
    known = shares[np.isfinite(shares) & (shares > 0)]
    return float(known.mean()) if len(known) else None


def score(summary: Summary) -> str:
    """What is scored on test samples, and which way is better where that is not plain."""
    less = "" if more_is_better(summary.task) else " (less is better)"
    return f"test {metric(summary.task.headline)}{less}"


def append(columns: dict[str, list[Any]], *values: Any) -> None:
    """Append one row to columns, in their order."""
    for column, value in zip(columns.values(), values, strict=True):
        column.append(float(f"{value:.7g}") if isinstance(value, float) else value)
