"""One page that shows a map: the answer first, then the map, the similarities, and how sure."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import placecell
from placecell.discover.colours import colour
from placecell.discover.layout import balanced, lay_out, matrix_order
from placecell.discover.place_map import PlaceMap
from placecell.report.page.html import embed, plotly_script, script_hash
from placecell.store.files import finite

Array = NDArray[np.float64]

MEANING = {
    "consensus": "partial correlation, mutual information and the model's ablation, added up",
    "ablation": "hide one more column and see how far the model's prediction of another moves",
    "signed ablation": "the same, counting columns that rise and fall together",
    "partial correlation": "what goes up together when all other columns are held fixed",
    "absolute partial correlation": "what goes together, or against, with all others held fixed",
    "correlation": "plain correlation, sign left out",
    "rank correlation": "correlation of ranks, sign left out",
    "mutual information": "what a column tells about another, in bins, linear or not",
    "usual difference": "how little two columns differ in most rows, whatever the others show",
}
STYLE = """:root{color-scheme:light dark}
body{margin:0 auto;max-width:70rem;padding:0 1.2rem 3rem;font:16px/1.55 system-ui,sans-serif}
h1{font-size:1.7rem;overflow-wrap:anywhere}h2{font-size:1.25rem;margin-top:2.2rem}
.lead{font-size:1.15rem}.fine{opacity:.75;font-size:.92rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:1rem}
.plot{height:27rem;min-width:0}table{border-collapse:collapse;font-size:.92rem}
th,td{text-align:left;padding:.2rem .7rem .2rem 0;border-bottom:1px solid #8884}
.scroll{overflow-x:auto;max-height:30rem}"""
SCRIPT = """const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const plain = {paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: {color: dark ? "#e4e9ed" : "#22303c"}, margin: {l: 10, r: 10, t: 34, b: 10}};
const none = {visible: false, zeroline: false, showgrid: false};
for (const map of data.maps) {
  const text = data.names.length <= 60;
  Plotly.newPlot(map.id, [{type: "scatter", mode: text ? "markers+text" : "markers",
    x: map.x, y: map.y, text: data.names, textposition: "top center", textfont: {size: 10},
    hovertext: map.hover, hoverinfo: "text", marker: {size: 11, color: data.colours}}],
    {...plain, title: {text: map.title, x: 0.02, font: {size: 15}}, hovermode: "closest",
     xaxis: none, yaxis: {...none, scaleanchor: "x"}}, {responsive: true, displaylogo: false});
}
for (const one of data.matrices) {
  Plotly.newPlot(one.id, [{type: "heatmap", z: one.z, x: one.names, y: one.names,
    colorscale: "Viridis", zmin: 0, zmax: 1,
    hovertemplate: "%{y}<br>%{x}<br>%{z:.2f}<extra></extra>"}],
    {...plain, title: {text: one.title, x: 0.02, font: {size: 15}},
     xaxis: {showticklabels: data.names.length <= 60, tickfont: {size: 8}, type: "category"},
     yaxis: {showticklabels: data.names.length <= 60, tickfont: {size: 8}, type: "category",
       autorange: "reversed", scaleanchor: "x"},
     margin: {l: 80, r: 10, t: 34, b: 80}}, {responsive: true, displaylogo: false});
}
"""


def build_page(found: PlaceMap, title: str, correlation: Array) -> str:
    """The page of a fitted map, as HTML that needs nothing else.

    Parameters
    ----------
    found : PlaceMap
        A fitted map.
    title : str
        What the page is called, such as the name of the file.
    correlation : array of shape (kept, kept)
        Absolute correlations of the columns that were used.

    Returns
    -------
    str
    """
    plotly = plotly_script() if found.found_ else ""
    data = _data(found, correlation) if found.found_ else {}
    policy = (
        f"default-src 'none'; script-src {script_hash(plotly)} {script_hash(SCRIPT)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    scripts = (
        f'<script type="application/json" id="data">{embed(finite(data))}</script>'
        f"<script>{plotly}</script><script>{SCRIPT}</script>"
        if found.found_
        else ""
    )
    heading = html.escape(title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy, quote=True)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{heading}: a map of its columns</title><style>{STYLE}</style></head><body>"
        f"<h1>{heading}: a map of its columns</h1>"
        f'<p class="lead">{html.escape(answer(found))}</p>'
        + ("".join(_pictures(found)) if found.found_ else "")
        + "".join(_words(found))
        + f'<p class="fine">placecell {placecell.__version__}</p>{scripts}</body></html>'
    )


def answer(found: PlaceMap) -> str:
    """Is there anything to find? One or two sentences, with the numbers."""
    if math.isnan(found.p_value_):
        return "Too few rows, or groups of rows, to say whether there is anything to find."
    numbers = f"gain {found.gain_:.3f} nats a value on rows never used before, {_p(found)}"
    if not found.found_:
        return (
            f"Nothing found: the columns tell nothing about each other that holds on new rows "
            f"({numbers}). There is no map; one drawn all the same would show noise."
        )
    modules = len(set(found.labels_[found.labels_ >= 0].tolist()))
    stable = float(np.nanmean(found.stability_)) if np.isfinite(found.stability_).any() else np.nan
    return (
        f"There is an arrangement ({numbers}). {int((found.labels_ >= 0).sum())} columns, "
        f"{modules} {'module' if modules == 1 else 'modules'}, about {found.n_dimensions_} "
        f"{'dimension' if found.n_dimensions_ == 1 else 'dimensions'}; read by {found.readout_}; "
        f"two maps made apart agree on {100 * stable:.0f} % of nearest columns."
    )


def advice(found: PlaceMap) -> list[str]:
    """What to try next."""
    said = []
    if not found.found_:
        said.append(
            "More rows help most. If rows belong to groups or follow each other in time, "
            "--groups or --time gives a fair test."
        )
    stable = found.stability_[np.isfinite(found.stability_)]
    if found.found_ and len(stable) and stable.mean() < 0.6:
        said.append(
            "Neighbours differ between two maps of the same table: trust the modules and the "
            "columns with a high stability (columns.csv) more than single neighbours."
        )
    if found.found_ and found.n_dimensions_ > 2:
        said.append(
            "The arrangement seems to need more than two dimensions: the flat map bends it. "
            "Neighbours and modules are not affected; PlaceMap(n_components=3) gives a third."
        )
    if found.partial_:
        said.append("Ctrl-C cut this short: run it again for the full result.")
    return said or ["Compare with what you know; leave columns out with --drop and see what stays."]


def _p(found: PlaceMap) -> str:
    return "p < 0.0001" if found.p_value_ < 1e-4 else f"p = {found.p_value_:.4f}"


def _pictures(found: PlaceMap) -> list[str]:
    why = html.escape(MEANING.get(found.readout_, ""))
    return [
        f"<h2>The map</h2><p>Columns near each other tell about each other. Left: by "
        f"{html.escape(found.readout_)} ({why}). Right: what correlation alone would have shown. "
        "Colours are modules found in the data; nobody says they are true. Axes have no meaning; "
        "distances do.</p>"
        '<div class="pair"><div class="plot" id="map"></div><div class="plot" id="map-r"></div>'
        "</div><h2>How near columns are</h2><p>Ordered by module. Left: similarities, scaled by "
        "each column’s largest. Right: correlations, sign left out.</p>"
        '<div class="pair"><div class="plot" id="matrix"></div>'
        '<div class="plot" id="matrix-r"></div></div>'
    ]


def _words(found: PlaceMap) -> list[str]:
    parts = [
        "<h2>How sure is this?</h2><p>No truth about your columns is known here. Instead: rows "
        "were split in three. A model learned on the first part (60 %) to predict hidden values "
        "from the other columns; the second (20 %) chose between models and read-outs; the third "
        "(20 %) was used once, for the gain and the p-value above. A read-out is chosen by how "
        "much a column’s nearest columns tell about it on the second part (told), and by how many "
        "of them two maps agree on (agreement); the score weighs both, and what the nearest "
        "columns tell the network, if there is one:</p>",
        _html_table(
            ["read-out", "told", "agreement", "score", ""],
            [
                [
                    name,
                    *(f"{one[key]:.3f}" for key in ("told", "agreement", "score")),
                    "used" if name == found.readout_ else "",
                ]
                for name, one in sorted(
                    found.readout_scores_.items(), key=lambda item: -item[1]["score"]
                )
            ],
        ),
    ]
    if found.found_:
        table = found.columns()
        parts += [
            "<h2>Columns</h2>",
            '<div class="scroll">',
            _html_table(
                list(table), [[_cell(row[name]) for name in table] for row in table.rows()]
            ),
            "</div>",
        ]
    if found.left_out_:
        listed = [[name, why] for name, why in found.left_out_.items()]
        parts += ["<h2>Left out</h2>", _html_table(["column", "why"], listed)]
    if found.notes_:
        parts.append("<h2>To know</h2>")
        parts += [f"<p>{html.escape(note)}</p>" for note in found.notes_]
    parts.append("<h2>What to try</h2>")
    parts += [f"<p>{html.escape(text)}</p>" for text in advice(found)]
    return parts


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _html_table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def _data(found: PlaceMap, correlation: Array) -> dict[str, Any]:
    """What the page's script draws. Names are escaped: plotly reads some HTML in text."""
    kept = np.flatnonzero(found.labels_ >= 0)
    names = [html.escape(found.column_names_[i]) for i in kept]
    labels = found.labels_[kept]
    similarity = found.similarity_[np.ix_(kept, kept)]
    order = matrix_order(similarity, labels)
    place, other = found.embedding_[kept], lay_out(correlation, 2)
    if place.shape[1] == 1:
        place = np.column_stack([place, np.zeros(len(place))])
    hover = [
        f"<b>{name}</b><br>module {label + 1}<br>nearest: "
        + html.escape(", ".join(found.neighbours_[found.column_names_[i]]))
        for i, name, label in zip(kept, names, labels, strict=True)
    ]

    def picture(id: str, title: str, matrix: Array) -> dict[str, Any]:
        shown = np.round(matrix[np.ix_(order, order)], 3)
        return {"id": id, "title": title, "z": shown.tolist(), "names": [names[i] for i in order]}

    def drawn(id: str, title: str, at: Array) -> dict[str, Any]:
        return {
            "id": id, "title": title, "hover": hover,
            "x": np.round(at[:, 0], 4).tolist(), "y": np.round(at[:, 1], 4).tolist(),
        }  # fmt: skip

    return {
        "names": names,
        "colours": [colour(label) for label in labels],
        "maps": [
            drawn("map", f"by {found.readout_}", place),
            drawn("map-r", "by correlation alone", other),
        ],
        "matrices": [
            picture("matrix", found.readout_, balanced(similarity)),
            picture("matrix-r", "correlation", correlation),
        ],
    }
