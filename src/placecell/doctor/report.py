"""What the doctor says: one record a table, findings, and the same as text, dict and page."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from placecell.analysis.statistics import Array
from placecell.analysis.structure import Structure
from placecell.doctor.compare import Against, Costs
from placecell.doctor.find import Table, say_other
from placecell.doctor.measure import AsBuilt
from placecell.doctor.wild import Wild, some_of_the_wild

FEWEST = 8  # rows in which an order could be told from chance


@dataclass(frozen=True)
class Finding:
    """One thing that the evidence says of a table.

    Attributes
    ----------
    table : str
        The table's name.
    what : str
        In a few words: "zero and frozen", "zero", "frozen", "decayed", "share below 0.01",
        "share above 0.9", "untrained", "rows never trained", "unchanged rows", "decay only",
        "unused", "not exercised".
    text : str
        A sentence with the numbers.
    """

    table: str
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.table}: {self.text}"


@dataclass(frozen=True, eq=False)
class TableReport:
    """Everything that was measured of one table.

    Attributes
    ----------
    table : Table
    zero : bool
        Every number is 0.
    stored_sigma : float
        Standard deviation of the stored numbers.
    built : AsBuilt or None
        Where it acts; None without a model.
    structure : Structure or None
        Of the rows that were trained; None if there are too few.
    untrained_from : int or None
        The row from which on rows are as they were drawn; the number of rows if there is none.
    against : Against or None
        Beside the reference.
    costs : Costs or None
        What the loss becomes.
    decay : float or None
        The optimizer's weight decay on it; None if none was given or it is not in it.
    values : array of shape (n, d)
        The rows, for pictures.
    """

    table: Table
    zero: bool
    stored_sigma: float
    built: AsBuilt | None
    structure: Structure | None
    untrained_from: int | None
    against: Against | None
    costs: Costs | None
    decay: float | None
    values: Array = field(repr=False)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.table.name

    @property
    def trained(self) -> str:
        """What the rows look like: "untrained", "trained", "partly trained", "fixed" (in order, and
        not trained here) or "unknown"."""
        if self.zero or self.untrained_from == 0:
            return "untrained"
        if self.structure is None:
            return "unknown"
        n = len(self.values)
        if self.untrained_from is not None and self.untrained_from < n:
            return "partly trained"
        if self.structure.structured:
            return "trained" if self.table.trainable else "fixed"
        return "untrained" if n >= FEWEST else "unknown"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        table = self.table
        facts: dict[str, Any] = {
            "name": table.name,
            "kind": table.kind,
            "how": table.how,
            "shape": list(table.shape),
            "trainable": table.trainable if table.how or not table.exercised else None,
            "exercised": table.exercised,
            "zero": self.zero,
            "stored_sigma": self.stored_sigma,
            "trained": self.trained,
            "untrained_from": self.untrained_from,
            "decay": self.decay,
        }
        for key in ("built", "structure", "against", "costs"):
            value = getattr(self, key)
            facts[key] = None if value is None else asdict(value)
        if self.built is not None:
            facts["built"]["ratio"] = self.built.ratio
        return facts


@dataclass(frozen=True, eq=False)
class Report:
    """What `placecell.doctor` found. It prints as text and shows itself in a notebook.

    Attributes
    ----------
    tables : tuple of TableReport
    findings : tuple of Finding
        Only as far as the evidence goes; no promise of accuracy.
    others : dict of str to str
        Rotary, ALiBi, convolutional and computed positions.
    notes : tuple of str
        How it was measured, where that matters.
    wild : tuple of Wild
        How other models are built, beside a share that is unusual.
    title : str
    """

    tables: tuple[TableReport, ...]
    findings: tuple[Finding, ...]
    others: dict[str, str]
    notes: tuple[str, ...]
    wild: tuple[Wild, ...]
    title: str

    def __getitem__(self, name: str) -> TableReport:
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "title": self.title,
            "tables": [table.to_dict() for table in self.tables],
            "others": dict(self.others),
            "findings": [asdict(finding) for finding in self.findings],
            "notes": list(self.notes),
            "wild": [asdict(line) for line in self.wild],
        }

    def __str__(self) -> str:
        lines = [self.title]
        for table in self.tables:
            lines.append(f"  {table.table}")
            lines += [f"    {line}" for line in describe(table)]
        lines += [f"  {say_other(kind, what)}" for kind, what in self.others.items()]
        if not self.tables and not self.others:
            lines.append("  no position table found")
        if self.findings:
            lines.append("findings")
            lines += [f"  {finding}" for finding in self.findings]
        if self.wild:
            lines.append("beside: share ρ of other models as they are built (docs/wild.md)")
            lines += [
                f"  {line.model:<28} σ {line.sigma:.3g}, ρ {line.rho:.2g}" for line in self.wild
            ]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from placecell.doctor.page import section

        return section(self)

    def html(self) -> str:
        """Return a whole page with pictures, one file, no network."""
        from placecell.doctor.page import page

        return page(self)


def number(value: float) -> str:
    """Return a number for people; – if there is none."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3g}"


def describe(report: TableReport) -> list[str]:
    """Return what was measured of one table, a line for each kind of fact."""
    lines = []
    built = report.built
    if built is not None:
        words = f"σ {number(built.sigma)} where it acts, beside {number(built.beside)}"
        words += f" (ratio {number(built.ratio)})"
        if math.isfinite(built.rho):
            words += f"; share ρ {number(built.rho)}"
        if math.isfinite(built.logits):
            words += f"; share of the first logits' variance {number(built.logits)}"
        lines.append(words)
        where = {"none": "no norm takes the sum", "on the sum": "a norm takes the sum"}
        lines.append(where.get(built.norm, "norms stand in the branches; the sum itself goes on"))
    else:
        lines.append(f"σ {number(report.stored_sigma)} as stored")
    if report.decay is not None:
        lines.append(f"weight decay of the optimizer: {number(report.decay)}")
    lines += _trained(report)
    return lines


def _trained(report: TableReport) -> list[str]:
    lines = []
    found, n = report.structure, len(report.values)
    if report.zero:
        return ["every number is 0"]
    if found is not None:
        layout = " × ".join(map(str, found.layout))
        kind = "grid" if len(found.layout) == 2 else "sequence of"
        lines.append(
            f"{report.trained}: neighbours in the {kind} {layout} have cosine "
            f"{number(found.neighbours)}, {number(found.effect)} above all pairs "
            f"(p {number(found.p)}); effective dimension {number(found.effective_dimension)}"
            f" of {report.values.shape[1]}"
        )
        if found.structured:
            order = (
                f"order recovered blindly {number(found.order)}, " if len(found.layout) == 1 else ""
            )
            lines.append(f"{order}coordinates predicted from rows R² {number(found.position_r2)}")
    if report.untrained_from is not None and 0 < report.untrained_from < n:
        lines.append(
            f"as drawn from row {report.untrained_from} on, {n - report.untrained_from} rows"
        )
    beside = report.against
    if beside is not None:
        lines.append(
            f"reference: {beside.unchanged} rows unchanged, {beside.decayed} only shrunk, "
            f"the others moved by {number(beside.moved)} of their length"
        )
    cost = report.costs
    if cost is not None:
        lines.append(
            f"loss {number(cost.intact)}; rows shuffled {number(cost.shuffled)}, averaged "
            f"{number(cost.averaged)}, shifted by one {number(cost.shifted)}"
        )
    return lines


LOW, HIGH = 0.01, 0.9  # shares outside are said to be unusual


def findings_of(report: TableReport) -> list[Finding]:
    """Return what the evidence says of one table."""
    table, found = report.table, []

    def say(what: str, text: str) -> None:
        found.append(Finding(table.name, what, text))

    if not table.exercised:
        say("not exercised", "has a table's name, but the example does not reach it.")
    learned = table.trainable
    if report.zero and not learned:
        say("zero and frozen", "zero and frozen: it carries no position and will not learn any.")
    elif report.zero:
        say("zero", "starts at zero and is trainable: no position is seen before the first step.")
    elif not learned and table.name and table.exercised:
        say("frozen", "fixed: training does not change it.")
    if learned and report.decay:
        say("decayed", f"the optimizer's weight decay {number(report.decay)} shrinks it.")
    rho = report.built.rho if report.built is not None else math.nan
    if math.isfinite(rho) and not report.zero and table.kind == "absolute":
        if rho < LOW:
            say(
                "share below 0.01",
                f"share ρ {number(rho)} is below {LOW}: unusual beside text models; "
                "vision models are often built so.",
            )
        elif rho > HIGH:
            say("share above 0.9", f"share ρ {number(rho)} is above {HIGH}: unusual.")
    _say_trained(report, say)
    return found


def _say_trained(report: TableReport, say: Any) -> None:
    n, cut = len(report.values), report.untrained_from
    if report.trained == "untrained" and not report.zero:
        say("untrained", "looks untrained: its rows have no order that random rows lack.")
    elif cut is not None and 0 < cut < n:
        say(
            "rows never trained",
            f"rows {cut} to {n - 1} ({n - cut} of {n}) look as they were drawn: never trained.",
        )
    beside = report.against
    if beside is not None and beside.unchanged:
        tail = n - beside.unchanged_from
        where = f", {tail} of them from row {beside.unchanged_from} on" if tail else ""
        say(
            "unchanged rows", f"{beside.unchanged} rows are the reference's to the last bit{where}."
        )
    if beside is not None and beside.decayed:
        by = number(100 * (1 - beside.shrink))
        say(
            "decay only",
            f"{beside.decayed} rows only shrank, by {by} %: weight decay, no gradient.",
        )
    cost = report.costs
    if cost is not None:
        rise = max(cost.shuffled, cost.averaged, cost.shifted) - cost.intact
        if rise <= 0.001 * max(abs(cost.intact), 1e-12):
            say("unused", "the loss does not rise when its rows are shuffled, averaged or shifted.")


def beside_the_wild(findings: tuple[Finding, ...]) -> tuple[Wild, ...]:
    """Return how some other models are built, if a table's share is unusual."""
    return some_of_the_wild() if any(f.what.startswith("share") for f in findings) else ()
