"""The input object: absent tokens and tokens without a place, for every encoding."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ntk_reference import ntk_by_products
from placecell.analysis.ntk import KINDS, ntk
from placecell.encodings import Positions, available, build
from placecell.errors import InputError
from placecell.model import Inputs
from placecell.model.encoder import Encoder, Tokens, Transformer
from placecell.study.maps import mean_maps
from placecell.tasks.base import Examples
from placecell.tasks.classification import Classification
from placecell.tasks.masked import MaskedValues

N, D, SYMBOLS, OUTPUTS = 6, 24, 5, 4
PLACES = Positions.grid(2, 3)
LENGTHS = (6, 4, 1, 5)
every = pytest.mark.parametrize("name", available())
in_each_form = pytest.mark.parametrize(
    ("heads", "norm", "maps"), list(itertools.product((1, 2), ("pre", "post"), (False, True)))
)


def make(name: str, heads: int = 1, norm: str = "post") -> Transformer:
    """A tiny model in double precision, its biases and norms not at their neutral initial
    values."""
    torch.manual_seed(0)
    encoding = build(name, n=N, d=D, heads=heads, axes=2, sigma=0.5)
    encoder = Encoder(D, 2, heads, 2.0, norm=norm)  # type: ignore[arg-type]
    model = Transformer(Tokens("symbol", SYMBOLS), encoding, encoder, D, OUTPUTS).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def draw(*shape: int, below: int = SYMBOLS, seed: int = 1) -> Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))


def samples(shuffled: bool) -> tuple[Inputs, list[Inputs]]:
    """Samples of several lengths as one padded batch, and each alone. Absent tokens stand at the
    end, or, shuffled, anywhere, with each sample's tokens at places of its own."""
    b = len(LENGTHS)
    order = torch.rand(b, N, generator=torch.Generator().manual_seed(3)).argsort(-1)
    if not shuffled:
        order = torch.arange(N).expand(b, N)
    here = draw(b, N).masked_fill(torch.arange(N) >= torch.tensor(LENGTHS)[:, None], 0)
    present = torch.arange(N) < torch.tensor(LENGTHS)[:, None]
    if shuffled:  # which columns are absent differs by sample
        columns = torch.rand(b, N, generator=torch.Generator().manual_seed(4)).argsort(-1)
        here, present, order = (x.gather(1, columns) for x in (here, present, order))
    read = torch.stack([row.nonzero()[:, 0][[0, -1]] for row in present])
    positions = Positions(order, PLACES.coords[order])
    alone = []
    for tokens, places, row, asked in zip(here, order, present, read, strict=True):
        kept = row.nonzero()[:, 0]
        own = torch.tensor([[int((kept == token).nonzero()) for token in asked]])
        alone.append(
            Inputs(tokens[kept][None], Positions(places[kept], PLACES.coords[places[kept]]), own)
        )
    return Inputs(here, positions if shuffled else PLACES, read, present), alone


def gradients(y: Tensor, model: Transformer) -> list[Tensor]:
    weight = torch.arange(1.0, y[0].numel() + 1, dtype=y.dtype).view(y.shape[1:]).cos()
    return list(
        torch.autograd.grad((y * weight).sum(), list(model.parameters()), allow_unused=True)
    )


def assert_close(actual: object, expected: object) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-10)


@every
@in_each_form
@pytest.mark.parametrize("shuffled", [False, True])
def test_padding_changes_no_output_and_no_gradient(
    name: str, heads: int, norm: str, maps: bool, shuffled: bool
) -> None:
    model = make(name, heads, norm)
    padded, alone = samples(shuffled)
    together = model(padded, maps=maps).outputs
    one_by_one = torch.cat([model(one, maps=maps).outputs for one in alone])
    assert_close(together, one_by_one)
    for ours, theirs in zip(gradients(together, model), gradients(one_by_one, model), strict=True):
        assert_close(
            torch.zeros(()) if ours is None else ours, torch.zeros(()) if theirs is None else theirs
        )


@every
def test_what_an_absent_token_holds_changes_nothing(name: str) -> None:
    model = make(name, heads=2)
    inputs, _ = samples(shuffled=True)
    assert inputs.present is not None
    other = torch.where(inputs.present, inputs.tokens, (inputs.tokens + 2) % SYMBOLS)
    assert not torch.equal(other, inputs.tokens)
    assert_close(model(replace(inputs, tokens=other)).outputs, model(inputs).outputs)


@every
@pytest.mark.parametrize("heads", [1, 2])
def test_all_present_is_as_if_nothing_was_said(name: str, heads: int) -> None:
    model, inputs = make(name, heads), Inputs(draw(3, N), PLACES)
    whole = replace(inputs, present=torch.ones(3, N, dtype=torch.bool))
    assert_close(model(whole).outputs, model(inputs).outputs)


def with_class_token(**change: Tensor) -> Inputs:
    """Three samples with a class token (symbol 0) first, read there and at one placed token."""
    tokens = torch.cat((torch.zeros(3, 1, dtype=torch.long), draw(3, N)), 1)
    return Inputs(tokens, replace(PLACES.with_class_token(), **change), torch.tensor([[0, 3]] * 3))


@every
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("maps", [False, True])
def test_index_and_coordinates_of_a_token_without_a_place_say_nothing(
    name: str, heads: int, maps: bool
) -> None:
    model, inputs = make(name, heads), with_class_token()
    index, coords = inputs.positions.index.clone(), inputs.positions.coords.clone()
    index[0], coords[0] = 5, torch.tensor([7.0, -3.0])
    moved = with_class_token(index=index, coords=coords)
    assert_close(model(moved, maps=maps).outputs, model(inputs, maps=maps).outputs)


@every
def test_encodings_leave_a_token_without_a_place_alone(name: str) -> None:
    encoding = build(name, n=N, d=D, heads=2, axes=2, sigma=0.5).double()
    pos = PLACES.with_class_token()
    x = torch.randn(2, N + 1, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(encoding.embed(x, pos)[:, 0], x[:, 0])
    assert_close(encoding.embed(x, pos)[:, 1:], encoding.embed(x[:, 1:], PLACES))
    q = x.view(2, N + 1, 2, D // 2).transpose(1, 2)
    assert torch.equal(encoding.rotate(q, pos)[:, :, 0], q[:, :, 0])
    bias = encoding.bias(q, pos, pos)
    if bias is not None:
        assert not bias[:, :, 0].any() if bias.ndim == 4 else not bias[:, 0].any()
        assert not bias[..., 0].any()
    table = encoding.table(pos)
    if table is not None:
        assert not table[0].any()


def test_nobody_learns_of_later_tokens_through_a_class_token_under_a_causal_mask() -> None:
    model, inputs = make("nope-causal"), with_class_token()
    before = model(replace(inputs, read=None)).outputs
    changed = inputs.tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % SYMBOLS
    after = model(replace(inputs, tokens=changed, read=None)).outputs
    assert_close(after[:, 1:-1], before[:, 1:-1])
    assert (after[:, 0] - before[:, 0]).abs().max() > 1e-6  # the class token sees all


def test_maps_are_means_over_the_samples_that_have_both_places() -> None:
    model = make("learnable", heads=2)
    inputs, _ = samples(shuffled=True)
    assert inputs.present is not None
    weights = model(inputs, maps=True).maps
    sums, counts = np.zeros((2, 2, N, N)), np.zeros((N, N))
    for b, (places, row) in enumerate(zip(inputs.positions.index, inputs.present, strict=True)):
        for i, j in itertools.product(range(N), range(N)):
            if row[i] and row[j]:
                counts[places[i], places[j]] += 1
                for layer in range(2):
                    sums[layer, :, places[i], places[j]] += (
                        weights[layer][b, :, i, j].detach().numpy()
                    )
    np.testing.assert_allclose(
        mean_maps(model, inputs, N), sums / np.maximum(counts, 1), atol=1e-12
    )


def test_maps_leave_out_the_class_token() -> None:
    model, inputs = make("learnable"), with_class_token()
    weights = model(inputs, maps=True).maps
    expected = torch.stack([layer[:, :, 1:, 1:].mean(0) for layer in weights]).detach().numpy()
    np.testing.assert_allclose(mean_maps(model, inputs, N), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["learnable", "relative"])
def test_tangent_kernels_of_padded_samples_and_class_tokens(name: str, kind: str) -> None:
    model = make(name)
    for inputs in (samples(shuffled=True)[0], with_class_token()):
        ours = ntk(model, inputs, kind)  # type: ignore[arg-type]
        other = ntk_by_products(model, inputs, kind)  # type: ignore[arg-type]
        assert ours.blocks.keys() == other.blocks.keys()
        for block, kernel in ours.blocks.items():
            torch.testing.assert_close(kernel, other.blocks[block], rtol=1e-6, atol=1e-9)


class Classes(Classification):
    groups = ("a", "b")

    def __init__(self) -> None:
        self.n_outputs = OUTPUTS

    def splits(self) -> dict[str, Examples]:
        raise NotImplementedError


class Values(MaskedValues):
    def __init__(self) -> None:
        pass

    def fields(self) -> dict:
        raise NotImplementedError


@pytest.mark.parametrize("task", [Classes(), Values()], ids=["classes", "values"])
def test_losses_and_metrics_count_what_is_scored(task: Classification | MaskedValues) -> None:
    values = isinstance(task, Values)
    outputs = torch.randn(4, 3, 1 if values else OUTPUTS, dtype=torch.float64)
    targets = torch.randn(4, 3, dtype=torch.float64) if values else draw(4, 3, below=OUTPUTS)
    scored = torch.tensor([[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=torch.bool)
    group = torch.tensor([0, 0, 0, 1])
    examples = Examples(torch.zeros(4, 6), draw(4, 3), targets, group, scored=scored)
    other = torch.where(scored, targets, targets + 1 if values else (targets + 1) % OUTPUTS)
    changed = replace(examples, targets=other)
    assert task.loss(outputs, examples) == task.loss(outputs, changed)
    assert task.metrics(outputs, examples) == task.metrics(outputs, changed)
    one = Examples(torch.zeros(1, 6), draw(1, 3), targets[:1], group[:1])
    whole = replace(one, scored=scored[:1])
    assert_close(task.loss(outputs[:1], whole), task.loss(outputs[:1], one))
    assert task.metrics(outputs[:1], whole) == pytest.approx(task.metrics(outputs[:1], one))


def test_samples_nobody_could_be_right_about_are_refused() -> None:
    inputs, _ = samples(shuffled=True)
    assert inputs.present is not None
    assert inputs.read is not None
    inputs.validate(N)
    nobody = inputs.present.clone()
    nobody[2] = False
    with pytest.raises(InputError, match=r"the test split, sample 3: no token is present"):
        replace(inputs, present=nobody).validate(N, "the test split")
    gone = inputs.present.clone()
    gone[1, inputs.read[1, 0]] = False
    with pytest.raises(InputError, match=r"sample 2: a token is read that is absent"):
        replace(inputs, present=gone).validate(N)
    with pytest.raises(InputError, match=r"a token is at place 5; places are 0 to 4"):
        replace(inputs, present=None).validate(N - 1)
    with pytest.raises(InputError, match=r"sample 1: a token is read that is not one of its 6"):
        replace(inputs, read=inputs.read + 7).validate(N)
    minus = Positions(torch.tensor([0, -1, 2]), torch.zeros(3, 1))
    with pytest.raises(InputError, match="place -1"):
        Inputs(draw(2, 3), minus).validate(3)
    Inputs(draw(2, 3), replace(minus, placed=torch.tensor([True, False, True]))).validate(3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"positions": Positions.sequence(5)},
            "each sample has 6 tokens, but there are positions for 5",
        ),
        (
            {"read": torch.zeros(6, dtype=torch.long)},
            "read must list tokens for each of the 4 samples",
        ),
        (
            {"present": torch.ones(4, 5, dtype=torch.bool)},
            r"present must say .* \(4, 6\), not \(4, 5\)",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict, words: str) -> None:
    inputs, _ = samples(shuffled=False)
    with pytest.raises(InputError, match=words):
        make("nope")(replace(inputs, **change))


def test_a_model_says_what_it_takes() -> None:
    with pytest.raises(
        InputError, match=r"a model takes Inputs\(tokens, positions, read, present\), not Tensor"
    ):
        make("nope")(draw(2, 6))


def test_positions_with_a_wrong_mask_are_refused() -> None:
    with pytest.raises(InputError, match="whether it has a place"):
        Positions(torch.arange(3), torch.zeros(3, 1), torch.ones(2, dtype=torch.bool))


def test_samples_are_taken_and_joined_with_all_their_parts() -> None:
    inputs, _ = samples(shuffled=True)
    assert inputs.read is not None
    scored = torch.ones_like(inputs.read, dtype=torch.bool)
    whole = Examples(
        inputs.tokens,
        inputs.read,
        inputs.read,
        torch.arange(4),
        inputs.positions,
        inputs.present,
        scored,
    )
    again = (
        whole.take(slice(0, 1)).join(whole.take(torch.tensor([1, 2, 3]))).to(torch.device("cpu"))
    )
    for name in ("tokens", "read", "targets", "group", "present", "scored"):
        assert torch.equal(getattr(again, name), getattr(whole, name)), name
    assert again.positions is not None
    assert torch.equal(again.positions.index, inputs.positions.index)
    assert torch.equal(again.inputs(PLACES).positions.coords, inputs.positions.coords)
