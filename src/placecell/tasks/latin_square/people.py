"""A model beside people, on the items that people worked on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from placecell.errors import InputError
from placecell.tasks.base import ItemScores
from placecell.tasks.latin_square.generate import CONDITIONS
from placecell.tasks.latin_square.items import HUMAN_ACCURACY, HUMAN_OVERALL, N_ITEMS, Items


def compare(probability: NDArray[np.floating], items: Items, human: NDArray[np.float64] | None = None) -> ItemScores:
    """Scores of a model's probabilities (items, 4), by published condition, beside people's accuracies.

    `model` is scored against the one possible answer, `published` against the key in the file. People's
    accuracies are those of the 108 published items, so they are given beside those only.
    """
    answer = probability.argmax(-1) + 1
    right, published = answer == items.puzzles.answer, answer == items.published_answer
    known = len(items) == N_ITEMS
    groups = {}
    for index, name in [*enumerate(CONDITIONS), (-1, "all")]:
        rows = np.full(len(items), True) if name == "all" else items.published_condition == index
        if rows.any():
            people = (HUMAN_OVERALL if name == "all" else HUMAN_ACCURACY[index]) if known else float("nan")
            groups[name] = {
                "items": float(rows.sum()),
                "model": float(right[rows].mean()),
                "published": float(published[rows].mean()),
                "people": people,
            }
    notes: dict[str, Any] = {
        "rows_whose_published_answer_is_not_possible": items.disagree,
        "rows_answered_wrong": [int(row) + 1 for row in np.flatnonzero(~right)],
        "vectors_as_published": int((items.puzzles.vectors == items.published_vectors).sum()),
        "steps_as_published": int((items.puzzles.steps == items.published_steps).sum()),
    }
    if human is not None:
        if len(human) != len(items):
            raise InputError(f"people's accuracies are for {len(human)} items; the items file has {len(items)}.")
        sure = probability[np.arange(len(items)), items.puzzles.answer - 1]
        notes["rank_correlation_with_people"] = float(spearmanr(sure, human).statistic)
    return ItemScores(groups, notes)
