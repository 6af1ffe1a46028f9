"""Compare a model with people, on the items used with people."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.tasks.latin_square.generate import CONDITIONS
from placecell.tasks.latin_square.items import HUMAN_ACCURACY, HUMAN_OVERALL, N_ITEMS, Items
from placecell.tasks.optional import ItemScores


def compare(
    probability: NDArray[np.floating], items: Items, human: NDArray[np.float64] | None = None
) -> ItemScores:
    """Score a model on the items used with people, and compare it with people's accuracies.

    Parameters
    ----------
    probability : array of shape (items, 4)
        The model's probability of each symbol.
    items : Items
        The items.
    human : array of shape (items,), optional
        People's accuracy on each item, for a rank correlation with the model.

    Returns
    -------
    ItemScores
        Groups are the published conditions and "all". Of each group, `model` is the accuracy
        against the only possible answer, `published` the accuracy against the answer in the file,
        and `people` the published accuracy of people, which is NaN unless the items are the 108
        published ones.
    """
    answer = probability.argmax(-1) + 1
    correct, published = answer == items.puzzles.answer, answer == items.published_answer
    are_published = len(items) == N_ITEMS
    groups = {}
    for index, name in [*enumerate(CONDITIONS), (-1, "all")]:
        rows = np.full(len(items), True) if name == "all" else items.published_condition == index
        if rows.any():
            people = HUMAN_OVERALL if name == "all" else HUMAN_ACCURACY[index]
            groups[name] = {
                "items": float(rows.sum()),
                "model": float(correct[rows].mean()),
                "published": float(published[rows].mean()),
                "people": people if are_published else float("nan"),
            }
    notes: dict[str, Any] = {
        "rows_whose_published_answer_is_not_possible": items.disagree,
        "rows_answered_wrong": [int(row) + 1 for row in np.flatnonzero(~correct)],
        "vectors_as_published": int((items.puzzles.vectors == items.published_vectors).sum()),
        "steps_as_published": int((items.puzzles.steps == items.published_steps).sum()),
    }
    if human is not None:
        if len(human) != len(items):
            raise InputError(
                f"people's accuracies are for {len(human)} items; the items file has {len(items)}."
            )
        of_answer = probability[np.arange(len(items)), items.puzzles.answer - 1]
        notes["rank_correlation_with_people"] = float(
            scipy.stats.spearmanr(of_answer, human).statistic
        )
    return ItemScores(groups, notes)
