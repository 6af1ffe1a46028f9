"""What was found, on disk: columns.csv, figures and one page."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell.discover.colours import colour
from placecell.discover.layout import balanced, matrix_order
from placecell.discover.place_map import PlaceMap
from placecell.errors import InputError
from placecell.store import files

Array = NDArray[np.float64]
MOST_NAMES = 60  # columns whose names fit on a picture
PAGE = "map.html"
MARK = b": a map of its columns</title>"  # by which a page is known as ours
NAMES = ("columns.csv", "map.png", "similarity.png", PAGE)  # of what is written


@dataclass(frozen=True)
class Written:
    """The files that were written."""

    paths: tuple[Path, ...]

    @property
    def page(self) -> Path | None:
        """The page, if there is one."""
        return next((path for path in self.paths if path.suffix == ".html"), None)


def check_folder(folder: Path | str, source: Path | str | None = None) -> None:
    """Refuse a folder in which something would be overwritten that `write_map` did not write.

    Parameters
    ----------
    folder : Path or str
        Where the map is to be written.
    source : Path or str, optional
        The file of the table.
    """
    folder = Path(folder)
    there = [folder / name for name in NAMES if (folder / name).exists()]
    if source is not None:
        for path in there:
            if path.samefile(source):
                raise InputError(f"{path}: the table would be overwritten; choose another -o.")
    page = folder / PAGE
    if there and not (page.is_file() and MARK in page.read_bytes()):
        raise InputError(
            f"{there[0]}: not written by placecell discover, and it would be overwritten; choose "
            "another folder with -o."
        )


def write_map(found: PlaceMap, folder: Path | str, title: str, correlation: Array) -> Written:
    """Write what was found: `columns.csv`, `map.png`, `similarity.png` and `map.html`.

    Without an arrangement there is no map: only the page, which says so.

    Parameters
    ----------
    found : PlaceMap
        A fitted map.
    folder : Path or str
        Where to write; made if it is not there.
    title : str
        What the page and the figures are called, such as the name of the file.
    correlation : array of shape (kept, kept)
        Absolute correlations of the columns that were used, to show beside.

    Returns
    -------
    Written
    """
    from placecell.discover.page import build_page

    folder = Path(folder)
    check_folder(folder)
    files.make_folder(folder)
    for stale in NAMES:  # of an earlier map of ours; its page is replaced, and says whose all is
        if stale != PAGE:
            files.remove(folder / stale)
    files.write_text(folder / PAGE, build_page(found, title, correlation))
    paths = []
    if found.found_:
        files.write_bytes(folder / "columns.csv", files.csv_bytes(found.columns()))
        paths.append(folder / "columns.csv")
        for name, draw in (("map.png", draw_map), ("similarity.png", draw_matrices)):
            files.write_bytes(folder / name, draw(found, title, correlation))
            paths.append(folder / name)
    return Written((*paths, folder / PAGE))


def used(found: PlaceMap) -> tuple[NDArray[np.int64], list[str]]:
    """The columns that were used, as indices and names."""
    kept = np.flatnonzero(found.labels_ >= 0)
    return kept, [found.column_names_[i] for i in kept]


def draw_map(found: PlaceMap, title: str, correlation: Array) -> bytes:
    """The map as a PNG, beside the map that correlation alone gives."""
    from placecell.discover.layout import lay_out

    plt = _pyplot()
    kept, names = used(found)
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    maps = {
        f"by {found.readout_} (chosen)": found.embedding_[kept][:, :2],
        "by correlation alone": lay_out(correlation, 2),
    }
    for ax, (heading, place) in zip(axes, maps.items(), strict=True):
        if place.shape[1] < 2:
            place = np.column_stack([place, np.zeros(len(place))])
        ax.scatter(*place.T, c=[colour(k) for k in found.labels_[kept]], s=28, zorder=2)
        if len(names) <= MOST_NAMES:
            for (x, y), name in zip(place, names, strict=True):
                ax.annotate(
                    _short(name), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=7
                )
        ax.set_title(heading, fontsize=10)
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.15, 0.08)  # room for names on the right
        ax.set_xticks([])
        ax.set_yticks([])
    figure.suptitle(
        f"{_short(title, 60)}: the map of its {len(names)} columns, colours are modules"
    )
    return _png(figure)


def draw_matrices(found: PlaceMap, title: str, correlation: Array) -> bytes:
    """Similarities and correlations as a PNG, columns ordered by module."""
    plt = _pyplot()
    kept, names = used(found)
    similarity = found.similarity_[np.ix_(kept, kept)]
    order = matrix_order(similarity, found.labels_[kept])
    edges = np.flatnonzero(np.diff(found.labels_[kept][order])) + 0.5
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
    pictures = [
        (f"{found.readout_} (chosen), scaled by each column's largest", balanced(similarity)),
        ("correlation, sign left out", correlation),
    ]
    for ax, (heading, matrix) in zip(axes, pictures, strict=True):
        picture = ax.imshow(matrix[np.ix_(order, order)], cmap="viridis", vmin=0, vmax=1)
        for edge in edges:
            ax.axhline(edge, color="white", lw=0.6)
            ax.axvline(edge, color="white", lw=0.6)
        ax.set_title(heading, fontsize=10)
        if len(names) <= MOST_NAMES:
            shown = [_short(names[i], 14) for i in order]
            ax.set_xticks(range(len(names)), shown, rotation=90, fontsize=5)
            ax.set_yticks(range(len(names)), shown, fontsize=5)
        figure.colorbar(picture, ax=ax, shrink=0.7)
    figure.suptitle(f"{_short(title, 60)}: how near columns are, ordered by module")
    return _png(figure)


def _short(name: str, most: int = 18) -> str:
    text = str(name).replace("$", r"\$")
    if len(text) <= most:
        return text
    begin = most // 2  # names of one table often begin alike
    return f"{text[:begin]}…{text[begin + 1 - most :]}"


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'placecell[report]'") from None
    return pyplot


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are drawn as boxes
        figure.savefig(buffer, format="png", dpi=130)
    _pyplot().close(figure)
    return buffer.getvalue()
