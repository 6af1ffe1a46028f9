"""What `lazy_rich` measured, as a table for people, and as figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from placecell.analysis import regimes
from placecell.report.lazy_rich import WHOLE, LazyRich, cell
from placecell.report.panels import OTHERS, ramp

MOST_LINES = 8
PICTURES = {"lazy_rich", "lazy_rich_curves"}


def measures(found: LazyRich) -> dict[str, tuple[str, str, int | None]]:
    """What the table shows: heading -> measure, block, step (None: where the run ended)."""
    headline = found.task.headline
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


def summary_rows(found: LazyRich) -> list[dict[str, Any]]:
    """One row a configuration and measure: the mean over seeds with its interval."""
    rows = []
    for label in found.labels:
        for heading, (measure, block, step) in measures(found).items():
            interval = found.interval(label, measure, block, step)
            seeds = len(found.values(label, measure, block, step))
            facts = {"label": label, "measure": measure, "block": block, "step": "end" if step is None else step}
            rows.append(facts | {"heading": heading, "seeds": seeds, "mean": interval.estimate,
                                 "low": interval.low, "high": interval.high})  # fmt: skip
    return rows


def as_text(found: LazyRich) -> str:
    """The table as Markdown, then what it takes to read it."""
    shown = {heading: one for heading, one in measures(found).items()
             if any(np.isfinite(found.values(label, *one)).any() for label in found.labels)}  # fmt: skip
    lines = ["| | seeds | " + " | ".join(shown) + " |", "|---|---|" + "---|" * len(shown)]
    for label in found.labels:
        seeds = len(found.values(label, f"test/{found.task.headline}"))
        intervals = [found.interval(label, *one) for one in shown.values()]
        cells = [cell(i.estimate, i.low, i.high) for i in intervals]
        lines.append(f"| {label} | {seeds} | " + " | ".join(cells) + " |")
    lines += ["", *_halves(found)]
    return "\n".join(lines)


def _halves(found: LazyRich) -> list[str]:
    """When the kernel turns to the task, beside when the loss falls; where snapshots of weights were kept."""
    lines = []
    for label in found.labels:
        steps = found.steps(label, "target_alignment")
        if len(steps) < 4:
            continue
        halves = {}
        for measure in ("target_alignment", "train_loss", "kernel_distance"):
            means = [float(np.mean(found.values(label, measure, WHOLE, step))) for step in steps]
            halves[measure] = regimes.half_way(steps, means)
        lines.append(
            f"{label}: half-way at step {halves['kernel_distance']:.0f} (kernel distance), "
            f"{halves['target_alignment']:.0f} (alignment), {halves['train_loss']:.0f} (training loss)."
        )
    if not lines:
        lines = [
            "Only the first and the last weights are there; train with --snapshots weights to see the way between."
        ]
    return lines


def figures(found: LazyRich) -> dict[str, Figure]:
    """The pictures that the runs have data for."""
    made = zip(sorted(PICTURES), (fig_lazy_rich(found), fig_curves(found)), strict=True)
    return {name: figure for name, figure in made if figure is not None}


def fig_lazy_rich(found: LazyRich) -> Figure | None:
    """Along training: kernel distance, velocity, the table's share of the kernel, alignment, the table's movement;
    and at the end the linear models of the first and last kernel beside the network."""
    labels = [label for label in found.labels if len(found.steps(label, "kernel_distance")) > 2]
    if not labels:
        return None
    if len(labels) > MOST_LINES:  # one curve over σ, the longest; `fig_curves` has them all
        lines = [[label for label in labels if found.rest[label] == rest] for rest in found.rest.values()]
        labels = max(lines, key=len)[:MOST_LINES]
    figure = Figure(figsize=(13, 7.4), layout="constrained")
    axes = figure.subplot_mosaic("ABC\nDEF")
    shades = dict(zip(labels, ramp(len(labels)), strict=True))
    alone = len({found.rest[label] for label in labels}) == 1  # nothing but σ tells them apart
    names = {label: f"σ = {found.config(label).encoding.sigma:g}" if alone else label for label in labels}
    panels = {
        "A": ("kernel_distance", WHOLE, "kernel distance from the start"),
        "B": ("kernel_velocity", WHOLE, "kernel velocity (distance a step)"),
        "C": ("kernel_share", "PE", "the table's share of the kernel's trace"),
        "D": ("target_alignment", WHOLE, "alignment with the targets (dashed, right: training loss)"),
        "E": ("moved", "PE", "movement of the table, of its initial norm"),
    }
    for letter in "BE":
        axes[letter].set_yscale("log")
    for letter, (measure, block, title) in panels.items():
        for label in labels:
            _curve(axes[letter], found, label, measure, block, shades[label])
            axes[letter].plot([], [], color=shades[label], label=names[label])
        axes[letter].set_title(f"{letter.lower()}  {title}", loc="left", fontsize=9)
        axes[letter].set_xlabel("1 + step", fontsize=8)
        axes[letter].set_xscale("log")
        axes[letter].xaxis.set_minor_formatter(NullFormatter())
    right = axes["D"].twinx()
    for label in labels:
        _curve(right, found, label, "train_loss", WHOLE, shades[label], dashed=True)
    right.set_ylim(bottom=0)
    right.spines["top"].set_visible(False)
    right.tick_params(labelsize=8)
    axes["A"].legend(fontsize=7, frameon=False)
    _gap(axes["F"], found, names)
    for axis in axes.values():
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure


def _curve(axis: Axes, found: LazyRich, label: str, measure: str, block: str, shade: str, dashed: bool = False) -> None:
    """Mean over seeds with its interval, over the steps."""
    steps = found.steps(label, measure, block)
    if not steps:
        return
    intervals = [found.interval(label, measure, block, step) for step in steps]
    mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
    x = 1 + np.array(steps)
    if dashed:
        axis.plot(x, mean, color=shade, lw=0.9, ls="--")
        return
    if axis.get_yscale() == "log":
        x, mean, low, high = x[mean > 0], mean[mean > 0], low[mean > 0], high[mean > 0]
    axis.plot(x, mean, color=shade, lw=1.6)
    axis.fill_between(x, low, high, color=shade, alpha=0.15, lw=0)


def _gap(axis: Axes, found: LazyRich, names: dict[str, str]) -> None:
    """The linearisation gap: the linear models of the first and the last kernel, and the network."""
    headline = f"test/{found.task.headline}"
    bars = {
        "first kernel": ("ridge", WHOLE, 0),
        "last kernel": ("ridge", WHOLE, None),
        "network": (headline, WHOLE, None),
    }
    for number, (name, one) in enumerate(bars.items()):
        intervals = [found.interval(label, *one) for label in names]
        x = np.arange(len(names)) + 0.27 * (number - 1)
        mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
        axis.bar(x, mean, 0.25, yerr=[mean - low, high - mean], label=name, color=OTHERS[number], error_kw={"lw": 0.8})
    axis.set_xticks(np.arange(len(names)), list(names.values()), rotation=45, ha="right", fontsize=7)
    axis.set_title(f"f  {headline} of ridge regression and network", loc="left", fontsize=9)
    axis.set_ylim(top=1.15 * axis.get_ylim()[1])  # room for the legend
    axis.legend(fontsize=7, frameon=False, loc="upper center", ncol=len(bars))


def fig_curves(found: LazyRich) -> Figure | None:
    """The headline, the kernel distance and the table's movement at the end against σ: one line for every other
    setting that varies. None where no line has two σ."""
    lines: dict[str, list[tuple[float, str]]] = {}
    for label in found.labels:
        sigma = found.config(label).encoding.sigma
        if sigma:
            lines.setdefault(found.rest[label], []).append((sigma, label))
    if not any(len(line) > 1 for line in lines.values()):
        return None
    figure = Figure(figsize=(13, 4), layout="constrained")
    headline = f"test/{found.task.headline}"
    panels = {
        headline: (headline, WHOLE),
        "kernel distance": ("kernel_distance", WHOLE),
        "table moved": ("moved", "PE"),
    }
    shades = dict(zip(lines, ramp(len(lines)), strict=True))
    for axis, (title, one) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for name, line in lines.items():
            x = np.array([sigma for sigma, _ in sorted(line)])
            intervals = [found.interval(label, *one) for _, label in sorted(line)]
            mean, low, high = np.array([[i.estimate, i.low, i.high] for i in intervals]).T
            axis.errorbar(x, mean, [mean - low, high - mean], marker="o", ms=4, lw=1.4, color=shades[name], label=name)
        axis.set_xscale("log")
        axis.set_yscale("log" if one == ("moved", "PE") else "linear")
        axis.set_xlabel("σ of the initial table", fontsize=8)
        axis.set_title(title, loc="left", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[-1].legend(fontsize=7, frameon=False)
    return figure
