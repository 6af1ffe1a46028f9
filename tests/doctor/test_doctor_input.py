"""Input that cannot be used is answered with one sentence; the command line, too."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import placecell
from placecell.cli import call
from placecell.doctor import load_checkpoint, read_checkpoint
from placecell.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from handmade import IDS, Embedded

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (torch.randn(2, 3), "the model failed on the example"),
        ({"nonsense": IDS}, "the model failed on the example"),
        (torch.zeros(2, 8, dtype=torch.long), "the same value everywhere"),
        ((), "at least one tensor"),
        (torch.full((2, 8), 10**6), "the same value everywhere"),
        (IDS + 10**6, "the model failed on the example"),
    ],
)
def test_examples_that_cannot_be_used(example: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        placecell.doctor(Embedded(), example)
    assert "\n" not in str(caught.value)


def test_constant_images() -> None:
    with pytest.raises(InputError, match="numbers that vary"):
        placecell.find_tables(nn.Conv2d(3, 4, 2), torch.zeros(1, 3, 8, 8))


def test_models_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="meta device"):
        placecell.doctor(Embedded().to("meta"), IDS)
    with pytest.raises(InputError, match=r"expected a torch.nn.Module"):
        placecell.find_tables("bert", IDS)  # type: ignore[arg-type]


def test_model_and_example_on_two_devices() -> None:
    with pytest.raises(InputError, match="the model is on cpu and the example on meta"):
        placecell.doctor(Embedded(), IDS.to("meta"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_models_on_a_gpu() -> None:
    model = Embedded().cuda()
    with pytest.raises(InputError, match="move the example"):
        placecell.doctor(model, IDS)


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_pickle_with_code_is_refused_and_not_run(how: str, tmp_path: Path) -> None:
    trace, path = tmp_path / "ran", tmp_path / "weights.bin"
    content = {"pos": torch.randn(4, 4), "bomb": Bomb(str(trace))}
    if how == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(InputError, match="refused") as caught:
        read_checkpoint(path)
    assert "\n" not in str(caught.value)
    assert not trace.exists()
    assert call(["doctor", str(path), "--tensor", "pos"]) == 2
    assert not trace.exists()
    for other in (path.with_suffix(".safetensors"),):
        path.rename(other)
        with pytest.raises(InputError):
            read_checkpoint(other)
        assert not trace.exists()


def test_files_that_are_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"weights.pt"):
        read_checkpoint(path)
    torch.save([1, 2], path)
    with pytest.raises(InputError, match="expected a dict of tensors, found list"):
        read_checkpoint(path)
    with pytest.raises(InputError, match="no such file"):
        read_checkpoint(tmp_path / "gone.pt")


def test_a_checkpoint_that_does_not_fit(tmp_path: Path) -> None:
    model, path = Embedded(), tmp_path / "weights.pt"
    state = model.state_dict()
    torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}}, path)
    load_checkpoint(model, path)
    wrong = dict(state)
    wrong["pos.weight"] = torch.randn(7, 32)
    torch.save(wrong, path)
    with pytest.raises(InputError, match=r"pos.weight is 7 × 32 instead of 40 × 32"):
        load_checkpoint(model, path)
    del wrong["pos.weight"]
    wrong["extra"] = torch.randn(1)
    torch.save(wrong, path)
    with pytest.raises(InputError, match=r"lacks pos.weight; the model has no extra"):
        load_checkpoint(model, path)


# --------------------------------------------------------------------- the command line


def walk(rows: int = 64) -> torch.Tensor:
    return torch.randn(rows, 32, generator=torch.Generator().manual_seed(0)).cumsum(0)


def test_one_tensor_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "weights.safetensors", tmp_path / "page.html"
    save_file({"encoder.pos_embed": walk(), "encoder.head.weight": torch.randn(3, 3)}, path)
    assert call(["doctor", str(path), "--tensor", "pos_embed", "-o", str(page)]) == 0
    assert "trained: neighbours" in capsys.readouterr().out
    assert "data:image/png" in page.read_text()
    assert call(["doctor", str(path), "--tensor", "encoder.pos_embed", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["tables"][0]
    assert table["trained"] == "trained"
    assert table["structure"]["effect"] > 0.5
    assert call(["doctor", str(path), "--tensor", "pos_emb"]) == 2
    assert "nearest: encoder.pos_embed" in capsys.readouterr().err


def test_one_tensor_beside_a_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now, before = tmp_path / "now.safetensors", tmp_path / "before.safetensors"
    table = walk()
    save_file({"pos": table}, before)
    moved = table.clone()
    moved[:50] += 1
    save_file({"pos": moved}, now)
    assert call(["doctor", str(now), "--tensor", "pos", "--reference", str(before), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["tables"][0]["against"]["unchanged"] == 14


def test_a_grid_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = np.stack(np.meshgrid(np.arange(6), np.arange(8), indexing="ij"), -1).reshape(48, 2)
    maps = np.random.default_rng(0).normal(size=(2, 16))
    path = tmp_path / "weights.safetensors"
    save_file({"pos": torch.from_numpy(where @ maps)[None].float()}, path)
    assert call(["doctor", str(path), "--tensor", "pos", "--grid", "6x8", "--json"]) == 0
    structure = json.loads(capsys.readouterr().out)["tables"][0]["structure"]
    assert structure["layout"] == [6, 8]
    assert structure["position_r2"] > 0.99
    for grid in ("9x9", "6", "0x8"):
        assert call(["doctor", str(path), "--tensor", "pos", "--grid", grid]) == 2
        assert "grid" in capsys.readouterr().err


FACTORY = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.pos = nn.Embedding(9, 8), nn.Parameter(torch.zeros(12, 8))
    def forward(self, ids):
        return self.tokens(ids) + self.pos
def make():
    return Model(), torch.arange(24).view(2, 12).remainder(7)
def model_only():
    return Model()
def broken():
    raise OSError("no weights here")
"""


def test_a_model_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = tmp_path / "factory_for_doctor.py"
    script.write_text(FACTORY)
    assert call(["doctor", f"{script}:make", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [f["what"] for f in content["findings"]] == ["zero"]
    weights = tmp_path / "weights.safetensors"
    save_file({"tokens.weight": torch.randn(9, 8), "pos": walk(12)[:, :8].contiguous()}, weights)
    assert call(["doctor", "factory_for_doctor:make", "--checkpoint", str(weights)]) == 0
    out = capsys.readouterr().out
    assert "pos (12 × 8, trainable): absolute, added" in out
    for target, words in (
        (f"{script}:model_only", "returns (model, example)"),
        (f"{script}:broken", "no weights here"),
        (f"{script}:missing", "has no function 'missing'; it has: Model, broken, make"),
        ("no_such_module_at_all:make", "cannot be imported"),
        ("nonsense", "expected module:factory"),
        (str(weights), "--tensor NAME"),
    ):
        assert call(["doctor", target]) == 2
        assert words in capsys.readouterr().err
    save_file({"pos": torch.zeros(3)}, weights)
    assert call(["doctor", f"{script}:make", "--checkpoint", str(weights)]) == 2
    assert "does not fit the model" in capsys.readouterr().err


def test_help_is_light() -> None:
    code = "import sys; from placecell.cli import call\ntry: call(['doctor', '--help'])\n"
    code += "except SystemExit: pass\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
