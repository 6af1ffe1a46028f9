"""A result at a Python prompt: short, shown in notebooks, with its model, table and metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import placecell
from placecell.errors import InputError
from placecell.store import RunResult
from placecell.train import load_snapshots

SMALL = {
    "task": "latin_square",
    "data": {"n_train": 64, "n_valid": 16, "n_test": 16},
    "model": {"width": 16, "depth": 2},
    "train": {"steps": 4, "eval_every": 2, "batch_size": 16},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return placecell.run({**SMALL, "sigma": 0.5}, tmp_path_factory.mktemp("runs"))


def test_its_repr_is_one_short_line(result: RunResult) -> None:
    text = repr(result)
    assert len(text) < 200
    assert "\n" not in text
    for word in (result.config.name, "learnable σ=0.5", "seed 0", "done", "step 4", "accuracy"):
        assert word in text


def test_a_notebook_shows_it_as_tables(result: RunResult) -> None:
    html = result._repr_html_()
    assert html.count("<table>") == 2
    assert result.config.name in html
    assert "<td>test</td>" in html


def test_what_a_user_gave_is_escaped_in_a_notebook(result: RunResult) -> None:
    html = placecell.store.runs.replace(result, folder=Path("<script>"))._repr_html_()
    assert "<script>" not in html


def test_model_table_and_measurements(result: RunResult) -> None:
    assert torch.equal(result.model.state_dict()["encoding.weight"], result.table)
    assert torch.equal(load_snapshots(result.folder)[4], result.table)
    assert result.model is result.model, "it is read once"
    assert result.measurements.n_rows == len(result.rows)
    frame = result.to_frame()
    assert list(frame.columns) == ["step", "split", "name", "value"]
    assert len(frame) == len(result.rows)


def test_an_encoding_without_a_table(tmp_path: Path) -> None:
    assert placecell.run({**SMALL, "encoding": "nope"}, tmp_path).table is None


def test_a_dict_is_a_configuration(result: RunResult) -> None:
    sections = {**SMALL, "encoding": {"name": "learnable", "sigma": 0.5}}
    again = placecell.run(sections, result.folder.parent)
    assert (again.config, again.reused) == (result.config, True)
    (outcome,) = placecell.sweep([sections], result.folder.parent, placecell.sweep.local(0))
    assert outcome.reused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("latin_square", r"such as placecell.preset\(\"latin_square\"\), .* found str"),
        ({"sigma": 0.1}, "the dict: `task` must name a task"),
        ({"task": "latin_square", "sigmaa": 1}, r"unknown key \(the dict\) 'sigmaa': did you mean"),
        ({"task": "latin_square", "sigma": "x"}, "the dict: sigma must be a number"),
        ({"task": "latin_square", "train": {"lr": "x"}}, r"the dict \[train\]: lr must be"),
    ],
)
def test_what_cannot_be_run_is_named_without_a_command_line(
    given: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as error:
        placecell.run(given, tmp_path)  # type: ignore[arg-type]
    assert "command line" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_override_does_not_speak_of_a_command_line() -> None:
    for values in ({"sigmaa": 1}, {"sigma": "x"}, {"sigma": 1, "encoding.sigma": 2}):
        with pytest.raises(InputError) as error:
            placecell.preset("latin_square").override(values)
        assert "command line" not in str(error.value)
        assert "--" not in str(error.value)


def test_one_configuration_is_no_sweep(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a list of configurations; placecell.run takes one"):
        placecell.sweep(SMALL, tmp_path)  # type: ignore[arg-type]
