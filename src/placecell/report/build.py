"""From a folder of runs to what a person reads: tables as CSV, figures, and a text computed from the data."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placecell import analysis, files
from placecell.errors import InputError
from placecell.report.lazy_rich import Sizes, lazy_rich
from placecell.report.store import known_measures
from placecell.report.summary import Summary, measure, more_is_better, summarise
from placecell.seeds import numpy_stream
from placecell.sweep import load_store
from placecell.sweep.store import columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS_MATPLOTLIB = "figures need matplotlib; install it with: pip install 'placecell[report]'"


@dataclass(frozen=True)
class Written:
    """What an analysis found: the text, the same as plain values, and the files."""

    text: str
    facts: dict[str, Any]
    paths: list[Path]


def analyse(folder: Path | str, out: Path | str, quiet: bool = False) -> Written:
    """Measure the finished runs of `folder` and write runs.csv, summary.csv, summary.json, summary.md and figures."""
    try:
        from placecell.report import figures, networks
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None
    summary, out = summarise(folder, on_run=_progress(quiet)), Path(out)
    files.make_folder(out)
    facts = findings(summary)
    text = as_text(facts)
    files.write_bytes(out / "runs.csv", files.csv_bytes(columns(_run_rows(summary))))
    files.write_bytes(out / "summary.csv", files.csv_bytes(columns([*facts["configurations"], *facts["baselines"]])))
    files.write_json(out / "summary.json", files.finite(facts))
    files.write_text(out / "summary.md", text + "\n")
    paths = [out / name for name in ("summary.md", "summary.csv", "runs.csv", "summary.json")]
    made = {
        "finding": figures.fig_finding(summary),
        "tables": figures.fig_tables(summary),
        "training": figures.fig_training(summary),
        **networks.pictures(summary),
    }
    return Written(text, facts, paths + _write_pictures(made, out))


def analyse_lazy_rich(paths: Sequence[Path], out: Path, sizes: Sizes, quiet: bool = False) -> Written:
    """Measure how lazily or richly the finished runs of `paths` learned, and write lazy_rich.csv (every measurement),
    lazy_rich_summary.csv, lazy_rich.md and figures."""
    try:
        from placecell.report import lazy_figures
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None
    found = lazy_rich(paths, sizes, on_run=_progress(quiet))
    files.make_folder(out)
    rows, text = lazy_figures.summary_rows(found), lazy_figures.as_text(found)
    files.write_bytes(out / "lazy_rich.csv", files.csv_bytes(columns([fact._asdict() for fact in found.facts])))
    files.write_bytes(out / "lazy_rich_summary.csv", files.csv_bytes(columns(rows)))
    files.write_text(out / "lazy_rich.md", text + "\n")
    written = [out / name for name in ("lazy_rich.md", "lazy_rich_summary.csv", "lazy_rich.csv")]
    made = lazy_figures.figures(found)
    for name in lazy_figures.PICTURES - made.keys():  # of an earlier analysis of other runs
        files.remove(out / f"{name}.png")
    return Written(text, {"measures": rows}, written + _write_pictures(made, out))


def _progress(quiet: bool) -> Callable[[int, int], None]:
    """A line that counts runs, on a terminal; one a run elsewhere."""

    def on_run(done: int, total: int) -> None:
        if not quiet:
            end = "\n" if done == total or not sys.stderr.isatty() else "\r"
            print(f"measured {done} of {total} runs", end=end, file=sys.stderr, flush=True)

    return on_run


def _write_pictures(made: Mapping[str, Figure], out: Path) -> list[Path]:
    paths = []
    for name, figure in made.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=130)
        paths.append(out / f"{name}.png")
        files.write_bytes(paths[-1], picture.getvalue())
    return paths


def paper_figures(folder: Path, out: Path, to: str) -> list[Path]:
    """Write every panel of the paper that the runs of `folder` have data for, as `to` (pdf, svg or png)."""
    try:
        from matplotlib import rc_context

        from placecell.report import paper
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None
    summary = measure(load_store(folder), str(folder), known=known_measures(folder))
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


def findings(summary: Summary) -> dict[str, Any]:
    """The sweep in numbers: a row a configuration, and what the σ curve says."""
    headline = f"test/{summary.task.headline}"
    groups = [f"{headline}/{group}" for group in summary.task.groups]
    rows = []
    for label in summary.labels:
        row: dict[str, Any] = {"label": label, "seeds": len(summary.values(label, headline))}
        converged = summary.values(label, "converged")
        if np.isfinite(converged).any():
            row["converged"] = int(np.nansum(converged))
        row["diverged"] = sum(r.result.status == "diverged" for r in summary.runs if r.label == label)
        row["learned_at"] = _mean(summary.values(label, "learned_at"))
        interval = summary.interval(label, headline)
        row |= {headline: interval.estimate, "low": interval.low, "high": interval.high}
        row |= {name: _mean(summary.values(label, name)) for name in (*groups, *summary.task.shown)}
        rows.append({name: value for name, value in row.items() if not (isinstance(value, float) and np.isnan(value))})
    facts: dict[str, Any] = {"headline": headline, "configurations": rows, "sigma": _sigma_findings(summary, headline)}
    facts |= {"shown": list(summary.task.shown), "lower_is_better": summary.task.headline_lower_is_better}
    return facts | {"baselines": [{"label": label, **values} for label, values in summary.baselines.items()]}


def _sigma_findings(summary: Summary, headline: str) -> dict[str, Any]:
    """Small against large σ, paired by seed; and whether attention agreement and the headline go together over σ."""
    curve = summary.sigma_curve()
    if len(curve) < 2:
        return {}
    rng = numpy_stream(0, "sigma")
    labels = [label for _, label in curve]
    scores = summary.paired(labels, headline) * (1 if more_is_better(summary.task) else -1)
    best = summary.best_sigma()
    if not scores.shape[1]:
        return {}
    found: dict[str, Any] = {"best": curve[best][0], "largest": curve[-1][0]}
    if best != len(curve) - 1:
        gain = analysis.paired_difference(scores[best], scores[-1], rng)
        found["gain"] = {
            "mean": gain.interval.estimate,
            "low": gain.interval.low,
            "high": gain.interval.high,
            "p": gain.p,
        }
    found["inverted_u"] = bool(0 < best < len(curve) - 1)
    for name in dict.fromkeys((*summary.task.shown, "table/relation", "attention/relation")):
        if name.endswith("_p"):
            continue
        values = summary.paired(labels, name)
        if np.isfinite(values).all() and len(curve) > 2:
            interval = analysis.spearman_interval(values, scores, rng)
            found[f"rank_correlation/{name}"] = {"value": interval.estimate, "low": interval.low, "high": interval.high}
    return found


def as_text(facts: dict[str, Any]) -> str:
    """The findings as Markdown: a table, then sentences that follow from the numbers."""
    headline = facts["headline"]
    shown = [n for n in facts["shown"] if any(n in row for row in [*facts["configurations"], *facts["baselines"]])]
    counted = ["seeds", *(["converged"] if any("converged" in row for row in facts["configurations"]) else [])]
    heads = ["encoding", *counted, headline, "95 % interval", *shown]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in facts["configurations"]:
        cells = [row["label"], *(str(row.get(name, "–")) for name in counted), _number(row.get(headline), 4)]
        cells.append(f"{_number(row.get('low'), 4)} to {_number(row.get('high'), 4)}")
        lines.append("| " + " | ".join([*cells, *(_number(row.get(name)) for name in shown)]) + " |")
    for row in facts["baselines"]:
        cells = [row["label"], *("–" for _ in counted), _number(row.get(headline), 4), "–"]
        lines.append("| " + " | ".join([*cells, *(_number(row.get(name)) for name in shown)]) + " |")
    sigma = facts["sigma"]
    if sigma:
        lines.append("")
        word = "a U" if facts["lower_is_better"] else "an inverted U"  # of an error, the best σ is at the bottom
        shape = f"{word} in σ" if sigma["inverted_u"] else f"no {word.split(' ', 1)[1]} in σ"
        lines.append(f"Best σ: {sigma['best']:g}; {shape} over the values tried.")
        if "gain" in sigma:
            g, lower = sigma["gain"], ", how much lower" if facts["lower_is_better"] else ""
            lines.append(
                f"σ = {sigma['best']:g} against σ = {sigma['largest']:g}, paired by seed{lower}: "
                f"{g['mean']:+.4f} [{_number(g['low'], 4)}, {_number(g['high'], 4)}], p = {_number(g['p'])}."
            )
        for name, value in sigma.items():
            if name.startswith("rank_correlation/"):
                lines.append(
                    f"Rank correlation over σ of {name.split('/', 1)[1]} with the headline: "
                    f"{_number(value['value'])} [{_number(value['low'])}, {_number(value['high'])}]."
                )
    lost = [f"{r['label']} ({r['diverged']})" for r in facts["configurations"] if r["diverged"]]
    if lost:
        lines += ["", f"Diverged, and counted with their last score: {', '.join(lost)}."]
    slow = [
        f"{r['label']} ({r['converged']} of {r['seeds']})"
        for r in facts["configurations"]
        if r.get("converged", r["seeds"]) < r["seeds"]
    ]
    if slow:
        lines += [
            "",
            "Not all converged (every training sample scored is right, and the loss has stopped changing), so compare "
            f"with care: {', '.join(slow)}.",
        ]
    return "\n".join(lines)


def _run_rows(summary: Summary) -> list[dict[str, Any]]:
    rows = []
    for run in summary.runs:
        config = run.result.config
        facts = {"run": config.name, "label": run.label, "seed": config.seed, "status": run.result.status}
        rows.append(facts | run.notes | run.values)
    return rows


def _mean(values: np.ndarray[Any, Any]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def _number(value: float | None, digits: int = 3) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:.{digits}f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1g}"
