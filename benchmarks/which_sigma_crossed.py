"""Which σ? What several changes at once come to, in settings that nothing was chosen on.

    python benchmarks/which_sigma_crossed.py                     # tables, as Markdown
    python benchmarks/which_sigma_crossed.py --picture FILE.png  # and the picture

The rule, and the sizes of effects, are those of the settings before: `base`, `varied`, `more`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from which_sigma import COMMON, NAMES, settings_of
from which_sigma_curves import Curve, load, log_odds, rule
from which_sigma_show import line, show_curves

CHANGES = ("tokens / 4", "tokens × 4", "weights / 2", "weights × 2", "post-norm", "Adam")
LABELS = {
    "three runs": "three runs, the best at the end",
    "three runs, after a third": "three runs, the best after a third",
    "by norm": "ρ 0.4 with pre-norm, 0.8 with post-norm",
}
Choices = dict[str, Callable[[Curve], float]]


def effects(curves: list[Curve]) -> Callable[[Curve], float]:
    """Fit the best log odds of ρ by what was changed; return what that says of a setting."""
    best = [log_odds(COMMON[int(c.common().argmax())]) for c in curves]
    weights = np.linalg.lstsq(np.array([made(c) for c in curves]), np.array(best), rcond=None)[0]
    print("\nshift of the best log odds of ρ:", *zip(("none", *CHANGES), weights.round(2)))  # noqa: B905
    return lambda c: float(made(c) @ weights)


def changes(c: Curve) -> list[str]:
    """Return what was changed in a setting."""
    return c.setting.change.split(", ")


def made(c: Curve) -> np.ndarray:
    """Return which changes a setting has, after a 1."""
    return np.array([1.0, *(change in changes(c) for change in CHANGES)])


def choices(target: dict[str, float], aim: Callable[[Curve], float]) -> Choices:
    """Return what can be chosen: from a setting to the mean score that the choice gets."""
    at = [log_odds(rho) for rho in COMMON]
    overall = max(target.values(), key=list(target.values()).count)  # of worlds not seen before
    found: Choices = {
        "rule": lambda c: c.mean(c.sigma(target.get(c.setting.world, overall))),
        "three runs": lambda c: c.tried(),
        "three runs, after a third": lambda c: c.tried("early"),
        "effects added": lambda c: float(np.interp(aim(c), at, c.sign * c.common())),
        "by norm": lambda c: c.mean(c.sigma(0.8 if "post-norm" in changes(c) else 0.4)),
        "σ = 0.02": lambda c: c.mean(0.02),
        "σ = 1": lambda c: c.mean(1.0),
    }
    for rho in COMMON:
        found[f"ρ {rho:g}"] = lambda c, rho=rho: c.mean(c.sigma(rho))
    return found


def show(curves: list[Curve], named: Choices) -> None:
    """Print the regrets of each setting, and what they come to."""
    print(line(["setting", "best ρ", *named]))
    for c in curves:
        best = COMMON[int(c.common().argmax())]
        cells = [f"{c.regret(choose(c)):.1f}" for choose in named.values()]
        print(line([c.setting.title, f"{best:g}", *cells]))
    flat = [c for c in curves if c.converged(c.sigma(COMMON[int(c.common().argmax())])) >= 0.5]
    relative = {n: np.array([c.relative(f(c)) for c in curves]) for n, f in named.items()}
    print(line(["mean relative regret", "", *(f"{v.mean():.3f}" for v in relative.values())]))
    for title, some in ((f"all {len(curves)}", curves), (f"{len(flat)} that had converged", flat)):
        counts = [sum(c.within(c.regret(f(c))) for c in some) for f in named.values()]
        print(line([f"within the allowance, {title}", "", *map(str, counts)]))
        print(line(["in per cent", "", *(f"{100 * n / len(some):.0f}" for n in counts)]))
    print("\nmean relative regret above that of ρ = 0.4")
    for name, values in relative.items():
        gap = values - relative["ρ 0.4"]
        interval = analysis.bootstrap_interval(gap, numpy_stream(0, f"which_sigma/{name}"))
        print(f"  {name}: {gap.mean():.3f} [{interval.low:.3f}, {interval.high:.3f}]")
    print("\nsettings within the allowance, by what was changed")
    print(line(["", "settings", *named]))
    for change in ("pre-norm", "post-norm", *CHANGES[:4], "Adam"):
        some = [
            c
            for c in curves
            if (change in changes(c)) or (change == "pre-norm" and "post-norm" not in changes(c))
        ]
        counts = [sum(c.within(c.regret(f(c))) for c in some) for f in named.values()]
        print(line([change, str(len(some)), *map(str, counts)]))
    for world in dict.fromkeys(c.setting.world for c in curves):
        some = [c for c in curves if c.setting.world == world]
        counts = [sum(c.within(c.regret(f(c))) for c in some) for f in named.values()]
        print(line([NAMES[world], str(len(some)), *map(str, counts)]))


def draw(curves: list[Curve], named: Choices, path: Path) -> None:
    """Draw how many settings each choice serves, and how far off it is where it does not."""
    import matplotlib.pyplot as plt

    shown = [n for n in named if n not in ("rule", "effects added")]
    regret = {n: np.array([c.regret(named[n](c)) / c.allowance for c in curves]) for n in shown}
    shown.sort(key=lambda n: float(np.mean(regret[n] <= 1 + 1e-6)))
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    kinds = (
        (0, 1 + 1e-6, "within the allowance: 1 point, 2 % of error", "#2a7f62"),
        (1 + 1e-6, 3, "up to three times that", "#f2b134"),
        (3, np.inf, "more", "#c8432b"),
    )
    names = [LABELS.get(n, n) for n in shown]
    left = np.zeros(len(shown))
    for low, high, label, colour in kinds:
        counts = np.array(
            [((regret[n] > low) | (low == 0)).astype(int) @ (regret[n] <= high) for n in shown]
        )
        axes.barh(names, counts, left=left, color=colour, label=label)
        for y, (start, count) in enumerate(zip(left, counts, strict=True)):
            if count > 2:
                axes.text(start + count / 2, y, str(count), ha="center", va="center", color="white")
        left += counts
    axes.set_xlim(0, len(curves))
    axes.set_xlabel(f"settings, of {len(curves)} new ones")
    axes.set_title("What is lost against the best of six ρ", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    before = [load(s) for part in ("base", "varied", "more") for s in settings_of(part)]
    curves = [load(s) for part in ("crossed", "fresh") for s in settings_of(part)]
    missing = [c.setting.title for c in curves if not c.whole]
    if missing:
        print(f"not all runs are there: {', '.join(missing)}\n")
        curves = [c for c in curves if c.whole]
    target = rule(before)
    print("rule, from the settings before:", target)
    named = choices(target, effects(before))
    show(curves, named)
    print("\nscores, and the share of runs that had converged")
    show_curves(curves)
    if given.picture:
        draw(curves, named, given.picture)


if __name__ == "__main__":
    main()
