"""Tables drawn anew: what a LearnablePE keeps of it, and models that cannot have what is asked."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import placecell
from placecell import LearnablePE
from placecell.errors import InputError

sys.path.insert(0, str(Path(__file__).parent))
from handmade import D, Embedded, Words

IDS = torch.randint(0, 50, (32, 16), generator=torch.Generator().manual_seed(0))


def same(one: nn.Module, other: nn.Module) -> bool:
    states = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and torch.equal(s.nan_to_num(), t.nan_to_num()) for (a, s), (b, t) in states)


def model_with(**options) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(50, D), LearnablePE(16, D, **options))


def own_share(model: nn.Sequential) -> float:
    with torch.no_grad():
        return placecell.position_share(
            model[1].table(placecell.Positions.sequence(16)), model[0](IDS)
        )


@pytest.mark.parametrize("options", [{"sigma": "auto"}, {"sigma": 1.0}, {"sigma": 1.0, "gain": 3}])
@pytest.mark.parametrize("asked", [{"rho": 0.2}, {"rho": 0.8}, {"sigma": 0.02}, {"sigma": 0}])
def test_a_learnable_table_keeps_what_it_was_given(options, asked) -> None:
    for batches_before in (0, 1):
        model = model_with(**options)
        for _ in range(batches_before):
            model(IDS)
        (change,) = placecell.init_(model, IDS, **asked)
        table = model[1].weight.detach().clone()
        assert model[1].calibrated == (options["sigma"] == "auto")
        assert own_share(model) == pytest.approx(change.rho, abs=1e-4)
        assert own_share(model) == pytest.approx(asked.get("rho", change.rho), rel=1e-3)
        assert change.sigma == pytest.approx(asked.get("sigma", change.sigma), rel=1e-4)
        assert model[1].sigma == pytest.approx(float(table.std()), rel=1e-4)
        assert f"sigma={model[1].sigma:g}" in repr(model[1])
        model(IDS)
        assert torch.equal(model[1].weight, table)


def test_it_can_be_drawn_twice_and_calibrated_after_that() -> None:
    model = model_with(sigma=1.0)
    placecell.init_(model, IDS, rho=0.2)
    placecell.init_(model, IDS, rho=0.3)
    assert own_share(model) == pytest.approx(0.3, rel=1e-3)
    placecell.calibrate_(model[1], model[0](IDS), rho=0.1)
    assert own_share(model) == pytest.approx(0.1, rel=1e-3)


class Gated(Embedded):
    def __init__(self, gate: float) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(gate))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.gate * self.pos(torch.arange(x.shape[1]))


class Mute(Embedded):
    """Tokens that are all zero."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.tokens.weight)


class Last(nn.Module):
    """A second table, whose gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.pos, self.gate = nn.Embedding(16, D), nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gate * self.pos(torch.arange(x.shape[1]))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Mute(), "does not vary where the table is added"),
        (Gated(0.0), r"pos.weight does not reach the tokens"),
    ],
)
def test_what_is_refused_leaves_the_model_as_it_was(model: nn.Module, words: str) -> None:
    before = copy.deepcopy(model)
    with pytest.raises(InputError, match=words):
        placecell.init_(model, IDS)
    assert same(model, before)


def test_all_tables_are_put_back_when_one_is_refused() -> None:
    model = nn.Sequential(model_with(sigma="auto"), Last())
    before = copy.deepcopy(model)
    with pytest.raises(InputError, match="does not reach"):
        placecell.init_(model, IDS)
    assert same(model, before)
    assert not model[0][1].calibrated
    assert "auto" in repr(model)


def test_names_may_be_one_and_count_once() -> None:
    once, twice, one = (copy.deepcopy(Gated(0.5)) for _ in range(3))
    for model, names in ((once, ["pos.weight"]), (twice, ["pos.weight"] * 2), (one, "pos.weight")):
        changes = placecell.init_(model, IDS, names=names)
        assert len(changes) == 1
        assert changes[0].rho == pytest.approx(0.4, rel=0.05)


class NormedTable(Embedded):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.norm(self.pos(torch.arange(x.shape[1])))


class RowsAndColumns(Words):
    def __init__(self) -> None:
        super().__init__()
        self.row, self.column = (nn.Parameter(torch.randn(*s, D)) for s in ((4, 1), (1, 4)))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + (self.row + self.column).flatten(0, 1)


@pytest.mark.parametrize(
    ("model", "names"), [(NormedTable(), None), (RowsAndColumns(), ["row"])], ids=["norm", "half"]
)
def test_a_share_that_cannot_be_reached_is_told_with_both_numbers(model, names) -> None:
    with pytest.warns(UserWarning, match=r"share of positions is 0\.\d\d, not the 0\.20"):
        placecell.init_(model, IDS, rho=0.2, names=names)
