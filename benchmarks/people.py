"""Runs of the Latin Square Task beside people, item by item: the table of docs/people.md.

    python benchmarks/people.py runs/which_sigma/latin_square --items taskData.mat \\
        --human human_item_accuracy.csv

Runs are grouped by encoding and σ. Confidence is the probability of the only possible answer;
people's accuracy is the share of them who were right.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from placecell.seeds import numpy_stream
from placecell.store import Store
from placecell.tasks.latin_square.generate import CONDITIONS
from placecell.tasks.latin_square.items import HUMAN_ACCURACY, Items, load_human, load_items
from placecell.tasks.latin_square.task import examples
from placecell.train import load_model

PEOPLE = 41
DRAWS = 2000
Array = NDArray[np.float64]


def correlation(one: Array, other: Array) -> float:
    """Return Spearman's rank correlation."""
    return float(spearmanr(one, other).statistic)


def reliability(human: Array) -> float:
    """Return the split-half reliability of people's ranks, for all of them (Spearman-Brown).

    Only shares are known, so answers are drawn from them as if people were exchangeable and items
    independent: a binomial approximation.
    """
    rng, half = numpy_stream(0, "people"), PEOPLE // 2
    halves = [
        correlation(rng.binomial(half, human), rng.binomial(PEOPLE - half, human))
        for _ in range(DRAWS)
    ]
    mean = float(np.mean(halves))
    return 2 * mean / (1 + mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--human", type=Path, required=True)
    given = parser.parse_args()
    items, human = load_items(given.items), load_human(given.human)
    inputs = examples(items.puzzles)
    answer = items.puzzles.answer.astype(int) - 1
    confidence: dict[tuple[str, float], list[Array]] = defaultdict(list)
    for result in Store(given.runs).run_set().results:
        if result.status != "done":
            continue
        config, task, model = load_model(result.folder)
        with torch.no_grad():
            outputs = model(inputs.inputs(task.positions)).outputs[:, 0].softmax(-1).double()
        sigma = config.encoding.sigma
        key = (config.encoding.name, float("nan") if sigma is None else sigma)
        confidence[key].append(outputs.numpy()[np.arange(len(answer)), answer])
    filled = (inputs.tokens > 0).sum(1).double().numpy()
    condition = np.array(HUMAN_ACCURACY)[items.published_condition]
    print(f"split-half reliability of {PEOPLE} people: {reliability(human):.2f}")
    print(f"filled cells: {correlation(filled, human):+.2f}")
    print(f"mean of the condition: {correlation(condition, human):+.2f}")
    means = [f"{human[rows].mean():.2f}" for rows in by_condition(items)]
    print(f"people by condition ({', '.join(CONDITIONS)}): {', '.join(means)}")
    for (encoding, sigma), seeds in sorted(confidence.items()):
        ranks = [correlation(one, human) for one in seeds]
        within = [
            np.mean([correlation(one[rows], human[rows]) for rows in by_condition(items)])
            for one in seeds
        ]
        by_group = [np.mean([one[rows].mean() for one in seeds]) for rows in by_condition(items)]
        print(
            f"{encoding} σ {sigma:g}: confidence {np.mean(seeds):.3f}; by condition "
            + ", ".join(f"{value:.2f}" for value in by_group)
            + f"; rank correlation {np.mean(ranks):.2f} ({min(ranks):.2f} to {max(ranks):.2f})"
            + f", within conditions {np.mean(within):.2f}; {len(seeds)} seeds"
        )


def by_condition(items: Items) -> list[NDArray[np.bool_]]:
    """Return the items of each condition."""
    return [items.published_condition == place for place in range(len(CONDITIONS))]


if __name__ == "__main__":
    main()
