"""What is compared, what the learned tables have become, and how to read their pictures."""

from __future__ import annotations

import math

import numpy as np

from placecell.report.sentences.words import listed, plural, two
from placecell.study.arrangement import arrangement, contrast, shows_truth
from placecell.study.records import Summary

MOST_NAMED = 4  # configurations: of more only the number is said


def compared(summary: Summary) -> str:
    """Say what is compared, to a reader who has not heard of positional encodings."""
    curve, labels = summary.sigma_curve(), summary.labels
    said = "A transformer does not see where its inputs are: it has to be told, or to learn it. "
    if not curve:
        shown = listed(labels) if len(labels) <= MOST_NAMED else f"{len(labels)} ways to do so"
        return said + f"{'Compared' if len(labels) > 1 else 'Shown'} here: {shown}."
    said += (
        f"Here it learns a table with a row of numbers for each of {summary.n_places} positions. "
    )
    sigmas = [f"{sigma:g}" for sigma, _ in curve]
    if len(curve) == 1:
        said += f"The numbers start at random with a spread of σ = {sigmas[0]}."
    else:
        values = f"{sigmas[0]} to {sigmas[-1]}" if len(sigmas) > MOST_NAMED else listed(sigmas)
        said += (
            f"Compared is how large these numbers are before training, when they are random: their "
            f"spread σ is {values.replace(' and ', ' or ')}."
        )
    rest = [label for label in labels if label not in {label for _, label in curve}]
    if rest:
        shown = (
            listed(rest) if len(rest) <= MOST_NAMED else f"{len(rest)} other ways to tell places"
        )
        said += f" Beside it: {shown}."
    return said


def claim(summary: Summary) -> str:
    """Say in a heading what the two tables that are shown first have become."""
    names = {label: f"σ = {sigma:g}" for sigma, label in summary.sigma_curve()}
    labels = [run.label for run in contrast(summary)]
    if not labels:
        return "No table is learned here"
    said, truth = [names.get(label, label) for label in labels], summary.truth
    clear = [shows_truth(summary, label) for label in labels]
    if not truth.relation.any():
        return f"What the table has learned at {listed(said)}"
    kind = arrangement(summary).kind
    groups = f"the {plural(truth.partition)}" if truth.partition else ""
    becomes, no = {
        "order": ("finds the order", "no order"),
        "groups": (f"finds {groups}", f"none of {groups}"),
    }.get(kind, ("becomes a map", "no map"))
    if all(clear):
        return f"The learned table {becomes} at {listed(said)}"
    if not any(clear):
        return f"The learned table shows {no} at {listed(said)}"
    at = clear.index(True)
    rest = [name for i, name in enumerate(said) if i != at]
    stays = "stays noise" if rest[0] in names.values() else f"shows {no}"
    return f"At {said[at]} the learned table {becomes}, at {rest[0]} it {stays}"


def tables(summary: Summary) -> str:
    """Say for which σ the table shows the true relation."""
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
        text = f"The table shows {what} at {listed(clear)} and stays like noise at {listed(noise)}"
    seeds = " (mean of the seeds)" if len({r.result.config.seed for r in summary.runs}) > 1 else ""
    text += f"; the correlation with it{seeds} is highest, {two(top[1])}, at "
    text += f"{names.get(top[0], top[0])}."
    kept = [len(run.snapshots) for run in summary.runs if run.table is not None]
    if not any(kept):
        text += " These runs kept no tables from during training, so there is no slider over steps."
    return text


def reading(summary: Summary, view: str) -> str:
    """Say how to read one of the ways in which a table is shown."""
    truth, how = summary.truth, arrangement(summary)
    planar = truth.spatial and summary.task.places.coords.shape[1] == 2
    order = {
        "groups": f", {plural(truth.partition or '')} one after the other",
        "order": ", in their true order",
        "grid": ", row by row of the grid",
    }.get(how.kind, ", so that those that belong together are near" if truth.relation.any() else "")
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
        who = summary.reference if truth.from_data else "the ideal (the true relation)"
        said += f" In {who}, two positions belong together if they {truth.together}."
    return said


def attention(summary: Summary) -> str:
    """Say which configuration's attention follows the true relation most, and least."""
    relation = {
        label: summary.interval(label, "attention/relation").estimate for label in summary.labels
    }
    relation = {label: value for label, value in relation.items() if math.isfinite(value)}
    if not relation:
        return "No attention maps could be read."
    most, least = max(relation, key=lambda k: relation[k]), min(relation, key=lambda k: relation[k])
    text = (
        f"Attention follows {summary.reference} most in {most} (correlation {two(relation[most])}, "
        f"mean over layers)"
    )
    if most != least:
        text += f" and least in {least} ({two(relation[least])})"
    if relation[most] < 0.1:
        text = (
            f"Attention follows {summary.reference} nowhere: the highest correlation is "
            f"{two(relation[most])}, in {most}"
        )
    return text + "."
