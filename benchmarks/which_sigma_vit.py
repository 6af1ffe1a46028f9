"""Which σ? The vision transformers of docs/which_sigma.md, from the runs of `which_sigma.py vit`.

python benchmarks/which_sigma_vit.py                     # each setting, gains paired by seed
python benchmarks/which_sigma_vit.py --picture FILE.png  # and the picture
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from which_sigma import settings_of
from which_sigma_curves import Curve, load, log_odds
from which_sigma_show import score

USUAL = 0.02
FEWEST = 3  # seeds for an interval
COLOURS = {"500": "C0", "1200": "C1", "MNIST": "C2", "masked": "C4"}


def gain(curve: Curve, key: float) -> tuple[float, float, float, int]:
    """Return how much better a σ is than the usual one, over seeds that have both: points of
    accuracy or per cent of the usual error, with the ends of an interval and the number of seeds.
    """
    here, usual = ({s.seed: s.test for s in curve.runs.get(k, [])} for k in (key, USUAL))
    seeds = sorted(set(here) & set(usual))
    gap = 100 * curve.sign * np.array([here[seed] - usual[seed] for seed in seeds])
    if curve.sign < 0:
        gap /= np.mean([usual[seed] for seed in seeds])
    interval = analysis.bootstrap_interval(gap, numpy_stream(0, f"vit/{key}"))
    return float(gap.mean()), interval.low, interval.high, len(seeds)


def show(curve: Curve) -> None:
    """Print every choice of a setting, and its gain over the usual σ."""
    print(f"\n{curve.setting.change}: tokens {math.sqrt(curve.square):.2f}")
    for key in sorted(k for k in curve.runs if isinstance(k, float)):
        runs = curve.runs[key]
        text = f"σ {key:g}, ρ {curve.rho(key):.2g}: {score(curve, curve.mean(key))}, training "
        text += score(curve, float(np.mean([s.train for s in runs])))
        text += f", converged {sum(s.converged for s in runs)} of {len(runs)}"
        if key != USUAL:
            mean, low, high, seeds = gain(curve, key)
            text += f", gain {mean:+.1f} [{low:.1f}, {high:.1f}], {seeds} seeds"
        print(text)


def draw(curves: list[Curve], path: Path) -> None:
    """Draw the gain over the usual σ against ρ, a line a setting; long training is bold."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for c in curves:
        name = c.setting.change
        keys = sorted(k for k in c.runs if isinstance(k, float) and k > USUAL)
        keys = [k for k in keys if min(len(c.runs[k]), len(c.runs.get(USUAL, []))) >= FEWEST]
        if not keys:
            continue
        found = np.array([gain(c, key)[:3] for key in keys])
        x = [log_odds(c.rho(key)) for key in [USUAL, *keys]]
        mean, low, high = np.vstack([[0, 0, 0], found]).T
        colour, long = COLOURS[name.replace(",", "").split()[0]], name.endswith("long")
        style = "-" if long else "--"
        label = name + (" (% of error)" if c.sign < 0 else "")
        axes.plot(x, mean, style, color=colour, marker="o", lw=2.5 if long else 1, label=label)
        axes.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
    ticks = [0.001, 0.03, 0.1, 0.3, 0.6, 0.9]
    axes.set_xticks([log_odds(t) for t in ticks], [f"{t:g}" for t in ticks])
    axes.axhline(0, color="grey", lw=1)
    axes.set_xlabel("ρ, the share of positions in the input before training (left: σ = 0.02)")
    axes.set_ylabel("points of accuracy over σ = 0.02")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    curves = [c for c in map(load, settings_of("vit")) if c.runs]
    for curve in curves:
        show(curve)
    if given.picture:
        draw(curves, given.picture)


if __name__ == "__main__":
    main()
