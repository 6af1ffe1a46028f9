"""What test scores say: against σ, over training, by condition, and beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placecell.report.sentences.words import metric as words_for
from placecell.store.runs import RunResult
from placecell.study.curves import headline_gain, rank_correlation
from placecell.study.records import Summary, more_is_better

PROCRUSTES = "table/procrustes"  # the one measure of which less is better


def headline(summary: Summary, short: bool = False) -> str:
    """Say whether the headline against σ has the shape of the paper, and what others reach."""
    name, curve, up = (
        f"test/{summary.task.headline}",
        summary.sigma_curve(),
        more_is_better(summary.task),
    )
    said = []
    if len(curve) > 1:
        best, means = (
            summary.best_sigma(),
            [summary.interval(label, name).estimate for _, label in curve],
        )
        first, last = curve[0][0], curve[-1][0]
        what = f"test {words_for(summary.task.headline)} is best at σ = {curve[best][0]:g}"
        shape = f"{_shape(summary, best, len(curve))}: {what}"
        what = shape if len(curve) > 2 else what[0].upper() + what[1:]
        said.append(f"{what} ({means[best]:.3f})")
        ends = [f"{means[i]:.3f} at σ = {curve[i][0]:g}" for i in (0, len(curve) - 1) if i != best]
        said[-1] += f", against {' and '.join(ends)}." if ends else "."
        if short:
            return said[0]
        if best != len(curve) - 1:
            said.append(_paired(summary, curve[best], curve[-1]))
        elif best != 0:
            said.append(
                f"Over σ from {first:g} to {last:g} the largest does best, against the paper."
            )
    rest = [label for label in summary.labels if label not in {label for _, label in curve}]
    scores = {label: summary.interval(label, name).estimate for label in rest}
    scores = {label: value for label, value in scores.items() if math.isfinite(value)}
    if scores:
        top = (max if up else min)(scores, key=lambda label: scores[label])
        kind = "other encodings" if curve else "configurations"
        said.append(
            f"Of the {len(scores)} {kind}, {top} is best with {scores[top]:.3f}."
            if len(scores) > 1
            else f"{top} reaches {scores[top]:.3f}."
        )
    others = summary.baseline_headlines()
    if others and len(curve) > 1:
        top = (max if up else min)(others, key=lambda label: others[label])
        beaten = means[best] > others[top] if up else means[best] < others[top]
        said.append(
            f"The best baseline, {top}, has {others[top]:.3f}: it is "
            f"{'' if beaten else 'not '}beaten."
        )
    return " ".join(said) or "No run here has a test score yet."


def _shape(summary: Summary, best: int, count: int) -> str:
    up = more_is_better(summary.task)
    if 0 < best < count - 1:
        return "An inverted U" if up else "A U (an error, so less is better)"
    where = "smallest" if best == 0 else "largest"
    return f"The {where} σ tried does best ({'no inverted U' if up else 'no U'})"


def _paired(summary: Summary, best: tuple[float, str], last: tuple[float, str]) -> str:
    gain = headline_gain(summary, best[1], last[1])
    if gain is None:
        return "One seed only: the difference has no interval."
    low, high = gain.interval.low, gain.interval.high
    text = f"σ = {best[0]:g} minus σ = {last[0]:g}, paired by seed: {gain.interval.estimate:+.3f}"
    if math.isfinite(low):
        clear = "without 0" if low * high > 0 else "with 0 in it: there may be no difference"
        return f"{text} (95 % interval {low:+.3f} to {high:+.3f}, {clear}; {gain.seeds} seeds)."
    return f"{text} ({gain.seeds} seeds, too few for an interval)."


def training(results: Sequence[tuple[str, RunResult]], metric: str, headline: str) -> str:
    """Say how training went, by the metric that is shown."""
    ends = {
        (label, result.config.seed): (result.final("train", metric), result.final("test", metric))
        for label, result in results
    }
    trained = [train for train, _ in ends.values() if math.isfinite(train)]
    if not trained:
        return "Nothing has been evaluated yet."
    total = len(trained)
    if metric == "table_gradient":
        low, high = min(trained), max(trained)
        return (
            f"The gradient into the table ends between {low:.2g} and {high:.2g} in the "
            f"{total} runs that learn one."
        )
    if metric == headline == "accuracy":
        whole = sum(train == 1.0 for train in trained)
        gaps = [train - test for train, test in ends.values() if math.isfinite(train - test)]
        text = f"{whole} of {total} runs end with every training sample right (dotted)"
        if not gaps:
            return text + "."
        widest = max(
            ends,
            key=lambda k: -1.0 if math.isnan(ends[k][0] - ends[k][1]) else ends[k][0] - ends[k][1],
        )
        return (
            f"{text}; test (solid) ends {np.mean(gaps):.3f} below training on average, most at "
            f"{widest[0]} (seed {widest[1]}): {max(gaps):.3f}."
        )
    tested = [test for _, test in ends.values() if math.isfinite(test)]
    text = (
        f"Training {words_for(metric)} (dotted) ends between {min(trained):.3g} and "
        f"{max(trained):.3g} over {total} runs"
    )
    return text + (
        f"; test (solid) between {min(tested):.3g} and {max(tested):.3g}." if tested else "."
    )


def agreement(summary: Summary, measure: str, words: str) -> str:
    """Say whether a measure and the headline rise and fall together over σ."""
    labels = [label for _, label in summary.sigma_curve()]
    if len(labels) < 3:
        return (
            f"The {words}, against test {words_for(summary.task.headline)}. "
            "It takes three σ to say whether they go together."
        )
    interval = rank_correlation(summary, measure)
    if interval is None:
        return (
            f"The {words} was not measured in all runs of a seed, so nothing is said of it over σ."
        )
    if not math.isfinite(interval.estimate):
        return f"The {words} does not differ over σ, or the headline does not: no rank correlation."
    good = (
        interval.estimate
        * (1 if more_is_better(summary.task) else -1)
        * (-1 if measure == PROCRUSTES else 1)
    )
    verdict = (
        "go together as the paper says"
        if good > 0.5
        else "go against each other"
        if good < -0.5
        else "hardly go together"
    )
    text = (
        f"Over σ, the {words} and test {words_for(summary.task.headline)} {verdict}: "
        f"rank correlation {interval.estimate:+.2f}"
    )
    if math.isfinite(interval.low):
        text += f" (95 % interval over seeds {interval.low:+.2f} to {interval.high:+.2f})"
    return text + "."


def conditions(
    rows: Sequence[dict[str, Any]], groups: Sequence[str], up: bool, noun: str = "condition"
) -> str:
    """Say which condition is hardest, and for how many configurations."""
    hardest: dict[str, int] = {}
    for row in rows:
        known = {g: row[g] for g in groups if row.get(g) is not None and math.isfinite(row[g])}
        if known:
            worst = (min if up else max)(known, key=lambda g: known[g])
            hardest[worst] = hardest.get(worst, 0) + 1
    if not hardest:
        return f"No scores by {noun}."
    top = max(hardest, key=lambda g: hardest[g])
    total = sum(hardest.values())
    if hardest[top] == total:
        return (
            (f"{top} is the hardest {noun} for every one of the {total} configurations.")
            if total > 1
            else (f"{top} is the hardest {noun}.")
        )
    return f"{top} is the hardest {noun} for {hardest[top]} of {total} configurations."
