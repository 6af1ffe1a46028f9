"""The report as HTML: pictures drawn as SVG and PNG in the page itself, no script, no network."""

from __future__ import annotations

import base64
import html
import struct
import zlib

import numpy as np

from placecell.analysis.statistics import Array
from placecell.analysis.structure import spectrum
from placecell.doctor.find import say_other
from placecell.doctor.report import Report, TableReport, describe, number

SIZE = 220  # pixels of a picture's side
MOST = 256  # rows and columns of a similarity picture
INK, LINE, MARK = "#333", "#2166ac", "#b2182b"
STYLE = (
    "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45;color:#222;max-width:56rem"
)


def page(report: Report) -> str:
    """Return a whole HTML page."""
    title = html.escape(report.title)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
        f'<body style="margin:2rem">{section(report)}</body></html>\n'
    )


def section(report: Report) -> str:
    """Return the report as one element, for a page or a notebook."""
    parts = [f"<h2>{html.escape(report.title)}</h2>"]
    if report.findings:
        items = "".join(
            f"<li><b>{html.escape(f.what)}</b>: {html.escape(str(f))}</li>" for f in report.findings
        )
        parts.append(f"<ul>{items}</ul>")
    parts += [_table(table) for table in report.tables]
    others = [html.escape(say_other(kind, what)) for kind, what in report.others.items()]
    parts += [f"<p>{other}</p>" for other in others]
    if not report.tables and not others:
        parts.append("<p>no position table found</p>")
    if report.wild:
        parts.append(_wild(report))
    parts += [f"<p><small>{html.escape(note)}</small></p>" for note in report.notes]
    return f'<div style="{STYLE}">{"".join(parts)}</div>'


def _table(report: TableReport) -> str:
    lines = "<br>".join(html.escape(line) for line in describe(report))
    pictures = ""
    if not report.zero and len(report.values) >= 3:
        pictures = "".join(
            f'<figure style="display:inline-block;margin:0 1rem 0 0"><figcaption>{caption}'
            f"</figcaption>{drawing}</figure>"
            for caption, drawing in (
                (_caption_of_tiles(report), tiles(report)),
                ("variance along principal axes", _spectrum(report.values)),
                ("length of each row", _norms(report)),
            )
        )
    return f"<h3>{html.escape(str(report.table))}</h3><p>{lines}</p><div>{pictures}</div>"


def _caption_of_tiles(report: TableReport) -> str:
    found = report.structure
    if found is not None and len(found.layout) == 2:
        return "similarity of cells to all cells"
    return "cosine of every row with every other"


def _wild(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(line.model)}</td><td>{number(line.sigma)}</td>"
        f"<td>{number(line.beside)}</td><td>{number(line.rho)}</td></tr>"
        for line in report.wild
    )
    head = "<tr><th>model, as built</th><th>σ</th><th>beside</th><th>share ρ</th></tr>"
    return f'<h3>Beside other models</h3><table cellpadding="4">{head}{rows}</table>'


# ----------------------------------------------------------------------------- pictures


def tiles(report: TableReport) -> str:
    """Return the picture of similarities: red alike, blue opposite.

    For a grid, one tile a cell: that cell's similarity to the whole grid, as vision papers draw
    it. For a sequence, the matrix of all pairs.
    """
    values = report.values - report.values.mean(axis=0)
    found = report.structure
    grid = found.layout if found is not None and len(found.layout) == 2 else None
    if grid is not None:
        values = values[len(values) - grid[0] * grid[1] :]
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    rows = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    if grid is None:
        step = -(-len(rows) // MOST)
        rows = rows[::step]
        return _image(rows @ rows.T)
    h, w = (int(size) for size in grid)
    chosen_h, chosen_w = (np.unique(np.linspace(0, s - 1, min(s, 8)).astype(int)) for s in (h, w))
    cells = rows.reshape(h, w, -1)
    picture = np.ones((len(chosen_h) * (h + 1) - 1, len(chosen_w) * (w + 1) - 1)) * np.nan
    for i, row in enumerate(chosen_h):
        for j, column in enumerate(chosen_w):
            tile = cells @ cells[row, column]
            picture[i * (h + 1) : i * (h + 1) + h, j * (w + 1) : j * (w + 1) + w] = tile
    return _image(picture)


def _image(values: Array) -> str:
    """Return numbers from −1 to 1 as a PNG in an <img>; NaN is white."""
    known = np.nan_to_num(np.clip(values, -1, 1))
    white = np.ones((*known.shape, 3))
    red, blue = np.array([0.70, 0.09, 0.17]), np.array([0.13, 0.40, 0.67])
    strength = np.abs(known)[..., None]
    colour = np.where(known[..., None] >= 0, red, blue)
    pixels = (255 * (white * (1 - strength) + colour * strength)).round().astype(np.uint8)
    data = base64.b64encode(_png(pixels)).decode()
    return (
        f'<img alt="similarities" width="{SIZE}" height="{SIZE}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{data}">'
    )


def _png(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """Return pixels (h, w, 3) as a PNG file."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + pixels[i].tobytes() for i in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _spectrum(values: Array) -> str:
    step = -(-len(values) // 2048)
    shares = spectrum(values[::step])[:64]
    return _plot(shares, 0.0, f"largest {number(float(shares[0]))}", bars=True)


def _norms(report: TableReport) -> str:
    norms = np.linalg.norm(report.values, axis=1)
    cut = report.untrained_from
    mark = cut if cut is not None and 0 < cut < len(norms) else None
    words = f"{number(float(norms.min()))} to {number(float(norms.max()))}"
    if mark is not None:
        words += f"; as drawn from {mark} on"
    return _plot(norms, 0.0, words, mark=mark)


def _plot(
    values: Array, low: float, words: str, *, bars: bool = False, mark: int | None = None
) -> str:
    """Return a small SVG of values against their index."""
    n, high = len(values), float(values.max()) or 1.0
    step = -(-n // 512)
    shown = values[::step]
    x = [10 + (SIZE - 20) * i / max(len(shown) - 1, 1) for i in range(len(shown))]
    y = [SIZE - 30 - (SIZE - 50) * (float(v) - low) / (high - low) for v in shown]
    if bars:
        marks = "".join(
            f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{SIZE - 30}" y2="{b:.1f}" stroke="{LINE}" '
            'stroke-width="2"/>'
            for a, b in zip(x, y, strict=True)
        )
    else:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        marks = f'<polyline points="{points}" fill="none" stroke="{LINE}"/>'
    if mark is not None:
        at = 10 + (SIZE - 20) * mark / max(n - 1, 1)
        marks += (
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="10" y2="{SIZE - 30}" stroke="{MARK}" '
            'stroke-dasharray="4 3"/>'
        )
    base = f'<line x1="10" x2="{SIZE - 10}" y1="{SIZE - 30}" y2="{SIZE - 30}" stroke="{INK}"/>'
    text = f'<text x="10" y="{SIZE - 10}" font-size="12" fill="{INK}">{html.escape(words)}</text>'
    return f'<svg width="{SIZE}" height="{SIZE}" role="img">{base}{marks}{text}</svg>'
