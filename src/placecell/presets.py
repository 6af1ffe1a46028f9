"""Where a configuration starts from: a preset of its task or a TOML file, each of which may extend a preset."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from placecell import tasks
from placecell.config import RunConfig, read_toml
from placecell.errors import InputError, unknown


def preset(task: str, name: str = "quick") -> RunConfig:
    """The settings that `placecell run TASK --preset NAME` starts from; change some with its `override`."""
    return base_config(tasks.check(task), name)[0]


def base_config(task: str, preset: str = "quick", config: Path | None = None) -> tuple[RunConfig, dict[str, Any]]:
    """The configuration that overrides start from, and the preset's plan of a sweep."""
    if config is None:
        values, where = read_preset(task, preset), f"preset {preset}"
    else:
        values, where = read_toml(config), str(config)
    values.pop("about", None)
    if "extends" in values:
        values = extended(values, task, where)
    plan = values.pop("sweep", {})
    grids = plan.get("grid", []) if isinstance(plan, dict) else None
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise InputError(
            f"{where}: a sweep is a section [sweep] with `seeds`, and [[sweep.grid]] for each of its grids."
        )
    for key in plan:
        if key not in ("seeds", "grid"):
            raise unknown(f"key in {where} [sweep]", key, ("seeds", "grid"))
    if any("seed" in grid for grid in grids):
        raise InputError(f"{where}: a grid has no `seed`; `seeds` in [sweep] says how many.")
    if values.get("task", task) != task:
        raise InputError(f"{where}: settings of the task {values['task']!r}, not of {task!r}.")
    return RunConfig.from_dict({"task": task} | values, where), plan


def read_preset(task: str, name: str) -> dict[str, Any]:
    """The content of a preset of `task`."""
    known = tasks.presets(task)
    if name not in known:
        raise unknown(f"preset of {task}", name, known)
    return tomllib.loads(known[name])


def extended(values: dict[str, Any], task: str, where: str) -> dict[str, Any]:
    """The settings (not the sweep) of the preset that `extends` names, with those of `values` over them."""
    name = values.pop("extends")
    if not isinstance(name, str):
        raise InputError(f"{where}: `extends` must be the name of a preset, found {name!r}.")
    below = read_preset(task, name)
    if "extends" in below:
        raise InputError(f"{where}: `extends` must name a preset that extends no other, and {name} does.")
    sections = {key: part for key, part in below.items() if key not in ("about", "sweep")}
    for key, part in values.items():
        both = isinstance(part, dict) and isinstance(sections.get(key), dict)
        sections[key] = sections[key] | part if both else part
    return sections
