"""What a small sweep of Latin squares shows, in three sentences for someone who never heard of
it."""

from __future__ import annotations

import numpy as np

from placecell.study.arrangement import shows_truth
from placecell.study.records import Summary


def percent(share: float) -> str:
    """Return a share as people write it.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    str
    """
    return f"{share:.1%}".replace("%", " %")


def what_was_seen(summary: Summary) -> list[str]:
    """Say what the demo's runs show, in plain words.

    Parameters
    ----------
    summary : Summary
        The runs, measured; at least two σ.

    Returns
    -------
    list of str
        Three sentences that follow from the numbers, whichever way they came out: who solves new
        puzzles, which table became a map, and whether all learned what they were taught.
    """
    curve = summary.sigma_curve()
    if len(curve) < 2:
        return ["Too few runs have ended to compare a small σ with a large one."]
    return [
        _who_generalises(summary, curve[0], curve[-1]),
        _who_has_a_map(summary, curve[0], curve[-1]),
        _who_learned(summary),
    ]


def _who_generalises(summary: Summary, small: tuple[float, str], large: tuple[float, str]) -> str:
    scores = summary.paired([small[1], large[1]], f"test/{summary.task.headline}")
    scores = scores[:, np.isfinite(scores).all(axis=0)]
    if not scores.shape[1]:
        return "No seed has a score at both σ, so nothing can be compared."
    means, seeds = scores.mean(axis=1), scores.shape[1]
    better = int((scores[0] > scores[1]).sum())
    text = (
        f"Positions that began small (σ = {small[0]:g}) solved {percent(means[0])} of new puzzles "
        f"and those that began large (σ = {large[0]:g}) {percent(means[1])}: "
    )
    each = "with its one seed" if seeds == 1 else f"with each of {seeds} seeds"
    if better == seeds:
        return f"{text}small did better {each}."
    if better == 0:
        return f"{text}small did no better {each}, which is not what the paper found."
    return f"{text}small did better with {better} of {seeds} seeds only, so this settles nothing."


def _who_has_a_map(summary: Summary, small: tuple[float, str], large: tuple[float, str]) -> str:
    labels = small[1], large[1]
    shows = [shows_truth(summary, label) for label in labels]
    relation = [summary.interval(label, "table/relation").estimate for label in labels]
    began = [f"the table that began {word}" for word in ("small", "large")]
    both = f"(correlation {relation[0]:.2f} for small, {relation[1]:.2f} for large)"
    alike = "cells of one row or column of the square have numbers that are alike"
    if all(shows):
        return f"Both tables became a map of the square, in which {alike} {both}."
    if not any(shows):
        return f"Neither table became a map of the square, in which {alike} {both}."
    yes = 0 if shows[0] else 1
    return (
        f"{began[yes].capitalize()} became a map of the square: {alike}; "
        f"{began[1 - yes]} did not {both}."
    )


def _who_learned(summary: Summary) -> str:
    task, total = summary.task, len(summary.runs)
    learned = sum(
        bool(task.learned(run.result.final("train", task.headline))) for run in summary.runs
    )
    if learned == total:
        text = (
            f"All {total} models learned their own training puzzles to the last one, so the "
            "difference lies in what they make of new ones"
        )
    else:
        text = (
            f"{total - learned} of {total} models had not learned all their training puzzles when "
            "training ended, so compare with care"
        )
    given = [run for run in summary.runs if run.result.config.encoding.name == "sinusoidal"]
    scores = [run.result.final("test", task.headline) for run in given]
    if scores:
        text += (
            f"; models that were told where each cell lies solved {percent(float(np.mean(scores)))}"
        )
    return f"{text}."
