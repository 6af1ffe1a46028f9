"""A page that is a file and grows with a sweep: written again, in the background, as runs end."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from placecell.errors import InputError
from placecell.report.page.build import Page, build_page
from placecell.report.page.html import plotly_script
from placecell.store import Store
from placecell.study.known import known_measures
from placecell.study.records import RunSummary

SECONDS = 10  # after which a browser reads a growing page again


class GrowingPage:
    """The page of a folder of runs, as a file that a browser reads again until it is finished.

    Nothing is served: the file has one place from the first run to the last.

    Parameters
    ----------
    folder : Path
        A folder of runs.
    path : Path
        The file.

    Attributes
    ----------
    written : bool
        Whether the file has been written.

    Examples
    --------
    >>> with GrowingPage(folder, folder / "report.html") as page:  # doctest: +SKIP
    ...     placecell.sweep(configs, folder, on_done=lambda outcome: page.news())
    >>> page.finish()  # doctest: +SKIP
    """

    def __init__(self, folder: Path, path: Path) -> None:
        plotly_script()  # a missing package is reported before anything is trained
        self.folder, self.path, self.written = folder, path, False
        self._measured: dict[str, RunSummary] = {}
        self._news, self._over = threading.Event(), False
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        self._news.set()
        self._thread.join()

    def news(self) -> None:
        """Have the page written again soon, because a run has ended."""
        self._news.set()

    def finish(self) -> Page:
        """Write the page as it stays.

        Returns
        -------
        Page
        """
        return self._write(None)

    def _write(self, reload: int | None) -> Page:
        page = build_page(
            Store(self.folder).run_set(),
            known=known_measures(self.folder),
            seen=self._measured,
            reload=reload,
        )
        page.write(self.path)
        self.written = True
        return page

    def _follow(self) -> None:
        while self._news.wait() and not self._over:
            self._news.clear()
            with contextlib.suppress(InputError):  # `finish` says what is wrong
                self._write(SECONDS)
