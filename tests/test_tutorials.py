"""Every tutorial runs from its first block to its last, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.md"))
CODE = {
    page.name: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for page in PAGES
}


@pytest.mark.parametrize("name", [name for name, blocks in CODE.items() if blocks])
def test_tutorials_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "tutorial"}
    for block in CODE[name]:
        exec(compile(block, name, "exec", dont_inherit=True), scope)


def test_there_are_tutorials() -> None:
    assert sum(bool(blocks) for blocks in CODE.values()) >= 4
