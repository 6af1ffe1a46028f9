"""The paper's panels, each a matplotlib figure sized for one column, the small maps for the width
of the page; nothing is written here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from placecell import analysis
from placecell.report.figures.finding import INK, LARGE, OTHERS, SMALL, _against_sigma, _agreement
from placecell.report.figures.tiles import fig_tiles
from placecell.study.arrangement import arrangement, contrast
from placecell.study.records import Summary

COLUMN = 3.4  # inches, 86 mm
STYLE: dict[Any, Any] = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "legend.fontsize": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "placecell",
}


def paper_panels(summary: Summary) -> dict[str, Figure]:
    """Draw every panel that these runs have data for.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        Figures by name.
    """
    with matplotlib.rc_context(STYLE):
        panels = {name: make(summary) for name, make in PANELS.items()}
    return {name: figure for name, figure in panels.items() if figure is not None}


def fig_headline(summary: Summary) -> Figure | None:
    """Draw the headline against σ, other encodings as lines; bars if there is no σ curve.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
    """
    figure, name = _column(0.72), f"test/{summary.task.headline}"
    axis = figure.subplots()
    if summary.sigma_curve():
        _against_sigma(axis, summary, name, f"test {summary.task.headline}", others=True)
        _plain_ticks(axis, summary)
        return figure
    intervals = [summary.interval(label, name) for label in summary.labels]
    places = np.arange(len(intervals))
    axis.barh(places, [i.estimate for i in intervals], color=INK, height=0.6)
    axis.set_yticks(places, summary.labels)
    axis.invert_yaxis()
    axis.set_xlabel(f"test {summary.task.headline}")
    return figure


def fig_maps(summary: Summary) -> Figure | None:
    """Draw the tables of the two runs that `contrast` chooses, in the plane of most variance.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None if there is no table.
    """
    pair = contrast(summary)
    if not pair:
        return None
    figure, truth = _column(0.55), summary.truth
    coords = summary.task.places.coords.double().numpy()
    layout = coords if coords.shape[1] == 2 else None
    shades = next(iter(truth.labels.values()), np.arange(summary.n_places))
    for axis, run in zip(np.atleast_1d(figure.subplots(1, len(pair))), pair, strict=True):
        assert run.table is not None
        x, y = analysis.picture(run.table, align_to=layout).coordinates.T
        edges = np.argwhere(np.triu(truth.relation) > 0)
        for i, j in edges if len(edges) <= 20 * len(x) else ():
            axis.plot(x[[i, j]], y[[i, j]], color="#cccccc", lw=0.3, zorder=0)
        axis.scatter(
            x,
            y,
            c=np.unique(shades, return_inverse=True)[1],
            cmap="viridis",
            s=26 if len(x) <= 40 else 8,
        )
        axis.set_title(run.label)
        _bare(axis)
        axis.set_aspect("equal", "datalim")
    return figure


def fig_similarity(summary: Summary) -> Figure | None:
    """Draw the similarity of the rows of the same two tables.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None if there is no table.
    """
    pair = contrast(summary)
    if not pair:
        return None
    figure = _column(0.55)
    order = arrangement(summary).order
    for axis, run in zip(np.atleast_1d(figure.subplots(1, len(pair))), pair, strict=True):
        assert run.table is not None
        rows = run.table - run.table.mean(0)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        similarity = (rows @ rows.T)[np.ix_(order, order)]
        np.fill_diagonal(similarity, np.nan)  # always 1: it would hide the rest
        most = float(np.nanmax(np.abs(similarity)))
        image = axis.imshow(similarity, vmin=-most, vmax=most, cmap="RdBu_r")
        figure.colorbar(image, ax=axis, shrink=0.7)
        axis.set_title(run.label)
        _bare(axis)
    return figure


def fig_attention(summary: Summary) -> Figure | None:
    """Draw attention of the same two runs beside the ideal.

    Each is shown in the layer that follows the true relation most.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None without attention maps or without a known truth.
    """
    pair = [run for run in contrast(summary) if run.maps is not None]
    if not pair or summary.task.truth() is None:
        return None
    relation, order = summary.truth.relation, arrangement(summary).order
    total = relation.sum(1, keepdims=True)
    shown = []
    for run in pair:
        assert run.maps is not None
        layer = int(np.nanargmax(analysis.relation_agreement(run.maps, relation).correlation))
        shown.append((f"{run.label}, layer {layer + 1}", run.maps[layer]))
    ideal = summary.reference if summary.truth.from_data else "ideal relation"
    shown.append((ideal, relation / np.where(total > 0, total, 1.0)))
    figure = _column(0.42)
    for axis, (title, values) in zip(figure.subplots(1, len(shown)), shown, strict=True):
        axis.imshow(values[np.ix_(order, order)], cmap="Greys", vmin=0)
        axis.set_title(title, fontsize=5.5)
        _bare(axis)
    return figure


def fig_procrustes(summary: Summary) -> Figure | None:
    """Draw the Procrustes distance to the true table against σ, beside shuffled rows.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None if it was not measured.
    """
    curve = summary.sigma_curve()
    if not curve or not any("table/procrustes" in run.values for run in summary.runs):
        return None
    figure = _column(0.6)
    axis = figure.subplots()
    _against_sigma(axis, summary, "table/procrustes", "Procrustes distance", others=False)
    shuffled = [summary.interval(label, "table/procrustes_shuffled").estimate for _, label in curve]
    axis.plot(
        [sigma for sigma, _ in curve],
        shuffled,
        color=OTHERS[3],
        ls=":",
        lw=1,
        label="rows shuffled",
    )
    axis.legend(frameon=False)
    _plain_ticks(axis, summary)
    return figure


def fig_agreement(summary: Summary) -> Figure | None:
    """Draw the agreement of attention with the truth against the headline, over σ.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
        None without a σ curve or without attention maps.
    """
    if not summary.sigma_curve() or not any(run.maps is not None for run in summary.runs):
        return None
    figure = _column(0.6)
    _agreement(figure.subplots(), summary)
    return figure


def fig_curves(summary: Summary) -> Figure | None:
    """Draw training and test scores over the steps, at the same two σ.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    Figure or None
    """
    labels = [run.label for run in contrast(summary)] or summary.labels[:2]
    figure = _column(0.5)
    for axis, label in zip(
        np.atleast_1d(figure.subplots(1, len(labels), sharey=True)), labels, strict=True
    ):
        for run in (r for r in summary.runs if r.label == label):
            for split, colour in (("train", SMALL), ("test", LARGE)):
                rows = [
                    r
                    for r in run.result.rows
                    if (r.split, r.name) == (split, summary.task.headline)
                ]
                axis.plot([r.step for r in rows], [r.value for r in rows], color=colour, lw=0.8)
        axis.set_title(label)
        axis.set_xlabel("step")
    figure.supylabel(f"{summary.task.headline} (green: training, red: test)", fontsize=7)
    return figure


PANELS: dict[str, Callable[[Summary], Figure | None]] = {
    "tiles": fig_tiles,
    "headline": fig_headline,
    "maps": fig_maps,
    "similarity": fig_similarity,
    "attention": fig_attention,
    "procrustes": fig_procrustes,
    "agreement": fig_agreement,
    "training": fig_curves,
}


def _column(ratio: float) -> Figure:
    return Figure(figsize=(COLUMN, COLUMN * ratio), layout="constrained")


def _plain_ticks(axis: Any, summary: Summary) -> None:
    """σ as numbers, not as powers of ten."""
    sigmas = [sigma for sigma, _ in summary.sigma_curve()]
    axis.set_xticks(sigmas, [f"{sigma:g}" for sigma in sigmas])
    axis.minorticks_off()


def _bare(axis: Any) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
