"""What tokens of one symbol at one place share is computed once, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from placecell.encodings import Encoding, LearnablePE, Positions, available, build
from placecell.model import Inputs
from placecell.model.encoder import Encoder, Tokens, Transformer

B, N, D, SYMBOLS = 12, 6, 16, 5
POS = Positions.grid(2, 3)


class Smeared(LearnablePE):
    """A user's table that also mixes neighbouring tokens."""

    def embed(self, x: Tensor, pos: Any) -> Tensor:
        return super().embed(x + x.roll(1, 1), pos)


def make(encoding: Encoding, heads: int, norm: Any, tokens: Tokens) -> Transformer:
    torch.manual_seed(0)
    encoder = Encoder(D, 3, heads, 2.0, norm)
    return Transformer(tokens, encoding, encoder, D, 4).double()


def of_name(name: str) -> Encoding:
    return build(name, n=N, d=D, heads=2, axes=2, sigma=0.5)


def draw(samples: int = B) -> Tensor:
    return torch.randint(SYMBOLS, (samples, N), generator=torch.Generator().manual_seed(1))


def rows_projected(model: Transformer, inputs: Inputs, **options: Any) -> int:
    """How many rows enter the projection of the first layer."""
    rows: list[int] = []
    hook = model.encoder.layers[0].attention.qkv.register_forward_hook(
        lambda _, args, __: rows.append(args[0].shape[:-1].numel())
    )
    model(inputs, **options)
    hook.remove()
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("name", available())
def test_outputs_and_gradients_are_those_of_every_token(
    name: str, heads: int, norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding = build(name, n=N, d=D, heads=heads, axes=2, sigma=0.5)
    model = make(encoding, heads, norm, Tokens("symbol", SYMBOLS))
    inputs = Inputs(draw(), POS, present=torch.arange(N).expand(B, N) < 5)

    def outputs_and_gradients() -> tuple[Tensor, ...]:
        y = model(inputs).outputs
        return y, *torch.autograd.grad(y.square().sum(), list(model.parameters()))

    few = outputs_and_gradients()
    monkeypatch.setattr(Transformer, "_distinct", lambda *_: None)
    torch.testing.assert_close(few, outputs_and_gradients(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", available())
def test_each_symbol_at_each_place_is_projected_once(name: str) -> None:
    encoding = of_name(name)
    model = make(encoding, 2, "pre", Tokens("symbol", SYMBOLS))
    assert rows_projected(model, Inputs(draw(), POS)) == N * (SYMBOLS if encoding.adds_table else B)


@pytest.mark.parametrize("name", available())
def test_encodings_say_whether_they_only_add_a_table(name: str) -> None:
    encoding = of_name(name).double()
    x = torch.randn(2, B, N, D, dtype=torch.float64)
    added = [encoding.embed(each, POS) - each for each in x]
    alike = torch.allclose(added[0], added[1]) and torch.allclose(added[0], added[0][:1])
    assert alike or not encoding.adds_table


def test_every_token_is_projected_where_rows_are_not_few_or_not_shared() -> None:
    symbols, values = Tokens("symbol", SYMBOLS), Tokens("value", 1)
    model = make(of_name("learnable"), 2, "pre", symbols)
    assert rows_projected(model, Inputs(draw(2 * SYMBOLS), POS)) == SYMBOLS * N
    assert rows_projected(model, Inputs(draw(2 * SYMBOLS - 1), POS)) == (2 * SYMBOLS - 1) * N
    assert rows_projected(model, Inputs(draw(), POS), maps=True) == B * N
    own = Positions.of(torch.arange(N).expand(B, N))  # a set for each sample
    assert rows_projected(model, Inputs(draw(), own)) == B * N
    model = make(of_name("learnable"), 2, "pre", values)
    assert rows_projected(model, Inputs(torch.randn(B, N, 1, dtype=torch.float64), POS)) == B * N


def test_an_encoding_that_mixes_tokens_is_left_alone() -> None:
    assert LearnablePE.adds_table
    assert not Smeared.adds_table
    model = make(Smeared(N, D), 2, "pre", Tokens("symbol", SYMBOLS))
    assert rows_projected(model, Inputs(draw(), POS)) == B * N
