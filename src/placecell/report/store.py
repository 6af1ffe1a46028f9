"""Reading runs for a page: every run that can be read, and a note of each that cannot."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placecell import files
from placecell.errors import InputError
from placecell.sweep import Store
from placecell.train.run import RunResult, load_result


@dataclass(frozen=True)
class RunSet:
    """Runs to report on. `unreadable` names folders and what is wrong with them."""

    where: str
    results: list[RunResult]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None  # where analyses of these runs are, if they are of one folder


def read_store(folder: Path) -> RunSet:
    """Every run in `folder`. One that cannot be read, or not whole, does not hide the others."""
    results, unreadable = [], {}
    for path in Store(folder).folders():
        try:
            result = load_result(path)
            wrong = lacking(result)
        except InputError as error:
            wrong = str(error)
        if wrong:
            unreadable[path.name] = wrong
        else:
            results.append(result)
    return RunSet(str(folder), results, unreadable, folder)


def lacking(result: RunResult) -> str:
    """What a run that says it is done should have and has not; empty if it is whole."""
    if result.status != "done":
        return ""
    last = max((row.step for row in result.rows), default=None)
    if last != result.step:
        found = "nothing was measured" if last is None else f"the last measurement is of step {last}"
        return f"{result.folder / 'metrics.csv'}: cut off; the run ended at step {result.step}, {found}."
    if not (result.folder / "weights.safetensors").exists():
        return f"{result.folder}: the weights are missing (weights.safetensors)."
    return ""


def of_results(results: Iterable[Any]) -> RunSet:
    """A store of runs that Python code has at hand: results of `run`, or outcomes of a sweep."""
    found, unreadable = [], {}
    for one in results:
        result = getattr(one, "result", one)
        if result is None:  # an outcome of a sweep that failed
            unreadable[one.config.name] = one.message
        elif isinstance(result, RunResult):
            found.append(result)
        else:
            raise InputError(f"expected results of placecell.run or outcomes of a sweep, found {type(one).__name__}.")
    if not found and not unreadable:
        raise InputError("no runs were given to report on.")
    return RunSet("these results", found, unreadable)


def status_of(result: RunResult) -> str:
    """How a run stands: one that says it is running and that no process holds was killed."""
    stopped = result.status == "running" and not files.is_locked(result.folder)
    return "stopped" if stopped else result.status


def message_of(result: RunResult) -> str:
    """Why a run failed, as its folder has it."""
    try:
        return str(files.read_json(result.folder / "status.json").get("message", ""))
    except (InputError, AttributeError):
        return ""


def environment_of(result: RunResult) -> dict[str, Any]:
    try:
        found = files.read_json(result.folder / "environment.json")
    except InputError:
        return {}
    return found if isinstance(found, dict) else {}


def ended_by(run: Path, moment: float) -> bool:
    """Whether the run in a folder stands as it stood at a moment: what was measured then is still of it."""
    try:
        return (run / "status.json").stat().st_mtime <= moment
    except OSError:
        return False


def known_measures(folder: Path) -> dict[str, dict[str, float]]:
    """What `placecell analyse` measured of the tables, by run, if it did: it takes the most time of all."""
    path = folder / "analysis" / "runs.csv"
    found: dict[str, dict[str, float]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                values = {k: float(v) for k, v in row.items() if k.startswith("table/") and v}
                if values and ended_by(folder / row["run"], path.stat().st_mtime):
                    found[row["run"]] = values
    except (OSError, KeyError, TypeError, ValueError):
        return {}
    return found
