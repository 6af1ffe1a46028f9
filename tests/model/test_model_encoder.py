"""The encoder: two paths through attention, two ways to compute the last layer, and torch's own
encoder agree."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from placecell.config import EncodingConfig, ModelConfig
from placecell.encodings import NoPE, Positions, available, build
from placecell.errors import InputError
from placecell.model import Inputs, build_model
from placecell.model.attend import (
    _CompiledAttend,
    _CompiledAttendByHead,
    attend,
    attend_by_head,
)
from placecell.model.attention import Attention
from placecell.model.encoder import Encoder, Tokens, Transformer
from placecell.seeds import torch_stream
from placecell.train.device import compile_options

B, N, D, SYMBOLS, OUTPUTS = 3, 6, 16, 5, 4
POS = Positions.grid(2, 3)
VARIANTS = list(itertools.product((1, 2, 4), ("pre", "post"), ("gelu", "relu")))


def make(
    name: str, heads: int = 1, norm: str = "pre", activation: str = "gelu", depth: int = 2
) -> Transformer:
    """A tiny model in double precision whose biases and norms are not at their neutral initial
    values."""
    torch.manual_seed(0)
    encoding = build(name, n=N, d=D, heads=heads, axes=2, sigma=0.5)
    names: Any = {"norm": norm, "activation": activation}
    encoder = Encoder(D, depth, heads, 2.0, **names)
    model = Transformer(Tokens("symbol", SYMBOLS), encoding, encoder, D, OUTPUTS).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def draw(*shape: int, below: int = SYMBOLS) -> Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(1))


def outputs_and_gradients(
    model: Transformer, read: Tensor | None = None, maps: bool = False, whole: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """Outputs at the tokens read and the gradients of a loss on them; `whole` computes all tokens,
    then picks."""
    y = model(Inputs(draw(B, N), POS, None if whole else read), maps=maps).outputs
    if whole:
        y = y[torch.arange(B)[:, None], read]
    weight = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=y.dtype)
    return y, list(torch.autograd.grad((y * weight).sum(), list(model.parameters())))


def assert_same(actual: object, expected: object) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("heads", "norm", "activation"), VARIANTS)
@pytest.mark.parametrize("name", available())
def test_fused_path_is_explicit_path(name: str, heads: int, norm: str, activation: str) -> None:
    model = make(name, heads, norm, activation)
    assert_same(outputs_and_gradients(model), outputs_and_gradients(model, maps=True))


@pytest.mark.parametrize("name", available())
def test_projections_are_folded_where_the_encoding_stays_out_of_attention(name: str) -> None:
    def projects(heads: int) -> bool:
        model, calls = make(name, heads), []
        model.encoder.layers[0].attention.qkv.register_forward_hook(lambda *_: calls.append(1))
        model(Inputs(draw(B, N), POS))
        return bool(calls)

    assert projects(heads=1) == (name in ("rotary", "relative", "alibi"))
    assert projects(heads=2)


@pytest.mark.parametrize("heads", [2, 4])
def test_several_heads_are_folded_where_few_tokens_are_read(
    heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in the last layer, which computes the tokens that are read."""
    model, folded = make("learnable", heads, depth=3), []
    real = Attention._folded_heads
    monkeypatch.setattr(
        Attention, "_folded_heads", lambda self, *args: (folded.append(self), real(self, *args))[1]
    )
    model(Inputs(draw(B, N), POS, draw(B, 1, below=N)))
    assert folded == [model.encoder.layers[-1].attention]
    model(Inputs(draw(B, N), POS))
    model(Inputs(draw(B, N), POS, draw(B, 1, below=N)), maps=True)
    assert len(folded) == 1


@pytest.mark.parametrize("queries", [1, N])
def test_attention_written_out_for_the_compiler_is_the_fused_kernels(queries: int) -> None:
    q, x, pull = (torch.randn(B, n, D, dtype=torch.float64) for n in (queries, N, queries))
    q, x = q.requires_grad_(), x.requires_grad_()
    actual, expected = _CompiledAttend.apply(q, x), attend(q, x)
    assert_same(actual, expected)
    assert_same(
        torch.autograd.grad(actual, (q, x), pull), torch.autograd.grad(expected, (q, x), pull)
    )


@pytest.mark.parametrize("queries", [1, N])
def test_attention_by_head_written_out_is_the_fused_kernels(queries: int) -> None:
    shapes = [(B, 2, n, D // 2) for n in (queries, N, N, queries)]
    *qkv, pull = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    qkv = [part.requires_grad_() for part in qkv]
    actual, expected = _CompiledAttendByHead.apply(*qkv), attend_by_head(*qkv)
    assert_same(actual, expected)
    assert_same(torch.autograd.grad(actual, qkv, pull), torch.autograd.grad(expected, qkv, pull))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, by its compiler
@pytest.mark.parametrize(
    ("name", "heads", "activation"),
    [("learnable", 1, "relu"), ("learnable", 2, "relu"), ("nope-causal", 1, "gelu")],
)
def test_compiled_is_eager(name: str, heads: int, activation: str) -> None:
    model = make(name, heads, activation=activation)
    compiled = torch.compile(model, options=compile_options(torch.device("cpu")))
    read = draw(B, 1, below=N)
    by_compiler = outputs_and_gradients(compiled, read)  # type: ignore[arg-type]
    assert_same(by_compiler, outputs_and_gradients(model, read))


@pytest.mark.parametrize(("heads", "norm", "activation"), VARIANTS)
@pytest.mark.parametrize("name", available())
def test_last_layer_at_tokens_read_is_full_computation(
    name: str, heads: int, norm: str, activation: str
) -> None:
    model = make(name, heads, norm, activation)
    # the second reads a token twice
    for read in (draw(B, 1, below=N), torch.tensor([[4, 0], [2, 2], [5, 1]])):
        expected = outputs_and_gradients(model, read, whole=True)
        assert_same(outputs_and_gradients(model, read), expected)
        assert_same(outputs_and_gradients(model, read, maps=True), expected)


@pytest.mark.parametrize("name", available())
def test_attention_maps_are_distributions_over_keys(name: str) -> None:
    maps = make(name, heads=2)(Inputs(draw(B, N), POS, draw(B, 1, below=N)), maps=True).maps
    assert [weights.shape for weights in maps] == [(B, 2, N, N)] * 2
    for weights in maps:
        assert (weights >= 0).all()
        assert_same(weights.sum(-1), torch.ones(B, 2, N, dtype=torch.float64))


def test_no_maps_unless_asked_for() -> None:
    assert make("nope")(Inputs(draw(B, N), POS)).maps == []


@pytest.mark.parametrize("name", available())
def test_only_nope_is_permutation_equivariant(name: str) -> None:
    model, tokens, order = make(name), torch.arange(N) % SYMBOLS, torch.tensor([3, 0, 5, 1, 4, 2])
    straight = model(Inputs(tokens[None], POS)).outputs[0]
    permuted = model(Inputs(tokens[order][None], POS)).outputs[0]
    if name == "nope":
        assert_same(permuted, straight[order])
    else:
        assert (
            permuted - straight[order]
        ).abs().max() > 1e-6  # ALiBi of one head is gentle: its slope is 1/256


@pytest.mark.parametrize("maps", [False, True])
def test_causal_mask_hides_later_tokens(maps: bool) -> None:
    model, tokens = make("nope-causal"), draw(1, N)
    before = model(Inputs(tokens, POS), maps=maps).outputs
    for changed in range(N):
        other = tokens.clone()
        other[0, changed] = (other[0, changed] + 1) % SYMBOLS
        moved = (model(Inputs(other, POS), maps=maps).outputs - before).abs().amax(
            (0, 2)
        ) > 1e-12  # n
        assert moved.tolist() == [token >= changed for token in range(N)]


@pytest.mark.parametrize(("heads", "norm", "activation"), VARIANTS)
def test_with_copied_weights_equals_torch(heads: int, norm: str, activation: str) -> None:
    ours = make("nope", heads, norm, activation).encoder
    pre = norm == "pre"
    layer = nn.TransformerEncoderLayer(
        D, heads, 2 * D, 0.0, activation, batch_first=True, norm_first=pre
    )
    theirs = nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(D) if pre else None, enable_nested_tensor=False
    ).double()
    names = {
        "attention.qkv.": "self_attn.in_proj_",
        "attention.out.": "self_attn.out_proj.",
        "mlp.0.": "linear1.",
        "mlp.2.": "linear2.",
        "norm_attention.": "norm1.",
        "norm_mlp.": "norm2.",
    }
    copied = {}
    for name, value in ours.state_dict().items():
        for ours_name, their_name in names.items():
            name = name.replace(ours_name, their_name)
        copied[name] = value
    theirs.load_state_dict(copied)
    x = torch.randn(B, N, D, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert_same(ours(x, NoPE(), POS)[0], theirs(x))


@pytest.mark.parametrize("name", available())
def test_per_sample_gradients_with_torch_func(name: str) -> None:
    model = make(name)
    tokens, read = draw(B, N), draw(B, 1, below=N)
    parameters = {key: value.detach() for key, value in model.named_parameters()}

    def one(parameters: dict[str, Tensor], tokens: Tensor, read: Tensor) -> Tensor:
        return (
            functional_call(model, parameters, (Inputs(tokens[None], POS, read[None]),))
            .outputs[0, 0]
            .sum()
        )

    with sdpa_kernel(SDPBackend.MATH):
        each = vmap(jacrev(one), in_dims=(None, 0, 0))(parameters, tokens, read)
    together = torch.autograd.grad(
        model(Inputs(tokens, POS, read)).outputs.sum(), list(model.parameters())
    )
    assert_same([value.sum(0) for value in each.values()], list(together))


def test_value_tokens() -> None:
    model = Transformer(Tokens("value", 3), NoPE(), Encoder(D, 1), D, OUTPUTS)
    assert model(Inputs(torch.randn(B, N, 3), POS, draw(B, 2, below=N))).outputs.shape == (
        B,
        2,
        OUTPUTS,
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"heads": 3},
        {"heads": 0},
        {"d": 0},
        {"depth": 0},
        {"depth": 1.5},
        {"mlp_ratio": 0.0},
        {"mlp_ratio": float("nan")},
        {"mlp_ratio": float("inf")},
        {"norm": "prre"},
        {"activation": "gellu"},
    ],
)
def test_encoder_refuses_bad_settings(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Encoder(**{"d": D, "depth": 2, **bad})  # type: ignore[arg-type]


def test_transformer_refuses_bad_input() -> None:
    model = make("learnable")
    with pytest.raises(InputError, match="5 tokens"):
        model(Inputs(draw(B, N - 1), POS))
    for read in (draw(B, below=N), draw(B + 1, 1, below=N)):
        with pytest.raises(InputError, match="read"):
            model(Inputs(draw(B, N), POS, read))
    with pytest.raises(InputError, match="did you mean 'symbol'"):
        Transformer(Tokens("symbl", 3), NoPE(), Encoder(D), D, OUTPUTS)  # type: ignore[arg-type]


def test_a_model_of_more_weights_than_memory_is_refused() -> None:
    """Before any is made: on the meta device they are only counted."""
    streams = {"weights": torch_stream(3, "weights"), "pe": torch_stream(3, "pe")}
    for config in (ModelConfig(width=65536), ModelConfig(width=65536, depth=1000, mlp_ratio=1000)):
        with pytest.raises(InputError, match="weights"):
            build_model(
                Tokens("symbol", SYMBOLS), POS, OUTPUTS, config, EncodingConfig(), **streams
            )


def built(**settings: float) -> Transformer:
    streams = {"weights": torch_stream(3, "weights"), "pe": torch_stream(3, "pe")}
    config = ModelConfig(width=D, depth=2, **settings)  # type: ignore[arg-type]
    return build_model(
        Tokens("symbol", SYMBOLS), POS, OUTPUTS, config, EncodingConfig(sigma=0.5), **streams
    )


def test_output_scale_multiplies_the_outputs_alone() -> None:
    plain, scaled = built(), built(output_scale=4.0)
    assert all(torch.equal(p, scaled.state_dict()[name]) for name, p in plain.state_dict().items())
    expected = 4.0 * plain(Inputs(draw(B, N), POS)).outputs
    torch.testing.assert_close(scaled(Inputs(draw(B, N), POS)).outputs, expected, rtol=0, atol=0)


def test_weight_scale_multiplies_the_layers_alone() -> None:
    plain, scaled = built().state_dict(), built(weight_scale=2.0).state_dict()
    for name, weight in plain.items():
        inside = name.startswith("encoder.") and "norm" not in name
        assert torch.equal(scaled[name], 2 * weight if inside else weight), name
