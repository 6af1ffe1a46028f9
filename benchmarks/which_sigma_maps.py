"""Which σ? When a table can be read: from the runs of `which_sigma.py`, tables as Markdown.

python benchmarks/which_sigma_maps.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from which_sigma import COMMON, NAMES, TABLE, settings_of
from which_sigma_curves import Curve, load
from which_sigma_scores import Score

Array = NDArray[np.float64]
WORLDS = ("latin_square", "text", "graph", "nmar")  # whose tables become maps
ENOUGH = 0.75  # of the best mean correlation of its world: the table shows the map
EDGES = [0, 0.07, 0.15, 0.3, 0.6, 1.2, math.inf]
MOVEMENTS = np.geomspace(0.02, 10, 271)


def line(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def readable(curves: list[Curve]) -> list[Score]:
    """Return the runs of learned tables that can be compared with the truth."""
    return [
        score
        for curve in curves
        for runs in curve.runs.values()
        for score in runs
        if math.isfinite(score.relation)
    ]


def at_share(curve: Curve, rho: float, value: Callable[[Score], float]) -> float:
    """Return the mean of something over the runs of a share."""
    return float(np.mean([value(score) for score in curve.runs[curve.sigma(rho)]]))


def shown(curve: Curve) -> Array:
    """Return the mean correlation with the truth at each common share."""
    return np.array([at_share(curve, rho, lambda score: score.relation) for rho in COMMON])


def show_movement(curves: list[Curve]) -> None:
    """Print the correlation of tables with the true relation, by movement and by ρ."""
    print("\nmedian correlation with the truth, least to most (runs), by movement of the table")
    print(line(["world", *(f"{a:g} to {b:g}" for a, b in pairwise(EDGES))]))
    for world in dict.fromkeys(c.setting.world for c in curves):
        scores = readable([c for c in curves if c.setting.world == world])
        cells = []
        for a, b in pairwise(EDGES):
            values = np.array([s.relation for s in scores if a <= s.moved < b])
            spread = f", {values.min():.2f} to {values.max():.2f}" if len(values) else ""
            middle = f"{np.median(values):.2f}" if len(values) else "–"
            cells.append(f"{middle}{spread} ({len(values)})")
        print(line([NAMES[world], *cells]))
    print("\nmean correlation with the truth (mean movement), by ρ")
    print(line(["setting", *(f"ρ {rho:g}" for rho in COMMON)]))
    for c in curves:
        moved = [at_share(c, rho, lambda score: score.moved) for rho in COMMON]
        cells = [f"{r:.2f} ({m:.2g})" for r, m in zip(shown(c), moved, strict=True)]
        print(line([c.setting.title, *cells]))


def balanced(moved: Array, shows: NDArray[np.bool_], above: float) -> float:
    """Return the mean of the shares of readable and of other tables that a movement tells right."""
    return float(((moved[shows] >= above).mean() + (moved[~shows] < above).mean()) / 2)


def show_threshold(curves: list[Curve]) -> None:
    """Print, for each world, the movement that the other worlds choose, and how it does."""
    runs = {}
    for world in WORLDS:
        own = [c for c in curves if c.setting.world == world]
        best = max(float(shown(c).max()) for c in own)
        scores = readable(own)
        moved = np.array([score.moved for score in scores])
        shows = np.array([score.relation >= ENOUGH * best for score in scores])
        runs[world] = moved, shows, best
    print(f"\na table shows the map: {ENOUGH:g} of its world's best mean correlation")
    print(line(["left out", "best", "movement chosen", "balanced accuracy", "tables that show it"]))
    for world, (moved, shows, best) in runs.items():
        others = [(m, s) for name, (m, s, _) in runs.items() if name != world]
        mean = np.array([np.mean([balanced(m, s, a) for m, s in others]) for a in MOVEMENTS])
        above = float(np.median(MOVEMENTS[mean == mean.max()]))
        cells = [f"{best:.2f}", f"{above:.2g}", f"{balanced(moved, shows, above):.2f}"]
        print(line([NAMES[world], *cells, f"{shows.sum()} of {len(shows)}"]))


def show_share(curves: list[Curve]) -> None:
    """Print the share that the other worlds choose for a map, and what is left of the best."""
    ratios = {id(c): shown(c) / shown(c).max() for c in curves}
    print("\nshare for a map, chosen on the other worlds; correlation over the best of the setting")
    print(line(["setting", "chosen", *(f"ρ {rho:g}" for rho in COMMON)]))
    kept = []
    for c in curves:
        others = [ratios[id(o)] for o in curves if o.setting.world != c.setting.world]
        place = int(np.mean(others, axis=0).argmax())
        kept.append(ratios[id(c)][place])
        cells = [f"{ratio:.2f}" for ratio in ratios[id(c)]]
        print(line([c.setting.title, f"{COMMON[place]:g}", *cells]))
    enough = sum(ratio >= 0.9 for ratio in kept)
    print(f"0.9 or more of the best in {enough} of {len(kept)}; least {min(kept):.2f}")


def show_rates(base: list[Curve], changed: list[Curve]) -> None:
    """Print the table's own learning rate: how far it moved, what it shows, and the score."""
    print("\nthe table's own learning rate: correlation (movement), test score")
    print(line(["world", "ρ", "rate / 10", "as the rest", "rate × 10"]))
    for world in dict.fromkeys(c.setting.world for c in changed):
        slow, fast = (c for c in changed if c.setting.world == world)
        own = next(c for c in base if c.setting.world == world)
        for rho in TABLE[0]["rho"]:
            cells = []
            for c in (slow, own, fast):
                relation = at_share(c, rho, lambda score: score.relation)
                moved = at_share(c, rho, lambda score: score.moved)
                cells.append(f"{relation:.2f} ({moved:.2g}), {c.mean(c.sigma(rho)):.4f}")
            print(line([NAMES[world], f"{rho:g}", *cells]))


def main() -> None:
    curves = [load(s) for part in ("base", "varied", "more") for s in settings_of(part)]
    whole = [c for c in curves if c.whole]
    show_movement(whole)
    maps = [c for c in whole if c.setting.world in WORLDS]
    if {c.setting.world for c in maps} == set(WORLDS):
        show_threshold(maps)
        show_share(maps)
    rates = [load(s) for s in settings_of("table")]
    if all(len(c.runs) == len(TABLE[0]["rho"]) for c in rates):
        show_rates([c for c in whole if c.setting.change == "base"], rates)


if __name__ == "__main__":
    main()
