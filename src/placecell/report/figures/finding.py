"""Figures: each takes a summary and gives back a matplotlib figure; nothing is written here."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from placecell import analysis
from placecell.report.figures.rows import group_colours, name_groups, name_rows
from placecell.report.names import as_drawn, marks
from placecell.report.sentences import plural
from placecell.study.arrangement import arrangement, contrast
from placecell.study.records import OWN_COMMUNITIES, RunSummary, Summary

INK, SMALL, LARGE = "#1b3a57", "#0f7b6c", "#c2452d"
WORDS = {
    "table/relation": "table–relation correlation",
    "table/distance": "table–distance correlation",
    "table/order": "recovered order, |rank correlation|",
    "table/path": "table–shortest path correlation",
    "table/procrustes": "Procrustes distance to the true table",
    "table/modularity": "modularity of the table by the known modules",
    "table/modularity_signed": "signed modularity of the table",
}
INSIDE = 3  # letters of a mark that fit into a dot
MOST_NAMED = 60  # tokens whose names stand beside their dots: more would hide each other
MOST_LINES = 300  # between tokens that belong together: more would hide the tokens
OTHERS = ("#d1495b", "#edae49", "#00a6c0", "#8a8a8a", "#2f9e44", "#7a5195")


def fig_finding(summary: Summary) -> Figure:
    """Draw the finding in one picture.

    The headline against σ, what the table learned, attention, and two tables: the most readable one
    by the task's first measure, and that of the largest σ.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplot_mosaic("AABBCC\nDDEEFF")
    _against_sigma(
        axes["A"],
        summary,
        f"test/{summary.task.headline}",
        f"test {summary.task.headline}",
        others=True,
    )
    first, second = summary.task.shown[:2]
    _against_sigma(axes["B"], summary, first, _words(first, summary), others=False)
    _agreement(axes["C"], summary)
    pair = contrast(summary)
    for letter, colour in (("D", SMALL), ("E", LARGE)):
        axes[letter].set_visible(bool(pair))
        if pair:
            _similarity(axes[letter], summary, pair.pop(0), colour, figure)
    _against_sigma(axes["F"], summary, second, _words(second, summary), others=False)
    for letter, panel in axes.items():
        panel.set_title(letter.lower(), loc="left", fontweight="bold")
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def fig_tables(summary: Summary) -> Figure:
    """Draw the first two principal components of every table.

    Tokens have their names, as short as there is room for, and are coloured by their first known
    label, or else by where they are along the first axis; lines join tokens that belong together if
    there are few enough of them.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure
    """
    truth = summary.truth
    first_runs = [next(r for r in summary.runs if r.label == label) for label in summary.labels]
    shown = [run for run in first_runs if run.table is not None and np.ptp(run.table) > 0]
    columns = min(4, max(1, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(3 * columns, 3 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).flatten()
    coords = summary.task.places.coords.double().numpy()
    # if tokens lie in a plane, tables are rotated to match them
    layout = coords if coords.shape[1] == 2 else None
    name = next(iter(truth.labels), None)
    colours = coords[:, 0] if name is None and truth.spatial else truth.labels.get(name or "")
    shades: dict[str, Any] = {"c": INK} if colours is None else {"c": colours, "cmap": "viridis"}
    if name is not None and name == truth.partition:
        shades = group_colours(truth.labels[name])
        name_groups(figure, truth.labels[name], truth.named(name), plural(name))
    joined = np.argwhere(np.triu(truth.relation) > 0)
    called = marks(summary.names)
    inside = max(map(len, called)) <= INSIDE
    where: dict[str, Any] = {"va": "center", "color": "white"}
    if not inside:
        where = {"va": "bottom", "color": INK, "xytext": (0, 3.5), "textcoords": "offset points"}
    for panel, run in zip(panels, shown, strict=False):
        assert run.table is not None
        picture = analysis.picture(run.table, align_to=layout)
        x, y = picture.coordinates.T
        for i, j in joined if len(joined) <= MOST_LINES else ():
            panel.plot(x[[i, j]], y[[i, j]], color="#cccccc", lw=0.4, zorder=0)
        panel.scatter(x, y, s=60, **shades)
        for place, mark in enumerate(called if inside or len(x) <= MOST_NAMED else ()):
            panel.annotate(as_drawn(mark), (x[place], y[place]), ha="center", fontsize=5.5, **where)
        panel.margins(0.05 if inside else 0.15)
        share = picture.explained[:2].sum()
        panel.set_title(f"{run.label} ({share:.0%} of the variance)", fontsize=8)
        panel.set_xticks([])
        panel.set_yticks([])
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    return figure


def fig_training(summary: Summary) -> Figure:
    """Draw training and test scores over the steps.

    One panel per configuration, one line per seed, and the best of the simpler methods dashed.
    Errors are shown without those before training, which would hide the rest.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure
    """
    headline, errors = summary.task.headline, summary.task.headline_lower_is_better
    labels = summary.labels
    columns = min(4, len(labels))
    rows = -(-len(labels) // columns)
    figure = Figure(figsize=(2.9 * columns, 2.2 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).flatten()
    for panel, label in zip(panels, labels, strict=False):
        for run in (r for r in summary.runs if r.label == label):
            for split, colour in (("train", INK), ("test", LARGE)):
                chosen = [
                    r
                    for r in run.result.rows
                    if (r.split, r.name) == (split, headline) and (r.step or not errors)
                ]
                panel.plot(
                    [r.step for r in chosen], [r.value for r in chosen], color=colour, lw=0.9
                )
        panel.set_title(label, fontsize=8)
    for panel in panels[len(labels) :]:
        panel.set_visible(False)
    legend = "dark: training, red: test"
    simpler = {
        n: v[f"test/{headline}"] for n, v in summary.baselines.items() if f"test/{headline}" in v
    }
    if simpler:
        best = (min if errors else max)(simpler, key=lambda name: simpler[name])
        legend += f", dashed: {best}"
        for panel in panels[: len(labels)]:
            panel.axhline(simpler[best], color=LARGE, lw=0.9, ls="--")
    figure.supxlabel(f"step ({legend})", fontsize=9)
    figure.supylabel(headline, fontsize=9)
    return figure


def _words(measure: str, summary: Summary) -> str:
    """A measure in words; where nothing is known, by what it is compared with."""
    words = WORDS.get(measure, measure)
    if summary.truth.from_data:
        words = words.replace("the known modules", "the data's own communities")
    return words


def _against_sigma(axis: Axes, summary: Summary, name: str, title: str, others: bool) -> None:
    curve = summary.sigma_curve()
    if not any(np.isfinite(run.values.get(name, np.nan)) for run in summary.runs):
        axis.set_visible(False)
        return
    if curve:
        sigmas = [sigma for sigma, _ in curve]
        intervals = [summary.interval(label, name) for _, label in curve]
        axis.plot(
            sigmas, [i.estimate for i in intervals], color=INK, marker="o", ms=4, label="learnable"
        )
        axis.fill_between(
            sigmas,
            [i.low for i in intervals],
            [i.high for i in intervals],
            color=INK,
            alpha=0.15,
            lw=0,
        )
        for sigma, label in curve:
            values = summary.values(label, name)
            axis.plot([sigma] * len(values), values, ".", color=INK, ms=3, alpha=0.5)
        axis.set_xscale("log")
    rest = [label for label in summary.labels if label not in {name for _, name in curve}]
    for label, colour in zip(rest if others else [], OTHERS, strict=False):
        axis.axhline(
            summary.interval(label, name).estimate, color=colour, lw=1, ls="--", label=label
        )
    scores = {label: values[name] for label, values in summary.baselines.items() if name in values}
    if others and scores:
        best = (min if summary.task.headline_lower_is_better else max)(
            scores, key=lambda label: scores[label]
        )
        axis.axhline(scores[best], color="black", lw=1, ls=":", label=best)
    if others:  # below, where no line is
        axis.legend(
            fontsize=6.5, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3
        )
    axis.set_xlabel("σ of the initial table")
    axis.set_ylabel(title)


def _agreement(axis: Axes, summary: Summary) -> None:
    name = "attention/reference"
    if not any(name in r.values for r in summary.runs):
        name = "attention/relation"
    for number, (sigma, label) in enumerate(summary.sigma_curve()):
        x, y = summary.values(label, name), summary.values(label, f"test/{summary.task.headline}")
        axis.plot(x, y, ".", color=INK, ms=3, alpha=0.4)
        axis.plot(np.mean(x), np.mean(y), "o", color=INK, ms=5)
        place = (float(np.mean(x)), float(np.mean(y)))
        aside = (3, -9 if number % 2 else 3)  # so that labels of neighbours do not overlap
        axis.annotate(f"{sigma:g}", place, fontsize=7, xytext=aside, textcoords="offset points")
    words = {
        "attention/reference": "the true encoding's model",
        "attention/relation": OWN_COMMUNITIES if summary.truth.from_data else "the ideal relation",
    }
    axis.set_xlabel(f"attention agreement with {words[name]}", fontsize=8)
    axis.set_ylabel(f"test {summary.task.headline}")


def _similarity(axis: Axes, summary: Summary, run: RunSummary, colour: str, figure: Figure) -> None:
    assert run.table is not None
    order, truth = arrangement(summary).order, summary.truth
    similarity = analysis.row_similarity(run.table[order])
    np.fill_diagonal(similarity, np.nan)  # of a row with itself: left blank
    most = float(np.nanmax(np.abs(similarity)))
    options: dict[str, Any] = {"vmin": -most, "vmax": most, "cmap": "RdBu_r"}
    image = axis.imshow(similarity, **options)
    figure.colorbar(image, ax=axis, shrink=0.8)
    axis.set_xlabel(f"{run.label}: similarity of the learned rows", color=colour, fontsize=9)
    axis.set_xticks([])
    groups = None if truth.partition is None else truth.named(truth.partition)
    name_rows(axis, marks(summary.names), order, groups)
