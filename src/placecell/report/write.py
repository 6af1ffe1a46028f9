"""Write what was measured: tables as CSV, a text, and figures."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell.errors import InputError
from placecell.store import Store, Table, files
from placecell.study import findings as study
from placecell.study.findings import Findings
from placecell.study.kernel_table import as_text, kernel_table
from placecell.study.kernels import Sizes, lazy_rich
from placecell.study.known import known_measures
from placecell.study.summary import measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS_MATPLOTLIB = "figures need matplotlib; install it with: pip install 'placecell[report]'"


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes
    ----------
    text : str
        The text.
    facts : dict
        The same as plain values.
    paths : list of Path
        The files.
    """

    text: str
    facts: dict[str, Any]
    paths: list[Path]


def analyse(folder: Path | str, out: Path | str, quiet: bool = False) -> Written:
    """Measure the finished runs of a folder and write tables, text and figures.

    Parameters
    ----------
    folder : Path or str
        A folder of runs.
    out : Path or str
        The folder for runs.csv, summary.csv, intervals.csv, places.csv, summary.json, summary.md
        and figures.
    quiet : bool
        Do not count the runs on stderr while they are measured.

    Returns
    -------
    Written
    """
    _need_matplotlib()
    return write_analysis(study.analyse(folder, on_run=_progress(quiet)), out)


def write_analysis(findings: Findings, out: Path | str) -> Written:
    """Write what `placecell.analyse` measured as tables, text and figures.

    Parameters
    ----------
    findings : Findings
        What was measured.
    out : Path or str
        The folder for runs.csv, summary.csv, intervals.csv, places.csv, summary.json, summary.md
        and figures.

    Returns
    -------
    Written
    """
    _need_matplotlib()
    from placecell.report.figures import finding as figures
    from placecell.report.figures import networks
    from placecell.report.figures.tiles import fig_tiles

    out, summary, facts, text = Path(out), findings.summary, findings.facts, str(findings)
    files.make_folder(out)
    table = Table.from_rows([*facts["configurations"], *facts["baselines"]])
    files.write_bytes(out / "runs.csv", files.csv_bytes(findings.runs))
    files.write_bytes(out / "summary.csv", files.csv_bytes(table))
    files.write_bytes(out / "intervals.csv", files.csv_bytes(findings.intervals))
    files.write_json(out / "summary.json", files.finite(facts))
    files.write_text(out / "summary.md", text + "\n")
    files.write_bytes(out / "places.csv", files.csv_bytes(findings.places))
    tables = ("summary.csv", "intervals.csv", "runs.csv", "places.csv")
    paths = [out / name for name in ("summary.md", *tables, "summary.json")]
    tiles = fig_tiles(summary)
    drawn = {
        **({} if tiles is None else {"tiles": tiles}),
        "finding": figures.fig_finding(summary),
        "tables": figures.fig_tables(summary),
        "training": figures.fig_training(summary),
        **networks.pictures(summary),
    }
    return Written(text, facts, paths + _write_pictures(drawn, out))


def analyse_lazy_rich(
    paths: Sequence[Path], out: Path, sizes: Sizes, quiet: bool = False
) -> Written:
    """Measure how lazily or richly finished runs learned, and write it.

    Parameters
    ----------
    paths : sequence of Path
        Folders of runs, or of one run.
    out : Path
        The folder for lazy_rich.csv (every measurement), lazy_rich_summary.csv, lazy_rich.md and
        figures.
    sizes : Sizes
        How much is measured.
    quiet : bool
        Do not count the runs on stderr while they are measured.

    Returns
    -------
    Written
    """
    _need_matplotlib()
    from placecell.report.figures import kernels as lazy_figures

    lazy = lazy_rich(paths, sizes, on_run=_progress(quiet))
    files.make_folder(out)
    table, text = kernel_table(lazy), as_text(lazy)
    every = Table.from_rows(fact._asdict() for fact in lazy.facts)
    files.write_bytes(out / "lazy_rich.csv", files.csv_bytes(every))
    files.write_bytes(out / "lazy_rich_summary.csv", files.csv_bytes(table))
    files.write_text(out / "lazy_rich.md", text + "\n")
    written = [out / name for name in ("lazy_rich.md", "lazy_rich_summary.csv", "lazy_rich.csv")]
    drawn = lazy_figures.figures(lazy)
    for name in lazy_figures.PICTURES - drawn.keys():  # of an earlier analysis of other runs
        files.remove(out / f"{name}.png")
    return Written(text, {"measures": table.rows()}, written + _write_pictures(drawn, out))


def _need_matplotlib() -> None:
    """Say what is missing before anything is measured."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None


def _progress(quiet: bool) -> Callable[[int, int], None]:
    """Count runs on stderr: in one line on a terminal, in a line for each run elsewhere."""

    def on_run(done: int, total: int) -> None:
        if not quiet:
            end = "\n" if done == total or not sys.stderr.isatty() else "\r"
            print(f"measured {done} of {total} runs", end=end, file=sys.stderr, flush=True)

    return on_run


def _write_pictures(drawn: Mapping[str, Figure], out: Path) -> list[Path]:
    paths = []
    with warnings.catch_warnings(record=True) as caught:
        for name, figure in drawn.items():
            picture = io.BytesIO()
            figure.savefig(picture, format="png", dpi=130)
            paths.append(out / f"{name}.png")
            files.write_bytes(paths[-1], picture.getvalue())
    missing = [one for one in caught if str(one.message).startswith("Glyph ")]
    for one in caught:
        if one not in missing:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:  # of names in a script of which matplotlib's own font has no letters
        warnings.warn(
            "the font of the figures lacks letters of these names; choose one that has them with "
            "font.family in a matplotlibrc. places.csv and the page have the names whole.",
            stacklevel=3,
        )
    return paths


def paper_figures(folder: Path, out: Path, to: str) -> list[Path]:
    """Write every panel of the paper that the runs have data for.

    Parameters
    ----------
    folder : Path
        A folder of runs.
    out : Path
        The folder for the figures.
    to : str
        pdf, svg or png.

    Returns
    -------
    list of Path
        The files.
    """
    _need_matplotlib()
    from matplotlib import rc_context

    from placecell.report.figures import paper

    runs, known = Store(folder).run_set(), known_measures(folder)
    summary = measure(runs.results, runs.where, known=known, left_out=runs.unreadable)
    files.make_folder(out)
    paths = []
    for name, figure in paper.paper_panels(summary).items():
        picture = io.BytesIO()
        # no date inside: the same runs give the same file
        note = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(to)
        with rc_context(paper.STYLE):
            figure.savefig(picture, format=to, dpi=300, metadata=note)
        paths.append(out / f"{name}.{to}")
        files.write_bytes(paths[-1], picture.getvalue())
    return paths
