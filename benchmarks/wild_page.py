"""What `wild.py` writes: docs/wild.md and its picture, from the measured lines."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from placecell.encodings.learnable import AUTO_SHARE as RULE
from wild_models import sees

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs" / "wild.md", ROOT / "docs" / "pictures" / "wild.png"
DATA = ROOT / "src" / "placecell" / "doctor" / "wild.json"
COLOURS = {"text": "#1b6ca8", "images": "#d1603d", "sound": "#7a7a7a"}
LEAST = 1e-4  # where a share of zero stands on the picture's logarithmic axis

Line = dict[str, Any]


def learned(lines: list[Line]) -> list[Line]:
    """Return the tables that are added to the tokens and trained, lowest ρ first."""
    kept = [v for v in lines if v["kind"] == "absolute" and v["state"] in ("trainable", "zero")]
    kept = [v | {"of": sees(v["model"], v["table"])} for v in kept]
    return sorted(kept, key=lambda v: v["rho"])


def answer(lines: list[Line]) -> str:
    """Return the first sentences of the page."""
    text, images = (
        [v["rho"] for v in learned(lines) if v["of"] == of] for of in ("text", "images")
    )
    low, others = (
        [rho for rho in images if (rho < RULE / 100) is below] for below in (True, False)
    )
    return (
        f"**Text models begin near ρ = {RULE}, the share that [our rule](which_sigma.md) aims at; "
        "most vision models begin more than a hundred times lower.** ρ is the share of positions "
        f"in what enters the network. Of {len(text)} learned tables beside embedded text, it goes "
        f"from {text[0]:.2g} to {text[-1]:.2g}; of {len(images)} beside patches of images, "
        f"{len(low)} begin between {low[0]:.2g} and {low[-1]:.2g}, {len(others)} at about "
        f"{others[0]:.2g}. Most libraries take σ = 0.02 for both; embedded words begin at "
        "0.02 too, patches at 0.5 to 1, and that is the difference. What it costs a vision model "
        "was [measured](which_sigma.md), on small images only."
    )


def label(line: Line, shown: list[Line]) -> str:
    """Return a name for one table, with its part where the model has several."""
    same = [other for other in shown if other["model"] == line["model"]]
    if len(same) == 1:
        return str(line["model"])
    several = len({other["of"] for other in same}) > 1
    return f"{line['model']}, {line['of'] if several else line['table'].split('.')[0]}"


def picture(lines: list[Line]) -> None:
    """Draw the share ρ of every learned table."""
    from matplotlib.figure import Figure

    shown = learned(lines)
    figure = Figure(figsize=(8, 0.27 * len(shown) + 1.3), layout="constrained")
    axis = figure.subplots()
    axis.axvline(RULE, color="0.8", linewidth=6, zorder=0)
    axis.text(0.85 * RULE, len(shown) - 0.4, f"the rule, {RULE}", ha="right", color="0.4")
    for of, colour in COLOURS.items():
        at = [i for i, line in enumerate(shown) if line["of"] == of]
        axis.scatter([max(shown[i]["rho"], LEAST) for i in at], at, color=colour, label=of)
    axis.set_yticks(range(len(shown)), [label(line, shown) for line in shown])
    axis.set_xscale("log")
    axis.set_xticks([LEAST, 1e-3, 1e-2, 1e-1, 1], ["0", "0.001", "0.01", "0.1", "1"])
    axis.set_xlim(LEAST / 1.5, 1)
    axis.set_ylim(-0.7, len(shown) + 0.5)
    axis.set_xlabel("share ρ of the table in what enters the network, before training")
    axis.legend(frameon=False, loc="center left", title="tokens made of")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


def table(lines: list[Line], columns: dict[str, str]) -> str:
    """Return a table in Markdown with these keys of the lines as columns."""

    def cell(value: Any) -> str:
        return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)

    rows = [list(columns.values()), ["---"] * len(columns)]
    rows += [[cell(line[key]) or "–" for key in columns] for line in lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page(lines: list[Line], versions: str) -> str:
    """Return the page as Markdown."""
    few = {"sigma": "σ where it acts", "beside": "size of the tokens", "rho": "share ρ"}
    names = {"table": "table", "kind": "kind", "state": "state"}
    added = learned(lines)
    named = [line | {"label": label(line, added)} for line in added]
    return TEXT.format(
        answer="\n".join(textwrap.wrap(answer(lines), 100, break_on_hyphens=False)),
        few=table(named, {"label": "model", "of": "tokens made of"} | few),
        versions=versions,
        all=table(lines, {"model": "model"} | names | few | {"logits": "share of logits"}),
    )


TEXT = """# Position tables in the wild

{answer}

![Share ρ of the learned tables of libraries, before training](pictures/wild.png)

*Tables that are added to the tokens and trained; those at 0 are zeros before training. `make wild`,
that is `python benchmarks/wild.py`, measures the models, draws this and writes the page.*

{few}
*σ where it acts* is the standard deviation of what is added, *size of the tokens* their root mean
square, *share ρ* the table's variance over positions divided by that plus the mean square of the
tokens. [What the words mean](doctor.md).

## Method and all tables

<details><summary>How it was measured</summary>

Made with {versions}.

Each model has its library's default configuration with fewer layers, no trained weights, random
tokens or noise images: patches of real images have another size, so ρ beside them differs by some
factor. *Share of logits* is the part of the first attention's logits (variance) that is the same
whatever the tokens are. Of tables of a model that are alike only the first is listed.

</details>

<details><summary>All tables: fixed, relative and late ones too</summary>

{all}
</details>
"""
