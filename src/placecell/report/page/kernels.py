"""The page's section "Lazy or rich?": what `placecell analyse FOLDER --lazy-rich` wrote."""

from __future__ import annotations

import base64
import csv
import math
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placecell.store import files
from placecell.store.run_set import RunSet, unchanged_since
from placecell.store.table import Table
from placecell.study.kernel_table import cell, number
from placecell.study.kernels import WHOLE

Row = dict[str, Any]
COLUMNS = (
    "label",
    "label_without_sigma",
    "encoding",
    "sigma",
    "measure",
    "block",
    "step",
    "heading",
    "seeds",
    "mean",
    "low",
    "high",
)
NUMBERS = ("mean", "low", "high")
DISTANCE, MOVED = ("kernel_distance", WHOLE, "end"), ("moved", "PE", "end")
READING = (
    "A kernel at distance 0 is the one the network began with, up to its scale, as in lazy "
    "learning; at 1 the two have "
    "nothing in common. Means over seeds, with 95 % bootstrap intervals where there are seeds "
    "enough."
)
PICTURES = {
    "lazy_rich.png": "Along training: kernel distance and velocity, the table's share of the "
    "kernel, alignment with "
    "the targets, the loss, movement of the table. At the end: ridge regression with the "
    "kernels, and the network.",
    "lazy_rich_curves.png": "Against σ of the initial table: test score, kernel distance and "
    "movement of the table.",
}


def section(store: RunSet) -> tuple[list[dict[str, Any]], list[str]]:
    """Make the section from the files in FOLDER/analysis.

    Parameters
    ----------
    store : RunSet
        The runs.

    Returns
    -------
    (list of dict, list of str)
        The section as a list of at most one table, and notes on what cannot be shown.
    """
    if store.folder is None:
        return [], []
    path = store.folder / "analysis" / "lazy_rich_summary.csv"
    again = f"run `placecell analyse {store.folder} --lazy-rich` again"
    if not files.is_inside(path, store.folder):
        return [], [f"{path}: a link out of the folder of runs, which is not followed."]
    try:
        rows, written = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except (OSError, ValueError, csv.Error) as error:
        return [], [
            f"{path}: cannot be shown ({getattr(error, 'strerror', None) or error}); {again}."
        ]
    finished = [r for r in store.results if r.status == "done" and r.config.donor is None]
    late = sum(not unchanged_since(r.folder, written) for r in finished)
    stale = (
        f"Older than {late} of the {len(finished)} runs that are finished now; to bring it "
        f"up to date, {again}."
    )
    content = {
        "sentence": f"{_ends(rows)} {READING}",
        "notes": [stale] if late else [],
        "columns": Table.from_rows(rows),
    }
    pictures = [
        one
        for name, alt in PICTURES.items()
        if files.is_inside(path.with_name(name), store.folder)
        for one in _picture(path.with_name(name), alt)
    ]
    return [
        {"id": "lazy", "heading": "Lazy or rich?", "pictures": pictures} | content | _table(rows)
    ], []


def _read(path: Path) -> tuple[list[Row], float]:
    """The rows of the file, and when it was written."""
    with path.open(newline="", encoding="utf-8") as file:
        written, reader, rows = os.fstat(file.fileno()).st_mtime, csv.DictReader(file), []
        absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if absent:
            raise ValueError(f"no column {', '.join(absent)}")
        for row in reader:
            try:
                numbers: Row = {name: float(row[name]) for name in NUMBERS}
                numbers["seeds"] = int(row["seeds"])
                numbers["sigma"] = float(row["sigma"]) if row["sigma"] else None
            except (TypeError, ValueError):  # a line that was cut off has None
                raise ValueError(f"line {reader.line_num}: not a number") from None
            rows.append({name: row[name] for name in COLUMNS} | numbers)
    if not rows:
        raise ValueError("nothing is in it")
    return rows, written


def _table(rows: Sequence[Row]) -> dict[str, Any]:
    """One row per configuration, one column per measure that any of them has."""
    labels: dict[str, dict[str, Row]] = {}
    for row in rows:
        labels.setdefault(row["label"], {})[row["heading"]] = row
    known = {row["heading"] for row in rows if math.isfinite(row["mean"])}
    head = [
        heading for heading in dict.fromkeys(row["heading"] for row in rows) if heading in known
    ]
    cells = [
        [
            label,
            max(row["seeds"] for row in of.values()),
            *(_cell(of[h]) if h in of else "–" for h in head),
        ]
        for label, of in labels.items()
    ]
    return {"head": ["configuration", "seeds", *head], "rows": cells}


def _ends(rows: Sequence[Row]) -> str:
    """Where kernel and table ended at the smallest and the largest σ of learned tables."""
    by_sigma: dict[float, dict[tuple[str, ...], list[Row]]] = {}
    for row in rows:
        learned = row["encoding"] == "learnable" and row["sigma"] is not None
        if learned and math.isfinite(row["mean"]):
            measured = by_sigma.setdefault(row["sigma"], {})
            measured.setdefault((row["measure"], row["block"], row["step"]), []).append(row)
    whole = [sigma for sigma, of in by_sigma.items() if DISTANCE in of and MOVED in of]
    if not whole:
        return "No learned table of a known σ is among these."
    ends = {min(whole): "smallest", max(whole): "largest"} if len(whole) > 1 else {whole[0]: "only"}
    return " ".join(
        f"At the {name} σ of a learned table, {sigma:g}, the tangent kernel of the whole network "
        f"ends "
        f"at distance {_span(by_sigma[sigma][DISTANCE])} from its start, and the table has moved "
        f"by "
        f"{_span(by_sigma[sigma][MOVED])} of its initial norm."
        for sigma, name in ends.items()
    )


def _span(rows: Sequence[Row]) -> str:
    """One configuration with its interval; of several with this σ the least and the most."""
    means = [row["mean"] for row in rows]
    several = f"{number(min(means))} to {number(max(means))} (means of {len(means)} configurations)"
    return several if len(rows) > 1 else _cell(rows[0])


def _cell(row: Row) -> str:
    return cell(row["mean"], row["low"], row["high"])


def _picture(path: Path, alt: str) -> list[dict[str, Any]]:
    """A PNG to embed, if it is one; with its size, so that a live page keeps its place while it
    loads."""
    try:
        content = path.read_bytes()
    except OSError:
        return []
    if len(content) < 24 or not content.startswith(b"\x89PNG\r\n\x1a\n"):
        return []
    size = dict(zip(("width", "height"), struct.unpack(">II", content[16:24]), strict=True))
    return [
        {"source": f"data:image/png;base64,{base64.b64encode(content).decode()}", "alt": alt} | size
    ]
