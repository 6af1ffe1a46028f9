"""The page's figures as plain values: columns of data, traces that point into them, and a sentence.

A trace names columns and the rows it takes of them, so that a figure and its CSV file have the same
data. The page's script and `plotly_figure` both turn a panel into a plotly figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placecell.report import sentences
from placecell.store.runs import RunResult
from placecell.study.records import RunSummary, Summary

# σ from small to large; readable on light and dark
RAMP = ("#12908e", "#3f7fc4", "#8a63b8", "#c94f7c", "#d9642c")
OTHERS = ("#a98307", "#7c8894", "#4f9d5d", "#9b7653", "#b0709b", "#5d8a9b")
DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot", "5px 2px")
SHARE = "ρ, the position’s share of what enters the network before training"
SHARE_TICKS = [0.001, 0.01, 0.1, 0.2, 0.5, 1.0]
BANDS = "Lines are means over seeds; bands reach from the lowest seed to the highest, on test."
MEASURES = {
    "table/procrustes": "Procrustes distance of the table to the true one",
    "table/relation": "correlation of the table with the true relation",
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


def colours(summary: Summary) -> dict[str, str]:
    """Choose a colour for every configuration: a ramp over σ, and a list for the others.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Label to colour.
    """
    curve = [label for _, label in summary.sigma_curve()]
    on_curve = dict(zip(curve, ramp(len(curve)), strict=True))
    rest = [label for label in summary.labels if label not in on_curve]
    return on_curve | {label: OTHERS[i % len(OTHERS)] for i, label in enumerate(rest)}


def headline_panel(summary: Summary) -> Panel:
    """Show the headline against σ with its interval and seeds, other encodings as lines.

    Without a σ curve every configuration has a row of its own.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Panel
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
            _append(columns, label, sigma, rho, run.result.config.seed, value, None, None)
        interval, rho = summary.interval(label, name), _mean_rho(summary, label)
        _append(columns, label, sigma, rho, "mean", interval.estimate, interval.low, interval.high)
        return start, len(columns["value"]) - 1

    places = {label: add(label, sigma) for sigma, label in curve}
    rest = [label for label in summary.labels if label not in places]
    places |= {label: add(label, None) for label in rest}
    means = [places[label][1] for _, label in curve]
    for label, value in summary.baseline_headlines().items():
        places[label] = (len(columns["value"]),) * 2
        _append(columns, label, None, None, "baseline", value, None, None)
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
        axes = {"x": f"test {summary.task.headline}", "names": True}
    axes |= {} if not curve else {"y": f"test {summary.task.headline}"}
    title = f"Test {summary.task.headline} against σ" if curve else f"Test {summary.task.headline}"
    return Panel("headline", title, sentences.headline(summary), columns, traces, axes)


def training_panel(
    results: Sequence[tuple[str, RunResult]], headline: str, shades: Mapping[str, str]
) -> Panel:
    """Show headline, loss and gradient into the table over the steps.

    Every configuration is shown by the mean over its seeds, with a band from the lowest seed to the
    highest, or by a line for each seed.

    Parameters
    ----------
    results : sequence of (str, RunResult)
        Label and run.
    headline : str
        Name of the headline metric.
    shades : mapping
        Colour of each configuration.

    Returns
    -------
    Panel
        Traces of means, bands and seeds per metric, configuration and split.
    """
    columns: dict[str, list[Any]] = {
        k: [] for k in ("metric", "configuration", "split", "seed", "step", "value", "low", "high")
    }
    traces: list[dict[str, Any]] = []
    metrics = [headline, *(["loss"] if headline != "loss" else []), "table_gradient"]
    for metric in metrics:
        for label in dict.fromkeys(label for label, _ in results):
            for split in ("train", "test"):
                common: dict[str, Any] = {
                    "x": "step",
                    "name": label,
                    "color": shades.get(label, OTHERS[0]),
                    "metric": metric,
                    "split": split,
                }
                same = [result for name, result in results if name == label]
                traces += _training_traces(columns, same, common)
    present = [m for m in metrics if any(t["metric"] == m for t in traces)]
    words = {m: {"table_gradient": "gradient into the table"}.get(m, m) for m in present}
    several = max(Counter(label for label, _ in results).values()) > 1
    said = {
        m: sentences.training(results, m, headline) + (f" {BANDS}" if several else "")
        for m in present
    }
    first = said.get(headline, "Nothing has been evaluated yet.")
    axes = {"x": "training step", "y": words.get(headline, headline)}
    return Panel(
        "training", "Training", first, columns, traces, axes, {"metrics": words, "sentences": said}
    )


def _training_traces(
    columns: dict[str, list[Any]], results: Sequence[RunResult], common: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Append one configuration's rows of a metric and split to the columns; return their traces."""
    metric, label, split = common["metric"], common["name"], common["split"]
    start = len(columns["value"])
    by_step: dict[int, list[float]] = {}
    for result in results:
        for row in result.rows:
            if (row.split, row.name) == (split, metric):
                value = float(row.value)
                seed = result.config.seed
                _append(columns, metric, label, split, seed, row.step, value, None, None)
                by_step.setdefault(row.step, []).append(value)
    middle = len(columns["value"])
    if middle == start:
        return []
    for step in sorted(by_step):
        values = by_step[step]
        mean = float(np.mean(values))
        _append(columns, metric, label, split, "mean", step, mean, min(values), max(values))
    rows = list(range(middle, len(columns["value"])))
    traces = [
        {"kind": "curve", "span": [start, middle], "y": "value", "of": "seed"},
        {"kind": "curve", "span": [middle, len(columns["value"])], "y": "value", "of": "mean"},
    ]
    if split == "test" and len(results) > 1:  # a second band would cover the first
        traces.insert(0, {"kind": "band", "rows": rows, "of": "mean"})
    return [{**common, **trace} for trace in traces]


def agreement_panel(summary: Summary) -> Panel:
    """Show every measure of table and attention against the headline.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Panel
    """
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
            _append(
                columns,
                label,
                run.result.config.seed,
                *(run.values.get(m) for m in (name, *measures)),
            )
        stop = len(columns["seed"])
        _append(
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
    axes = {"x": next(iter(measures.values()), ""), "y": f"test {summary.task.headline}"}
    first = next(iter(said.values()), "No table or attention map could be measured here.")
    title = "Table and attention against the headline"
    return Panel(
        "agreement", title, first, columns, traces, axes, {"measures": measures, "sentences": said}
    )


def plotly_figure(panel: Panel, metric: str | None = None) -> Any:
    """Turn a panel into a plotly figure, for a notebook.

    Parameters
    ----------
    panel : Panel
        The panel.
    metric : str, optional
        Which metric of the training panel, or measure of the agreement panel; None takes the first.

    Returns
    -------
    Any
        A plotly figure.
    """
    import plotly.graph_objects as go

    metric = metric or next(
        iter(panel.choices.get("metrics", panel.choices.get("measures", {}))), None
    )
    measured = "measures" in panel.choices
    figure = go.Figure()
    for trace in panel.traces:
        if trace.get("metric", metric) != metric or trace.get("of", "mean") != "mean":
            continue
        rows = trace.get("rows", range(*trace.get("span", (0, 0))))
        x, y = trace["x"], trace.get("y")
        x = metric if measured else x

        def taken(of: Any, rows: Sequence[int] = rows) -> list[Any]:
            return list(of) if isinstance(of, list) else [panel.columns[of][row] for row in rows]

        colour = "#22303c" if trace["color"] == "ink" else trace["color"]
        common: dict[str, Any] = {"name": trace["name"], "legendgroup": trace["name"]}
        if trace["kind"] == "band":
            low, high = taken("low"), taken("high")
            band = {
                "fill": "toself",
                "mode": "lines",
                "line": {"width": 0},
                "fillcolor": _faint(colour),
                "showlegend": trace["color"] == "ink",
            }
            figure.add_scatter(x=taken(x) + taken(x)[::-1], y=high + low[::-1], **common, **band)
        elif trace["kind"] in ("curve", "line"):
            dash = {"dash": "solid" if trace.get("split") == "test" else "dot"} | trace.get(
                "line", {}
            )
            xs, ys = taken(x), taken(y)
            for place in [
                i for i in range(len(xs) - 1, 0, -1) if xs[i] < xs[i - 1]
            ]:  # a gap between seeds
                xs.insert(place, None)
                ys.insert(place, None)
            figure.add_scatter(x=xs, y=ys, mode="lines", line={"color": colour} | dash, **common)
        else:
            big = trace["kind"] == "means"
            marker = {"color": colour, "size": 9 if big else 5, "opacity": 1 if big else 0.5}
            mode = "lines+markers" if big and len(rows) > 1 else "markers"
            figure.add_scatter(
                x=taken(x), y=taken(y), mode=mode, marker=marker, showlegend=big, **common
            )
    axes = panel.axes
    words = panel.choices.get("metrics", {}).get(metric, axes.get("y"))
    figure.update_layout(title=panel.title, template="simple_white", yaxis_title=words)
    figure.update_xaxes(
        title=panel.choices["measures"][metric] if measured and metric else axes.get("x")
    )
    if axes.get("log"):
        figure.update_xaxes(
            type="log", tickvals=axes["ticks"], ticktext=[f"{t:g}" for t in axes["ticks"]]
        )
    return figure


def _mean_rho(summary: Summary, label: str) -> float | None:
    """The mean over seeds of the position's share; None if it was not measured or is 0."""
    shares = summary.values(label, "rho")
    known = shares[np.isfinite(shares) & (shares > 0)]
    return float(known.mean()) if len(known) else None


def shown(runs: Sequence[RunSummary], cost: int, budget: int) -> list[RunSummary]:
    """Choose as many seeds of every configuration as fit into a budget, at least one.

    Parameters
    ----------
    runs : sequence of RunSummary
        The runs.
    cost : int
        Bytes of one run.
    budget : int
        Bytes of all.

    Returns
    -------
    list of RunSummary
    """
    ranked: dict[str, list[RunSummary]] = {}
    for run in sorted(runs, key=lambda r: r.result.config.seed):
        ranked.setdefault(run.label, []).append(run)
    room = max(1, budget // max(1, cost * max(1, len(ranked))))
    return [run for same in ranked.values() for run in same[:room]]


def _append(columns: dict[str, list[Any]], *values: Any) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(float(f"{value:.7g}") if isinstance(value, float) else value)


def ramp(n: int) -> list[str]:
    """Return colours from small to large.

    Parameters
    ----------
    n : int
        Number of colours.

    Returns
    -------
    list of str
        Hexadecimal colours.
    """
    return [_between(place) for place in np.linspace(0, len(RAMP) - 1, n)]


def _faint(colour: str) -> str:
    """A colour that lets others through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},.2)"


def _between(place: float) -> str:
    """A colour on the ramp."""
    low = min(int(place), len(RAMP) - 2)
    pair = [[int(RAMP[low + k][i : i + 2], 16) for i in (1, 3, 5)] for k in (0, 1)]
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(*pair, strict=True)]
    return "#" + "".join(f"{v:02x}" for v in mixed)
