"""What a sweep shows: its configurations and the curve over σ, in numbers and in words."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placecell import analysis
from placecell.seeds import numpy_stream
from placecell.store import RunSet, Table
from placecell.study.places import place_table
from placecell.study.records import Array, Summary, more_is_better
from placecell.study.summary import measure, summarise

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Findings:
    """What the finished runs of a sweep show.

    `print(findings)` gives the text that `placecell analyse` prints.

    Attributes
    ----------
    summary
        Every run's measurements, with its table and attention maps.
    facts
        The sweep in plain values, as `summary.json` has them: the headline's name,
        `configurations`, `baselines`, and under `sigma` what the curve over σ says; `left_out`
        names runs that could not be read, if there are any.
    """

    summary: Summary
    facts: dict[str, Any]

    @property
    def configurations(self) -> Table:
        """One row per configuration: seeds, headline with interval, and what the task shows."""
        return Table.from_rows(self.facts["configurations"])

    @property
    def baselines(self) -> Table:
        """One row per other method on the same data; empty if the task has none."""
        return Table.from_rows(self.facts["baselines"])

    @property
    def runs(self) -> Table:
        """One row per run, with every measurement."""
        return self.summary.run_table()

    @property
    def intervals(self) -> Table:
        """One row per configuration and measurement: mean over seeds with its 95 % interval."""
        return self.summary.interval_table()

    @property
    def places(self) -> Table:
        """One row per place: its name, what is known of it, and its nearest in every table."""
        return place_table(self.summary)

    def to_frame(self) -> pd.DataFrame:
        """Return `configurations` as a pandas data frame; `runs.to_frame()` gives the runs.

        Returns
        -------
        pd.DataFrame
            One row per configuration.
        """
        return self.configurations.to_frame()

    def __str__(self) -> str:
        return as_text(self.facts)

    def _repr_html_(self) -> str:
        heads, rows = _markdown_cells(self.facts)
        table = Table.from_rows(dict(zip(heads, row, strict=True)) for row in rows)
        said = "".join(f"<p>{html.escape(line)}</p>" for line in _sentences(self.facts) if line)
        return table._repr_html_() + said


def analyse(
    runs: Path | str | Iterable[Any],
    *,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Findings:
    """Measure the finished runs of a sweep and compare its configurations.

    Parameters
    ----------
    runs
        A folder of runs; or results of `placecell.run`, or the outcomes of `placecell.sweep`.
    on_run
        Called with the number of runs measured so far, and of all.

    Returns
    -------
    Findings
        Nothing is written; `placecell.report.analyse` writes tables and figures.

    Examples
    --------
    >>> findings = placecell.analyse("runs/mine")  # doctest: +SKIP
    >>> print(findings)  # doctest: +SKIP
    >>> findings.runs.to_frame()  # doctest: +SKIP
    """
    if isinstance(runs, str | Path):
        summary = summarise(runs, on_run=on_run)
    else:
        run_set = RunSet.of(runs)
        summary = measure(run_set.results, run_set.where, on_run=on_run)
    return Findings(summary, sweep_facts(summary))


def sweep_facts(summary: Summary) -> dict[str, Any]:
    """Compare the configurations of a sweep, in plain values.

    Parameters
    ----------
    summary : Summary
        A sweep.

    Returns
    -------
    dict
        The headline's name, `configurations` (one dict each), `baselines`, and under `sigma` what
        the curve over σ says.
    """
    headline = f"test/{summary.task.headline}"
    groups = [f"{headline}/{group}" for group in summary.task.groups]
    rows = []
    for label in summary.labels:
        row: dict[str, Any] = {"label": label, "seeds": len(summary.values(label, headline))}
        converged = summary.values(label, "converged")
        if np.isfinite(converged).any():
            row["converged"] = int(np.nansum(converged))
        same = [run for run in summary.runs if run.label == label]
        row["diverged"] = sum(run.result.status == "diverged" for run in same)
        row["learned_at"] = _mean(summary.values(label, "learned_at"))
        interval = summary.interval(label, headline)
        row |= {headline: interval.estimate, "low": interval.low, "high": interval.high}
        row |= {name: _mean(summary.values(label, name)) for name in (*groups, *summary.task.shown)}
        rows.append({name: value for name, value in row.items() if not _is_nan(value)})
    from_data = {"reference": summary.reference} if summary.truth.from_data else {}
    left_out = [{"run": run, "reason": reason} for run, reason in summary.left_out.items()]
    return (
        from_data
        | ({"left_out": left_out} if left_out else {})
        | {
            "headline": headline,
            "configurations": rows,
            "sigma": _sigma_facts(summary, headline),
            "shown": list(summary.task.shown),
            "lower_is_better": summary.task.headline_lower_is_better,
            "baselines": [
                {"label": label, **values} for label, values in summary.baselines.items()
            ],
        }
    )


def _sigma_facts(summary: Summary, headline: str) -> dict[str, Any]:
    """Small against large σ, paired by seed; and the measures' rank correlations over σ."""
    curve = summary.sigma_curve()
    if len(curve) < 2:
        return {}
    rng = numpy_stream(0, "sigma")
    labels = [label for _, label in curve]
    scores = summary.paired(labels, headline) * (1 if more_is_better(summary.task) else -1)
    best = summary.best_sigma()
    if not scores.shape[1]:
        return {}
    facts: dict[str, Any] = {"best": curve[best][0], "largest": curve[-1][0]}
    if best != len(curve) - 1:
        gain = analysis.paired_difference(scores[best], scores[-1], rng)
        facts["gain"] = {
            "mean": gain.interval.estimate,
            "low": gain.interval.low,
            "high": gain.interval.high,
            "p": gain.p,
        }
    facts["inverted_u"] = bool(0 < best < len(curve) - 1)
    for name in dict.fromkeys((*summary.task.shown, "table/relation", "attention/relation")):
        if name.endswith("_p"):
            continue
        values = summary.paired(labels, name)
        if np.isfinite(values).all() and len(curve) > 2:
            rank = analysis.spearman_interval(values, scores, rng)
            numbers = {"value": rank.estimate, "low": rank.low, "high": rank.high}
            facts[f"rank_correlation/{name}"] = numbers
    return facts


def as_text(facts: dict[str, Any]) -> str:
    """Write the facts of a sweep as Markdown.

    Parameters
    ----------
    facts : dict
        As `sweep_facts` returns them.

    Returns
    -------
    str
        A table, then sentences that follow from the numbers.
    """
    heads, rows = _markdown_cells(facts)
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines + _sentences(facts))


def _markdown_cells(facts: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the cells of each row."""
    headline = facts["headline"]
    every = [*facts["configurations"], *facts["baselines"]]
    shown = [name for name in facts["shown"] if any(name in row for row in every)]
    counted = ["seeds"]
    if any("converged" in row for row in facts["configurations"]):
        counted.append("converged")
    rows = []
    for row in facts["configurations"]:
        counts = [str(row.get(name, "–")) for name in counted]
        between = f"{_number(row.get('low'), 4)} to {_number(row.get('high'), 4)}"
        rows.append([row["label"], *counts, _number(row.get(headline), 4), between])
        rows[-1] += [_number(row.get(name)) for name in shown]
    for row in facts["baselines"]:
        label = row["label"] + (" *" if "by_construction" in row else "")
        rows.append([label, *("–" for _ in counted), _number(row.get(headline), 4), "–"])
        rows[-1] += [_number(row.get(name)) for name in shown]
    return ["encoding", *counted, headline, "95 % interval", *shown], rows


def _sentences(facts: dict[str, Any]) -> list[str]:
    """Lines below the table; an empty one begins a paragraph."""
    sigma, lower_is_better, lines = facts["sigma"], facts["lower_is_better"], []
    if sigma:
        word = "a U" if lower_is_better else "an inverted U"  # the least error is at the bottom
        shape = f"{word} in σ" if sigma["inverted_u"] else f"no {word.split(' ', 1)[1]} in σ"
        lines += ["", f"Best σ: {sigma['best']:g}; {shape} over the values tried."]
        if "gain" in sigma:
            gain, lower = sigma["gain"], ", how much lower" if lower_is_better else ""
            between = f"[{_number(gain['low'], 4)}, {_number(gain['high'], 4)}]"
            lines.append(
                f"σ = {sigma['best']:g} against σ = {sigma['largest']:g}, paired by seed{lower}: "
                f"{gain['mean']:+.4f} {between}, p = {_number(gain['p'])}."
            )
        for name, rank in sigma.items():
            if name.startswith("rank_correlation/"):
                between = f"[{_number(rank['low'])}, {_number(rank['high'])}]"
                lines.append(
                    f"Rank correlation over σ of {name.split('/', 1)[1]} with the headline: "
                    f"{_number(rank['value'])} {between}."
                )
    if "reference" in facts:
        lines += [
            "",
            f"No networks are known here (--networks names them): tables and attention are "
            f"compared with {facts['reference']}, which is not a known truth.",
        ]
        if any("by_construction" in row for row in facts["baselines"]):
            lines.append("* agrees with that by construction, being made of the same correlations.")
    if "left_out" in facts:
        lines += ["", f"Left out, because they cannot be read ({len(facts['left_out'])}):"]
        lines += [f"{one['run']}: {one['reason']}" for one in facts["left_out"]]
    rows = facts["configurations"]
    lost = [f"{row['label']} ({row['diverged']})" for row in rows if row["diverged"]]
    if lost:
        lines += ["", f"Diverged, and counted with their last score: {', '.join(lost)}."]
    slow = [
        f"{row['label']} ({row['converged']} of {row['seeds']})"
        for row in rows
        if row.get("converged", row["seeds"]) < row["seeds"]
    ]
    if slow:
        lines += [
            "",
            "Not all converged (every training sample scored is right, and the loss has stopped "
            f"changing), so compare with care: {', '.join(slow)}.",
        ]
    return lines


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _number(value: float | None, digits: int = 3) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:.{digits}f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1g}"
