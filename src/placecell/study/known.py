"""What an earlier analysis measured of the tables, so that it is not measured again."""

from __future__ import annotations

import csv
from pathlib import Path

from placecell.store import files
from placecell.store.run_set import unchanged_since


def known_measures(folder: Path) -> dict[str, dict[str, float]]:
    """Read what `placecell analyse` measured of the tables of a folder's runs: it takes the most
    time of all.

    Parameters
    ----------
    folder
        A folder of runs; its `analysis/runs.csv` is read.

    Returns
    -------
    dict
        Name of a run to its measurements by name. A run that has changed since is left out; empty
        if there is no such file, it cannot be read, or a link leads out of the folder.
    """
    path = folder / "analysis" / "runs.csv"
    if not files.is_inside(path, folder):
        return {}
    measures: dict[str, dict[str, float]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                values = {k: float(v) for k, v in row.items() if k.startswith("table/") and v}
                if values and unchanged_since(folder / row["run"], path.stat().st_mtime):
                    measures[row["run"]] = values
    except (OSError, KeyError, TypeError, ValueError):
        return {}
    return measures
