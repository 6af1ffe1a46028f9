"""Building a model and drawing its initial weights, each part from a generator of its own."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from placecell import encodings
from placecell.config import EncodingConfig, ModelConfig
from placecell.encodings.base import fill_normal
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.model.encoder import Encoder, Tokens, Transformer

MAX_WEIGHTS = 10**9  # 4 GB, and as much again for each tensor that an optimizer keeps


def initialise(
    model: Transformer,
    weights: torch.Generator,
    pe: torch.Generator,
    token_sigma: float = 0.25,
    weight_scale: float = 1.0,
) -> Transformer:
    """Draw every weight of a model, in place.

    Linear layers are drawn from U(±1/√fan-in), and those of the encoder's layers are multiplied by
    `weight_scale`. The token embedding (of symbols or of values) is drawn from
    N(0, token_sigma²). The encoding draws its own weights from `pe` and nothing else touches it, so
    σ stays what was asked for.

    Parameters
    ----------
    model : Transformer
        Model to initialise.
    weights : torch.Generator
        Source of all weights but the encoding's.
    pe : torch.Generator
        Source of the encoding's weights.
    token_sigma : float
        Standard deviation of the token embedding.
    weight_scale : float
        Factor on the weights of the encoder's layers.

    Returns
    -------
    Transformer
        The same model.
    """
    inside, layers = set(model.encoding.modules()), set(model.encoder.modules())
    # independent of torch's defaults
    plain: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}
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
                    part.copy_(
                        torch.empty(part.shape, **plain).uniform_(-bound, bound, generator=weights)
                    )
                    if module in layers and weight_scale != 1.0:
                        part.mul_(weight_scale)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
    model.encoding.reset_parameters(pe)
    return model


def build_model(
    tokens: Tokens,
    places: Positions,
    n_outputs: int,
    config: ModelConfig,
    encoding: EncodingConfig,
    *,
    weights: torch.Generator,
    pe: torch.Generator,
) -> Transformer:
    """Build the model of a configuration and draw its weights.

    Parameters
    ----------
    tokens : Tokens
        Kind of the tokens.
    places : Positions
        Places where tokens can be; they set the size of a learnable table.
    n_outputs : int
        Number of outputs per token.
    config : ModelConfig
        Settings of the transformer.
    encoding : EncodingConfig
        Name and settings of the positional encoding.
    weights, pe : torch.Generator
        Source of the weights, and of the encoding's weights.

    Returns
    -------
    Transformer
        The model, on the CPU.
    """
    if encoding.axes is not None:
        places.along(encoding.axes)  # refuses axes that the tokens do not have
    if config.attention == "neighbours" and places.graph is None:
        raise InputError(
            "attention neighbours needs a graph of the places, and this task has none; "
            "use attention full."
        )
    # nothing is drawn on the meta device: `initialise` draws everything from the two generators
    with torch.device("meta"):
        part = encodings.build(
            encoding.name,
            n=len(places.index),
            places=places,
            d=config.width,
            heads=config.heads,
            **{f.name: getattr(encoding, f.name) for f in fields(encoding) if f.name != "name"},
        )
        encoder = Encoder(
            config.width,
            config.depth,
            config.heads,
            config.mlp_ratio,
            config.norm,
            config.activation,
            config.attention or "full",
        )
        model = Transformer(
            tokens, part, encoder, config.width, n_outputs, config.output_scale or 1.0
        )
    count = sum(part.numel() for part in model.state_dict().values())
    if count > MAX_WEIGHTS:
        raise InputError(
            f"the model would have {count:.2g} weights, and {MAX_WEIGHTS:.0g} are the most; "
            "make it smaller."
        )
    return initialise(
        model.to_empty(device="cpu"), weights, pe, config.token_sigma, config.weight_scale or 1.0
    )


def resolve(config: EncodingConfig, axes: int) -> EncodingConfig:
    """Complete the settings of an encoding: fill in its defaults and clear what it does not use.

    Two configurations that build the same model are then equal and have the same hash.

    Parameters
    ----------
    config : EncodingConfig
        Name and settings of the encoding.
    axes : int
        Number of coordinate axes of the task's places, the default of the setting `axes`.

    Returns
    -------
    EncodingConfig
        The complete settings.
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
