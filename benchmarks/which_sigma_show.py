"""Which σ? Tables and the picture of docs/which_sigma.md, from the runs of `which_sigma.py`.

python benchmarks/which_sigma_show.py                     # tables, as Markdown
python benchmarks/which_sigma_show.py --picture FILE.png  # and the picture
python benchmarks/which_sigma_maps.py                     # when a table can be read
python benchmarks/which_sigma_vit.py                      # the vision transformer
python benchmarks/which_sigma_show.py --keep              # and runs into which_sigma_scores.csv
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from which_sigma import COMMON, LONG, NAMES, ROOT_WIDTH, SHARES, settings_of
from which_sigma_curves import Curve, load, log_odds, predictors, rule
from which_sigma_scores import keep

DEFAULTS = {"zeros": 0.0, "σ = 0.02": 0.02, "σ = d^−½": ROOT_WIDTH, "σ = 1": 1.0}


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
        name = c.setting.title
        print(line([name, *(score(c, c.mean(k)) for k in keys)]))
        shares = [c.converged(k) for k in keys]
        print(line(["converged", *("–" if math.isnan(v) else f"{v:.2f}" for v in shares)]))


def show_rule(curves: list[Curve]) -> None:
    """Print the rule's regret in each setting beside those of the defaults, and their means."""
    target = rule(curves)
    choices: dict[str, Callable[[Curve], float]] = {
        "rule": lambda c: c.mean(c.sigma(target[c.setting.world]))
    }
    choices["three runs"] = lambda c: c.tried()
    for name, sigma in DEFAULTS.items():
        choices[name] = lambda c, sigma=sigma: c.mean(sigma)
    choices["sinusoid"] = lambda c: c.mean("sinusoidal")
    for rho in COMMON:
        choices[f"ρ {rho:g}"] = lambda c, rho=rho: c.mean(c.sigma(rho))
    print("\ntargets chosen on the other worlds:", target)
    print(line(["setting", "best ρ", *choices]))
    for c in curves:
        best = COMMON[int(c.common().argmax())]
        regrets = [c.regret(choose(c)) for choose in choices.values()]
        cells = ["–" if math.isnan(regret) else f"{regret:.1f}" for regret in regrets]
        print(line([c.setting.title, f"{best:g}", *cells]))
    base = [c for c in curves if c.setting.change == "base"]
    for title, some in (("all settings", curves), ("base settings", base)):
        relative = {n: np.array([c.relative(f(c)) for c in some]) for n, f in choices.items()}
        means = ["–" if np.isnan(v).any() else f"{v.mean():.3f}" for v in relative.values()]
        print(line([f"mean relative regret, {title}", "", *means]))
        within = [
            f"{sum(c.within(c.regret(f(c))) for c in some)} of {len(some)}"
            if np.isfinite(relative[n]).all()
            else "–"
            for n, f in choices.items()
        ]
        print(line([f"within the allowance, {title}", "", *within]))
        for name in [n for n, v in relative.items() if n != "rule" and np.isfinite(v).all()]:
            gap = relative[name] - relative["rule"]
            interval = analysis.bootstrap_interval(gap, numpy_stream(0, f"which_sigma/{name}"))
            print(
                f"  {name} minus rule, {title}: {gap.mean():.3f} "
                f"[{interval.low:.3f}, {interval.high:.3f}]"
            )
    print("\nregret of the rule against what the other seeds call best")
    fair = {c.setting.title: c.regret_by_others(target[c.setting.world]) for c in curves}
    print("; ".join(f"{title} {regret:.1f}" for title, regret in fair.items()))
    right = sum(c.within(fair[c.setting.title]) for c in curves)
    print(f"within the allowance in {right} of {len(curves)}")
    best_sigma = np.array([c.sigma(COMMON[int(c.common().argmax())]) for c in curves])
    odds = np.array([s**2 / c.square for s, c in zip(best_sigma, curves, strict=True)])
    print(
        f"\nspread of the best: log σ² {np.log(best_sigma**2).std():.2f}, "
        f"log(σ² / tokens²) {np.log(odds).std():.2f}"
    )


def draw(curves: list[Curve], path: Path) -> None:
    """Draw relative regret against ρ, where curves agree, and against σ, where they do not."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.8), sharey=True, layout="constrained")
    worlds = list(dict.fromkeys(c.setting.world for c in curves))
    at = [log_odds(rho) for rho in COMMON]
    for c in curves:
        own = np.log([c.sigma(rho) for rho in COMMON])
        loss = [c.relative(c.mean(c.sigma(rho))) for rho in COMMON]
        base = c.setting.change == "base"
        style = {"color": f"C{worlds.index(c.setting.world)}", "alpha": 0.9 if base else 0.3}
        for axes, x in zip(panels, (at, own), strict=True):
            label = NAMES[c.setting.world] if base else None
            axes.plot(x, loss, lw=2 if base else 1, label=label, **style)
            axes.plot(x[int(np.argmin(loss))], 0, "o", ms=6, clip_on=False, zorder=5, **style)
    left, right = panels
    mean = np.mean([[c.relative(c.mean(c.sigma(r))) for r in COMMON] for c in curves], axis=0)
    left.plot(at, mean, color="black", lw=4, label="mean of all")
    targets = set(rule(curves).values())
    low, high = (log_odds(end) for end in (min(targets), max(targets)))
    left.axvspan(low - 0.3, high + 0.3, color="gold", alpha=0.4, lw=0)
    left.text((low + high) / 2, 1.04, "the rule", ha="center", fontsize=11)
    for name, sigma in (("0.02", 0.02), ("1", 1.0)):
        right.axvline(math.log(sigma), color="grey", ls="--", lw=1)
        right.text(math.log(sigma), 1.04, f"σ = {name}", ha="center", fontsize=11, color="grey")
    ticks = [0.02, 0.1, 0.2, 0.4, 0.8, 0.95]
    left.set_xticks([log_odds(t) for t in ticks], [f"{t:g}" for t in ticks])
    ticks = [0.01, 0.1, 1, 10]
    right.set_xticks([math.log(t) for t in ticks], [f"{t:g}" for t in ticks])
    left.set_title("Against ρ: one valley, and the rule in it", loc="left")
    right.set_title("Against σ: no number serves all", loc="left")
    left.set_xlabel("ρ, the share of positions in the input before training")
    right.set_xlabel("σ")
    left.set_ylabel("lost against the best ρ\n(1: as the worst of six)")
    left.set_ylim(0, 1.12)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=7)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def show_long(curves: list[Curve], longer: list[Curve]) -> None:
    """Print what four times the steps do to the loss of each share."""
    rhos = LONG[0]["rho"]
    print("\nper cent of error above the best of these shares, converged")
    print(line(["setting", *(f"ρ {rho:g}" for rho in rhos)]))
    for c in (c for c in longer if len(c.runs) == len(rhos)):
        base = [
            o for o in curves if (o.setting.world, o.setting.change) == (c.setting.world, "base")
        ]
        for one in [*base, c]:
            means = np.array([one.mean(one.sigma(rho)) for rho in rhos])
            flat = [one.converged(one.sigma(rho)) for rho in rhos]
            above = 100 * (means / means.min() - 1)
            cells = [
                f"{m:.4f} (+{a:.1f}), {f:.2f}" for m, a, f in zip(means, above, flat, strict=True)
            ]
            print(line([one.setting.title, *cells]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    curves = [load(s) for part in ("base", "varied", "more") for s in settings_of(part)]
    if given.keep:
        parts = ("crossed", "fresh", "vit", "table", "long", "people")
        others = [load(s) for part in parts for s in settings_of(part)]
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
    show_long(whole, [load(s) for s in settings_of("long")])
    if given.picture:
        draw(whole, given.picture)


if __name__ == "__main__":
    main()
