"""The tangent kernel: two implementations, finite differences, a closed form, chunks, blocks."""

from __future__ import annotations

import copy

import pytest
import torch

from ntk_reference import ntk_by_products
from placecell import encodings
from placecell.analysis.ntk import KINDS, Kernel, block_of, ntk
from placecell.encodings import LearnablePE, Positions
from placecell.errors import InputError
from placecell.model import Encoder, Inputs, Tokens, Transformer
from placecell.train import make_model

BUDGET = 1e9


@pytest.fixture
def case(tiny, tiny_task, tiny_splits):
    """A small model in double precision and probe inputs, with settings overridden."""

    def make(count: int = 5, **settings) -> tuple[Transformer, Inputs]:
        config = tiny(**({"width": 8, "depth": 2, "heads": 2} | settings))
        examples = tiny_splits["test"].take(slice(0, count))
        model = make_model(config, tiny_task).double()
        return model, Inputs(examples.tokens, tiny_task.positions, examples.read)

    return make


def assert_same(a: Kernel, b: Kernel) -> None:
    assert a.blocks.keys() == b.blocks.keys()
    for block in a.blocks:
        torch.testing.assert_close(a.blocks[block], b.blocks[block], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("encoding", "norm"),
    [*((name, "post") for name in sorted(encodings.available())), ("learnable", "pre")],
)
def test_the_two_implementations_agree(case, encoding: str, norm: str) -> None:
    model, inputs = case(2, encoding=encoding, norm=norm)
    full = ntk_by_products(model, inputs, "full")
    assert_same(ntk(model, inputs, "full"), full)
    traces = {block: k.diagonal(dim1=2, dim2=3).sum(-1) for block, k in full.blocks.items()}
    assert_same(ntk(model, inputs, "trace"), Kernel("trace", traces))
    assert_same(
        ntk(model, inputs, "sum"),
        Kernel("sum", {block: k.sum((2, 3)) for block, k in full.blocks.items()}),
    )


def test_in_single_precision_they_agree_to_five_digits(case) -> None:
    model, inputs = case(3, width=16, depth=3)
    exact = ntk_by_products(model, inputs).total
    single = ntk(copy.deepcopy(model).float(), inputs).total
    assert float((single - exact).norm() / exact.norm()) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_change_nothing(case, kind: str) -> None:
    model, inputs = case(7)
    whole = ntk(model, inputs, kind, BUDGET)
    for budget in (4e5, 8e5):
        assert_same(ntk(model, inputs, kind, budget), whole)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_and_strips_change_nothing(case, monkeypatch, kind: str) -> None:
    """Jacobians a few weights at a time and products a few tokens at a time, in chunks of unequal
    size too."""
    model, inputs = case(7)
    whole = ntk(model, inputs, kind)
    for piece in (1, 1000, 3000):
        monkeypatch.setattr("placecell.analysis.ntk.PIECE", piece)
        for budget in (BUDGET, 8e5):
            assert_same(ntk(model, inputs, kind, budget), whole)


def test_a_frozen_embedding_under_a_learnable_encoding(case) -> None:
    """The encoding's derivative is that of the tokens, which is there though they are not in the
    kernel."""
    model, inputs = case()
    model.embedding.requires_grad_(False)
    assert "tokens" not in ntk(model, inputs).blocks
    assert_same(ntk(model, inputs), ntk_by_products(model, inputs))


def test_a_budget_that_is_too_small_is_one_sentence(case) -> None:
    with pytest.raises(InputError, match="budget of 1e"):
        ntk(*case(), budget=1e4)
    with pytest.raises(InputError, match="did you mean 'trace'"):
        ntk(*case(), "trcae")


def test_finite_differences(case) -> None:
    """Every entry of J by central differences, on a model of a few hundred parameters."""
    model, inputs = case(2, width=4, depth=1, heads=1)
    rows, step = [], 1e-5
    with torch.no_grad():
        for parameter in model.parameters():
            flat = parameter.view(-1)
            for k in range(len(flat)):
                kept = flat[k].item()
                ends = []
                for value in (kept + step, kept - step):
                    flat[k] = value
                    ends.append(
                        model(
                            Inputs(inputs.tokens, inputs.positions, inputs.read)
                        ).outputs.flatten()
                    )
                flat[k] = kept
                rows.append((ends[0] - ends[1]) / (2 * step))
    j = torch.stack(rows, 1)  # (b k) p
    full = (j @ j.T).view(2, 4, 2, 4).transpose(1, 2)
    torch.testing.assert_close(ntk(model, inputs, "full").total, full, rtol=1e-6, atol=1e-8)


def test_the_readout_has_a_closed_form(case) -> None:
    """Its kernel is the identity over outputs times ⟨y, y'⟩ + 1, with y what it reads."""
    model, inputs = case(4)
    y, _ = model.encoder(
        model.encoding.embed(model.embedding(inputs.tokens), inputs.positions),
        model.encoding,
        inputs.positions,
        inputs.read,
    )
    y = y[:, 0]
    expected = (y @ y.T + 1)[..., None, None] * torch.eye(4, dtype=y.dtype)
    torch.testing.assert_close(ntk(model, inputs, "full").blocks["readout"], expected)


def test_the_kernel_is_a_gram_matrix(case) -> None:
    kernel = ntk(*case()).total
    torch.testing.assert_close(kernel, kernel.mT)
    assert float(torch.linalg.eigvalsh(kernel)[0]) > -1e-9


def test_blocks_are_all_there_and_frozen_ones_are_not(case) -> None:
    model, inputs = case()
    blocks = {"PE", "tokens", "QK", "OV", "MLP", "norm", "readout"}
    assert (
        ntk(model, inputs).blocks.keys()
        == blocks
        == {block_of(name) for name, _ in model.named_parameters()} | {"OV"}
    )
    model.encoding.requires_grad_(False)
    assert_same(ntk(model, inputs), ntk_by_products(model, inputs))
    assert ntk(model, inputs).blocks.keys() == blocks - {"PE"}


def test_several_tokens_read_and_values_as_tokens() -> None:
    """As in masked prediction: q tokens with one output each."""
    torch.manual_seed(0)
    model = Transformer(Tokens("value", 2), LearnablePE(6, 8), Encoder(8, 2), 8, 1).double()
    read = torch.tensor([[0, 3], [5, 1], [2, 2]])
    inputs = Inputs(torch.randn(3, 6, 2, dtype=torch.float64), Positions.sequence(6), read)
    for kind in ("trace", "sum"):
        assert_same(ntk(model, inputs, kind), ntk_by_products(model, inputs, kind))


def test_nothing_of_the_model_changes(case) -> None:
    model, inputs = case()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ntk(model, inputs)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
