"""A folder of runs read back: the runs, and tables of them and of their measurements."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placecell.config.labels import flatten
from placecell.errors import InputError
from placecell.registry import ENCODINGS, TASKS
from placecell.store import files, locks
from placecell.store.run_set import RunSet, current_status, problem_of, read_runs
from placecell.store.runs import ENDED, RunResult, load_result, read_status
from placecell.store.table import Table

FIRST = (
    "name",
    "task",
    "status",
    "message",
    "steps",
    "seconds",
    "seed",
)  # then the rest, as in the alphabet
# an index entry is valid while these are unchanged
READ = ("status.json", "metrics.csv", "config.toml", "weights.safetensors", "snapshots.safetensors")


@dataclass(frozen=True)
class Store:
    """A folder of runs, and the one way to read it.

    Each run's folder is the truth; `index.json` beside them only saves reading them all again, and
    is made anew from them whenever it is missing, broken or behind.

    Parameters
    ----------
    folder
        The folder that holds the folders of the runs.

    Examples
    --------
    >>> store = Store("runs/mine")  # doctest: +SKIP
    >>> store.runs().to_frame()  # doctest: +SKIP
    """

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))  # which may be given as text
        if not self.folder.is_dir():
            raise InputError(f"{self.folder}: no such folder of runs.")
        if (self.folder / "status.json").exists():
            raise InputError(
                f"{self.folder}: one run; give the folder that holds it ({self.folder.parent})."
            )

    def folders(self) -> list[Path]:
        """The folder of every run, in the order of their names."""
        folders = sorted(path.parent for path in self.folder.glob("*/status.json"))
        folders = [path for path in folders if (path / "config.toml").exists()]
        if not folders:
            make = f"placecell sweep TASK --out {self.folder}"
            raise InputError(f"{self.folder}: no runs here.", f"Make some with `{make}`.")
        return folders

    def results(self) -> list[RunResult]:
        """Every run, whatever its status; an error if one cannot be read."""
        return [load_result(folder) for folder in self.folders()]

    def run_set(self) -> RunSet:
        """Every run that can be read whole, and a note of each that cannot."""
        results, unreadable = read_runs(self.folders())
        return RunSet(str(self.folder), results, unreadable, self.folder)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per run.

        A run that says `running` and that no process works on was killed: its status is `stopped`.
        One whose files cannot be read is `unreadable`.

        Returns
        -------
        list of dict
            Name, status, message, steps, seconds, last value of each metric (`split/name`),
            settings.
        """
        known = self._read_index()
        names = {*TASKS.names()}, {*ENCODINGS.names()}
        index = {}
        for folder in self.folders():
            stamp, entry = _stamp(folder), known.get(folder.name)
            if (
                not isinstance(entry, dict)
                or entry.get("stamp") != stamp
                or not _usable(entry["row"], *names)
            ):
                entry = {"stamp": stamp, "row": _row(folder)}
            index[folder.name] = entry
        if index != known or any(self.folder.glob(files.STAGED)):
            # a store that is only readable has no index, or an old one; if another process
            # writes it, that will do
            with contextlib.suppress(InputError), locks.lock(self.folder):
                files.remove_left_over(self.folder)
                files.write_json(self.folder / "index.json", index)
        return [_row_now(self.folder, entry["row"]) for entry in index.values()]

    def runs(self) -> Table:
        """`rows` as a table, with one row per run."""
        return Table.from_rows(self.rows())

    def points(self) -> Table:
        """Every measurement as a table, with one row for each: run, step, split, name and value.

        Runs that cannot be read are left out; `rows` says which and why.
        """
        return Table.from_rows(
            {"run": result.folder.name, **row._asdict()}
            for result in read_runs(self.folders())[0]
            for row in result.rows
        )

    def _read_index(self) -> dict[str, Any]:
        try:
            index = files.read_json(self.folder / "index.json")
        except InputError:
            return {}
        return index if isinstance(index, dict) else {}


def load_store(folder: Path | str) -> list[RunResult]:
    """Return every run in a folder.

    Parameters
    ----------
    folder : Path or str
        The folder that contains the folders of the runs.

    Returns
    -------
    list of RunResult
        The runs, whatever their status, in the order of their names.
    """
    return Store(Path(folder)).results()


def _stamp(folder: Path) -> list[list[int]]:
    """Changes whenever a file that a row is made of does."""
    stats = [path.stat() if (path := folder / name).exists() else None for name in READ]
    return [[one.st_mtime_ns, one.st_size, one.st_ino] if one else [] for one in stats]


def _usable(row: dict[str, Any], tasks: set[str], encodings: set[str]) -> bool:
    """Whether a row of the index is still true; plugins that are loaded now may change that."""
    return (
        row.get("task") in tasks
        and (row.get("encoding.name") in encodings or row["status"] not in ENDED)
        and row["status"] != "unreadable"
    )


def _row(folder: Path) -> dict[str, Any]:
    try:
        result, message = load_result(folder), read_status(folder).get("message", "")
        problem = problem_of(result)
    except InputError as error:
        problem = str(error)
    if problem:
        return {"name": folder.name, "status": "unreadable", "message": problem}
    last = {f"{r.split}/{r.name}": r.value for r in result.rows}
    facts = {"name": folder.name, "status": result.status, "message": message, "steps": result.step}
    return files.finite({**facts, "seconds": result.seconds, **last, **flatten(result.config)})


def _row_now(store: Path, row: dict[str, Any]) -> dict[str, Any]:
    row = row | {"status": current_status(store / row["name"], row["status"])}
    return {name: row[name] for name in FIRST if name in row} | dict(sorted(row.items()))
