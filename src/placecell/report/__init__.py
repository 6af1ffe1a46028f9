"""What a sweep found, for people: measurements, figures, text, and one page that shows it all.

The module is also the function: `placecell.report(results)` makes the page, `placecell.report.figures` has its parts.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from placecell.report.build import Written, analyse
from placecell.report.page import Page, build_page
from placecell.report.store import known_measures, of_results, read_store
from placecell.report.summary import RunSummary, Summary, summarise

__all__ = ["Page", "RunSummary", "Summary", "Written", "analyse", "report", "summarise"]


def report(
    results: Path | str | Iterable[Any],
    out: Path | str | None = None,
    *,
    title: str | None = None,
    items: Path | None = None,
    human: Path | None = None,
) -> Page:
    """The page of a folder of runs, or of results of `placecell.run` and outcomes of a sweep; written to `out` if
    given. In a notebook the page shows itself; `page.figure("headline")` is one of its figures."""
    if isinstance(results, str | Path):
        folder = Path(results)
        page = build_page(read_store(folder), title=title, known=known_measures(folder), items=items, human=human)
    else:
        page = build_page(of_results(results), title=title, items=items, human=human)
    if out is not None:
        page.write(out)
    return page


class _Report(types.ModuleType):
    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _Report
