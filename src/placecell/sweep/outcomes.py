"""How the runs of a sweep went, as a list that shows itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell.store.table import Table
from placecell.sweep.driver import Outcome

if TYPE_CHECKING:
    import pandas as pd


class Outcomes(list[Outcome]):
    """The outcome of each run of a sweep, in the order in which they ended.

    `print(outcomes)` gives the line that ends `placecell sweep`. Fewer outcomes than configurations
    mean that the sweep was interrupted.

    Parameters
    ----------
    outcomes
        The outcomes.
    folder
        The folder of the runs.
    """

    def __init__(self, outcomes: Iterable[Outcome], folder: Path | str) -> None:
        super().__init__(outcomes)
        self.folder = Path(folder)

    @property
    def counts(self) -> dict[str, int]:
        """Status to the number of runs that ended with it."""
        return dict(Counter(outcome.status for outcome in self))

    @property
    def reused(self) -> int:
        """The number of runs that were done before."""
        return sum(outcome.reused for outcome in self)

    @property
    def table(self) -> Table:
        """One row per run: its settings, its status and the headline metric."""
        return Table.from_rows(
            {
                "name": outcome.config.name,
                "task": outcome.config.task,
                "encoding": outcome.config.encoding.name,
                "sigma": outcome.config.encoding.sigma,
                "seed": outcome.config.seed,
                "status": outcome.status,
                "message": outcome.message,
                "reused": outcome.reused,
                "headline": outcome.headline,
            }
            for outcome in self
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcomes as plain values: what `placecell sweep --json` prints."""
        runs = [{"name": o.config.name, "status": o.status, "message": o.message} for o in self]
        counts = {"folder": str(self.folder), "counts": self.counts, "reused": self.reused}
        return counts | {"runs": runs}

    def to_frame(self) -> pd.DataFrame:
        """Return `table` as a pandas data frame."""
        return self.table.to_frame()

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {status}" for status, n in self.counts.items()) or "none ended"
        return f"{self.folder}: {counts}; {self.reused} were there already"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
