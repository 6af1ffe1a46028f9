"""Where a configuration starts from: a preset of its task, or a file, which may extend a preset."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placecell.config import RunConfig, read_toml
from placecell.errors import InputError, unknown
from placecell.registry import TASKS


def preset(task: str, name: str = "quick") -> RunConfig:
    """The settings that `placecell run TASK --preset NAME` starts from.

    Parameters
    ----------
    task
        The name of a task.
    name
        One of its presets.

    Returns
    -------
    RunConfig
        Change some of it with its `override`.
    """
    return base_config(TASKS.check(task), name)[0]


def base_config(
    task: str,
    preset: str = "quick",
    config: Path | None = None,
) -> tuple[RunConfig, dict[str, Any]]:
    """The configuration that overrides start from, and its plan of a sweep.

    Parameters
    ----------
    task
        The name of a task.
    preset
        One of its presets.
    config
        A TOML file to read instead of the preset.

    Returns
    -------
    RunConfig
        The settings.
    dict
        `seeds` and `grid` of the section [sweep], where it has them. In a grid, `data.width = 3`
        and `"data.width" = 3` are the same.
    """
    if config is None:
        texts = TASKS.presets(task)
        values, where = _parsed(texts, task, preset), f"preset {preset}"
    else:
        values, where = read_toml(config), str(config)
        texts = TASKS.presets(task) if "extends" in values else {}
    values.pop("about", None)
    if "extends" in values:
        values = _extended(values, texts, task, where)
    plan = _plan(values.pop("sweep", {}), where)
    if values.get("task", task) != task:
        raise InputError(f"{where}: settings of the task {values['task']!r}, not of {task!r}.")
    return RunConfig.from_dict({"task": task} | values, where), plan


def _parsed(texts: Mapping[str, str], task: str, name: str) -> dict[str, Any]:
    """The content of the preset `name` among those of `task`."""
    if name not in texts:
        raise unknown(f"preset of {task}", name, texts)
    return tomllib.loads(texts[name])


def _extended(
    values: dict[str, Any],
    texts: Mapping[str, str],
    task: str,
    where: str,
) -> dict[str, Any]:
    """The settings (not the sweep) of the preset that `extends` names, with `values` over them."""
    name = values.pop("extends")
    if not isinstance(name, str):
        raise InputError(f"{where}: `extends` must be the name of a preset, found {name!r}.")
    below = _parsed(texts, task, name)
    if "extends" in below:
        wanted = "`extends` must name a preset that extends no other"
        raise InputError(f"{where}: {wanted}, and {name} does.")
    sections = {key: part for key, part in below.items() if key not in ("about", "sweep")}
    for key, part in values.items():
        both = isinstance(part, dict) and isinstance(sections.get(key), dict)
        sections[key] = sections[key] | part if both else part
    return sections


def _plan(plan: Any, where: str) -> dict[str, Any]:
    """The section [sweep], checked but for the keys of its grids, which the settings know."""
    grids = plan.get("grid", []) if isinstance(plan, dict) else None
    if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
        raise InputError(
            f"{where}: a sweep is a section [sweep] with `seeds`, and [[sweep.grid]] for each of "
            f"its grids."
        )
    for key in plan:
        if key not in ("seeds", "grid"):
            raise unknown(f"key in {where} [sweep]", key, ("seeds", "grid"))
    if any("seed" in grid for grid in grids):
        raise InputError(f"{where}: a grid has no `seed`; `seeds` in [sweep] says how many.")
    return plan | ({"grid": [_dotted(grid) for grid in grids]} if "grid" in plan else {})


def _dotted(grid: dict[str, Any]) -> dict[str, Any]:
    """A grid in which TOML's `data.width = 3`, a table in a table, is the key `data.width`."""
    flat: dict[str, Any] = {}
    for key, value in grid.items():
        table = isinstance(value, dict)
        flat |= {f"{key}.{leaf}": v for leaf, v in value.items()} if table else {key: value}
    return flat
