"""The transformer encoder: attention, layers, initial weights."""

from placecell.model.attention import Attention
from placecell.model.encoder import Encoder, EncoderLayer, Output, Tokens, Transformer
from placecell.model.init import build_model, initialise, resolve

__all__ = [
    "Attention",
    "Encoder",
    "EncoderLayer",
    "Output",
    "Tokens",
    "Transformer",
    "build_model",
    "initialise",
    "resolve",
]
