"""Position tables are found by what happens to their numbers, and the model is left as it was."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import placecell

sys.path.insert(0, str(Path(__file__).parent))
from handmade import HANDMADE, IDS, Attends, Decoder, Embedded, Words


@pytest.mark.parametrize("name", HANDMADE)
def test_tables_of_models_written_by_hand(name: str) -> None:
    made = HANDMADE[name]
    torch.manual_seed(0)
    found = placecell.find_tables(made.model(), made.example)
    assert set(found.names) == made.tables
    assert found.trace.aligned
    assert made.other in found.others if made.other else found.others == {}


def test_kinds() -> None:
    def kinds(name: str) -> list[tuple[str, str]]:
        tables = placecell.find_tables(HANDMADE[name].model(), HANDMADE[name].example)
        return [(table.kind, table.how) for table in tables]

    assert kinds("embedding") == [("absolute", "added")]
    assert kinds("concatenated") == [("absolute", "concatenated")]
    assert kinds("bias") == [("relative", "added")]
    assert kinds("shaw") == [("relative", "product")]
    assert kinds("latents") == [("absolute", "added"), ("queries", "product")]


def test_layouts() -> None:
    def layout(name: str) -> str:
        return placecell.find_tables(HANDMADE[name].model(), HANDMADE[name].example)[0].layout

    assert layout("embedding") == layout("class token, registers") == "rows"
    assert layout("transposed") == layout("features first") == "channels first"


class Writes(Words):
    """Changes itself in every forward pass, as models with caches and counters do."""

    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(40, 32))
        self.register_buffer("calls", torch.zeros(()))
        self.cache: dict[int, torch.Tensor] = {}
        self.last = None
        self.drop = nn.Dropout(0.5)

    def place(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if x.shape[1] not in self.cache:
            self.cache[x.shape[1]] = self.pos[: x.shape[1]].clone()
        self.last = x
        self.register_buffer("late", torch.ones(1))
        with torch.no_grad():
            self.tokens.weight[0] = torch.rand(())
        return self.drop(x + self.cache[x.shape[1]])


def test_the_model_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = Writes()
    model.body.eval()
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    random, fast = torch.get_rng_state(), torch.backends.mha.get_fastpath_enabled()
    example = IDS.clone()
    assert placecell.find_tables(model, example).names == ["pos"]
    placecell.doctor(model, example)
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert (model.cache, model.last) == ({}, None)
    assert torch.equal(example, IDS)


def test_a_model_that_ran_before_is_read_the_same_way() -> None:
    model = Writes().eval()
    model(IDS)  # fills its cache, which then no longer shows where it came from
    assert placecell.find_tables(model, IDS).names == ["pos"]
    assert list(model.cache) == [IDS.shape[1]]


def test_half_precision() -> None:
    assert placecell.find_tables(Decoder().bfloat16(), IDS).names == ["wpe.weight"]


@pytest.mark.slow
def test_compiled_models() -> None:
    model = torch.compile(Decoder(), backend="eager")
    model(IDS)
    assert placecell.find_tables(model, IDS).names == ["wpe.weight"]
    inside = Embedded()
    inside.body.head.compile(backend="eager")
    inside.eval()(IDS)
    assert placecell.find_tables(inside, IDS).names == ["pos.weight"]


def test_what_the_example_does_not_reach() -> None:
    class Two(Embedded):
        def __init__(self) -> None:
            super().__init__()
            self.image_pos_embed = nn.Parameter(torch.randn(9, 32))
            self.pos_proj = nn.Linear(4, 4)

    tables = placecell.find_tables(Two(), IDS)
    assert [(t.name, t.exercised) for t in tables] == [
        ("pos.weight", True),
        ("image_pos_embed", False),
    ]
    assert "not exercised" in str(tables["image_pos_embed"])


def test_our_own_encodings() -> None:
    pe = placecell.LearnablePE(16, 32, sigma=0.1)
    model = nn.Sequential(nn.Embedding(50, 32), pe, nn.Linear(32, 4))
    assert placecell.find_tables(model, IDS).names == ["1.weight"]


def test_our_own_models() -> None:
    from placecell.config.run import EncodingConfig, ModelConfig
    from placecell.model import Tokens, build_model
    from placecell.seeds import torch_stream

    places = placecell.Positions.grid(4, 4)
    example = placecell.Inputs(IDS.remainder(6), places, read=torch.tensor([[3], [4], [5]]))
    for name, tables in (("learnable", ["encoding.weight"]), ("nope", []), ("rotary", [])):
        model = build_model(
            Tokens("symbol", 6),
            places,
            4,
            ModelConfig(width=32, depth=2),
            EncodingConfig(name=name, sigma=0.3),
            weights=torch_stream(0, "weights"),
            pe=torch_stream(0, "pe"),
        )
        report = placecell.doctor(model, example)
        assert [table.name for table in report.tables] == tables
        if tables:
            assert report.tables[0].built.sigma == pytest.approx(0.3, rel=0.1)


def test_weights_of_nearly_nothing_hide_nothing() -> None:
    """As some libraries build models that are always loaded: every weight about 1e-10."""
    model = HANDMADE["shaw"].model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1e-10)
    before = copy.deepcopy(model.state_dict())
    assert placecell.find_tables(model, IDS).names == ["rel"]
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_a_softmax_of_keys_makes_no_table_of_their_weights() -> None:
    """Factored attention: a softmax over the keys, and something added to its result later."""

    class Factored(Attends):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            q, k, v = (part.transpose(1, 2) for part in self.qkv(self.tokens(ids)).chunk(3, -1))
            return (q.mT @ (k.softmax(-1) @ v.mT)).mT + q * v

    assert placecell.find_tables(Factored(), IDS).names == []


def test_an_input_that_is_called_positions_may_be_all_there_is() -> None:
    class Cloud(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.pos = nn.Linear(3, 32), nn.Parameter(torch.randn(10, 32))

        def forward(self, positions: torch.Tensor) -> torch.Tensor:
            return self.up(positions) + self.pos

    assert placecell.find_tables(Cloud(), torch.randn(2, 10, 3)).names == ["pos"]


def test_a_bias_by_head_is_no_position() -> None:
    class Biased(Attends):
        def __init__(self) -> None:
            super().__init__()
            self.u = nn.Parameter(torch.randn(4, 8))

        def term(self, q: torch.Tensor) -> torch.Tensor:
            return (q + self.u[:, None]) @ q.transpose(-1, -2)

    class Copied(Biased):
        def term(self, q: torch.Tensor) -> torch.Tensor:
            return (q.contiguous() + self.u[:, None]) @ q.transpose(-1, -2)

    assert placecell.find_tables(Biased(), IDS).names == []
    assert placecell.find_tables(Copied(), IDS).names == []
