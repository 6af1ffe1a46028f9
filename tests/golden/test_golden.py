"""Names and bytes of small runs of every encoding and task are those that record.json has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RUNS_NEED = ("torch", "processor")  # what the bytes of runs hang on; analyses hang on the rest too


def differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Where two nested records differ, such as `fmri, alibi, heads 1: files: metrics.csv`."""
    differences = []
    for key in dict.fromkeys([*old, *new]):
        one, two = old.get(key), new.get(key)
        if isinstance(one, dict) and isinstance(two, dict):
            differences += [f"{key}: {rest}" for rest in differing(one, two)]
        elif one != two:
            differences.append(f"{key} (was {one}, now {two})")
    return differences


def only(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The `keys` of every entry of the runs or analyses of a record."""
    return {label: {k: v for k, v in one.items() if k in keys} for label, one in record.items()}


def check(what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    wrong = differing(old, new)
    if wrong:
        lines = [f"{len(wrong)} {what} differ from record.json:", *wrong]
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.slow
def test_no_name_and_no_byte_has_moved(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    command = [sys.executable, str(HERE / "record.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    old, new = (json.loads(path.read_text()) for path in (HERE / "record.json", out))
    for part in ("runs", "analyses"):
        check(f"names of {part}", *(only(one[part], "name", "names") for one in (old, new)))
    other = differing(old["machine"], new["machine"])
    if any(old["machine"][key] != new["machine"][key] for key in RUNS_NEED):
        pytest.skip(f"names are equal; bytes are of another machine: {'; '.join(other)}")
    check("files of runs", old["runs"], new["runs"])
    if other:
        pytest.skip(f"runs are equal; analyses were made with others: {'; '.join(other)}")
    check("files of analyses", old["analyses"], new["analyses"])
