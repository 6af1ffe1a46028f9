"""Setting, resizing, freezing a table, and keeping it from weight decay."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import placecell
from placecell.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from handmade import HANDMADE, IDS, Embedded, Words


class Scaled(Words):
    """Multiplies its table on the way: what is stored is not what the network sees."""

    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(40, 32))

    def place(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return x + 0.25 * self.pos[: x.shape[1]]


def test_init_sets_what_enters_the_network() -> None:
    model = Scaled()
    (change,) = placecell.init_(model, IDS, sigma=0.1)
    assert change.name == "pos"
    assert change.sigma == pytest.approx(0.1, rel=1e-4)
    assert model.pos.detach().std() == pytest.approx(0.4, rel=0.1)
    assert change.before == pytest.approx(0.25, rel=0.1)
    assert "→ 0.1," in str(change)


@pytest.mark.parametrize("rho", [0.05, 0.3, 0.8])
def test_init_reaches_a_share(rho: float) -> None:
    model = Scaled()
    (change,) = placecell.init_(model, IDS, rho=rho)
    assert change.rho == pytest.approx(rho, rel=0.02)
    assert placecell.share_of_position(model, IDS)["pos"] == pytest.approx(rho, rel=0.02)


def test_init_takes_the_rule_where_nothing_is_said() -> None:
    model = Scaled()
    placecell.init_(model, IDS)
    ruled = model.pos.detach().clone()
    placecell.init_(model, IDS, rho=0.4)
    assert torch.allclose(model.pos, ruled)


def test_init_draws_from_a_stream_of_its_own() -> None:
    models = [Embedded() for _ in range(3)]
    random = torch.get_rng_state()
    weights = [{k: v.clone() for k, v in m.state_dict().items()} for m in models]
    placecell.init_(models[0], IDS, sigma=0.1)
    placecell.init_(models[1], IDS, sigma=0.3)
    placecell.init_(models[2], IDS, sigma=0.1, seed=1)
    assert torch.equal(torch.get_rng_state(), random)
    first, second, other = (m.pos.weight.detach() for m in models)
    assert torch.allclose(second, first * 3, rtol=1e-4)
    assert not torch.allclose(other, first)
    for model, before in zip(models, weights, strict=True):
        for key, value in model.state_dict().items():
            assert key == "pos.weight" or torch.equal(value, before[key])


def test_init_refuses_fixed_and_relative_tables() -> None:
    for name, words in (("buffer", "fixed"), ("bias", "relative"), ("no positions", "absolute")):
        made = HANDMADE[name]
        with pytest.raises(InputError, match=words):
            placecell.init_(made.model(), made.example, sigma=0.1)
    with pytest.raises(InputError, match="relative"):
        placecell.init_(HANDMADE["bias"].model(), IDS, sigma=0.1, names=["rel"])
    with pytest.raises(InputError, match=r"did you mean 'pos.weight'"):
        placecell.init_(Embedded(), IDS, sigma=0.1, names=["pos.weigth"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": 0.1, "rho": 0.2}, "found both"),
        ({"sigma": -1.0}, "sigma must be a finite number, at least 0, not -1.0"),
        ({"sigma": "auto"}, "sigma must be a finite number"),
        ({"sigma": True}, "sigma must be a finite number"),
        ({"rho": 1.0}, "rho must be a finite number, above 0 and below 1, not 1.0"),
        ({"rho": [0.2]}, "rho must be a finite number"),
        ({"names": "position"}, "unknown table 'position'"),
        ({"names": 3}, "unknown table '3'"),
    ],
)
def test_init_checks_its_options(options: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        placecell.init_(Embedded(), IDS, **options)


def smooth(h: int, w: int) -> torch.Tensor:
    """A table (h·w, 2) of each cell's middle, in units of the grid: any size is the same map."""
    rows = (torch.arange(h) + 0.5) / h
    columns = (torch.arange(w) + 0.5) / w
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)


def test_resize_keeps_the_map_and_the_class_token() -> None:
    head = torch.tensor([[9.0, -9.0]])
    table = torch.cat([head, smooth(14, 14)])[None]
    new = placecell.resize(table, (24, 20))
    assert new.shape == (1, 1 + 480, 2)
    assert torch.equal(new[0, :1], head)
    inner = smooth(24, 20).reshape(24, 20, 2)[2:-2, 2:-2]
    assert torch.allclose(new[0, 1:].reshape(24, 20, 2)[2:-2, 2:-2], inner, atol=0.01)
    assert torch.equal(placecell.resize(table, (14, 14)), table)
    assert placecell.resize(smooth(4, 4), (2, 2)).shape == (4, 2)


@pytest.mark.parametrize("rows", [7, 3])
def test_resize_needs_a_square(rows: int) -> None:
    if rows == 7:
        with pytest.raises(InputError, match="no square"):
            placecell.resize(torch.randn(rows, 4), (2, 2), before=1)
    with pytest.raises(InputError, match=r"expected shape"):
        placecell.resize(torch.randn(2, rows, 4), (2, 2))


def test_extend() -> None:
    table = torch.linspace(0, 1, 9)[:, None] * torch.ones(9, 4)
    longer = placecell.extend(table, 17)
    assert torch.allclose(longer, torch.linspace(0, 1, 17)[:, None] * torch.ones(17, 4))
    drawn = placecell.extend(torch.randn(50, 64) * 0.3, 80, how="append")
    assert drawn[50:].std() == pytest.approx(0.3, rel=0.1)
    again = placecell.extend(table, 20, how="repeat")
    assert torch.equal(again[9:18], table)
    assert placecell.extend(table[None], 4, how="append").shape == (1, 4, 4)
    with pytest.raises(InputError, match="unknown way"):
        placecell.extend(table, 20, how="stretch")


def test_freeze_and_parameter_groups() -> None:
    model = Embedded()
    groups = placecell.param_groups(model, IDS, weight_decay=0.1, lr=1e-2)
    given = {group["name"]: group for group in groups}
    assert given["positions"]["params"] == [model.pos.weight]
    assert given["positions"]["lr"] == 1e-2
    assert (given["positions"]["weight_decay"], given["weights"]["weight_decay"]) == (0.0, 0.1)
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    torch.optim.AdamW(groups, lr=1e-3)
    assert placecell.freeze(model, IDS) == ["pos.weight"]
    assert not model.pos.weight.requires_grad
    assert sum(p.requires_grad for p in model.parameters()) == len(list(model.parameters())) - 1
    with pytest.raises(InputError, match="unknown table"):
        placecell.freeze(Embedded(), IDS, ["elsewhere"])
