"""Draw and write what was measured of runs: figures, tables, text, and one page that shows it all.

The module is also the function: `placecell.report(results)` makes the page, `placecell.report.page`
has its parts."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placecell.report.page.build import Page, build_page
from placecell.report.write import (
    Written,
    analyse,
    analyse_lazy_rich,
    paper_figures,
    write_analysis,
)
from placecell.store import RunSet, Store
from placecell.study.known import known_measures
from placecell.study.records import RunSummary, Summary
from placecell.study.summary import summarise

__all__ = [
    "Page",
    "RunSummary",
    "Summary",
    "Written",
    "analyse",
    "analyse_lazy_rich",
    "paper_figures",
    "report",
    "summarise",
    "write_analysis",
]


def report(
    results: Path | str | Iterable[Any],
    out: Path | str | None = None,
    *,
    title: str | None = None,
    items: Path | None = None,
    human: Path | None = None,
) -> Page:
    """Make the interactive page of some runs.

    Parameters
    ----------
    results
        A folder of runs; or results of `placecell.run`, or the outcomes of `placecell.sweep`.
    out
        The file to write the page to; None writes nothing.
    title
        The page's title; None takes one from the task.
    items, human
        The items that people worked on, and how people did on them, for a task that has such items.

    Returns
    -------
    Page
        It shows itself in a notebook; `page.figure("headline")` is one of its figures.
    """
    options: dict[str, Any] = {"title": title, "items": items, "human": human}
    if isinstance(results, str | Path):
        folder = Path(results)
        page = build_page(Store(folder).run_set(), known=known_measures(folder), **options)
    else:
        page = build_page(RunSet.of(results), **options)
    if out is not None:
        page.write(out)
    return page


class _Report(types.ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _Report
