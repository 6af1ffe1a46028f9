"""σ is measured, not assumed: tables drawn by others, loaded, copied, averaged, sent."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import placecell
from placecell import LearnablePE, calibrate_, position_share
from placecell.encodings.learnable import AUTO_SHARE
from placecell.errors import InputError


def tokens(scale: float = 0.25) -> Tensor:
    return scale * torch.randn(64, 16, 32, generator=torch.Generator().manual_seed(0))


def share(pe: LearnablePE, x: Tensor) -> float:
    with torch.no_grad():
        return position_share(pe.table(placecell.Positions.sequence(16)), x)


def spread(table: Tensor) -> float:
    """The standard deviation over positions, without torch."""
    return float(np.sqrt(table.detach().double().numpy().var(0, ddof=1).mean()))


@pytest.mark.parametrize("std", [0.02, 3.0])
@pytest.mark.parametrize("gain", [None, 2.0])
def test_a_table_drawn_by_someone_else_reaches_its_share(std: float, gain: float | None) -> None:
    for first in (lambda pe, x: pe(x), lambda pe, x: calibrate_(pe, x)):
        pe = LearnablePE(16, 32, sigma="auto", gain=gain)
        nn.init.trunc_normal_(pe.weight, std=std)
        first(pe, tokens())
        assert share(pe, tokens()) == pytest.approx(AUTO_SHARE, rel=1e-4)
        assert pe.sigma == pytest.approx(spread(pe.weight), rel=1e-4)
        assert f"sigma={pe.sigma:g}" in repr(pe)
    fixed = LearnablePE(16, 32, sigma=0.1, gain=gain)
    nn.init.trunc_normal_(fixed.weight, std=std)
    returned = calibrate_(fixed, tokens(), rho=0.2)
    assert share(fixed, tokens()) == pytest.approx(0.2, rel=1e-4)
    assert returned == fixed.sigma == pytest.approx(spread(fixed.weight), rel=1e-4)


def test_the_gain_as_it_is_now_counts() -> None:
    pe = LearnablePE(16, 32, sigma="auto", gain=2.0)
    nn.init.constant_(pe.gain, 0.5)
    pe(tokens())
    assert share(pe, tokens()) == pytest.approx(AUTO_SHARE, rel=1e-4)
    pe.reset_parameters()
    nn.init.zeros_(pe.gain)
    with pytest.raises(InputError, match="gain is 0"):
        pe(tokens())


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2 * weight


def test_a_table_that_is_not_the_modules_own_is_not_scaled() -> None:
    pe = LearnablePE(16, 32, sigma="auto")
    other = {"weight": pe.weight.detach().clone()}
    with pytest.raises(InputError, match="another stands in its place"):
        torch.func.functional_call(pe, other, (tokens(),))
    parametrize.register_parametrization(pe, "weight", Doubled())
    for use in (pe, lambda x: calibrate_(pe, x)):
        with pytest.raises(InputError, match="another stands in its place"):
            use(tokens())
    assert not pe.calibrated


def test_a_loaded_table_that_began_with_a_number_is_left_alone() -> None:
    trained = LearnablePE(16, 32, sigma=0.02)
    model = nn.Sequential(nn.Identity(), LearnablePE(16, 32, sigma="auto"))
    model.load_state_dict({"1.weight": trained.weight}, strict=False)
    assert model[1].calibrated
    assert model[1].sigma == pytest.approx(0.02, rel=0.1)
    model(tokens())
    assert torch.equal(model[1].weight, trained.weight)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_an_average_made_before_the_first_batch_is_not_scaled(use_buffers: bool) -> None:
    model = nn.Sequential(LearnablePE(16, 32, sigma="auto"))
    decay = get_ema_multi_avg_fn(0.9)
    average = AveragedModel(model, multi_avg_fn=decay, use_buffers=use_buffers)
    model(tokens())
    for _ in range(3):
        average.update_parameters(model)
    before = average.module[0].weight.detach().clone()
    average.eval()(tokens(7.0))
    assert torch.equal(average.module[0].weight, before)
    assert average.module[0].sigma == model[0].sigma


def test_a_copy_without_buffers_takes_its_share_from_what_it_has() -> None:
    model = LearnablePE(16, 32, sigma="auto")
    average = copy.deepcopy(model)
    model(tokens())
    with torch.no_grad():
        for _ in range(200):
            average.weight.lerp_(model.weight, 0.1)
    average(tokens())
    assert torch.allclose(average.weight, model.weight, rtol=1e-4)


def test_sigma_as_sent_with_the_buffers_is_known_at_once() -> None:
    sender, receiver = (LearnablePE(16, 32, sigma="auto") for _ in range(2))
    sender(tokens())
    with torch.no_grad():  # as DistributedDataParallel does
        for own, sent in zip(
            receiver.state_dict().values(), sender.state_dict().values(), strict=True
        ):
            own.copy_(sent)
    assert receiver.calibrated
    assert receiver.sigma == sender.sigma
    receiver(tokens(9.0))
    assert torch.equal(receiver.weight, sender.weight)


WORKER = """
import datetime, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from placecell import LearnablePE
rank, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2,
                        timeout=datetime.timedelta(seconds=60))
torch.manual_seed(rank)
model = LearnablePE(16, 8, sigma="auto")
if rank == 0:
    model.load_state_dict({"weight": 0.3 * torch.randn(16, 8), "auto_sigma": torch.tensor(0.3)})
model = DistributedDataParallel(model)
for _ in range(2):
    model(torch.randn(32, 16, 8)).square().mean().backward()
print(f"{model.module.sigma:.6f} {float(model.module.weight.detach().double().sum()):.9f}")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_a_checkpoint_that_one_process_loads_serves_all(tmp_path: Path) -> None:
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
    assert lines[0] == lines[1]
    assert lines[0].startswith("0.300000 ")


def test_drawn_anew_any_table_can_be_calibrated_again() -> None:
    embedding, parameter = nn.Embedding(16, 32), nn.Parameter(torch.randn(16, 32))
    for table, draw in (
        (embedding, embedding.reset_parameters),
        (parameter, lambda: nn.init.normal_(parameter)),
    ):
        calibrate_(table, tokens())
        for again in (table, getattr(table, "weight", table)):
            with pytest.raises(InputError, match="calibrated already; draw it anew"):
                calibrate_(again, tokens())
        draw()
        sigma = calibrate_(table, tokens(), rho=0.1)
        assert sigma == pytest.approx(spread(getattr(table, "weight", table)), rel=1e-4)


@pytest.mark.parametrize("sigma", ["0.1", "Auto", [0.1], True, np.array([0.1, 0.2]), None])
def test_a_wrong_sigma_is_one_sentence(sigma) -> None:
    with pytest.raises(InputError, match=r"^sigma must be [^.]*, not [^\n]*\.$"):
        LearnablePE(16, 32, sigma=sigma)


def test_numbers_of_other_libraries_are_numbers() -> None:
    for number in (np.float32(0.25), np.array(0.25), torch.tensor(0.25)):
        assert LearnablePE(16, 32, sigma=number).sigma == 0.25
        sigma = calibrate_(nn.Embedding(16, 32), tokens(), rho=number)
        assert sigma == pytest.approx(0.25 / math.sqrt(3), rel=0.01)
    for wrong in (True, [0.2], torch.tensor([0.2, 0.4]), "0.4"):
        with pytest.raises(InputError, match="above 0 and below 1"):
            calibrate_(nn.Embedding(16, 32), tokens(), rho=wrong)


@pytest.mark.parametrize("value", [0.0, math.nan])
def test_a_first_batch_that_says_nothing_is_refused_by_name(value: float) -> None:
    pe = LearnablePE(16, 32, sigma="auto")
    with pytest.raises(InputError, match=r'LearnablePE with sigma="auto".*give sigma a number'):
        pe(torch.full((4, 16, 32), value))
    pe(tokens())
    assert share(pe, tokens()) == pytest.approx(AUTO_SHARE, rel=1e-4)


@pytest.mark.slow
def test_export_before_the_first_batch_is_refused() -> None:
    if not hasattr(torch.compiler, "is_exporting"):
        pytest.skip("this torch does not say that it exports")
    pe = LearnablePE(16, 32, sigma="auto")
    with pytest.raises(InputError, match="run one batch"):
        torch.export.export(pe, (tokens(),), strict=False)
    pe(tokens())
    torch.export.export(pe, (tokens(),), strict=False)
