"""Initial weights, each part from a generator of its own."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from placecell import encodings
from placecell.config import EncodingConfig, ModelConfig
from placecell.encodings.base import Positions, fill_normal
from placecell.errors import InputError
from placecell.model.encoder import Encoder, Tokens, Transformer

MOST_WEIGHTS = 10**9  # 4 GB of them, and as much again for each thing that an optimizer keeps


def initialise(
    model: Transformer,
    weights: torch.Generator,
    pe: torch.Generator,
    token_sigma: float = 0.25,
    weight_scale: float = 1.0,
) -> Transformer:
    """Draw every weight: linear layers from U(±1/√fan-in), those of the encoder's layers times weight_scale; what
    embeds the tokens, symbols or values, from N(0, token_sigma²).

    The encoding draws its own from `pe` and is touched by nothing else, so σ stays what was asked for.
    """
    inside, layers = set(model.encoding.modules()), set(model.encoder.modules())
    plain: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}  # whatever torch's defaults are
    with torch.no_grad():
        for module in model.modules():
            if module in inside:
                continue
            if module is model.embedding:
                for parameter in module.parameters():
                    fill_normal(parameter, token_sigma, weights)
            elif isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                for part in (module.weight, module.bias):
                    part.copy_(torch.empty(part.shape, **plain).uniform_(-bound, bound, generator=weights))
                    if module in layers and weight_scale != 1.0:
                        part.mul_(weight_scale)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
    model.encoding.reset_parameters(pe)
    return model


def build_model(
    tokens: Tokens,
    positions: Positions,
    n_outputs: int,
    config: ModelConfig,
    encoding: EncodingConfig,
    *,
    weights: torch.Generator,
    pe: torch.Generator,
) -> Transformer:
    """The model of a configuration for tokens of a kind at given positions, with its weights drawn."""
    if encoding.axes is not None:
        positions.along(encoding.axes)  # refuses axes that the tokens do not have
    with torch.device("meta"):  # nothing is drawn here: `initialise` draws everything, from the two generators
        part = encodings.build(
            encoding.name,
            n=len(positions.index),
            d=config.width,
            heads=config.heads,
            **{f.name: getattr(encoding, f.name) for f in fields(encoding) if f.name != "name"},
        )
        encoder = Encoder(config.width, config.depth, config.heads, config.mlp_ratio, config.norm, config.activation)
        model = Transformer(tokens, part, encoder, config.width, n_outputs, config.output_scale or 1.0)
    count = sum(part.numel() for part in model.state_dict().values())
    if count > MOST_WEIGHTS:
        raise InputError(
            f"the model would have {count:.2g} weights, and {MOST_WEIGHTS:.0g} are the most; make it smaller."
        )
    return initialise(model.to_empty(device="cpu"), weights, pe, config.token_sigma, config.weight_scale or 1.0)


def resolve(config: EncodingConfig, axes: int) -> EncodingConfig:
    """The encoding's settings made complete: its defaults filled in, what it does not read cleared.

    So two configurations that build the same model are equal, and have the same hash.
    """
    known = inspect.signature(encodings.lookup(config.name)).parameters
    filled: dict[str, Any] = {}
    for f in fields(config):
        if f.name == "name":
            continue
        value = getattr(config, f.name)
        if f.name not in known:
            filled[f.name] = None
        elif value is None:
            filled[f.name] = axes if f.name == "axes" else known[f.name].default
    return replace(config, **filled)
