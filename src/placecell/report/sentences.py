"""What to see in each figure, in a sentence that follows from the data and changes when they do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from placecell.store.runs import RunResult
from placecell.study.arrangement import arrangement, contrast, shows_truth
from placecell.study.curves import headline_gain, rank_correlation
from placecell.study.records import Summary, more_is_better

MOST_NAMED = 4  # configurations: of more only the number is said
PROCRUSTES = "table/procrustes"  # the one measure of which less is better


def headline(summary: Summary, short: bool = False) -> str:
    """Say whether the headline against σ has the shape of the paper, and what others reach.

    Parameters
    ----------
    summary : Summary
        A sweep.
    short : bool
        Return the first sentence only.

    Returns
    -------
    str
    """
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
        what = f"test {summary.task.headline} is best at σ = {curve[best][0]:g}"
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
    return f"No {'inverted U' if up else 'U'} over the σ tried, the best is the {where}"


def _paired(summary: Summary, best: tuple[float, str], last: tuple[float, str]) -> str:
    gain = headline_gain(summary, best[1], last[1])
    if gain is None:
        return "One seed only: the difference has no interval."
    low, high = gain.interval.low, gain.interval.high
    text = f"σ = {best[0]:g} minus σ = {last[0]:g}, paired by seed: {gain.interval.estimate:+.3f}"
    if math.isfinite(low):
        clear = "which excludes no difference" if low * high > 0 else "which includes no difference"
        return f"{text} (95 % interval {low:+.3f} to {high:+.3f}, {clear}; {gain.seeds} seeds)."
    return f"{text} ({gain.seeds} seeds, too few for an interval)."


def training(results: Sequence[tuple[str, RunResult]], metric: str, headline: str) -> str:
    """Say how training went, by the metric that is shown.

    Parameters
    ----------
    results : sequence of (str, RunResult)
        Label and run.
    metric : str
        The metric.
    headline : str
        Name of the headline metric.

    Returns
    -------
    str
    """
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
        f"Training {metric} (dotted) ends between {min(trained):.3g} and {max(trained):.3g} "
        f"over {total} runs"
    )
    return text + (
        f"; test (solid) between {min(tested):.3g} and {max(tested):.3g}." if tested else "."
    )


def tables(summary: Summary) -> str:
    """Say for which σ the table shows the true relation.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    str
    """
    curve = summary.sigma_curve()
    measured: list[tuple[str, float, bool]] = []
    labels = [label for _, label in curve] or [
        label for label in summary.labels if np.isfinite(summary.values(label, "table/moved")).any()
    ]
    for label in labels:
        value = summary.interval(label, "table/relation").estimate
        if math.isfinite(value):
            measured.append((label, value, shows_truth(summary, label)))
    if not measured:
        return "No learned table is among these runs; fixed tables are shown as they are."
    names = {label: f"σ = {sigma:g}" for sigma, label in curve}
    clear = [names.get(label, label) for label, _, shows in measured if shows]
    noise = [names.get(label, label) for label, _, shows in measured if not shows]
    top = max(measured, key=lambda one: one[1])
    what = summary.reference if summary.truth.from_data else "the true arrangement"
    if not clear:
        text = f"No learned table shows {what}"
    elif not noise:
        text = f"Every learned table shows {what} (rows alike where tokens belong together)"
    else:
        text = f"The table shows {what} at {_list(clear)} and stays like noise at {_list(noise)}"
    text += f"; the correlation with it is highest, {top[1]:.2f}, at {names.get(top[0], top[0])}."
    kept = [len(run.snapshots) for run in summary.runs if run.table is not None]
    if not any(kept):
        text += " These runs kept no tables from during training, so there is no slider over steps."
    return text


def claim(summary: Summary) -> str:
    """Say in a heading what the two tables that are shown first have become.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    str
        Without a full stop.
    """
    names = {label: f"σ = {sigma:g}" for sigma, label in summary.sigma_curve()}
    labels = [run.label for run in contrast(summary)]
    if not labels:
        return "No table is learned here"
    said, truth = [names.get(label, label) for label in labels], summary.truth
    clear = [shows_truth(summary, label) for label in labels]
    if not truth.relation.any():
        return f"What the table has learned at {_list(said)}"
    kind = arrangement(summary).kind
    groups = f"the {plural(truth.partition)}" if truth.partition else ""
    becomes, no = {
        "order": ("finds the order", "no order"),
        "groups": (f"finds {groups}", f"none of {groups}"),
    }.get(kind, ("becomes a map", "no map"))
    if all(clear):
        return f"The learned table {becomes} at {_list(said)}"
    if not any(clear):
        return f"The learned table shows {no} at {_list(said)}"
    at = clear.index(True)
    rest = [name for i, name in enumerate(said) if i != at]
    stays = "stays noise" if rest[0] in names.values() else f"shows {no}"
    return f"At {said[at]} the learned table {becomes}, at {rest[0]} it {stays}"


def reading(summary: Summary, view: str) -> str:
    """Say how to read one of the ways in which a table is shown.

    Parameters
    ----------
    summary : Summary
        A sweep.
    view : str
        `tiles`, `matrix`, `points` or `space`.

    Returns
    -------
    str
    """
    truth, how = summary.truth, arrangement(summary)
    planar = truth.spatial and summary.task.places.coords.shape[1] == 2
    order = {
        "groups": f", {plural(truth.partition or '')} one after the other",
        "order": ", in their true order",
        "grid": ", row by row of the grid",
    }.get(how.kind, "")
    turned = ", turned to lie as the positions do" if planar else ""
    joined = " Lines join positions that belong together." if truth.relation.any() else ""
    said = {
        "tiles": "Each small map belongs to one position (the square without colour) and shows how "
        "alike the table’s row for it is to the rows of all others: orange alike, blue unlike.",
        "matrix": f"How alike the table’s rows are, each position with each other{order}: orange "
        "alike, blue unlike.",
        "points": f"Each row of the table as a point, in the plane in which the rows vary most"
        f"{turned}.{joined}",
        "space": f"Each row of the table as a point, in the three directions in which the rows "
        f"vary most; drag to turn.{joined}",
    }[view]
    if truth.relation.any():
        who = summary.reference if truth.from_data else "the ideal"
        said += f" In {who}, two positions belong together if they {truth.together}."
    return said


def compared(summary: Summary) -> str:
    """Say what is compared, to a reader who has not heard of positional encodings.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    str
    """
    curve, labels = summary.sigma_curve(), summary.labels
    said = "A transformer does not see where its inputs are: it has to be told, or to learn it. "
    if not curve:
        shown = _list(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} ways to do so"
        return said + f"{'Compared' if len(labels) > 1 else 'Shown'} here: {shown}."
    said += (
        f"Here it learns a table with a row of numbers for each of {summary.n_places} positions. "
    )
    sigmas = [f"{sigma:g}" for sigma, _ in curve]
    if len(curve) == 1:
        said += f"The numbers start at random with a spread of σ = {sigmas[0]}."
    else:
        values = f"{sigmas[0]} to {sigmas[-1]}" if len(sigmas) > MOST_NAMED else _list(sigmas)
        said += (
            f"Compared is how large these numbers are before training, when they are random: their "
            f"spread σ is {values.replace(' and ', ' or ')}."
        )
    rest = [label for label in labels if label not in {label for _, label in curve}]
    if rest:
        shown = _list(rest) if len(rest) <= MOST_NAMED else f"{len(rest)} other ways to tell places"
        said += f" Beside it: {shown}."
    return said


def plural(noun: str) -> str:
    """Write a noun in its plural, such as module or community.

    Parameters
    ----------
    noun : str
        The noun.

    Returns
    -------
    str
    """
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def attention(summary: Summary) -> str:
    """Say which configuration's attention follows the true relation most, and least.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    str
    """
    relation = {
        label: summary.interval(label, "attention/relation").estimate for label in summary.labels
    }
    relation = {label: value for label, value in relation.items() if math.isfinite(value)}
    if not relation:
        return "No attention maps could be read."
    most, least = max(relation, key=lambda k: relation[k]), min(relation, key=lambda k: relation[k])
    text = (
        f"Attention follows {summary.reference} most in {most} (correlation {relation[most]:.2f}, "
        f"mean over layers)"
    )
    if most != least:
        text += f" and least in {least} ({relation[least]:.2f})"
    if relation[most] < 0.1:
        text = (
            f"Attention follows {summary.reference} nowhere: the highest correlation is "
            f"{relation[most]:.2f}, in {most}"
        )
    return text + "."


def agreement(summary: Summary, measure: str, words: str) -> str:
    """Say whether a measure and the headline rise and fall together over σ.

    Parameters
    ----------
    summary : Summary
        A sweep.
    measure : str
        Name of the measure.
    words : str
        The measure in words.

    Returns
    -------
    str
    """
    labels = [label for _, label in summary.sigma_curve()]
    if len(labels) < 3:
        return (
            f"The {words}, against test {summary.task.headline}. It takes three σ to say "
            f"whether they go together."
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
        f"Over σ, the {words} and test {summary.task.headline} {verdict}: rank correlation "
        f"{interval.estimate:+.2f}"
    )
    if math.isfinite(interval.low):
        text += f" (95 % interval over seeds {interval.low:+.2f} to {interval.high:+.2f})"
    return text + "."


def conditions(rows: Sequence[dict[str, Any]], groups: Sequence[str], up: bool) -> str:
    """Say which condition is hardest, and for how many configurations.

    Parameters
    ----------
    rows : sequence of dict[str, Any]
        Scores by condition, one row per configuration.
    groups : sequence of str
        The conditions.
    up : bool
        Whether larger scores are better.

    Returns
    -------
    str
    """
    hardest: dict[str, int] = {}
    for row in rows:
        known = {g: row[g] for g in groups if row.get(g) is not None and math.isfinite(row[g])}
        if known:
            worst = (min if up else max)(known, key=lambda g: known[g])
            hardest[worst] = hardest.get(worst, 0) + 1
    if not hardest:
        return "No scores by condition."
    top = max(hardest, key=lambda g: hardest[g])
    total = sum(hardest.values())
    if hardest[top] == total:
        return (
            (f"{top} is the hardest condition for every one of the {total} configurations.")
            if total > 1
            else (f"{top} is the hardest condition.")
        )
    return f"{top} is the hardest condition for {hardest[top]} of {total} configurations."


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
