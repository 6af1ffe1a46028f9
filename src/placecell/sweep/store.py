"""A folder of runs read back: every run, one row a run, one row a measurement."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placecell import files
from placecell.errors import InputError
from placecell.sweep.grid import flatten
from placecell.train.run import RunResult, load_result, read_status

Columns = dict[str, list[Any]]  # name -> values: what pandas.DataFrame, polars.DataFrame and pyarrow.table take
FIRST = ("name", "task", "status", "message", "steps", "seconds", "seed")  # then the rest, as in the alphabet
READ = ("status.json", "metrics.csv", "config.toml")  # an index entry holds while these are unchanged


@dataclass(frozen=True)
class Store:
    """A folder of runs. Each run's folder is the truth; `index.json` beside them only saves reading them all again,
    and is made anew from them whenever it is missing, broken or behind."""

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))  # which may be given as text
        if not self.folder.is_dir():
            raise InputError(f"{self.folder}: no such folder of runs.")
        if (self.folder / "status.json").exists():
            raise InputError(f"{self.folder}: one run; give the folder that holds it ({self.folder.parent}).")

    def folders(self) -> list[Path]:
        """The folder of every run, in the order of their names."""
        found = sorted(path.parent for path in self.folder.glob("*/status.json"))
        found = [path for path in found if (path / "config.toml").exists()]
        if not found:
            raise InputError(f"{self.folder}: no runs here; make some with `placecell sweep TASK --out {self.folder}`.")
        return found

    def results(self) -> list[RunResult]:
        """Every run, whatever its status."""
        return [load_result(folder) for folder in self.folders()]

    def rows(self) -> list[dict[str, Any]]:
        """One row a run: name, status, message, steps, seconds, last metrics (split/name), settings (section.key).

        A run that says `running` and that no process holds was killed: its status is `stopped`. One whose files
        cannot be read is `unreadable`.
        """
        known = self._read_index()
        index = {}
        for folder in self.folders():
            stamp, entry = _stamp(folder), known.get(folder.name)
            if not isinstance(entry, dict) or entry.get("stamp") != stamp:
                entry = {"stamp": stamp, "row": _row(folder)}
            index[folder.name] = entry
        if index != known or any(self.folder.glob(files.STAGED)):
            # a store that is only readable has no index, or an old one; if another process writes it, that will do
            with contextlib.suppress(InputError), files.lock(self.folder):
                files.remove_left_over(self.folder)
                files.write_json(self.folder / "index.json", index)
        return [_alive(self.folder, entry["row"]) for entry in index.values()]

    def runs(self) -> Columns:
        """`rows` as columns."""
        return columns(self.rows())

    def points(self) -> Columns:
        """One row a measurement: the run, step, split, name and value."""
        return columns(
            [{"run": folder.name, **row._asdict()} for folder in self.folders() for row in load_result(folder).rows]
        )

    def _read_index(self) -> dict[str, Any]:
        try:
            found = files.read_json(self.folder / "index.json")
        except InputError:
            return {}
        return found if isinstance(found, dict) else {}


def load_store(folder: Path | str) -> list[RunResult]:
    """Every run in `folder`, whatever its status, in the order of its name."""
    return Store(Path(folder)).results()


def columns(rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns, in the order in which names first appear; what a row does not have is None."""
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}


def _stamp(folder: Path) -> list[list[int]]:
    """Changes whenever a file that a row is made of does."""
    found = [path.stat() if (path := folder / name).exists() else None for name in READ]
    return [[one.st_mtime_ns, one.st_size, one.st_ino] if one else [] for one in found]


def _row(folder: Path) -> dict[str, Any]:
    try:
        result, message = load_result(folder), read_status(folder).get("message", "")
    except InputError as error:
        return {"name": folder.name, "status": "unreadable", "message": str(error)}
    last = {f"{r.split}/{r.name}": r.value for r in result.rows}
    facts = {"name": folder.name, "status": result.status, "message": message, "steps": result.step}
    return files.finite({**facts, "seconds": result.seconds, **last, **flatten(result.config)})


def _alive(store: Path, row: dict[str, Any]) -> dict[str, Any]:
    if row["status"] == "running" and not files.is_locked(store / row["name"]):
        row = row | {"status": "stopped"}
    return {name: row[name] for name in FIRST if name in row} | dict(sorted(row.items()))
