"""ρ as a setting: σ is solved from the task's own tokens and recorded; sweeps stay paired."""

from __future__ import annotations

import pytest

from placecell import run
from placecell.cli.app import call
from placecell.encodings.share import position_share
from placecell.errors import InputError
from placecell.study.summary import summarise
from placecell.sweep import grid
from placecell.tasks.base import Task
from placecell.train import make_model, make_task
from placecell.train.run import complete
from placecell.train.share import token_mean_square


def test_rho_becomes_sigma(tiny, tiny_task: Task, tmp_path) -> None:
    config = complete(tiny(rho=0.2, token_sigma=0.25), tiny_task)
    assert config.encoding.rho is None
    assert config.encoding.sigma == pytest.approx(0.125)
    assert config.name == complete(tiny(sigma=0.125, token_sigma=0.25), tiny_task).name
    result = run(tiny(rho=0.2, steps=2), tmp_path)
    assert "rho" not in (result.folder / "config.toml").read_text()
    assert result.config.encoding.sigma == pytest.approx(0.125)


@pytest.mark.parametrize("name", ["latin_square", "nmar"])
def test_the_share_of_a_built_model_is_the_one_asked_for(name: str) -> None:
    """Measured on the model's own embedded tokens, for which σ was solved without a model."""
    from placecell.config.presets import preset

    shares, squares = [], []
    few = {"n_train": 200, "n_valid": 20, "n_test": 20, "rho": 0.3, "width": 64}
    for seed in range(8):
        config = preset(name).override(few | {"seed": seed})
        task = make_task(config)
        config = complete(config, task)
        model = make_model(config, task)
        x = model.embedding(task.splits()["train"].tokens)
        shares.append(position_share(model.table(task.places), x))
        squares.append(float(x.detach().square().mean()))
    assert sum(shares) / 8 == pytest.approx(0.3, abs=0.03)
    expected = token_mean_square(task, config.model.token_sigma)
    assert sum(squares) / 8 == pytest.approx(expected, rel=0.15)


def test_a_gain_is_part_of_what_enters_the_network(tiny, tiny_task: Task) -> None:
    config = complete(tiny(rho=0.2, token_sigma=0.25, gain=2.5), tiny_task)
    assert config.encoding.sigma == pytest.approx(0.125 / 2.5)
    random = complete(tiny(rho=0.2, token_sigma=0.25, gain=2.5, encoding="random"), tiny_task)
    assert random.encoding.sigma == pytest.approx(0.125)  # it has no gain


def test_a_sweep_over_rho_replaces_a_grids_sigma(tiny) -> None:
    configs = grid(tiny(), [{"sigma": [0.1, 2.0]}], {"rho": [0.1, 0.5]}, seeds=2)
    assert len(configs) == 4
    assert len({c.encoding.sigma for c in configs}) == 2  # the same for both seeds


def test_one_of_the_two(tiny) -> None:
    with pytest.raises(InputError, match="both set the table's scale"):
        tiny(rho=0.2, sigma=0.1)
    for rho in (0, 1, 1.2):
        with pytest.raises(InputError, match="rho"):
            tiny(rho=rho)


def test_an_encoding_without_sigma_takes_no_share(tiny, tiny_task: Task, tmp_path) -> None:
    for encoding in ("sinusoidal", "nope", "rotary", "relative"):
        with pytest.raises(InputError, match=f"{encoding} has no such table; leave rho out"):
            complete(tiny(encoding=encoding, rho=0.2), tiny_task)
    with pytest.raises(InputError, match="nope has no such table"):
        run(tiny(encoding="nope", rho=0.2), tmp_path)
    assert not list(tmp_path.iterdir())


def test_in_a_sweep_a_share_is_for_the_encodings_that_have_a_sigma(tiny) -> None:
    grids = [{"encoding": "learnable", "sigma": [0.1, 2.0]}, {"encoding": ["nope", "rotary"]}]
    configs = grid(tiny(), grids, {"rho": [0.1, 0.5]}, seeds=1)
    assert [c.encoding.name for c in configs] == ["learnable", "learnable", "nope", "rotary"]
    with pytest.raises(InputError, match="nope and rotary have no such table"):
        grid(tiny(), grids[1:], {"rho": [0.1, 0.5]}, seeds=1)


def test_a_transplant_takes_no_share(capfd) -> None:
    assert call(["transplant", "latin_square", "--rho", "0.2", "--sigma", "1"]) == 2
    assert "a transplant sets rho, sigma itself" in capfd.readouterr().err


def test_a_run_says_its_share_and_its_summary_has_it(tmp_path, capfd) -> None:
    few = {"n-train": 60, "n-valid": 20, "n-test": 20, "width": 16, "depth": 1, "steps": 2}
    options = [word for key, value in few.items() for word in (f"--{key}", str(value))]
    learned = ["learnable", "--rho", "0.3", "--gain", "3"]
    for encoding in (learned, ["sinusoidal"], ["rotary"]):
        assert call(["run", "nmar", "--encoding", *encoding, *options, "--out", str(tmp_path)]) == 0
        said = capfd.readouterr().err
        assert ("share ρ" in said) == (encoding[0] != "rotary")
    by_encoding = {
        one.result.config.encoding.name: one.values.get("rho") for one in summarise(tmp_path).runs
    }
    assert by_encoding["learnable"] == pytest.approx(0.3, abs=0.03)
    assert by_encoding["sinusoidal"] > 0.9  # beside tokens of 0.1
    assert by_encoding["rotary"] is None
