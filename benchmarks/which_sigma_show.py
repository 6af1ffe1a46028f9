"""Which σ? Tables and the picture of docs/which_sigma.md, from the runs of `which_sigma.py`.

python benchmarks/which_sigma_show.py                     # tables, as Markdown
python benchmarks/which_sigma_show.py --picture FILE.png  # and the picture
python benchmarks/which_sigma_vit.py                      # the vision transformer
python benchmarks/which_sigma_show.py --keep              # and runs into which_sigma_scores.csv
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from which_sigma import COMMON, ROOT_WIDTH, SHARES, settings_of
from which_sigma_curves import Curve, load, log_odds, predictors, rule
from which_sigma_scores import keep

DEFAULTS = {"zeros": 0.0, "σ = 0.02": 0.02, "σ = d^−½": ROOT_WIDTH, "σ = 1": 1.0}


def map_measures(curve: Curve) -> list[tuple[float, float, float]]:
    """Return, of each run with a learned table, its σ, how far it moved in units of its initial
    norm, and how well its rows show the true relation."""
    scores = [score for runs in curve.runs.values() for score in runs]
    return [(s.sigma, s.moved, s.relation) for s in scores if math.isfinite(s.relation)]


def line(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def score(curve: Curve, value: float) -> str:
    """Return a score as its task writes it."""
    return (
        "–" if math.isnan(value) else f"{100 * value:.1f} %" if curve.sign > 0 else f"{value:.4f}"
    )


def show_curves(curves: list[Curve]) -> None:
    """Print means at every share, with how many had converged there, and the defaults."""
    print(line(["setting", *(f"ρ {r:g}" for r in SHARES), *DEFAULTS, "sinusoid"]))
    for c in curves:
        keys: list[float | str] = [*map(c.sigma, SHARES), *DEFAULTS.values(), "sinusoidal"]
        name = f"{c.setting.world}, {c.setting.change}"
        print(line([name, *(score(c, c.mean(k)) for k in keys)]))
        shares = [c.converged(k) for k in keys]
        print(line(["converged", *("–" if math.isnan(v) else f"{v:.2f}" for v in shares)]))


def show_rule(curves: list[Curve]) -> None:
    """Print the rule's regret in each setting beside those of the defaults, and their means."""
    target = rule(curves)
    choices: dict[str, Callable[[Curve], float]] = {
        "rule": lambda c: c.mean(c.sigma(target[c.setting.world]))
    }
    for name, sigma in DEFAULTS.items():
        choices[name] = lambda c, sigma=sigma: c.mean(sigma)
    choices["sinusoid"] = lambda c: c.mean("sinusoidal")
    for rho in COMMON:
        choices[f"ρ {rho:g}"] = lambda c, rho=rho: c.mean(c.sigma(rho))
    print("\ntargets chosen on the other worlds:", target)
    print(line(["setting", "best ρ", *choices]))
    for c in curves:
        best = COMMON[int(c.common().argmax())]
        cells = [f"{c.regret(choose(c)):.1f}" for choose in choices.values()]
        print(line([f"{c.setting.world}, {c.setting.change}", f"{best:g}", *cells]))
    base = [c for c in curves if c.setting.change == "base"]
    for title, some in (("all settings", curves), ("base settings", base)):
        relative = {n: np.array([c.relative(f(c)) for c in some]) for n, f in choices.items()}
        means = [f"{v.mean():.3f}" for v in relative.values()]
        print(line([f"mean relative regret, {title}", "", *means]))
        within = {
            n: np.mean([c.regret(f(c)) <= c.allowance for c in some]) for n, f in choices.items()
        }
        print(line([f"within the allowance, {title}", "", *(f"{v:.2f}" for v in within.values())]))
        for name in [n for n, v in relative.items() if n != "rule" and np.isfinite(v).all()]:
            gap = relative[name] - relative["rule"]
            interval = analysis.bootstrap_interval(gap, numpy_stream(0, f"which_sigma/{name}"))
            print(
                f"  {name} minus rule, {title}: {gap.mean():.3f} "
                f"[{interval.low:.3f}, {interval.high:.3f}]"
            )
    best_sigma = np.array([c.sigma(COMMON[int(c.common().argmax())]) for c in curves])
    odds = np.array([s**2 / c.square for s, c in zip(best_sigma, curves, strict=True)])
    print(
        f"\nspread of the best: log σ² {np.log(best_sigma**2).std():.2f}, "
        f"log(σ² / tokens²) {np.log(odds).std():.2f}"
    )


def draw(curves: list[Curve], path: Path) -> None:
    """Draw relative regret against ρ: a line a setting, the mean, the rule's range, defaults."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    worlds = list(dict.fromkeys(c.setting.world for c in curves))
    x = [log_odds(r) for r in COMMON]
    for c in curves:
        colour = f"C{worlds.index(c.setting.world)}"
        label = c.setting.world if c.setting.change == "base" else None
        y = [c.relative(c.mean(c.sigma(r))) for r in COMMON]
        axes.plot(
            x, y, color=colour, lw=2 if label else 0.8, alpha=0.9 if label else 0.6, label=label
        )
    mean = np.mean([[c.relative(c.mean(c.sigma(r))) for r in COMMON] for c in curves], axis=0)
    axes.plot(x, mean, color="black", lw=3.5, label="mean of all settings")
    targets = set(rule(curves).values())
    low, high = log_odds(min(targets)), log_odds(max(targets))
    axes.axvspan(low - 0.35, high + 0.35, color="gold", alpha=0.35, lw=0)
    axes.text((low + high) / 2, 1.04, "chosen", ha="center", fontsize=9)
    for name, sigma, marker in (("σ = 0.02", 0.02, "v"), ("σ = 1", 1.0, "^")):
        for c in curves:
            y, where = c.relative(c.mean(sigma)), log_odds(c.rho(sigma))
            axes.plot(min(max(where, -8), 8), y, marker, color=f"C{worlds.index(c.setting.world)}")
        axes.plot([], [], marker, color="grey", label=f"{name}, wherever its ρ is")
    ticks = [0.001, 0.005, 0.02, 0.1, 0.2, 0.4, 0.8, 0.95, 0.99, 0.999]
    axes.set_xticks([log_odds(t) for t in ticks], [f"{t:g}" for t in ticks])
    axes.set_ylim(-0.08, 1.6)
    axes.set_xlabel("ρ, the share of positions in the input before training")
    axes.set_ylabel("lost against the best ρ\n(1: as the worst of six ρ)")
    axes.legend(fontsize=8, ncols=2, loc="upper center")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    curves = [load(s) for part in ("base", "varied", "more") for s in settings_of(part)]
    if given.keep:
        others = [load(s) for part in ("vit", "people") for s in settings_of(part)]
        every = curves + others
        keep([score for c in every for runs in c.runs.values() for score in runs])
    whole = [c for c in curves if c.whole]
    show_curves(whole)
    if len({c.setting.world for c in whole}) < 2:
        return  # a rule is chosen on other worlds
    show_rule(whole)
    print("\nwhat is aimed at: mean relative regret, share of settings within the allowance")
    for name, (regret, within) in predictors(whole).items():
        print(line([name, f"{regret:.3f}", f"{within:.2f}"]))
    show_maps(whole)
    if given.picture:
        draw(whole, given.picture)


def show_maps(curves: list[Curve]) -> None:
    """Print the correlation of tables with the true relation, by movement and by ρ."""
    edges = [0, 0.07, 0.15, 0.3, 0.6, 1.2, math.inf]
    print("\nmedian correlation with the truth, least to most (runs), by movement of the table")
    print(line(["world", *(f"{a:g} to {b:g}" for a, b in pairwise(edges))]))
    of_base = {}
    for world in dict.fromkeys(c.setting.world for c in curves):
        found = np.empty((0, 3))
        for c in (c for c in curves if c.setting.world == world):
            measured = np.array(map_measures(c))
            found = np.vstack([found, measured])
            if c.setting.change == "base":
                of_base[world] = [measured[measured[:, 0] == c.sigma(rho)] for rho in COMMON]
        cells = []
        for a, b in pairwise(edges):
            values = found[(found[:, 1] >= a) & (found[:, 1] < b), 2]
            spread = f", {values.min():.2f} to {values.max():.2f}" if len(values) else ""
            middle = f"{np.median(values):.2f}" if len(values) else "–"
            cells.append(f"{middle}{spread} ({len(values)})")
        print(line([world, *cells]))
    print("\nbase settings, mean correlation with the truth (mean movement), by ρ")
    print(line(["world", *(f"ρ {rho:g}" for rho in COMMON)]))
    for world, by_rho in of_base.items():
        cells = [f"{one[:, 2].mean():.2f} ({one[:, 1].mean():.2g})" for one in by_rho]
        print(line([world, *cells]))


if __name__ == "__main__":
    main()
