"""Models of other libraries, in small configurations: every table is found, hardly anything
else."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import pytest
import torch

import placecell

sys.path.insert(0, str(Path(__file__).parent))
from zoo import ZOO, transformers_or_skip

pytestmark = pytest.mark.filterwarnings("ignore")  # of other people's packages
SLOWEST = 10.0  # seconds a model


@pytest.mark.parametrize("name", ZOO)
def test_every_table_is_found(name: str) -> None:
    torch.manual_seed(0)
    model, example, tables = ZOO[name]()
    start = time.perf_counter()
    found = placecell.find_tables(model, example)
    assert time.perf_counter() - start < SLOWEST
    assert set(found.names) == tables


def test_the_zoo_is_large_and_says_what_is_no_table() -> None:
    assert len(ZOO) >= 40
    told = {"llama (rotary)": "rotary", "bloom (alibi)": "alibi", "xlnet (computed)": "computed"}
    told |= {"wav2vec2 (convolution)": "convolution"}
    for name, kind in told.items():
        model, example, _ = ZOO[name]()
        assert kind in placecell.find_tables(model, example).others


def test_a_mae_from_its_configuration_is_zero_and_frozen() -> None:
    model, example, tables = ZOO["vit mae"]()
    report = placecell.doctor(model, example)
    told = {(f.table, f.what) for f in report.findings if f.what == "zero and frozen"}
    assert told == {(name, "zero and frozen") for name in tables}


def test_the_share_that_positions_have_in_the_logits_of_gpt2() -> None:
    transformers = transformers_or_skip()
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=2000, n_layer=1, bos_token_id=1, eos_token_id=2)
    model = transformers.GPT2Model(config)
    ids = torch.randint(0, 2000, (4, 48))
    built = placecell.doctor(model, ids).tables[0].built
    assert built is not None
    assert built.sigma == pytest.approx(0.02, rel=0.05)
    assert built.rho == pytest.approx(0.5, abs=0.05)
    assert 0.20 < built.logits < 0.30
    with torch.no_grad():
        model.wpe.weight.mul_(50)
    assert placecell.doctor(model, ids).tables[0].built.logits > 0.95  # type: ignore[union-attr]


def test_the_library_never_imports_other_peoples_models() -> None:
    import subprocess

    code = (
        "import placecell, torch, sys; "
        "m = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=0.1)); "
        "print(placecell.doctor(m, torch.randn(2, 16, 3))); "
        "assert not {'timm', 'transformers', 'torchvision'} & set(sys.modules)"
    )
    with warnings.catch_warnings():
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
