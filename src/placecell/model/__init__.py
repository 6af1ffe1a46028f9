"""The transformer encoder: inputs, attention, layers and initial weights."""

from placecell.model.attention import Attention
from placecell.model.build import build_model, initialise, resolve
from placecell.model.encoder import Encoder, EncoderLayer, Output, Tokens, Transformer
from placecell.model.inputs import Inputs

__all__ = [
    "Attention",
    "Encoder",
    "EncoderLayer",
    "Inputs",
    "Output",
    "Tokens",
    "Transformer",
    "build_model",
    "initialise",
    "resolve",
]
