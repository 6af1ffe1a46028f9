"""Models of the Latin Square Task beside people, item by item: table and picture of docs/people.md.

    python benchmarks/which_sigma.py base latin_square --anew
    python benchmarks/which_sigma.py people --anew
    python benchmarks/people.py --items taskData.mat --human human_item_accuracy.csv \\
        --picture docs/pictures/people.png

Confidence is the probability of the only possible answer; people's accuracy is the share of them
who were right. Items whose published answer is not the possible one are left out: people who were
right count as wrong there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from placecell.seeds import numpy_stream
from placecell.store.runs import finished, load_result
from placecell.tasks.latin_square.generate import CONDITIONS
from placecell.tasks.latin_square.items import Items, load_human, load_items
from placecell.tasks.latin_square.task import examples
from placecell.train import load_model
from which_sigma import settings_of

PEOPLE = 41
DRAWS = 2000
SMALL, LARGE = (0.02, 0.15), (0.9, 3.0)  # σ from, to: what is called small and large
DRAWN = {"learnable σ=0.083": "C0", "learnable σ=1": "C3", "sinusoidal 2D": "C2"}
Array = NDArray[np.float64]


@dataclass
class Group:
    """The models of one encoding and σ; in each list one entry a seed."""

    name: str
    sigma: float | None
    confidence: list[Array] = field(default_factory=list)  # in the answer, by item
    accuracy: list[float] = field(default_factory=list)  # on new puzzles
    trained: list[float] = field(default_factory=list)  # on training puzzles


def correlation(one: Array, other: Array) -> float:
    """Return Spearman's rank correlation."""
    return float(spearmanr(one, other).statistic)


def within_types(one: Array, other: Array, items: Items) -> float:
    """Return the mean rank correlation over the items of each type."""
    return float(np.mean([correlation(one[rows], other[rows]) for rows in by_type(items)]))


def reliability(human: Array, compare: Callable[[Array, Array], float]) -> float:
    """Return the split-half reliability of people's ranks, for all of them (Spearman-Brown).

    Only shares are known, so answers are drawn from them as if people were exchangeable and items
    independent: a binomial approximation.
    """
    rng, half = numpy_stream(0, "people"), PEOPLE // 2
    halves = [
        compare(rng.binomial(half, human), rng.binomial(PEOPLE - half, human)) for _ in range(DRAWS)
    ]
    mean = float(np.mean(halves))
    return 2 * mean / (1 + mean)


def by_type(items: Items) -> list[NDArray[np.bool_]]:
    """Return the items of each type."""
    return [items.published_condition == place for place in range(len(CONDITIONS))]


def mean_of_type(human: Array, items: Items) -> Array:
    """Return for each item the mean accuracy of people over its type."""
    mean = np.empty(len(items))
    for rows in by_type(items):
        mean[rows] = human[rows].mean()
    return mean


def groups(items: Items) -> list[Group]:
    """Return the runs that are done, by encoding and σ."""
    inputs, answer = examples(items.puzzles), items.puzzles.answer.astype(int) - 1
    found: dict[str, Group] = {}
    settings = [s for s in settings_of("base") if s.world == "latin_square"]
    for setting in settings + settings_of("people"):
        for config in setting.configs():
            encoding, folder = config.encoding, setting.folder / config.name
            if not finished(folder):
                continue
            learned = encoding.name == "learnable"
            name = f"learnable σ={encoding.sigma:.2g}" if learned else encoding.name
            name += "" if encoding.axes is None else f" {encoding.axes}D"
            group = found.setdefault(name, Group(name, encoding.sigma if learned else None))
            _, task, model = load_model(folder)
            result = load_result(folder)
            with torch.no_grad():
                given = inputs.inputs(task.positions)
                outputs = model(given).outputs[:, 0].softmax(-1).double()
            group.confidence.append(outputs.numpy()[np.arange(len(answer)), answer])
            group.accuracy.append(result.final("test", "accuracy"))
            group.trained.append(result.final("train", "accuracy"))
    return sorted(found.values(), key=lambda g: (g.sigma is None, g.sigma or 0, g.name))


def show(items: Items, human: Array, found: list[Group]) -> None:
    """Print the table, what is to be compared with it, and small σ against large."""
    filled = (examples(items.puzzles).tokens > 0).sum(1).double().numpy()
    kind = items.published_vectors.astype(float) * 2 + items.published_steps
    mean = mean_of_type(human, items)
    whole, inside = reliability(human, correlation), reliability(human, inside_of(items))
    print(f"split-half reliability: {whole:.2f}, within types {inside:.2f}")
    print(f"filled cells: {correlation(filled, human):+.2f}", end="")
    print(f", within types {within_types(filled, human, items):+.2f}")
    print(f"type, ranked by vectors and then by steps: {correlation(-kind, human):+.2f}")
    print(f"people's mean of the type: {correlation(mean, human):+.2f}")
    print(f"people by type ({', '.join(CONDITIONS)}): {cells(human, items)}")
    print("| | by type | rank correlation | within types | new puzzles | training puzzles |")
    for g in found:
        ranks = [correlation(one, human) for one in g.confidence]
        inner = np.mean([within_types(one, human, items) for one in g.confidence])
        print(
            f"| {g.name} | {cells(np.mean(g.confidence, axis=0), items)} "
            f"| {np.mean(ranks):.2f} ({min(ranks):.2f} to {max(ranks):.2f}) | {inner:.2f} "
            f"| {np.mean(g.accuracy):.3f} | {np.mean(g.trained):.3f} | {len(ranks)} seeds"
        )
    small, large = (confidence(found, bounds) for bounds in (SMALL, LARGE))
    for title, compare in (("all items", correlation), ("within types", inside_of(items))):
        gap = [
            np.mean([compare(c[seed], human) for c in small])
            - np.mean([compare(c[seed], human) for c in large])
            for seed in range(len(small[0]))
        ]
        print(f"{title}: small σ minus large {np.mean(gap):+.3f}, by seed {np.round(gap, 3)}")
    rng, draws = numpy_stream(0, "people/items"), []
    for _ in range(DRAWS):
        drawn = rng.integers(len(human), size=len(human))
        draws.append(agreement(small, human, drawn) - agreement(large, human, drawn))
    print(f"  95 % over items: {np.round(np.quantile(draws, [0.025, 0.975]), 3)}")
    scores = [(np.mean(g.accuracy), ranks_of(g, human).mean()) for g in found]
    print(f"over encodings, with accuracy on new puzzles: {correlation(*np.array(scores).T):+.2f}")


def inside_of(items: Items) -> Callable[[Array, Array], float]:
    """Return the comparison of two sets of ranks within types."""
    return lambda one, other: within_types(one, other, items)


def ranks_of(group: Group, human: Array) -> Array:
    """Return the rank correlation of each seed with people."""
    return np.array([correlation(one, human) for one in group.confidence])


def confidence(found: list[Group], bounds: tuple[float, float]) -> list[Array]:
    """Return the confidence (seeds, items) of learned tables with σ within bounds."""
    low, high = bounds
    return [np.array(g.confidence) for g in found if g.sigma is not None and low <= g.sigma <= high]


def agreement(some: list[Array], human: Array, rows: NDArray[np.integer]) -> float:
    """Return the mean rank correlation of all models with people over some items."""
    ranks = rankdata(np.vstack(some)[:, rows], axis=1)
    return float(np.mean(np.corrcoef(ranks, rankdata(human[rows]))[-1, :-1]))


def cells(values: Array, items: Items) -> str:
    """Return the mean of each type, as cells of a table."""
    return " | ".join(f"{values[rows].mean():.2f}" for rows in by_type(items))


def draw(items: Items, human: Array, found: list[Group], path: Path) -> None:
    """Draw people and models by type, the agreement of every encoding, and one σ by item."""
    import matplotlib.pyplot as plt

    figure, (kinds, agree, one) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    shown = {g.name: g for g in found}
    kinds.plot([human[rows].mean() for rows in by_type(items)], "k-o", lw=3, label="people")
    for name in [n for n in DRAWN if n in shown]:
        mean = np.mean(shown[name].confidence, axis=0)
        kinds.plot([mean[rows].mean() for rows in by_type(items)], "-o", c=DRAWN[name], label=name)
    kinds.set_xticks(range(len(CONDITIONS)), CONDITIONS)
    kinds.set(ylim=(0.3, 1.03), xlabel="vectors and steps", ylabel="share right, or confidence")
    kinds.set_title("by type of item")
    kinds.legend(fontsize=8, loc="lower left")
    for place, group in enumerate(found):
        ranks, colour = ranks_of(group, human), "C0" if group.sigma is not None else "C2"
        agree.plot([place] * len(ranks), ranks, ".", color=colour, alpha=0.6)
        agree.plot([place - 0.3, place + 0.3], [ranks.mean()] * 2, color=colour, lw=2)
    ceiling = reliability(human, correlation)
    mean = correlation(mean_of_type(human, items), human)
    filled = correlation((examples(items.puzzles).tokens > 0).sum(1).double().numpy(), human)
    for level, label in ((ceiling, "people beside people"), (mean, "mean of the item's type")):
        agree.axhline(level, color="grey", ls="--", lw=1)
        agree.text(0, level + 0.01, label, fontsize=8, color="grey")
    agree.axhline(filled, color="grey", ls=":", lw=1)
    agree.text(0, filled + 0.01, "filled cells", fontsize=8, color="grey")
    names = [g.name.removeprefix("learnable ") for g in found]
    agree.set_xticks(range(len(found)), names, rotation=90, fontsize=8)
    agree.set(ylim=(-0.15, 1), ylabel=f"rank correlation with people, {len(items)} items")
    agree.set_title("every encoding; a dot a seed")
    best = shown[next(iter(DRAWN))]
    mean = np.mean(best.confidence, axis=0)
    for place, rows in enumerate(by_type(items)):
        one.plot(human[rows], mean[rows], "o", ms=4, color=f"C{place}", label=CONDITIONS[place])
    one.set(xlabel="people, share right", ylabel=f"confidence, {best.name}, mean of seeds")
    one.set_title("by item")
    one.legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--human", type=Path, required=True)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    items, human = load_items(given.items), load_human(given.human)
    good = items.published_answer == items.puzzles.answer
    print(f"left out: rows {items.disagree}, people {human[~good]}")
    puzzles = items.puzzles.take(good)
    published = (items.published_answer, items.published_vectors, items.published_steps)
    items, human = Items(puzzles, *(values[good] for values in published)), human[good]
    found = groups(items)
    show(items, human, found)
    if given.picture:
        draw(items, human, found, given.picture)


if __name__ == "__main__":
    main()
