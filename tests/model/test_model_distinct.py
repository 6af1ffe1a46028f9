"""What tokens of one symbol at one place share is computed once, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from placecell.encodings import Encoding, LearnablePE, Positions, available, build
from placecell.model import Inputs
from placecell.model.encoder import Encoder, Tokens, Transformer

B, N, D, SYMBOLS = 12, 6, 16, 5
POS = Positions.grid(2, 3)
DIFFERENT = {"laplacian", "random-walk"}  # the signs of the first are drawn for each sample


class Smear(Encoding):
    """Somebody's part of an encoding that mixes neighbouring tokens."""

    def embed(self, x: Tensor, pos: Any) -> Tensor:
        return super().embed(x + x.roll(1, 1), pos)


class Smeared(Smear, LearnablePE):
    """A user's table with that part."""


class Blurred(LearnablePE):
    """A user's table that is another one at each call."""

    def table(self, pos: Any) -> Tensor:
        return nn.functional.dropout(super().table(pos), 0.5)


def make(encoding: Encoding, heads: int = 2, norm: Any = "pre", depth: int = 3) -> Transformer:
    torch.manual_seed(0)
    encoder = Encoder(D, depth, heads, 2.0, norm)
    return Transformer(Tokens("symbol", SYMBOLS), encoding, encoder, D, 4).double()


def of_name(name: str, heads: int = 2) -> Encoding:
    return build(name, n=N, d=D, heads=heads, axes=2, sigma=0.5)


def draw(samples: int = B) -> Tensor:
    return torch.randint(SYMBOLS, (samples, N), generator=torch.Generator().manual_seed(1))


def rows_projected(
    model: Transformer, inputs: Inputs, patch: pytest.MonkeyPatch, **options: Any
) -> int:
    """How many rows enter the projection of the first layer."""
    rows: list[int] = []
    first, real = model.encoder.layers[0].attention.qkv, nn.Linear.forward

    def count(self: nn.Linear, x: Tensor) -> Tensor:
        rows.extend([x.shape[:-1].numel()] if self is first else [])
        return real(self, x)

    with patch.context() as p:
        p.setattr(nn.Linear, "forward", count)
        model(inputs, **options)
    assert len(rows) == 1
    return rows[0]


def without(model: Transformer, call: Callable[[], Any], patch: pytest.MonkeyPatch) -> Any:
    """What a call returns where every token is computed."""
    with patch.context() as p:
        p.setattr(Transformer, "_distinct", lambda *_: None)
        return call()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("name", available())
def test_outputs_and_gradients_are_those_of_every_token(
    name: str, heads: int, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(of_name(name, heads), heads, norm)
    inputs = Inputs(draw(), POS, present=torch.arange(N).expand(B, N) < 5)

    def outputs_and_gradients() -> tuple[Tensor, ...]:
        y = model(inputs).outputs
        return y, *torch.autograd.grad(y.square().sum(), list(model.parameters()))

    every = without(model, outputs_and_gradients, monkeypatch)
    torch.testing.assert_close(outputs_and_gradients(), every, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", available())
def test_each_symbol_at_each_place_is_projected_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = of_name(name)
    rows = rows_projected(make(encoding), Inputs(draw(), POS), monkeypatch)
    of_this_package = type(encoding).__module__.startswith("placecell.")
    assert rows == (N * SYMBOLS if of_this_package and name not in DIFFERENT else N * B)


@pytest.mark.parametrize("name", available())
def test_encodings_say_whether_they_only_add_a_table(name: str) -> None:
    encoding = of_name(name).double()
    x = torch.randn(2, B, N, D, dtype=torch.float64)
    added = [encoding.embed(each, POS) - each for each in x]
    alike = torch.allclose(added[0], added[1]) and torch.allclose(added[0], added[0][:1])
    assert alike or not encoding.same_at_a_position


def test_every_token_is_projected_where_rows_are_not_few_or_not_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make(of_name("learnable"))

    def rows(samples: int = B, pos: Positions = POS, **options: Any) -> int:
        return rows_projected(model, Inputs(draw(samples), pos), monkeypatch, **options)

    assert rows(2 * SYMBOLS) == SYMBOLS * N
    assert rows(2 * SYMBOLS - 1) == (2 * SYMBOLS - 1) * N
    assert rows(maps=True) == B * N
    assert rows(pos=Positions.of(torch.arange(N).expand(B, N))) == B * N  # a set for each sample
    model = make(of_name("learnable"), depth=1)
    assert rows() == B * N
    model = make(of_name("learnable")).to(torch.bfloat16)
    assert rows() == B * N


@pytest.mark.parametrize("kind", [Smeared, Blurred])
def test_an_encoding_of_ones_own_is_left_alone(
    kind: type[LearnablePE], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LearnablePE(N, D).same_at_a_position
    assert rows_projected(make(kind(N, D)), Inputs(draw(), POS), monkeypatch) == B * N


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("place", ["embedding", "encoder", "encoder.layers.0.norm_attention"])
def test_a_hook_sees_and_changes_every_token(
    place: str, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever patches activations does."""
    model, inputs = make(of_name("learnable", heads), heads), Inputs(draw(), POS)
    plain = model(inputs).outputs
    seen: list[Tensor] = []

    def without_token_2(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Any, ...]:
        seen.append(args[0])
        x = args[0].clone()
        x[:, 2] = 0
        return x, *args[1:]

    model.get_submodule(place).register_forward_pre_hook(without_token_2)
    changed = model(inputs).outputs
    assert [x.shape[:2] for x in seen] == [(B, N)]
    assert not torch.allclose(plain, changed)
    every = without(model, lambda: model(inputs).outputs, monkeypatch)
    torch.testing.assert_close(changed, every, rtol=1e-9, atol=1e-11)


def test_a_model_is_exported_for_batches_of_any_size() -> None:
    model = make(of_name("learnable"))

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(Inputs(tokens, POS)).outputs

    if not hasattr(torch.compiler, "is_exporting"):
        pytest.skip("this torch does not say that it exports")
    batch = torch.export.Dim("batch", min=2)
    exported = torch.export.export(Plain(), (draw(),), dynamic_shapes={"tokens": {0: batch}})
    for samples in (3, 20):
        tokens = draw(samples)
        actual = exported.module()(tokens)
        torch.testing.assert_close(actual, Plain()(tokens), rtol=1e-9, atol=1e-11)
