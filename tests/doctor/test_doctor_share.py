"""The share that the doctor measures, against what a model says of its own numbers."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import placecell
from placecell.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from handmade import Bias, Body, D, Words, distances, heads

IDS = torch.randint(0, 50, (32, 16), generator=torch.Generator().manual_seed(0))


class Large(Words):
    """Tokens times a factor, as in the first transformer, and a table of the same size."""

    def __init__(self, factor: float, rows: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.factor, self.pos = factor, nn.Parameter(torch.randn(rows, D) * factor)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return self.factor * x + self.pos[: x.shape[1]]

    def own_share(self, ids: Tensor) -> float:
        with torch.no_grad():
            x = self.factor * self.tokens(ids)
            return placecell.position_share(self.pos[: ids.shape[1]], x)


@pytest.mark.parametrize("factor", [1.0, 50.0, 1000.0])
def test_large_tokens_and_tables_are_not_taken_for_masked(factor: float) -> None:
    model = Large(factor)
    assert placecell.share_of_position(model, IDS)["pos"] == pytest.approx(model.own_share(IDS))
    (change,) = placecell.init_(model, IDS)
    assert change.rho == pytest.approx(0.4, rel=1e-3)
    assert model.own_share(IDS) == pytest.approx(0.4, rel=1e-3)
    assert change.sigma == pytest.approx(float(model.pos.detach().std()), rel=1e-3)


class Pixels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.pos = nn.Linear(48, D), nn.Parameter(torch.randn(16, D))
        self.body = Body()

    def forward(self, patches: Tensor) -> Tensor:
        return self.body(self.patch(patches) + self.pos)


def test_raw_pixels() -> None:
    torch.manual_seed(0)
    model = Pixels()
    patches = torch.randint(0, 256, (32, 16, 48)).float()
    placecell.init_(model, patches)
    with torch.no_grad():
        own = placecell.position_share(model.pos, model.patch(patches))
    assert own == pytest.approx(0.4, rel=1e-3)


@pytest.mark.parametrize("rows", [2, 4, 16])
def test_the_doctor_and_calibrate_mean_the_same_share(rows: int) -> None:
    model, ids = Large(math.sqrt(D), rows), IDS[:, :rows].contiguous()
    with torch.no_grad():
        placecell.calibrate_(model.pos, model.factor * model.tokens(ids))
    assert placecell.share_of_position(model, ids)["pos"] == pytest.approx(0.4, rel=1e-3)


class MaskedBias(Bias):
    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = heads(self.qkv(self.tokens(ids)))
        n = q.shape[2]
        mask = torch.full((n, n), -1e9).triu(1)
        bias = self.rel[:, distances(n) + 15] + mask
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def test_masked_logits_are_still_left_out() -> None:
    model = MaskedBias()
    nn.init.normal_(model.rel)
    (table,) = placecell.doctor(model, IDS).tables
    assert table.table.kind == "relative"
    assert table.built.sigma == pytest.approx(1.0, rel=0.2)
    assert table.built.beside < 60


def test_an_example_of_nan_is_called_that() -> None:
    with pytest.raises(InputError, match="found only NaN in patches"):
        placecell.share_of_position(Pixels(), torch.full((4, 16, 48), math.nan))
