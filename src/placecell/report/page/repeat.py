"""How to repeat the runs of a page: settings, commands, machines and packages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from placecell.config.labels import flatten, varying
from placecell.store.run_set import environment_of
from placecell.store.runs import RunResult


def sweep_toml(runs: Sequence[RunResult]) -> str:
    """Return settings from which `placecell sweep` makes exactly these runs."""
    if not runs:
        return ""
    differ = varying([r.config for r in runs])
    seeds = sorted({r.config.seed for r in runs})
    first = replace(runs[0].config, seed=0).to_toml().rstrip()
    lines = [first, "", "[sweep]", f"seeds = {seeds[-1] + 1}"]
    grids = []
    for result in runs:
        flat = flatten(result.config)
        values = {
            ("encoding" if k == "encoding.name" else k.split(".")[-1]): flat[k]
            for k in differ
            if flat.get(k) is not None
        }
        if values and values not in grids:
            grids.append(values)
    for values in grids:
        lines += [
            "",
            "[[sweep.grid]]",
            *(f"{key} = {_toml(value)}" for key, value in values.items()),
        ]
    return "\n".join(lines) + "\n"


def commands(runs: Sequence[RunResult]) -> str:
    """Return the commands that repeat runs and page."""
    task = runs[0].config.task if runs else "TASK"
    return (
        f"pip install 'placecell[report]'\nplacecell sweep {task} --config sweep.toml --out "
        f"runs/again\n"
        "placecell report runs/again -o report.html"
    )


def environments(runs: Sequence[RunResult]) -> list[dict[str, Any]]:
    """Return the machines and packages that the runs used."""
    environments = [{k: v for k, v in environment_of(r).items() if k != "attempts"} for r in runs]
    counts = Counter(json.dumps(one, sort_keys=True) for one in environments)
    different = []
    for text, count in counts.most_common():
        values = json.loads(text)
        packages = values.pop("packages", {})
        rows = [(k.replace("_", " "), str(v)) for k, v in values.items() if v is not None]
        rows += [(k, str(v)) for k, v in packages.items()] if isinstance(packages, dict) else []
        if rows:
            different.append({"runs": count, "rows": rows})
    return different


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
