"""What `lazy_rich` measured, as figures."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from placecell.report.page.colours import OTHERS, ramp
from placecell.study.kernels import WHOLE, LazyRich

MOST_LINES = 8
PICTURES = {"lazy_rich", "lazy_rich_curves"}


def figures(lazy: LazyRich) -> dict[str, Figure]:
    """Draw the pictures that the runs have data for.

    Parameters
    ----------
    lazy : LazyRich
        What was measured.

    Returns
    -------
    dict
        Figures by name.
    """
    made = zip(sorted(PICTURES), (fig_lazy_rich(lazy), fig_curves(lazy)), strict=True)
    return {name: figure for name, figure in made if figure is not None}


def fig_lazy_rich(lazy: LazyRich) -> Figure | None:
    """Draw how kernel and table change over training.

    Kernel distance, velocity, the table's share of the kernel, alignment and the table's movement;
    and at the end ridge regression with the first and the last kernel beside the network.

    Parameters
    ----------
    lazy : LazyRich
        What was measured.

    Returns
    -------
    Figure or None
        None if no run kept weights from during training.
    """
    labels = [label for label in lazy.labels if len(lazy.steps(label, "kernel_distance")) > 2]
    if not labels:
        return None
    if len(labels) > MOST_LINES:  # one curve over σ, the longest; `fig_curves` has them all
        lines = [
            [label for label in labels if lazy.rest[label] == rest] for rest in lazy.rest.values()
        ]
        labels = max(lines, key=len)[:MOST_LINES]
    figure = Figure(figsize=(13, 7.4), layout="constrained")
    axes = figure.subplot_mosaic("ABC\nDEF")
    shades = dict(zip(labels, ramp(len(labels)), strict=True))
    alone = len({lazy.rest[label] for label in labels}) == 1  # nothing but σ tells them apart
    names = {
        label: f"σ = {lazy.config(label).encoding.sigma:g}" if alone else label for label in labels
    }
    panels = {
        "A": ("kernel_distance", WHOLE, "kernel distance from the start"),
        "B": ("kernel_velocity", WHOLE, "kernel velocity (distance per step)"),
        "C": ("kernel_share", "PE", "the table's share of the kernel's trace"),
        "D": (
            "target_alignment",
            WHOLE,
            "alignment with the targets (dashed, right: training loss)",
        ),
        "E": ("moved", "PE", "movement of the table, of its initial norm"),
    }
    for letter in "BE":
        axes[letter].set_yscale("log")
    for letter, (measure, block, title) in panels.items():
        for label in labels:
            _curve(axes[letter], lazy, label, measure, block, shades[label])
            axes[letter].plot([], [], color=shades[label], label=names[label])
        axes[letter].set_title(f"{letter.lower()}  {title}", loc="left", fontsize=9)
        axes[letter].set_xlabel("1 + step", fontsize=8)
        axes[letter].set_xscale("log")
        axes[letter].xaxis.set_minor_formatter(NullFormatter())
    right = axes["D"].twinx()
    for label in labels:
        _curve(right, lazy, label, "train_loss", WHOLE, shades[label], dashed=True)
    right.set_ylim(bottom=0)
    right.spines["top"].set_visible(False)
    right.tick_params(labelsize=8)
    axes["A"].legend(fontsize=7, frameon=False)
    _gap(axes["F"], lazy, names)
    for axis in axes.values():
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure


def _curve(
    axis: Axes,
    lazy: LazyRich,
    label: str,
    measure: str,
    block: str,
    shade: str,
    dashed: bool = False,
) -> None:
    """Mean over seeds with its interval, over the steps."""
    steps = lazy.steps(label, measure, block)
    if not steps:
        return
    intervals = [lazy.interval(label, measure, block, step) for step in steps]
    mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
    x = 1 + np.array(steps)
    if dashed:
        axis.plot(x, mean, color=shade, lw=0.9, ls="--")
        return
    if axis.get_yscale() == "log":
        x, mean, low, high = x[mean > 0], mean[mean > 0], low[mean > 0], high[mean > 0]
    axis.plot(x, mean, color=shade, lw=1.6)
    axis.fill_between(x, low, high, color=shade, alpha=0.15, lw=0)


def _gap(axis: Axes, lazy: LazyRich, names: dict[str, str]) -> None:
    """The linearisation gap: the linear models of the first and the last kernel, and the
    network."""
    headline = f"test/{lazy.task.headline}"
    bars = {
        "first kernel": ("ridge", WHOLE, 0),
        "last kernel": ("ridge", WHOLE, None),
        "network": (headline, WHOLE, None),
    }
    for number, (name, one) in enumerate(bars.items()):
        intervals = [lazy.interval(label, *one) for label in names]
        x = np.arange(len(names)) + 0.27 * (number - 1)
        mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
        axis.bar(
            x,
            mean,
            0.25,
            yerr=[mean - low, high - mean],
            label=name,
            color=OTHERS[number],
            error_kw={"lw": 0.8},
        )
    axis.set_xticks(
        np.arange(len(names)), list(names.values()), rotation=45, ha="right", fontsize=7
    )
    axis.set_title(f"f  {headline} of ridge regression and network", loc="left", fontsize=9)
    axis.set_ylim(top=1.15 * axis.get_ylim()[1])  # room for the legend
    axis.legend(fontsize=7, frameon=False, loc="upper center", ncol=len(bars))


def fig_curves(lazy: LazyRich) -> Figure | None:
    """Draw headline, kernel distance and movement of the table at the end against σ.

    Parameters
    ----------
    lazy : LazyRich
        What was measured.

    Returns
    -------
    Figure or None
        One line for each value of the other settings; None if no line has two σ.
    """
    lines: dict[str, list[tuple[float, str]]] = {}
    for label in lazy.labels:
        sigma = lazy.config(label).encoding.sigma
        if sigma:
            lines.setdefault(lazy.rest[label], []).append((sigma, label))
    if not any(len(line) > 1 for line in lines.values()):
        return None
    figure = Figure(figsize=(13, 4), layout="constrained")
    headline = f"test/{lazy.task.headline}"
    panels = {
        headline: (headline, WHOLE),
        "kernel distance": ("kernel_distance", WHOLE),
        "table moved": ("moved", "PE"),
    }
    shades = dict(zip(lines, ramp(len(lines)), strict=True))
    for axis, (title, one) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for name, line in lines.items():
            x = np.array([sigma for sigma, _ in sorted(line)])
            intervals = [lazy.interval(label, *one) for _, label in sorted(line)]
            mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
            axis.errorbar(
                x,
                mean,
                [mean - low, high - mean],
                marker="o",
                ms=4,
                lw=1.4,
                color=shades[name],
                label=name,
            )
        axis.set_xscale("log")
        axis.set_yscale("log" if one == ("moved", "PE") else "linear")
        axis.set_xlabel("σ of the initial table", fontsize=8)
        axis.set_title(title, loc="left", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[-1].legend(fontsize=7, frameon=False)
    return figure
