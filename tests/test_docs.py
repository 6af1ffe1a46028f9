"""The documentation builds without a warning, and its reference names what the packages offer."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
def test_the_site_builds_and_its_reference_is_whole(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path),
    ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (built.returncode, built.stderr) == (0, "")
    page = (tmp_path / "api.html").read_text(encoding="utf-8")
    documented = set(re.findall(r'id="placecell\.[\w.]*?(\w+)"', page))
    for name in ("encodings", "model", "train", "sweep", "analysis", "study", "store"):
        offered = {*importlib.import_module(f"placecell.{name}").__all__}
        missing = sorted(offered - documented)
        assert not missing, f"placecell.{name}, missing from docs/api.md: {missing}"
