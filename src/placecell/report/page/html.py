"""What a page that stands alone is made of: templates, plotly's script, data, its policy."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from placecell.errors import InputError

TEMPLATE = Path(__file__).parent / "template"
# The parts of the page's script: one function, which the first opens and the last closes.
SCRIPTS = ("basics", "figures", "tables", "controls", "start")


def embed(data: Any) -> str:
    """Write data as JSON that can stand inside a script element: without `<`."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def script_hash(script: str) -> str:
    """Return the hash by which a page's policy allows one script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def page_script() -> str:
    """Return the page's own script."""
    return "".join((TEMPLATE / "script" / f"{part}.js").read_text("utf-8") for part in SCRIPTS)


def plotly_script() -> str:
    """Return plotly's own script, which a page that stands alone contains."""
    try:
        import plotly
    except ImportError:
        raise missing() from None
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(
        encoding="utf-8"
    )


def missing() -> InputError:
    """Make the error that names the missing packages."""
    return InputError(
        "the page needs plotly and jinja2; install them with: pip install 'placecell[report]'"
    )


def templates() -> Any:
    """Return the environment of the page's templates, which escapes all that is put in."""
    try:
        import jinja2
    except ImportError:
        raise missing() from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    # no line break inside σ = 0.1
    environment.filters["together"] = lambda text: text.replace("σ = ", "σ\u00a0=\u00a0")
    return environment
