"""The store: its index is a cache that cannot lie, its tables are tidy, and `status` and `export`
show them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from placecell.cli import call
from placecell.cli.export import parquet_bytes
from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.store import Store, disk, files, load_store, locks
from placecell.store import index as store_module
from placecell.train import Watch, run


@pytest.fixture
def store(tiny, tiny_task, tiny_splits, tmp_path: Path) -> Path:
    """Three runs: done, diverged and interrupted."""
    folder = tmp_path / "store"

    def go(config: RunConfig, **watch) -> None:
        run(config, folder, device="cpu", task=tiny_task, splits=tiny_splits, watch=Watch(**watch))

    go(tiny(sigma=0.1))
    go(tiny(sigma=2.0, lr=1e30, optimizer="sgd"))
    go(tiny(encoding="nope"), on_step=lambda state: state.step < 6)
    return folder


def by_status(folder: Path) -> dict[str, dict]:
    return {row["status"]: row for row in Store(folder).rows()}


def test_the_folder_may_be_text(store: Path) -> None:
    assert Store(str(store)) == Store(store)  # type: ignore[arg-type]
    assert [result.config for result in load_store(str(store))] == [
        result.config for result in load_store(store)
    ]


def test_one_row_a_run(store: Path) -> None:
    rows = by_status(store)
    assert rows.keys() == {"done", "diverged", "interrupted"}
    done = rows["done"]
    (result,) = [r for r in load_store(store) if r.status == "done"]
    assert done["steps"] == done["train.steps"] == 12
    assert done["test/accuracy"] == result.final("test", "accuracy")
    assert (done["encoding.name"], done["encoding.sigma"], done["seed"]) == ("learnable", 0.1, 0)
    assert rows["interrupted"]["steps"] == 6
    assert "encoding.sigma" not in rows["interrupted"]
    assert list(done)[:3] == ["name", "task", "status"]


def test_tables_are_columns_of_one_length(store: Path) -> None:
    runs, points = Store(store).runs(), Store(store).points()
    assert {len(values) for values in runs.values()} == {3}
    assert None in runs["encoding.sigma"]  # nope has none
    assert list(points) == ["run", "step", "split", "name", "value"]
    assert len(points["run"]) == sum(len(result.rows) for result in load_store(store))


def test_the_index_saves_reading_and_never_lies(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Store(store).rows()
    read: list[str] = []
    real = store_module.load_result
    monkeypatch.setattr(
        store_module, "load_result", lambda folder: (read.append(folder.name), real(folder))[1]
    )
    assert Store(store).rows() == before
    assert read == [], "what has not changed is not read again"
    name = by_status(store)["interrupted"]["name"]
    files.write_json(
        store / name / "status.json",
        {"status": "failed", "step": 6, "seconds": 1.0, "message": "why"},
    )
    assert by_status(store)["failed"]["message"] == "why"
    assert read == [name]


@pytest.mark.parametrize(
    "broken", [None, "", "{", "[1]", '{"latin_square-0": 3}', '{"a": {"stamp": 1}}']
)
def test_the_index_is_made_anew_when_it_is_gone_or_broken(store: Path, broken: str | None) -> None:
    before = Store(store).rows()
    index = (store / "index.json").read_bytes()
    if broken is None:
        (store / "index.json").unlink()
    else:
        (store / "index.json").write_text(broken)
    assert Store(store).rows() == before
    assert (store / "index.json").read_bytes() == index


def test_a_run_that_is_gone_leaves_the_index(store: Path) -> None:
    name = by_status(store)["diverged"]["name"]
    for path in (store / name).iterdir():
        path.unlink()
    (store / name).rmdir()
    assert by_status(store).keys() == {"done", "interrupted"}


def test_a_store_that_is_only_readable_can_be_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(disk, "write", refuse)
    assert len(Store(store).rows()) == 3
    assert not (store / "index.json").exists()


def test_running_means_that_a_process_holds_it(store: Path) -> None:
    name = by_status(store)["interrupted"]["name"]
    files.write_json(
        store / name / "status.json",
        {"status": "running", "step": 6, "seconds": 1.0, "message": ""},
    )
    with locks.lock(store / name):
        assert by_status(store)["running"]["name"] == name
    assert by_status(store)["stopped"]["name"] == name  # whoever it was is gone


def test_a_run_that_cannot_be_read_does_not_hide_the_others(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = by_status(store)["done"]["name"]
    (store / name / "metrics.csv").write_text("nonsense\n1\n")
    rows = by_status(store)
    assert rows.keys() == {"unreadable", "diverged", "interrupted"}
    assert "metrics.csv: not a metrics file" in rows["unreadable"]["message"]
    assert call(["status", str(store)]) == 0
    assert "not a metrics file" in capsys.readouterr().out


def test_status_from_the_command_line(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["status", str(store)]) == 0
    text = capsys.readouterr().out
    assert "3 runs" in text
    assert "step 6 of 12" in text
    assert "goes on from where they stopped" in text
    assert call(["status", str(store), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["counts"] == {"done": 1, "diverged": 1, "interrupted": 1}


def test_export_reads_back_unchanged(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for to in ("csv", "parquet"):
        assert call(["export", str(store), "--to", to, "--out", str(tmp_path / "x")]) == 0
    assert "runs.parquet" in capsys.readouterr().out
    for name, table in (("runs", Store(store).runs()), ("points", Store(store).points())):
        assert repr(parquet.read_table(tmp_path / "x" / f"{name}.parquet").to_pydict()) == repr(
            table
        )
        with (tmp_path / "x" / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == list(table)
        for key, values in table.items():
            for row, value in zip(rows, values, strict=True):
                assert row[key] == ("" if value is None else str(value))
    assert len(load_store(store)) == 3, "what is exported is not taken for a run"


def test_columns_of_several_kinds_become_text() -> None:
    pytest.importorskip("pyarrow")
    import io

    import pyarrow.parquet

    table_read = pyarrow.parquet.read_table(
        io.BytesIO(parquet_bytes({"a": [1, "x", None], "b": [1, 2.5, None]}))
    )
    assert table_read.to_pydict() == {"a": ["1", "x", None], "b": [1.0, 2.5, None]}


def test_what_cannot_be_shown_is_one_sentence(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    run_folder = next(store.glob("latin_square-*"))
    for words, message in (
        (["status", str(tmp_path / "nowhere")], "no such folder"),
        (["status", str(tmp_path / "empty")], "no runs here"),
        (["status", str(run_folder)], "give the folder that holds it"),
        (["export", str(store), "--to", "xlsx"], "xlsx"),
        (
            ["export", str(store), "--out", str(run_folder / "config.toml" / "x")],
            "cannot be written",
        ),
    ):
        assert call(words) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"placecell\[parquet\]"):
        parquet_bytes({"a": [1]})
