"""A panel as a plotly figure, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placecell.report.page.panels import Panel


def plotly_figure(panel: Panel, metric: str | None = None) -> Any:
    """Turn a panel into a plotly figure, for a notebook.

    Parameters
    ----------
    panel : Panel
        The panel.
    metric : str, optional
        Which metric of the training panel, or measure of the agreement panel; None takes the first.

    Returns
    -------
    Any
        A plotly figure.
    """
    import plotly.graph_objects as go

    metric = metric or next(
        iter(panel.choices.get("metrics", panel.choices.get("measures", {}))), None
    )
    measured = "measures" in panel.choices
    figure = go.Figure()
    for trace in panel.traces:
        if trace.get("metric", metric) != metric or trace.get("of", "mean") != "mean":
            continue
        rows = trace.get("rows", range(*trace.get("span", (0, 0))))
        x, y = trace["x"], trace.get("y")
        x = metric if measured else x

        def taken(of: Any, rows: Sequence[int] = rows) -> list[Any]:
            return list(of) if isinstance(of, list) else [panel.columns[of][row] for row in rows]

        colour = "#22303c" if trace["color"] == "ink" else trace["color"]
        common: dict[str, Any] = {"name": trace["name"], "legendgroup": trace["name"]}
        if trace["kind"] == "band":
            low, high = taken("low"), taken("high")
            band = {
                "fill": "toself",
                "mode": "lines",
                "line": {"width": 0},
                "fillcolor": _faint(colour),
                "showlegend": trace["color"] == "ink",
            }
            figure.add_scatter(x=taken(x) + taken(x)[::-1], y=high + low[::-1], **common, **band)
        elif trace["kind"] in ("curve", "line"):
            dash = {"dash": "solid" if trace.get("split") == "test" else "dot"} | trace.get(
                "line", {}
            )
            xs, ys = taken(x), taken(y)
            for place in [
                i for i in range(len(xs) - 1, 0, -1) if xs[i] < xs[i - 1]
            ]:  # a gap between seeds
                xs.insert(place, None)
                ys.insert(place, None)
            figure.add_scatter(x=xs, y=ys, mode="lines", line={"color": colour} | dash, **common)
        else:
            big = trace["kind"] == "means"
            marker = {"color": colour, "size": 9 if big else 5, "opacity": 1 if big else 0.5}
            mode = "lines+markers" if big and len(rows) > 1 else "markers"
            figure.add_scatter(
                x=taken(x), y=taken(y), mode=mode, marker=marker, showlegend=big, **common
            )
    axes = panel.axes
    words = panel.choices.get("metrics", {}).get(metric, axes.get("y"))
    figure.update_layout(title=panel.title, template="simple_white", yaxis_title=words)
    figure.update_xaxes(
        title=panel.choices["measures"][metric] if measured and metric else axes.get("x")
    )
    if axes.get("log"):
        figure.update_xaxes(
            type="log", tickvals=axes["ticks"], ticktext=[f"{t:g}" for t in axes["ticks"]]
        )
    return figure


def _faint(colour: str) -> str:
    """A colour that lets others through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},.2)"
