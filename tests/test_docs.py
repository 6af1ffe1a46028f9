"""The documentation builds without a warning, notebooks are run, and the reference names what the
packages offer."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
def test_the_site_builds_and_its_reference_is_whole(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery")
    source, site = tmp_path / "docs", tmp_path / "site"
    # of a copy: a build writes the pages of the notebooks beside the others
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build", "gallery"))
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(source),
        str(site),
    ]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (built.returncode, built.stderr) == (0, "")
    for notebook in (DOCS / "notebooks").glob("*.py"):
        shown = (site / "gallery" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert "sphx_glr_" in shown, f"{notebook.name} drew nothing"
        assert f"{notebook.stem}.ipynb" in shown, f"{notebook.name} is not there to download"
    page = (site / "api.html").read_text(encoding="utf-8")
    documented = set(re.findall(r'id="placecell\.[\w.]*?(\w+)"', page))
    for name in ("encodings", "model", "train", "sweep", "analysis", "study", "store"):
        offered = {*importlib.import_module(f"placecell.{name}").__all__}
        missing = sorted(offered - documented)
        assert not missing, f"placecell.{name}, missing from docs/api.md: {missing}"
