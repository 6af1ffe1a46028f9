"""The figure of training: headline, loss and gradient into the table over the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placecell.report import sentences
from placecell.report.page.colours import OTHERS
from placecell.report.page.panels import Panel, append
from placecell.report.sentences import metric as in_words
from placecell.store.runs import RunResult

BANDS = "Lines are means over seeds; bands reach from the lowest seed to the highest, on test."


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
    words = {m: {"table_gradient": "gradient into the table"}.get(m, in_words(m)) for m in present}
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
                append(columns, metric, label, split, seed, row.step, value, None, None)
                by_step.setdefault(row.step, []).append(value)
    middle = len(columns["value"])
    if middle == start:
        return []
    for step in sorted(by_step):
        values = by_step[step]
        mean = float(np.mean(values))
        append(columns, metric, label, split, "mean", step, mean, min(values), max(values))
    rows = list(range(middle, len(columns["value"])))
    traces = [
        {"kind": "curve", "span": [start, middle], "y": "value", "of": "seed"},
        {"kind": "curve", "span": [middle, len(columns["value"])], "y": "value", "of": "mean"},
    ]
    if split == "test" and len(results) > 1:  # a second band would cover the first
        traces.insert(0, {"kind": "band", "rows": rows, "of": "mean"})
    return [{**common, **trace} for trace in traces]
