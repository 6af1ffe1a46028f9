"""Which σ? The runs of the study in docs/which_sigma.md; `which_sigma_show.py` makes its tables.

    python benchmarks/which_sigma.py base            # each world in its base setting
    python benchmarks/which_sigma.py varied          # one thing changed at a time
    python benchmarks/which_sigma.py more            # the other half of the changes
    python benchmarks/which_sigma.py crossed         # two, three or four things changed at once
    python benchmarks/which_sigma.py fresh           # worlds that nothing was chosen on
    python benchmarks/which_sigma.py vit             # a vision transformer as people build it
    python benchmarks/which_sigma.py table           # the table's own learning rate
    python benchmarks/which_sigma.py long            # four times the steps
    python benchmarks/which_sigma.py people          # other encodings, for docs/people.md
    python benchmarks/which_sigma.py base text nmar  # some worlds (or changes) of a part only

Each is an ordinary sweep into runs/which_sigma/WORLD: it can be stopped, continued, and run by
several processes at once. About four seconds of one core a run. Settings: which_sigma.toml.
"""

from __future__ import annotations

import argparse
import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placecell.config import RunConfig
from placecell.sweep import grid, local, sweep
from which_sigma_scores import kept

RUNS = Path("runs/which_sigma")
PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Settings = dict[str, Any]

SHARES = [0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 0.99]
COMMON = [0.02, 0.1, 0.2, 0.4, 0.8, 0.95]  # the shares that all settings have
ROOT_WIDTH = 0.125  # d^−½ of width 64
NAMES = {
    "latin_square": "Latin squares",
    "images": "digits",
    "masked images": "masked digits",
    "text": "text",
    "graph": "graph",
    "nmar": "modular networks",
    "latin_orders": "Latin squares of orders 3 to 5",
    "fmri": "fMRI",
}
FRESH_SPLIT = 22  # of `crossed` and `fresh`: data drawn after all that was chosen on split seed 20
SEEDS = {"base": (5, 6), "crossed": (3, 3)}  # of a part, at least and at most; else 3 to 6
LEARNED = {"encoding": "learnable"}
BASE = [
    LEARNED | {"rho": SHARES},
    LEARNED | {"sigma": [0.0, 0.02, ROOT_WIDTH, 1.0]},
    {"encoding": "sinusoidal"},
]
VARIED = [LEARNED | {"rho": COMMON}, LEARNED | {"sigma": [0.02, 1.0]}]
PEOPLE = [
    {"encoding": ["sinusoidal", "relative", "rotary"], "axes": 1},
    {"encoding": "nope"},
]
TABLE = [LEARNED | {"rho": [0.2, 0.95]}]
LONG = [LEARNED | {"rho": [0.02, 0.2, 0.4, 0.8, 0.95]}]
VIT = [LEARNED | {"sigma": [0.0, 0.02, 1.0]}, LEARNED | {"rho": [0.03, 0.1, 0.3, 0.6, 0.9]}]
VIT_LONG = [LEARNED | {"sigma": 0.02}, LEARNED | {"rho": [0.1, 0.3, 0.6]}]


@dataclass(frozen=True)
class Setting:
    """One curve over σ: a world, and what is changed of it."""

    world: str
    change: str
    task: str
    headline: str
    settings: Settings
    grids: list[Settings]
    seeds: int = 3

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{NAMES.get(self.world, self.world)}, {self.change}"

    @property
    def folder(self) -> Path:
        """Where its runs are."""
        return RUNS / self.world.replace(" ", "_")

    def configs(self) -> list[RunConfig]:
        """Return its runs."""
        base = RunConfig.of({"task": self.task}).override(PLAN["everywhere"] | self.settings)
        return grid(base, self.grids, {}, self.seeds)


def changed(world: Settings, change: str) -> Settings:
    """Return the settings of a world with one thing changed, or several, with commas between."""
    settings: Settings = world["settings"]
    by_name: dict[str, Settings] = {
        "base": {},
        "tokens / 4": {"token_sigma": settings["token_sigma"] / 4},
        "tokens × 4": {"token_sigma": settings["token_sigma"] * 4},
        "weights / 2": {"weight_scale": 0.5},
        "weights × 2": {"weight_scale": 2.0},
        "post-norm": {"norm": "post"},
        "Adam": {"optimizer": "adam", "lr": world.get("adam_lr")},
        "table rate / 10": {"pe_lr": settings["lr"] / 10},
        "table rate × 10": {"pe_lr": settings["lr"] * 10},
        "steps × 4": {key: 4 * settings[key] for key in ("steps", "eval_every")},
    }
    return settings | {k: v for one in change.split(", ") for k, v in by_name[one].items()}


def crossings(world: Settings) -> list[str]:
    """Return what the other parts of the study have not changed: each scale of the tokens with each
    norm and optimizer (and scale of the weights), but for what has been run alone."""
    scales = (("", "weights / 2", "weights × 2"),) if world.get("weights") else ()
    factors = (("", "tokens / 4", "tokens × 4"), *scales, ("", "post-norm"), ("", "Adam"))
    names = [", ".join(filter(None, levels)) for levels in itertools.product(*factors)]
    return [name for name in names if name and name not in world["varied"] + world["more"]]


def settings_of(part: str) -> list[Setting]:
    """Return the settings of a part of the study."""
    if part == "vit":
        return [
            Setting(
                "vit",
                name,
                "images",
                one["headline"],
                PLAN["vit"] | one["settings"],
                VIT_LONG if name.endswith("long") else VIT,
                seeds=5,
            )
            for name, one in PLAN["vit_settings"].items()
        ]
    if part == "people":
        one = PLAN["world"]["latin_square"]
        return [
            Setting(
                "latin_square", "encodings", one["task"], one["headline"], one["settings"], PEOPLE
            )
        ]
    apart = {"split_seed": FRESH_SPLIT} if part in ("crossed", "fresh") else {}
    found = []
    for name, one in PLAN["fresh" if part == "fresh" else "world"].items():
        changes = crossings(one) if part == "crossed" else one.get(part, ())
        for change in ("base",) if part in ("base", "fresh") else changes:
            grids = {"base": BASE, "table": TABLE, "long": LONG}.get(part, VARIED)
            least, most = SEEDS.get(part, (3, 6))
            seeds = min(max(one.get("seeds", 3), least), most)
            settings = changed(one, change) | apart
            found.append(
                Setting(name, change, one["task"], one["headline"], settings, grids, seeds)
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = ("base", "varied", "more", "crossed", "fresh", "vit", "table", "long", "people")
    parser.add_argument("part", choices=parts)
    parser.add_argument("world", nargs="*", help="or a change, of this part; none: all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="also what the file of scores has")
    given = parser.parse_args()
    for setting in settings_of(given.part):
        if given.world and not {setting.world, setting.change} & set(given.world):
            continue
        known = {} if given.anew else kept()
        configs = [c for c in setting.configs() if c.name not in known]
        if not configs:
            continue
        done = sweep(configs, setting.folder, local(given.workers))
        print(setting.world, setting.change, done.counts, flush=True)
        if len(done) < len(configs):
            return  # stopped; the same command goes on


if __name__ == "__main__":
    main()
