"""The verdict of docs/lazy_or_rich.md in one picture, drawn from the two tables of that page.

python docs/pictures/lazy_or_rich.py docs/lazy_or_rich.md docs/pictures/lazy_or_rich.png
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from matplotlib.figure import Figure

INK, SMALL, LARGE = "#22303c", "#12908e", "#d9642c"
CONTROLS = {  # what a row of the page's second table is, and its σ: what the picture calls it
    ("as in the preset `adam`", "0.1"): "σ = 0.1, as it is",
    ("frozen table", "0.1"): "table frozen",
    ("table learning rate ∝ σ, as at σ = 2", "0.1"): "table slowed",
    ("as in the preset `adam`", "2"): "σ = 2, as it is",
    ("table learning rate ∝ σ, as at σ = 0.1", "2"): "table moves 14 times as far",
    ("symbols ∝ σ", "2"): "symbols made larger too",
    ("weights of the layers halved", "2"): "weights halved",
}
Value = tuple[float, float, float]


def number(cell: str) -> Value:
    """Read "0.5 [0.4, 0.6]" as estimate, low and high; without an interval all are the same."""
    found = [float(word) for word in re.findall(r"\d+\.?\d*", cell.split("→")[-1])]
    return (found[0], found[1], found[2]) if len(found) == 3 else (found[0],) * 3


def rows(text: str) -> list[list[str]]:
    """The cells of every line of a table; an empty first cell is that of the line above."""
    read: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            read.append([cells[0] or read[-1][0], *cells[1:]])
    return read


def main(source: str, out: str) -> None:
    read = rows(Path(source).read_text("utf-8"))
    by_name = {cells[0]: cells[1:] for cells in reversed(read)}
    sigmas = [float(cell) for cell in by_name["σ"]]
    kernel = [number(cell) for cell in by_name["kernel distance, whole network"]]
    moved = [number(cell)[0] for cell in by_name["table moved (of its initial norm)"]]
    controls = {
        (cells[0], cells[1]): number(cells[3])
        for cells in read
        if len(cells) == 6 and (cells[0], cells[1]) in CONTROLS
    }

    figure = Figure(figsize=(12, 3.5), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.1, 1.1, 1))
    low, high = ([abs(v[0] - v[i]) for v in kernel] for i in (1, 2))
    left.errorbar(sigmas, [v[0] for v in kernel], [low, high], fmt="o-", color=INK)
    left.set_ylim(0, 1)
    left.set_title("The network turns at every σ …", loc="left")
    left.set_ylabel("kernel distance, start to end\n(0 the same, 1 orthogonal)")
    middle.plot(sigmas, moved, "o-", color=INK)
    middle.set_yscale("log")
    middle.set_yticks([0.01, 0.1, 1, 10], ["1 %", "10 %", "100 %", "1000 %"])
    middle.set_title("… its table at small σ only …", loc="left")
    middle.set_ylabel("table moved, of its first size")
    for axis in (left, middle):
        axis.set_xscale("log")
        axis.set_xticks(sigmas, [f"{sigma:g}" for sigma in sigmas])
        axis.minorticks_off()
        axis.set_xlabel("σ")
    shown = list(reversed(CONTROLS.items()))
    right.set_yticks(range(len(shown)), [words for _, words in shown])
    for place, (row, words) in enumerate(shown):
        value, least, most = controls[row]
        colour = SMALL if row[1] == "0.1" else LARGE
        right.errorbar(value, place, xerr=[[value - least], [most - value]], fmt="o", color=colour)
        label = right.get_yticklabels()[place]
        label.set(color=colour, weight="bold" if words.endswith("as it is") else "normal")
    right.set_xlim(0.75, 1)
    right.set_xlabel("accuracy on new puzzles")
    right.set_title("… and its moving is not what helps", loc="left", x=-0.3)
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
