"""Draw docs/pictures/changing_size.png from what `placecell extend` wrote.

python docs/pictures/changing_size.py extended/runs.csv docs/pictures/changing_size.png"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict

from matplotlib.figure import Figure

SHOWN = {
    "before/accuracy/order 5": ("order 5, trained", "#8a8a8a"),
    "before/accuracy/order 6": ("order 6, never trained", "#c2452d"),
    "after/accuracy/order 6": ("order 6, after tuning only the new entries", "#0f7b6c"),
}
WORDS = {
    "learnable": "learnable: a row for each cell",
    "factored": "factored: a row for each axis",
    "continuous": "continuous: a network of row and column",
    "sinusoidal": "sinusoidal over rows and columns",
    "rotary": "rotary over rows and columns",
    "relative": "relative over rows and columns",
}


def main(source: str, out: str) -> None:
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(source, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["label"].split()[0]].append(row)
    names = [name for name in WORDS if name in found]
    figure = Figure(figsize=(8.4, 0.5 * len(names) + 1.3), layout="constrained")
    axis = figure.subplots()
    for place, name in enumerate(reversed(names)):
        for measure, (_, colour) in SHOWN.items():
            if measure.startswith("after") and found[name][0]["new"] == "0":
                continue  # nothing to tune
            values = [100 * float(row[measure]) for row in found[name]]
            axis.plot(values, [place] * len(values), "o", color=colour, ms=4, alpha=0.6)
            axis.plot(sum(values) / len(values), place, "|", color=colour, ms=22, mew=3)
    for label, colour in SHOWN.values():
        axis.plot([], [], "o", color=colour, ms=5, label=label)
    axis.axvline(100 / 6, color="#bbbbbb", ls=":", label="a guess on order 6")
    axis.set_yticks(range(len(names)), [WORDS[name] for name in reversed(names)])
    axis.set_xlim(0, 101)
    axis.set_ylim(-0.5, len(names) - 0.5)
    axis.set_xlabel("puzzles solved, % (dots: seeds, bars: means)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=2)
    figure.savefig(out, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
