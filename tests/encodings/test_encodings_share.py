"""The share of variance that positions make, and tables whose σ the first batch decides."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import placecell
from placecell import LearnablePE, calibrate_, position_share
from placecell.encodings.learnable import AUTO_SHARE
from placecell.encodings.share import sigma_for_share
from placecell.errors import InputError


def tokens(scale: float = 0.25, *, b: int = 64, n: int = 16, d: int = 32, seed: int = 0) -> Tensor:
    return scale * torch.randn(b, n, d, generator=torch.Generator().manual_seed(seed))


@given(
    rho=st.floats(0.01, 0.99),
    scale=st.floats(0.01, 10),
    n=st.integers(2, 12),
    seed=st.integers(0, 999),
)
def test_a_calibrated_table_has_the_share_that_was_asked_for(rho, scale, n, seed) -> None:
    x = tokens(scale, n=n, seed=seed)
    positions = nn.Embedding(n, 32)
    sigma = calibrate_(positions, x, rho=rho)
    table = positions.weight.detach()
    assert position_share(table, x) == pytest.approx(rho, rel=1e-4)
    spread = np.var(table.double().numpy(), axis=0, ddof=1).mean()  # without torch
    square = np.mean(np.square(x.double().numpy()))
    assert spread / (spread + square) == pytest.approx(rho, rel=1e-4)
    assert sigma == pytest.approx(np.sqrt(spread), rel=1e-4)


def test_padding_does_not_count() -> None:
    x = tokens()
    present = torch.ones(64, 16, dtype=torch.bool)
    present[:, 10:] = False
    padded = x.masked_fill(~present[..., None], 100.0)
    table = 0.1 * torch.randn(16, 32)
    assert position_share(table, padded, present) == position_share(table, x, present)
    assert position_share(table, padded) < 0.01 * position_share(table, padded, present)


@pytest.mark.parametrize("scale", [0.02, 0.25, 3.0])
def test_auto_takes_its_scale_from_the_first_batch_once(scale: float) -> None:
    pe = LearnablePE(16, 32, sigma="auto")
    assert "auto" in repr(pe)
    z = pe.weight.detach().clone()
    x = tokens(scale)
    pe(x)
    assert pe.calibrated
    assert pe.sigma == pytest.approx(sigma_for_share(AUTO_SHARE, float(x.square().mean())))
    assert torch.allclose(pe.weight, pe.weight.std() / z.std() * z)  # the same draw, another scale
    assert position_share(pe.weight, x) == pytest.approx(AUTO_SHARE, rel=1e-4)
    before = pe.weight.detach().clone()
    pe(tokens(100.0))
    assert torch.equal(pe.weight, before)


def test_a_checkpoint_is_not_calibrated_again() -> None:
    pe = LearnablePE(16, 32, sigma="auto")
    pe(tokens(0.25))
    other = LearnablePE(16, 32, sigma="auto")
    other.load_state_dict(pe.state_dict())
    assert other.calibrated
    assert other.sigma == pytest.approx(pe.sigma)
    other(tokens(50.0))
    assert torch.equal(other.weight, pe.weight)
    early = LearnablePE(16, 32, sigma="auto")
    early.load_state_dict(LearnablePE(16, 32, sigma="auto").state_dict())
    assert not early.calibrated
    assert "auto_sigma" not in LearnablePE(16, 32, sigma=0.1).state_dict()


def test_drawn_anew_it_waits_for_the_next_batch() -> None:
    pe = LearnablePE(16, 32, sigma="auto")
    pe(tokens(0.25))
    with pytest.raises(InputError, match="calibrated already"):
        calibrate_(pe, tokens(1.0), rho=0.5)
    pe.reset_parameters()
    assert not pe.calibrated
    calibrate_(pe, tokens(1.0), rho=0.5)
    assert position_share(pe.weight, tokens(1.0)) == pytest.approx(0.5, rel=0.15)
    copied = copy.deepcopy(pe)
    assert copied.calibrated
    assert copied.sigma == pe.sigma


def test_a_gain_is_learned_and_counts() -> None:
    pe = LearnablePE(16, 32, sigma=1.0, gain=0.1)
    table = pe.table(placecell.Positions.sequence(16))
    assert torch.allclose(table, 0.1 * pe.weight)
    pe(tokens()).square().sum().backward()
    assert pe.gain.grad is not None
    assert pe.gain.grad != 0
    auto = LearnablePE(16, 512, sigma="auto", gain=0.1)
    x = tokens(d=512)
    auto(x)
    with torch.no_grad():
        share = position_share(auto.table(placecell.Positions.sequence(16)), x)
    assert share == pytest.approx(AUTO_SHARE, rel=0.1)


class ViT(nn.Module):
    """A vision transformer in plain PyTorch."""

    def __init__(self, norm_first: bool) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 32, 4, 4)
        self.positions = LearnablePE(16, 32, sigma="auto")
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.encoder(self.positions(x)).mean(1))


class Decoder(nn.Module):
    """A decoder over symbols in plain PyTorch."""

    def __init__(self, norm_first: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 32)
        self.positions = LearnablePE(16, 32, sigma="auto")
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 20)

    def forward(self, symbols: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(symbols.shape[1])
        return self.head(
            self.encoder(self.positions(self.embedding(symbols)), mask, is_causal=True)
        )


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("kind", [ViT, Decoder])
def test_plain_models_train_with_auto(kind: type[nn.Module], norm_first: bool) -> None:
    torch.manual_seed(0)
    model = kind(norm_first)
    given = torch.randn(8, 1, 16, 16) if kind is ViT else torch.randint(20, (8, 16))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    losses = []
    for _ in range(30):
        out = model(given)
        wanted = torch.arange(8) % 10 if kind is ViT else given.roll(-1, 1).flatten()
        loss = nn.functional.cross_entropy(out.flatten(0, -2), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert model.positions.calibrated
    before = model.eval()(given)
    again = kind(norm_first).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(given), before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, at a graph break
def test_a_compiled_model_calibrates_as_an_eager_one() -> None:
    torch.manual_seed(0)
    eager = Decoder(True)
    compiled = copy.deepcopy(eager)
    symbols = torch.randint(20, (4, 16))
    torch.compile(compiled, backend="aot_eager")(symbols)
    eager(symbols)
    assert compiled.positions.calibrated
    assert torch.equal(compiled.positions.weight, eager.positions.weight)


WORKER = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from placecell import LearnablePE
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
torch.manual_seed(0)
model = DistributedDataParallel(LearnablePE(16, 8, sigma="auto"))
torch.manual_seed(rank)
model((1.0 + rank) * torch.randn(32, 16, 8)).square().mean().backward()
print(f"{model.module.sigma:.9f} {float(model.module.weight.detach().double().sum()):.9f}")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_all_processes_of_a_distributed_run_take_one_sigma(tmp_path: Path) -> None:
    if not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo")
    command = [sys.executable, "-c", WORKER]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    lines = [process.communicate(timeout=120)[0].strip() for process in started]
    assert lines[0] == lines[1] != ""
    sigma = float(lines[0].split()[0])
    assert sigma == pytest.approx(sigma_for_share(AUTO_SHARE, 2.5), rel=0.1)  # mean of 1 and 4


@pytest.mark.parametrize("rho", [0, 1, -0.1, 1.5, float("nan"), "0.3"])
def test_a_share_is_between_0_and_1(rho) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        calibrate_(LearnablePE(16, 32), tokens(), rho=rho)


@pytest.mark.parametrize(
    ("pe", "x", "words"),
    [
        (LearnablePE(16, 32), torch.ones(4, 16, 32), "all tokens of the batch are the same"),
        (LearnablePE(16, 32), torch.zeros(4, 16, dtype=torch.int64), "must be embedded"),
        (placecell.SinusoidalPE(32), tokens(), "SinusoidalPE has no table to calibrate"),
        (nn.Linear(4, 4), tokens(), "Linear has no table"),
        (nn.LSTM(4, 4), tokens(), "LSTM has no table"),
        (nn.Parameter(torch.zeros(16, 32)), tokens(), "constant"),
        (LearnablePE(16, 32, sigma=0.0), tokens(), "σ = 0"),
        (LearnablePE(16, 8), tokens(), "width 8 cannot be added to tokens of width 32"),
        (nn.Embedding(16, 8), tokens(), "width 8 cannot be added"),
        (LearnablePE(16, 32), tokens().numpy(), "must be a tensor"),
        (LearnablePE(16, 32), torch.full((4, 16, 32), float("nan")), "mean square"),
    ],
)
def test_bad_input_is_one_sentence(pe, x: Tensor, words: str) -> None:
    with pytest.raises(InputError, match=words):
        calibrate_(pe, x)


def test_nothing_present_and_twice() -> None:
    with pytest.raises(InputError, match="no token of the batch is present"):
        calibrate_(LearnablePE(16, 32), tokens(), present=torch.zeros(64, 16, dtype=torch.bool))
    with pytest.raises(InputError, match="present must be boolean"):
        calibrate_(LearnablePE(16, 32), tokens(), present=torch.zeros(64, 16))
    positions = nn.Embedding(16, 32)
    calibrate_(positions, tokens())
    with pytest.raises(InputError, match="calibrated already"):
        calibrate_(positions, tokens())


def test_a_share_needs_a_table_and_tokens() -> None:
    table = torch.randn(16, 32)
    assert position_share(table, 1) == position_share(table, 1.0)
    for tokens_, words in ((-1.0, "at least 0"), ("x", "must be a tensor")):
        with pytest.raises(InputError, match=words):
            position_share(table, tokens_)
    with pytest.raises(InputError, match="table must be a tensor"):
        position_share([[1.0]], 1.0)
    with pytest.raises(InputError, match="one row"):
        position_share(table[:1], 1.0)
