"""Encodings in models of other people: indices as tensors, packed sequences, caches, export."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from placecell import (
    AlibiPE,
    CausalNoPE,
    LearnablePE,
    NoPE,
    Positions,
    RandomPE,
    RelativePE,
    RotaryPE,
    SinusoidalPE,
)
from placecell.encodings import Encoding
from placecell.errors import InputError

PACKED = torch.tensor([0, 1, 2, 3, 0, 1])  # two sequences in one row


def test_repeated_indices_are_rows_that_repeat() -> None:
    pe = LearnablePE(4, 8)
    x = torch.randn(2, 6, 8)
    expected = x + torch.cat((pe.weight, pe.weight[:2]))
    torch.testing.assert_close(pe(x, PACKED), expected, rtol=0, atol=0)
    coords = PACKED[:, None].float()
    torch.testing.assert_close(pe(x, Positions(PACKED, coords)), expected, rtol=0, atol=0)


@pytest.mark.parametrize("pe", [LearnablePE(4, 8), RandomPE(4, 8)], ids=["learnable", "random"])
@pytest.mark.parametrize("index", [[0, 1, -1], [0, 99, 2]])
def test_an_index_that_is_no_row_is_named(pe: Encoding, index: list[int]) -> None:
    bad = next(i for i in index if not 0 <= i < 4)
    with pytest.raises(InputError, match=f"rows 0 to 3, but a token has index {bad}"):
        pe(torch.randn(2, 3, 8), torch.tensor(index))


def test_more_tokens_than_rows_are_named() -> None:
    with pytest.raises(InputError, match="rows 0 to 3, but a token has index 4"):
        LearnablePE(4, 8)(torch.randn(2, 6, 8))
    with pytest.raises(InputError, match="rows 0 to 3, but a token has index 99"):
        LearnablePE(4, 8).table(torch.tensor([99]))


def test_the_index_of_a_token_without_a_place_does_not_matter() -> None:
    pos = Positions.grid(2, 2, class_token=True)
    x = torch.randn(2, 5, 8)
    wild = Positions(torch.where(pos.placed, pos.index, -7), pos.coords, pos.placed)  # type: ignore
    pe = LearnablePE(4, 8)
    torch.testing.assert_close(pe(x, pos)[:, 0], x[:, 0])
    wild.check_index(4)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (torch.tensor([0.5, 1.0]), "must be whole numbers, found torch.float32"),
        (torch.zeros(1, 2, 2, dtype=torch.long), r"found \(1, 2, 2\)"),
        ([0, 1], "Positions or a tensor of indices, found list"),
    ],
)
def test_what_is_no_index_is_named(index: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LearnablePE(4, 8)(torch.randn(1, 2, 8), index)  # type: ignore[arg-type]


def test_every_hook_takes_a_tensor_of_indices() -> None:
    hook: Callable[[Any], torch.Tensor]
    index, pos = torch.tensor([3, 1, 2]), Positions.of(torch.tensor([3, 1, 2]))
    x, q = torch.randn(2, 3, 8), torch.randn(2, 2, 3, 4)
    weights = q.new_ones(2, 2, 3, 3) / 3
    rotary, relative, alibi = RotaryPE(8, heads=2), RelativePE(8, heads=2), AlibiPE(heads=2)
    for hook in (
        LearnablePE(4, 8).table,
        SinusoidalPE(8).table,
        lambda p: SinusoidalPE(8)(x, p),
        lambda p: rotary.rotate(q, p),
        lambda p: relative.bias(q, p, p),
        lambda p: relative.add_values(weights, p, p),
        lambda p: alibi.bias(q, p, p),
        lambda p: CausalNoPE().visible(p, p),
    ):
        torch.testing.assert_close(hook(index), hook(pos), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("pe", "hook"),
    [
        (RotaryPE(8), "rotate"),
        (AlibiPE(), "bias"),
        (RelativePE(8), "bias and add_values"),
        (CausalNoPE(), "visible"),
    ],
    ids=["rotary", "alibi", "relative", "nope-causal"],
)
def test_an_encoding_that_does_nothing_to_embeddings_warns_once(pe: Encoding, hook: str) -> None:
    x = torch.randn(2, 3, 8)
    with pytest.warns(UserWarning, match=f"returns them unchanged. Call its {hook} in") as caught:
        assert torch.equal(pe(x), x)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pe(x)


@pytest.mark.parametrize("pe", [NoPE(), LearnablePE(4, 8), SinusoidalPE(8)])
def test_the_others_do_not_warn(pe: Encoding) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pe(torch.randn(2, 3, 8))


def test_two_axes_need_positions() -> None:
    pe, x = SinusoidalPE(8, axes=2), torch.randn(2, 4, 8)
    message = r"SinusoidalPE has 2 axes: pass positions .* Positions.grid\(4, 4\)"
    with pytest.raises(InputError, match=message):
        pe(x)
    assert pe(x, Positions.grid(2, 2)).shape == x.shape


@pytest.mark.parametrize("pe", [LearnablePE(4, 8), SinusoidalPE(8)], ids=["learnable", "sin"])
def test_one_sample_needs_no_batch_axis(pe: Encoding) -> None:
    x = torch.randn(4, 8)
    torch.testing.assert_close(pe(x), pe(x[None])[0], rtol=0, atol=0)
    index = torch.tensor([3, 3, 0, 1])
    torch.testing.assert_close(pe(x, index), pe(x[None], index)[0], rtol=0, atol=0)
    with pytest.raises(InputError, match=r"\(b n d\) or \(n d\)"):
        pe(torch.randn(8))


def test_a_sequence_may_start_late() -> None:
    late = Positions.sequence(3, start=5)
    assert late.index.tolist() == [5, 6, 7]
    assert late.coords.tolist() == [[5.0], [6.0], [7.0]]


def test_decoding_with_a_cache_rotates_as_the_whole_sequence_does() -> None:
    rope, q = RotaryPE(16, heads=2), torch.randn(1, 2, 6, 8, dtype=torch.float64)
    whole = rope.rotate(q, Positions.sequence(6))
    last = rope.rotate(q[:, :, 5:], Positions.sequence(1, start=5))
    torch.testing.assert_close(last, whole[:, :, 5:])


def test_class_token_and_grid_in_one_call() -> None:
    one, two = Positions.grid(2, 3, class_token=True), Positions.grid(2, 3).with_class_token()
    for name in ("index", "coords", "placed"):
        assert torch.equal(getattr(one, name), getattr(two, name))
    assert Positions.grid(2, 3).placed is None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pe, self.out = LearnablePE(9, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor, pos: Positions) -> torch.Tensor:
        return self.out(self.pe(x, pos))


@pytest.mark.parametrize("pos", [Positions.grid(3, 3), Positions.grid(3, 3, class_token=True)])
@pytest.mark.skipif(
    torch.__version__.startswith("2.6."), reason="what torch 2.6 exports takes no dataclass"
)
def test_export_takes_positions(pos: Positions) -> None:
    net, x = Net(), torch.randn(2, len(pos.index), 8)
    exported = torch.export.export(net, (x, pos)).module()
    torch.testing.assert_close(exported(x, pos), net(x, pos))


def test_relative_takes_queries_of_another_type() -> None:
    """Half of the bits in queries, as under autocast, and parameters in single precision."""
    pe, pos = RelativePE(8, heads=2), Positions.sequence(3)
    q = torch.randn(2, 2, 3, 4, dtype=torch.float64)
    weights = q.new_ones(2, 2, 3, 3) / 3
    exact = RelativePE(8, heads=2, dtype=torch.float64)
    exact.load_state_dict(pe.state_dict())
    torch.testing.assert_close(pe.bias(q, pos, pos), exact.bias(q, pos, pos))
    torch.testing.assert_close(
        pe.add_values(weights, pos, pos), exact.add_values(weights, pos, pos)
    )


def test_relative_in_bfloat16() -> None:
    code = (
        "import torch\n"
        "from placecell import Positions, RelativePE\n"
        "pe, pos, q = RelativePE(8), Positions.sequence(3), torch.randn(2, 1, 3, 8)\n"
        "low = pe.bias(q.bfloat16(), pos, pos)\n"
        "assert low.dtype == torch.bfloat16\n"
        "torch.testing.assert_close(low.float(), pe.bias(q, pos, pos), rtol=0.05, atol=0.02)\n"
        "w = q.new_ones(2, 1, 3, 3) / 3\n"
        "low = pe.add_values(w.bfloat16(), pos, pos)\n"
        "torch.testing.assert_close(low.float(), pe.add_values(w, pos, pos), rtol=.05, atol=.02)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode < 0:
        pytest.skip("this processor ends programs that compute in bfloat16")
    assert done.returncode == 0, done.stderr
