"""What every encoding must do, run over the registry; then each one's formula against an outside
value."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
import torch
from positional_encodings.torch_encodings import (
    PositionalEncoding1D,
    PositionalEncoding2D,
    PositionalEncoding3D,
)

import placecell
from placecell import encodings
from placecell.config import EncodingConfig, ModelConfig
from placecell.encodings import Encoding, Positions
from placecell.encodings.alibi import slopes
from placecell.errors import InputError
from placecell.model import Attention, Inputs, Tokens, build_model, resolve
from placecell.train import fit, make_model, make_optimizer
from placecell.train.loop import State

NAMES = sorted(encodings.available())  # with one from outside the package: conftest.py loads it
PRODUCTS = (
    "continuous",
    "fourier",
    "laplacian",
    "random-walk",
)  # a matrix product of fewer rows may round otherwise
B, H, D, Q = 3, 2, 24, 2  # the width suits rotary over 1, 2 and 3 axes with two heads
E = D // H
PLACES = {1: Positions.sequence(12), 2: Positions.grid(3, 4), 3: Positions.grid(2, 3, 2)}
N = 12
READ = torch.tensor([[0, 11], [5, 5], [7, 2]])  # b q
# what a model offers besides the keys of EncodingConfig
OFFERED = ("n", "places", "d", "heads", "device", "dtype")

every = pytest.mark.parametrize("name", NAMES)
unchanged = pytest.mark.filterwarnings("ignore:.*acts inside attention")
over_axes = pytest.mark.parametrize("axes", [1, 2, 3])
in_both = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def make(name: str, axes: int = 2, seed: int | None = 0, **more) -> Encoding:
    encoding = encodings.build(name, n=N, d=D, heads=H, axes=axes, **more)
    if seed is not None:
        encoding.reset_parameters(stream(seed))
    return encoding


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(*shape: int, seed: int = 7, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=stream(seed), dtype=torch.float64).to(dtype)


def weights_like(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return draw(*shape, seed=8).softmax(-1).to(dtype)


def rows_of(x: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    """x (b n d) or (b h n e) at the tokens `read` (b q) of each sample."""
    return torch.stack([part[..., rows, :] for part, rows in zip(x, read, strict=True)])


def model_of(
    name: str,
    width: int = D,
    heads: int = H,
    seed: int = 0,
    axes: int = 2,
    sigma: float | None = None,
):
    return build_model(
        Tokens("symbol", 40),
        PLACES[axes],
        5,
        ModelConfig(width=width, depth=2, heads=heads),
        EncodingConfig(name, axes=axes, sigma=sigma),
        weights=stream(seed),
        pe=stream(seed + 100),
    )


# ------------------------------------------------------------------ the contract


@every
@over_axes
@in_both
def test_hooks_have_the_promised_shapes(name: str, axes: int, dtype: torch.dtype) -> None:
    encoding, pos = make(name, axes, dtype=dtype), PLACES[axes]
    some = pos.take(READ)
    full, part = (B, H, N, N), (B, H, Q, N)
    q, weights = draw(B, H, N, E, dtype=dtype), weights_like(*full, dtype=dtype)

    x = draw(B, N, D, dtype=dtype)
    for result, shape in (
        (encoding.embed(x, pos), (B, N, D)),
        (encoding.embed(rows_of(x, READ), some), (B, Q, D)),
        (encoding.rotate(q, pos), (B, H, N, E)),
        (encoding.rotate(rows_of(q, READ), some), (B, H, Q, E)),
    ):
        assert result.shape == shape
        assert result.dtype == dtype
        assert result.isfinite().all()

    for bias, shape in (
        (encoding.bias(q, pos, pos), full),
        (encoding.bias(rows_of(q, READ), some, pos), part),
    ):
        if bias is not None:
            assert torch.broadcast_shapes(bias.shape, shape) == shape
            assert bias.dtype == dtype
    for mixed, shape in (
        (encoding.add_values(weights, pos, pos), (B, H, N, E)),
        (encoding.add_values(rows_of(weights, READ), some, pos), (B, H, Q, E)),
    ):
        assert encoding.adds_values == (mixed is not None)
        if mixed is not None:
            assert torch.broadcast_shapes(mixed.shape, shape) == shape
            assert mixed.dtype == dtype
    for seen, shape in ((encoding.visible(pos, pos), full), (encoding.visible(some, pos), part)):
        if seen is not None:
            assert seen.dtype == torch.bool
            assert torch.broadcast_shapes(seen.shape, shape) == shape
            assert seen.any(-1).all(), "a query that sees no key has no attention"
    for table, shape in ((encoding.table(pos), (N, D)), (encoding.table(some), (B, Q, D))):
        if table is not None:
            assert table.shape == shape
            assert table.dtype == dtype


@every
@over_axes
def test_some_tokens_are_the_same_as_all_and_then_some(name: str, axes: int) -> None:
    encoding, pos = make(name, axes, dtype=torch.float64), PLACES[axes]
    some, x, q, weights = pos.take(READ), draw(B, N, D), draw(B, H, N, E), weights_like(B, H, N, N)
    same = torch.testing.assert_close
    bits = {"rtol": 1e-14, "atol": 1e-14} if name in PRODUCTS else {"rtol": 0, "atol": 0}
    same(encoding.embed(rows_of(x, READ), some), rows_of(encoding.embed(x, pos), READ), **bits)
    same(
        encoding.rotate(rows_of(q, READ), some),
        rows_of(encoding.rotate(q, pos), READ),
        rtol=0,
        atol=0,
    )
    whole, part = encoding.bias(q, pos, pos), encoding.bias(rows_of(q, READ), some, pos)
    assert (whole is None) == (part is None)
    if whole is not None:
        same(part.expand(B, H, Q, N), rows_of(whole.expand(B, H, N, N), READ))
    whole, part = (
        encoding.add_values(weights, pos, pos),
        encoding.add_values(rows_of(weights, READ), some, pos),
    )
    if whole is not None:
        same(part, rows_of(whole, READ))
    whole, part = encoding.visible(pos, pos), encoding.visible(some, pos)
    if whole is not None:
        same(part.expand(B, H, Q, N), rows_of(whole.expand(B, H, N, N), READ))
    whole, part = encoding.table(pos), encoding.table(some)
    if whole is not None:
        same(part, whole[READ], **bits)


@every
@unchanged
def test_called_as_a_module_it_embeds_a_sequence(name: str) -> None:
    encoding, x = make(name, axes=1), draw(B, N, D, dtype=torch.float32)
    assert torch.equal(encoding(x), encoding.embed(x, PLACES[1]))
    assert torch.equal(encoding(x, PLACES[2]), encoding.embed(x, PLACES[2]))


@every
@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), None])
@in_both
def test_device_and_dtype_are_taken(
    name: str, device: str | torch.device | None, dtype: torch.dtype
) -> None:
    for part in make(name, device=device, dtype=dtype).state_dict().values():
        assert part.device.type == "cpu"
        assert part.dtype == dtype


@every
@over_axes
def test_safe_on_the_meta_device(name: str, axes: int) -> None:
    """Nothing may be lost by building without storage: what `reset_parameters` does not restore is
    a bug."""
    encoding = make(name, axes, device="meta")
    assert all(part.is_meta for part in encoding.state_dict().values())
    pos = PLACES[axes].to("meta")
    q = torch.empty(B, H, N, E, device="meta")
    assert encoding.embed(torch.empty(B, N, D, device="meta"), pos).shape == (B, N, D)
    assert encoding.rotate(q, pos).shape == (B, H, N, E)
    bias = encoding.bias(q, pos, pos)
    assert bias is None or bias.is_meta
    seen = encoding.visible(pos, pos)
    assert seen is None or seen.is_meta

    filled = encoding.to_empty(device="cpu")
    for part in [*filled.parameters(), *filled.buffers()]:
        part.data.fill_(math.nan)
    filled.reset_parameters(stream(0))
    direct, here = make(name, axes), PLACES[axes]
    for key, part in filled.state_dict().items():
        assert part.isfinite().all(), key
        assert torch.equal(part, direct.state_dict()[key]), key
    x, q = draw(B, N, D, dtype=torch.float32), draw(B, H, N, E, dtype=torch.float32)
    assert torch.equal(filled.embed(x, here), direct.embed(x, here))
    assert torch.equal(filled.rotate(q, here), direct.rotate(q, here))


@every
def test_gradients_reach_every_parameter(name: str) -> None:
    model = model_of(name)
    tokens = torch.randint(40, (B, N), generator=stream(1))
    model(Inputs(tokens, PLACES[2])).outputs.square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().sum() > 0, key


@every
def test_the_generator_decides_every_random_number(name: str) -> None:
    first, again, other = make(name, seed=0), make(name, seed=0), make(name, seed=1)
    torch.manual_seed(123)  # global state must not matter
    twice = make(name, seed=0)
    for key, part in first.state_dict().items():
        assert torch.equal(part, again.state_dict()[key])
        assert torch.equal(part, twice.state_dict()[key])
        assert not torch.equal(part, other.state_dict()[key])


@every
@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize("device", ["cpu", "meta"])  # meta stands for any other default device
def test_draws_are_the_same_for_every_dtype_and_default(
    name: str, default: torch.dtype, device: str
) -> None:
    """z is drawn in single precision on the CPU whatever torch's defaults are, or sweeps would not
    be paired."""
    expected = make(name, dtype=torch.float32).state_dict()
    encoding = make(name, dtype=torch.float64, seed=None)
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        with torch.device(device):
            encoding.reset_parameters(stream(0))
    finally:
        torch.set_default_dtype(before)
    for key, part in encoding.state_dict().items():
        assert torch.equal(part, expected[key].double()), key


@every
def test_state_round_trip(name: str) -> None:
    first, second = make(name, seed=0), make(name, seed=1)
    second.load_state_dict(first.state_dict(), strict=True)
    x, q, pos = draw(B, N, D, dtype=torch.float32), draw(B, H, N, E, dtype=torch.float32), PLACES[2]
    assert torch.equal(first.embed(x, pos), second.embed(x, pos))
    for a, b in (
        (first.bias(q, pos, pos), second.bias(q, pos, pos)),
        (first.table(pos), second.table(pos)),
    ):
        assert (a is None and b is None) or torch.equal(a, b)


@every
def test_repr_shows_the_settings(name: str) -> None:
    chosen = {"sigma": 0.375, "gain": 0.5, "axes": 2, "base": 123.0, "max_distance": 7}
    chosen["features"] = 5
    encoding = encodings.build(name, n=N, d=D, heads=H, **chosen)
    assert repr(encoding).startswith(type(encoding).__name__ + "(")
    for key in encodings.settings(name) & chosen.keys():
        assert f"{key}={chosen[key]:g}" in encoding.extra_repr(), (
            f"{key} is missing in {encoding!r}"
        )


@every
def test_docstring_has_its_source(name: str) -> None:
    text = encodings.lookup(name).__doc__ or ""
    assert "Source:" in text
    assert "arXiv" in text


@every
def test_every_argument_can_be_configured(name: str) -> None:
    configurable = {f.name for f in dataclasses.fields(EncodingConfig)} - {"name"}
    assert encodings.settings(name) <= configurable | set(OFFERED)
    assert {"device", "dtype"} <= encodings.settings(name)


def test_every_setting_is_unset_by_default() -> None:
    config = EncodingConfig()
    assert all(
        getattr(config, f.name) is None for f in dataclasses.fields(config) if f.name != "name"
    )


@every
def test_resolve_fills_what_is_read_and_clears_the_rest(name: str) -> None:
    given = {"sigma": 0.3, "gain": 0.5, "axes": 2, "base": 50.0, "max_distance": 3, "features": 5}
    read = encodings.settings(name)
    optional = {"gain"}  # None means that there is none, not that it has a default
    for config, left_out in ((EncodingConfig(name), optional), (EncodingConfig(name, **given), {})):
        done = resolve(config, axes=2)
        for f in dataclasses.fields(EncodingConfig):
            if f.name != "name":
                expected = f.name in read and f.name not in left_out
                assert (getattr(done, f.name) is not None) == expected, f.name
        assert resolve(done, axes=2) == done
        settings = {key: value for key, value in dataclasses.asdict(done).items() if key != "name"}
        assert isinstance(encodings.build(name, n=N, d=D, heads=H, **settings), Encoding)


def test_hooks_are_neutral_unless_overridden() -> None:
    x, q, pos = draw(B, N, D), draw(B, H, N, E), PLACES[2]
    for encoding in (Encoding(), make("nope")):
        assert encoding.embed(x, pos) is x
        assert encoding.rotate(q, pos) is q
        assert encoding.bias(q, pos, pos) is None
        assert encoding.add_values(weights_like(B, H, N, N), pos, pos) is None
        assert encoding.visible(pos, pos) is None
        assert encoding.table(pos) is None
        assert not encoding.adds_values


@every
def test_only_nope_is_permutation_equivariant(name: str) -> None:
    model = model_of(name, sigma=0.5 if "sigma" in encodings.settings(name) else None).double()
    tokens = torch.randint(40, (B, N), generator=stream(3))
    order = torch.randperm(N, generator=stream(4))
    before, after = (
        model(Inputs(tokens, PLACES[2])).outputs[:, order],
        model(Inputs(tokens[:, order], PLACES[2])).outputs,
    )
    apart = float((before - after).detach().abs().max())
    assert apart < 1e-12 if name == "nope" else apart > 1e-6


@every
@pytest.mark.parametrize(
    "wrong",
    [
        *({"sigma": s} for s in (-0.1, math.nan, math.inf, 10**400, "0.1", True, None)),
        *({key: size} for key in ("axes", "heads") for size in (0, 1.5, "2", True)),
        *({"base": base} for base in (1, math.nan, math.inf, "50")),
    ],
)
def test_unusable_settings_are_refused(name: str, wrong: dict) -> None:
    offered = {"n": N, "d": D, "heads": H, "axes": 2} | wrong
    if wrong.keys() & encodings.settings(name):
        with pytest.raises(InputError, match=next(iter(wrong))):
            encodings.lookup(name)(
                **{key: offered[key] for key in encodings.settings(name) & offered.keys()}
            )
    else:
        encodings.build(name, **offered)


@every
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    plain = {
        "n": N,
        "d": D,
        "heads": H,
        "axes": 2,
        "max_distance": 3,
        "sigma": 0.5,
        "base": 50.0,
        "features": 4,
    }
    numpys = {
        key: np.int64(value) if isinstance(value, int) else np.float32(value)
        for key, value in plain.items()
    }
    one, two = encodings.build(name, **plain), encodings.build(name, **numpys)
    assert repr(one) == repr(two)
    assert {key: part.shape for key, part in one.state_dict().items()} == {
        key: part.shape for key, part in two.state_dict().items()
    }


@every
@pytest.mark.parametrize(
    "shape",
    [(B, N, 1), (B, 1, D), (1, D), (D,), (B, N + 1, D), (B, N, D, 1), (B, N, D + 2)],
    ids=str,
)
def test_embeddings_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    """They would broadcast: to another width, to more tokens, to a square of tokens."""
    encoding, x = make(name, axes=1), torch.zeros(shape)
    if encoding.table(PLACES[1]) is None:
        assert encoding.embed(x, PLACES[1]) is x
        return
    with pytest.raises(
        InputError, match=re.escape(f"{(N, D)}"[1:-1]) + ".*" + re.escape(f"{shape}")
    ):
        encoding.embed(x, PLACES[1])


@pytest.mark.parametrize("name", ["learnable", "random"])
def test_more_tokens_than_rows_are_refused(name: str) -> None:
    for x in (torch.zeros(B, N + 1, D), torch.zeros(B, 2 * N, D)):
        for use in (make(name), lambda x: make(name).table(Positions.sequence(x.shape[1]))):
            with pytest.raises(InputError, match=f"rows 0 to {N - 1}, but a token has index {N}"):
                use(x)


@every
@unchanged
def test_whole_numbers_do_not_round_an_encoding_away(name: str) -> None:
    encoding, x = make(name, axes=1), torch.arange(B * N * D).view(B, N, D)
    torch.testing.assert_close(encoding(x).to(torch.float32), encoding(x.to(torch.float32)))


@every
@pytest.mark.parametrize("shape", [(D,), (B, N, D, 1)], ids=str)
def test_a_call_wants_samples_of_tokens(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=re.escape(f"found {shape}")):
        make(name, axes=1)(torch.zeros(shape))


def test_positions_of_other_samples_are_refused() -> None:
    some = PLACES[1].take(READ)
    for name in ("learnable", "sinusoidal"):
        with pytest.raises(InputError, match=r"\(3, 2, 24\), found \(1, 2, 24\)"):
            make(name, axes=1).embed(torch.zeros(1, Q, D), some)


@pytest.mark.parametrize("name", ["rotary", "relative", "alibi"])
def test_queries_of_another_shape_are_refused(name: str) -> None:
    encoding, pos = make(name, axes=1), PLACES[1]
    act = encoding.rotate if name == "rotary" else lambda q, pos: encoding.bias(q, pos, pos)
    act(draw(B, H, N, E, dtype=torch.float32), pos)
    wrong = [
        (B, H, 1, E),
        (B, N, E),
        *([(B, 1, N, E), (B, 4, N, E)] if name == "alibi" else [(B, H, N, 2)]),
    ]
    for shape in wrong:
        with pytest.raises(InputError, match="should be .*" + re.escape(f"found {shape}")):
            act(torch.zeros(shape), pos)


def test_alibi_of_other_heads_than_the_encoders_is_refused() -> None:
    attention, x, pos = Attention(D, 4), torch.zeros(B, N, D), PLACES[1]
    with pytest.raises(InputError, match=r"\(any, 1, 12, any\), found \(3, 4, 12, 6\)"):
        attention(x, x, placecell.AlibiPE(heads=1), pos, pos)


def test_positions_need_coordinates_for_each_token() -> None:
    for index, coords in ((5, (4, 2)), (5, (5,)), (5, (2, 5, 1))):
        with pytest.raises(InputError, match="one row of coordinates"):
            Positions(torch.arange(index), torch.zeros(coords))


def test_positions_are_compared_as_objects() -> None:
    assert PLACES[1] == PLACES[1]
    assert PLACES[1] != Positions.sequence(N)


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="rotary"):
        encodings.build("rotery")
    with pytest.raises(ValueError, match="learnable"):
        encodings.register("learnable")(type("Another", (Encoding,), {}))


def test_axes_that_the_tokens_do_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="3 coordinate axes"):
        PLACES[2].along(3)
    assert torch.equal(PLACES[2].along(1)[:, 0], torch.arange(12.0))


# ------------------------------------------------------------------ learnable and random


def test_learnable_in_five_lines() -> None:
    pe = placecell.LearnablePE(16, 64, sigma=0.1)
    x = torch.zeros(8, 16, 64)
    y = pe(x)
    y.sum().backward()
    assert torch.equal(y[3], pe.weight.detach() if not y.requires_grad else pe.weight)
    assert torch.equal(pe.weight.grad, torch.full((16, 64), 8.0))


@pytest.mark.parametrize("name", [name for name in NAMES if "sigma" in encodings.settings(name)])
@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.2, 0.5, 1.0, 2.0])
def test_sigma_is_sigma_after_the_whole_model_is_built(
    name: str, sigma: float, tiny, tiny_task
) -> None:
    entries = []
    for seed in range(4):
        model = make_model(
            tiny(encoding=name, sigma=sigma, width=96, depth=1, seed=seed), tiny_task
        )
        if model.table(tiny_task.positions) is None:
            entries += [part.detach().flatten() for part in model.encoding.parameters()]
            continue
        x = torch.zeros(1, tiny_task.n_tokens, 96)
        entered = model.encoding.embed(x, tiny_task.positions)[0].detach()
        assert torch.equal(entered, model.table(tiny_task.positions))
        entries.append(entered.flatten())
    drawn = torch.cat(entries).double()
    assert float(drawn.std()) == pytest.approx(sigma, rel=4 / math.sqrt(2 * len(drawn)))
    assert abs(float(drawn.mean())) < 4 * sigma / math.sqrt(len(drawn))


def other_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        key: part for key, part in model.state_dict().items() if not key.startswith("encoding.")
    }


def assert_same(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    for key, part in one.items():
        assert torch.equal(part, two[key]), key


@pytest.mark.parametrize("name", [name for name in NAMES if "sigma" in encodings.settings(name)])
def test_another_sigma_is_the_same_draw_scaled(name: str, tiny, tiny_task) -> None:
    models = {
        s: make_model(tiny(encoding=name, sigma=s, seed=5), tiny_task)
        for s in (0.1, 0.25, 0.5, 1.0, 1.7)
    }
    for sigma, model in models.items():
        assert_same(other_weights(model), other_weights(models[1.0]))
        exact = math.log2(sigma).is_integer()
        table, z = (m.table(tiny_task.places) for m in (model, models[1.0]))
        if table is not None:  # what enters the network
            size = 0 if exact else 1e-6
            torch.testing.assert_close(table / sigma, z, rtol=size, atol=size)
            continue
        for key, part in model.encoding.state_dict().items():
            z = models[1.0].encoding.state_dict()[key]
            torch.testing.assert_close(part / sigma, z, rtol=0 if exact else 3e-7, atol=0)


def test_other_weights_do_not_depend_on_the_encoding(tiny, tiny_task) -> None:
    models = [make_model(tiny(encoding=name, seed=5), tiny_task) for name in NAMES]
    for model in models[1:]:
        assert_same(other_weights(model), other_weights(models[0]))


def test_each_seed_moves_its_own_stream_only(tiny, tiny_task) -> None:
    base = make_model(tiny(), tiny_task)
    pe, weights = (
        make_model(tiny(pe_seed=9), tiny_task),
        make_model(tiny(weights_seed=9), tiny_task),
    )
    assert_same(other_weights(pe), other_weights(base))
    assert not torch.equal(pe.encoding.weight, base.encoding.weight)
    assert torch.equal(weights.encoding.weight, base.encoding.weight)
    assert not torch.equal(weights.readout.weight, base.readout.weight)


def test_another_sigma_sees_the_same_batches(tiny, tiny_task, tiny_splits, monkeypatch) -> None:
    seen: list[torch.Tensor] = []

    def batch(examples, rows, generator):
        seen.append(rows)
        return examples.take(rows)

    monkeypatch.setattr(tiny_task, "batch", batch)
    for sigma in (0.1, 2.0):
        config = tiny(sigma=sigma, steps=6)
        model = make_model(config, tiny_task)
        optimizer, seed = make_optimizer(model, config.train), config.seed_of("data")
        fit(
            model,
            tiny_task,
            tiny_splits,
            config.train,
            seed=seed,
            state=State(),
            optimizer=optimizer,
        )
    assert torch.equal(torch.stack(seen[:6]), torch.stack(seen[6:]))


def test_random_is_not_trained() -> None:
    assert not list(make("random").parameters())
    assert len(list(make("learnable").parameters())) == 1


# ------------------------------------------------------------------ sinusoidal


@pytest.mark.parametrize("d", [6, 10, 12, 16, 18, 25, 33, 64, 160])
@pytest.mark.parametrize(
    ("shape", "reference"),
    [
        ((9,), PositionalEncoding1D),
        ((4, 5), PositionalEncoding2D),
        ((2, 3, 4), PositionalEncoding3D),
    ],
)
def test_sinusoidal_equals_the_published_package(shape: tuple[int, ...], reference, d: int) -> None:
    pos = Positions.grid(*shape)
    expected = reference(d)(torch.zeros(1, *shape, d)).reshape(-1, d)
    pe = placecell.SinusoidalPE(d, axes=len(shape))
    torch.testing.assert_close(pe.table(pos), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        pe(torch.zeros(1, len(pos.index), d), pos)[0], expected, rtol=0, atol=1e-6
    )


def test_sinusoidal_in_double_precision_is_right_to_the_last_digits() -> None:
    pos, omega = Positions.sequence(2000), 10000.0 ** (-np.arange(0, 64, 2) / 64)
    turns = np.arange(2000)[:, None] * omega
    expected = np.stack((np.sin(turns), np.cos(turns)), axis=-1).reshape(2000, 64)
    asked = placecell.SinusoidalPE(64, dtype=torch.float64)
    np.testing.assert_allclose(asked.table(pos).numpy(), expected, rtol=0, atol=1e-11)
    for pe in (asked, placecell.SinusoidalPE(64)):  # of what it is added to
        embedded = pe(torch.zeros(1, 2000, 64, dtype=torch.float64))[0]
        np.testing.assert_allclose(embedded.numpy(), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("d", [2, 4, 7, 8])
def test_sinusoidal_refuses_a_width_that_would_leave_an_axis_out(d: int) -> None:
    with pytest.raises(InputError, match=f"width {d}, axes 3"):
        placecell.SinusoidalPE(d, axes=3)


def test_sinusoidal_reads_the_index_over_one_axis() -> None:
    pe = placecell.SinusoidalPE(D, axes=1)
    assert torch.equal(pe.table(PLACES[2]), pe.table(PLACES[1]))


# ------------------------------------------------------------------ rotary


def shifted(pos: Positions, by: list[float]) -> Positions:
    return Positions(pos.index, pos.coords + torch.tensor(by[: pos.axes]))


@over_axes
def test_rotary_equals_complex_multiplication(axes: int) -> None:
    encoding, pos = make("rotary", axes, base=100.0), PLACES[axes]
    x = draw(B, H, N, E)
    m = E // axes  # channels an axis
    z = x.numpy()[..., 0::2] + 1j * x.numpy()[..., 1::2]  # b h n e/2
    for token, place in enumerate(pos.coords.double().numpy()):
        for pair in range(E // 2):
            axis, i = divmod(pair, m // 2)
            z[:, :, token, pair] *= np.exp(1j * place[axis] * 100.0 ** (-2 * i / m))
    expected = np.stack((z.real, z.imag), axis=-1).reshape(x.shape)
    np.testing.assert_allclose(encoding.rotate(x, pos).numpy(), expected, rtol=0, atol=2e-6)


@over_axes
def test_rotary_scores_depend_on_differences_only(axes: int) -> None:
    encoding, pos = make("rotary", axes), PLACES[axes]
    q, k = draw(B, H, N, E), draw(B, H, N, E, seed=9)

    def scores(at: Positions) -> torch.Tensor:
        return encoding.rotate(q, at) @ encoding.rotate(k, at).transpose(-1, -2)

    here = scores(pos)
    torch.testing.assert_close(scores(shifted(pos, [3.0, -2.0, 7.5])), here, rtol=0, atol=2e-5)
    torch.testing.assert_close(scores(shifted(pos, 3 * [100_000.0])), here, rtol=0, atol=1e-9)
    stretched = Positions(pos.index, 2 * pos.coords)
    assert (scores(stretched) - here).abs().max() > 0.1
    norms = encoding.rotate(q, pos).norm(dim=-1)
    torch.testing.assert_close(norms, q.norm(dim=-1), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("d", "heads", "axes"), [(9, 1, 1), (12, 4, 1), (6, 1, 2), (16, 1, 3)])
def test_rotary_refuses_a_width_that_it_cannot_pair(d: int, heads: int, axes: int) -> None:
    with pytest.raises(InputError, match="rotary needs a head width divisible"):
        placecell.RotaryPE(d, heads, axes)


# ------------------------------------------------------------------ ALiBi


def published_slopes(heads: int) -> list[float]:
    """`get_slopes` as Press et al. publish it."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return published_slopes(below) + published_slopes(2 * below)[0::2][: heads - below]


def test_alibi_slopes_are_the_published_ones() -> None:
    assert slopes(8) == [2.0**-i for i in range(1, 9)]
    assert slopes(1) == [2.0**-8]
    for heads in range(1, 33):
        assert slopes(heads) == pytest.approx(published_slopes(heads), rel=1e-12)


@over_axes
def test_alibi_is_symmetric_and_falls_with_euclidean_distance(axes: int) -> None:
    pos = PLACES[axes]
    bias = (
        placecell.AlibiPE(heads=8, axes=axes).bias(draw(1, 8, N, E), pos, pos).expand(1, 8, N, N)[0]
    )
    assert torch.equal(bias, bias.transpose(-1, -2))
    far = torch.cdist(
        pos.coords.double(), pos.coords.double(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    for head in range(8):
        torch.testing.assert_close(bias[head], -(2.0 ** -(head + 1)) * far, rtol=1e-6, atol=0)
        assert torch.equal(
            far.flatten().argsort(stable=True), (-bias[head]).flatten().argsort(stable=True)
        )


# ------------------------------------------------------------------ Shaw's relative encoding


def naive_shaw(
    x: np.ndarray, attention: Attention, encoding: placecell.RelativePE, coords: np.ndarray
) -> np.ndarray:
    """Shaw et al., equations 3 and 4, a sum at a time; x (n d), coords (n c)."""
    weight, offset = (part.detach().numpy() for part in (attention.qkv.weight, attention.qkv.bias))
    q, k, v = np.split(x @ weight.T + offset, 3, axis=-1)
    key, value = encoding.key.detach().numpy(), encoding.value.detach().numpy()
    far, n, e = encoding.max_distance, len(x), attention.e
    z = np.zeros_like(x)
    for head in range(attention.heads):
        part = slice(head * e, (head + 1) * e)
        for i in range(n):
            logit, worth = np.empty(n), np.empty((n, e))
            for j in range(n):
                a_key, a_value = np.zeros(e), np.zeros(e)
                for axis in range(coords.shape[1]):
                    row = int(max(-far, min(far, coords[j, axis] - coords[i, axis]))) + far
                    a_key, a_value = a_key + key[axis, row], a_value + value[axis, row]
                logit[j] = q[i, part] @ (k[j, part] + a_key) / math.sqrt(e)
                worth[j] = v[j, part] + a_value
            share = np.exp(logit - logit.max())
            z[i, part] = share / share.sum() @ worth
    return z @ attention.out.weight.detach().numpy().T + attention.out.bias.detach().numpy()


@over_axes
@pytest.mark.parametrize("far", [1, 2, 16])
def test_relative_equals_shaws_formula(axes: int, far: int) -> None:
    torch.manual_seed(0)
    pos = PLACES[axes]
    encoding = make("relative", axes, max_distance=far, sigma=0.7, dtype=torch.float64)
    attention, x = Attention(D, H).double(), draw(2, N, D)
    y, _ = attention(x, x, encoding, pos, pos)
    for sample in range(2):
        expected = naive_shaw(x[sample].numpy(), attention, encoding, pos.coords.double().numpy())
        np.testing.assert_allclose(y[sample].detach().numpy(), expected, rtol=0, atol=1e-12)


@over_axes
@pytest.mark.parametrize("by", [[3.0, -2.0, 5.0], [0.25, 0.25, 0.25], [0.5, 1.5, -0.5]])
def test_relative_depends_on_differences_only(axes: int, by: list[float]) -> None:
    encoding, pos = make("relative", axes, dtype=torch.float64), PLACES[axes]
    pos = Positions(pos.index, pos.coords * 1.375)  # exact in floating point, and not whole numbers
    q, weights, moved = draw(B, H, N, E), weights_like(B, H, N, N), shifted(pos, by)
    torch.testing.assert_close(encoding.bias(q, moved, moved), encoding.bias(q, pos, pos))
    torch.testing.assert_close(
        encoding.add_values(weights, moved, moved), encoding.add_values(weights, pos, pos)
    )


def test_relative_clips_differences() -> None:
    encoding, pos = make("relative", 1, max_distance=3, dtype=torch.float64), PLACES[1]
    assert encoding.key.shape == (1, 7, E)
    bias = encoding.bias(draw(B, H, N, E), pos, pos)
    assert torch.equal(bias[..., 0, 3], bias[..., 0, 11])  # +3 and +11
    assert torch.equal(bias[..., 11, 8], bias[..., 11, 0])  # −3 and −11
    assert not torch.equal(bias[..., 0, 2], bias[..., 0, 3])


# ------------------------------------------------------------------ causal mask


def test_causal_mask_hides_what_comes_after() -> None:
    assert torch.equal(
        make("nope-causal").visible(PLACES[2], PLACES[2])[0], torch.ones(N, N).tril().bool()
    )
    model = model_of("nope-causal")
    tokens = torch.randint(39, (1, N), generator=stream(5))
    changed = tokens.clone()
    changed[0, 6] = 39
    before, after = (
        model(Inputs(tokens, PLACES[2])).outputs,
        model(Inputs(changed, PLACES[2])).outputs,
    )
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[:, 6:], after[:, 6:])
