"""The page of the wild is what its script writes from the measured lines."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import wild_page

    yield wild_page
    for name in ("wild_page", "wild_models"):
        del sys.modules[name]


def test_the_page_is_what_the_script_writes(script: Any) -> None:
    lines = json.loads(script.DATA.read_text("utf-8"))
    text = script.PAGE.read_text("utf-8")
    versions = re.search(r"^Made with (.+)\.$", text, re.MULTILINE)
    assert versions is not None
    assert script.page(lines, versions[1]) == text
    assert script.PICTURE.is_file()
    from wild_models import MODELS

    assert {line["model"] for line in lines} == set(MODELS)


def test_tables_are_named_by_what_their_tokens_are_made_of(script: Any) -> None:
    sees = script.sees
    assert sees("transformers GPT-2", "wpe.weight") == "text"
    assert sees("transformers Whisper", "encoder.embed_positions.weight") == "sound"
    assert sees("transformers Whisper", "decoder.embed_positions.weight") == "text"
    assert sees("open_clip", "visual.positional_embedding") == "images"
    assert sees("open_clip", "positional_embedding") == "text"
