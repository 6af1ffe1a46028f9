"""One self-contained page from runs: what was run, measured and wrong, and how to repeat it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import placecell
from placecell.config.labels import label, varying
from placecell.errors import InputError
from placecell.report.page import arrays, kernels, panels, rows, words
from placecell.report.page.colours import colours
from placecell.report.page.html import (
    TEMPLATE,
    embed,
    page_script,
    plotly_script,
    script_hash,
    templates,
)
from placecell.report.page.panels import Panel
from placecell.report.page.plotly import plotly_figure
from placecell.report.page.training import training_panel
from placecell.store import files
from placecell.store.run_set import RunSet
from placecell.study.arrangement import contrast
from placecell.study.records import RunSummary, Summary
from placecell.study.summary import measure

CONTENTS = {
    "tables": "The learned table",
    "headline": "{headline}",
    "attention": "Attention",
    "training": "Training",
    "diagnosis": "Diagnosis",
    "agreement": "Table and score",
    "lazy": "Lazy or rich?",
    "conditions": "By {noun}",
    "people": "People",
    "runs": "Runs",
    "repeat": "How to repeat",
}


@dataclass(frozen=True, eq=False)
class Page:
    """A finished page. In a notebook it shows itself; `figure` gives its figures one by one.

    Attributes
    ----------
    title : str
        The title.
    html : str
        The whole page.
    panels : mapping of str to Panel
        Its figures by name.
    summary : Summary or None
        What was measured; None while no run is finished.
    parts : mapping
        What a live page sends when it changes: `main` and `data`.
    """

    title: str
    html: str
    panels: Mapping[str, Panel]
    summary: Summary | None
    parts: Mapping[str, Any] = field(repr=False, default_factory=dict)

    def write(self, path: Path | str) -> Path:
        """Write the page to a file.

        Parameters
        ----------
        path : Path or str
            The file; its folder must exist.

        Returns
        -------
        Path
            The file.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}.")
        if path.is_dir():
            raise InputError(
                f"{path}: a folder; expected the name of a file, such as {path / 'report.html'}."
            )
        files.write_text(path, self.html)
        return path

    def figure(self, name: str, metric: str | None = None) -> Any:
        """Return one figure of the page as a plotly figure.

        Parameters
        ----------
        name : str
            `headline`, `training` or `agreement`.
        metric : str, optional
            Which metric of the training figure, or measure of the agreement figure; None takes the
            first.

        Returns
        -------
        Any
            A plotly figure.
        """
        if name not in self.panels:
            raise InputError(
                f"no figure {name!r} in this report; it has: {', '.join(self.panels) or 'none'}."
            )
        return plotly_figure(self.panels[name], metric)

    def _repr_html_(self) -> str:
        frame = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{frame}" style="width:100%;height:42rem;border:0" '
            f'title="placecell report"></iframe>'
        )


def build_page(
    store: RunSet,
    *,
    title: str | None = None,
    known: Mapping[str, Mapping[str, float]] | None = None,
    seen: dict[str, RunSummary] | None = None,
    items: Path | None = None,
    human: Path | None = None,
    live: str | None = None,
    reload: int | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> Page:
    """Build the page of some runs.

    Parameters
    ----------
    store : RunSet
        The runs.
    title : str, optional
        Title of the page; None takes one from the task.
    known : mapping, optional
        Measurements by run, as `known_measures` reads them.
    seen : dict, optional
        What was measured before, by run; new measurements are added to it.
    items : Path, optional
        A file of items used with people.
    human : Path, optional
        A file of people's accuracy on these items.
    live : str, optional
        Version of a page that is served; None for a page that is a file.
    reload : int, optional
        Seconds after which a browser reads the page again, for a file that is still growing.
    on_run : callable
        Called with the number of runs measured so far, and of all.

    Returns
    -------
    Page
    """
    # first, because missing packages should be reported before anything is measured
    environment, plotly = templates(), plotly_script()
    runs = [r for r in store.results if r.config.donor is None]
    names = sorted({r.config.task for r in runs})
    if len(names) > 1:
        raise InputError(
            f"{store.where}: runs of different tasks ({', '.join(names)}); give each a folder of "
            f"its own."
        )
    keys = varying([r.config for r in runs])
    summary = None
    if any(r.status in ("done", "diverged") for r in runs):
        summary = measure(
            runs,
            store.where,
            known=known,
            seen=seen,
            keys=keys,
            left_out=store.unreadable,
            on_run=on_run,
        )
        store = replace(store, unreadable=summary.left_out)
        runs = [r for r in runs if r.config.name not in summary.left_out]
    labels = {r.config.name: label(r.config, keys) for r in runs}
    figures: dict[str, Panel] = {}
    shades: dict[str, str] = {}
    if summary is not None:
        shades = colours(summary)
        figures = {
            "headline": panels.headline_panel(summary),
            "agreement": panels.agreement_panel(summary),
        }
    if runs:
        place = {name: i for i, name in enumerate(summary.labels if summary else [])}
        order = sorted(
            runs, key=lambda r: (place.get(labels[r.config.name], len(place)), r.config.seed)
        )
        pairs = [(labels[r.config.name], r) for r in order]
        figures["training"] = training_panel(pairs, rows.headline_of(runs[0]), shades)
    tables = arrays.tables(summary) if summary else {}
    attention = arrays.attention(summary) if summary else {}
    start = _start(summary)
    lazy, notes = kernels.section(store)
    grids = lazy + (rows.grids(summary, items, human) if summary else [])
    text = words.PageText(store, runs, labels, summary)
    context: dict[str, Any] = {
        "title": title or text.title,
        "version": placecell.__version__,
        "live": live is not None,
        "reload": reload,
        "panels": figures,
        "tables": tables
        and tables
        | {
            "steps": len({step for run in tables["runs"] for step in run["steps"]}),
            "configurations": list(dict.fromkeys(run["label"] for run in tables["runs"])),
        },
        "attention": attention
        and attention
        | {"configurations": list(dict.fromkeys(run["label"] for run in attention["runs"]))},
        "grids": grids,
        "training_labels": list(dict.fromkeys(t["name"] for t in figures["training"].traces))
        if runs
        else [],
        "headline_height": _height(figures.get("headline")),
        **text.context(),
        "notes": text.notes() + notes,
    }
    noun = summary.task.group_noun if summary else ""
    context["contents"] = [
        (i, _capital(n.format(headline=context["headline_name"], noun=noun)))
        for i, n in CONTENTS.items()
        if _present(i, context)
    ]
    data = {
        "version": live,
        "panels": {name: _embedded(panel) for name, panel in figures.items()},
        "tables": tables and tables | {"start": start},
        "attention": attention
        and attention
        | {
            "start": next(
                (name for name, _ in start if name in context["attention"]["configurations"]),
                context["attention"]["configurations"][0],
            )
        },
        "grids": {grid["id"]: {"columns": grid["columns"]} for grid in grids} | text.columns(),
    }
    data = files.finite({name: value or None for name, value in data.items()})
    script = page_script()
    policy = (
        f"default-src 'none'; script-src {script_hash(plotly)} {script_hash(script)}; style-src "
        f"'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if live is not None else "")
    )
    from markupsafe import Markup

    page = environment.get_template("page.html").render(
        context
        | {
            "policy": policy,
            "css": Markup((TEMPLATE / "page.css").read_text()),
            "script": Markup(script),
            "plotly": Markup(plotly),
            "data": Markup(embed(data)),
        }
    )
    main = environment.get_template("main.html").render(context) if live is not None else ""
    return Page(context["title"], page, figures, summary, {"main": main, "data": data})


def _embedded(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "columns": panel.columns,
        "traces": panel.traces,
        "axes": panel.axes,
        "choices": panel.choices,
    }


def _start(summary: Summary | None) -> list[tuple[str, int]]:
    """Label and seed of the two tables that are shown first; twice the same if there is one."""
    pair = [(run.label, run.result.config.seed) for run in contrast(summary)] if summary else []
    return pair if len(pair) != 1 else pair * 2


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _height(panel: Panel | None) -> str:
    if panel is None or not panel.axes.get("names"):
        return "26rem"
    return f"{max(12, 5 + 1.8 * len(set(panel.columns['configuration']))):.0f}rem"


def _present(name: str, context: Mapping[str, Any]) -> bool:
    if name in ("runs", "repeat"):
        return True
    if name == "diagnosis":
        return bool(context["diagnoses"])
    if name in ("lazy", "conditions", "people"):
        return any(grid["id"] == name for grid in context["grids"])
    if name == "agreement":
        return bool(name in context["panels"] and context["panels"][name].choices["measures"])
    if name == "training":
        return bool(name in context["panels"] and context["panels"][name].traces)
    return bool(context["panels"].get(name) or context.get(name))
