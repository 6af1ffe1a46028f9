"""The transformer encoder of the paper, computing in its last layer only what the loss reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from placecell.encodings.base import Encoding, Positions, check_size
from placecell.errors import InputError, unknown
from placecell.model.attention import Attention


class _CompiledReLU(torch.autograd.Function):
    """ReLU that remembers what it gave instead of which elements were positive. Inductor keeps the latter, as bytes,
    and on a CPU writing them takes longer than all else that it fuses (docs/benchmarks.md)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = torch.relu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return gradient * y.sign()


class ReLU(nn.ReLU):
    """torch's, with a backward pass of its own where it is compiled."""

    def forward(self, x: Tensor) -> Tensor:
        return _CompiledReLU.apply(x) if torch.compiler.is_compiling() else super().forward(x)


ACTIVATIONS = {"gelu": nn.GELU, "relu": ReLU}
NORMS = ("pre", "post")
KINDS = ("symbol", "value")


def gather(x: Tensor, read: Tensor | None) -> Tensor:
    """The tokens `read` (b q) of x (b n d): b q d. All of them, and x itself, when read is None."""
    return x if read is None else x.gather(1, read[..., None].expand(-1, -1, x.shape[-1]))


class EncoderLayer(nn.Module):
    """Attention and an MLP, each with a residual connection and a layer norm before (pre) or after (post) it."""

    def __init__(self, d: int, heads: int, hidden: int, norm: str, activation: str) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.attention = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, d))
        self.norm_attention = nn.LayerNorm(d)
        self.norm_mlp = nn.LayerNorm(d)

    def forward(
        self, x: Tensor, encoding: Encoding, pos: Positions, read: Tensor | None = None, maps: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x (b n d) -> b q d for the tokens `read` (b q), or b n d for all of them; and the map if asked for."""
        q_pos = pos if read is None else pos.take(read)
        x_q = gather(x, read)
        if self.pre:
            normed = self.norm_attention(x)
            y, weights = self.attention(normed, gather(normed, read), encoding, pos, q_pos, maps)
            x_q = x_q + y
            return x_q + self.mlp(self.norm_mlp(x_q)), weights
        y, weights = self.attention(x, x_q, encoding, pos, q_pos, maps)
        x_q = self.norm_attention(x_q + y)
        return self.norm_mlp(x_q + self.mlp(x_q)), weights


class Encoder(nn.Module):
    """A stack of encoder layers. The encoding is handed in at each call, so that it belongs to the model once."""

    def __init__(
        self,
        d: int,
        depth: int = 4,
        heads: int = 1,
        mlp_ratio: float = 4.0,
        norm: Literal["pre", "post"] = "post",
        activation: Literal["gelu", "relu"] = "relu",
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise unknown("norm", norm, NORMS)
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        check_size("depth", depth)
        if not math.isfinite(mlp_ratio) or round(d * mlp_ratio) < 1:
            raise InputError(f"mlp_ratio must be finite and give a hidden layer of at least 1, not {mlp_ratio!r}.")
        hidden = round(d * mlp_ratio)
        self.layers = nn.ModuleList(EncoderLayer(d, heads, hidden, norm, activation) for _ in range(depth))
        self.norm = nn.LayerNorm(d) if norm == "pre" else nn.Identity()

    def forward(
        self, x: Tensor, encoding: Encoding, pos: Positions, read: Tensor | None = None, maps: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        """x (b n d) -> b q d at the tokens `read` (b q; all when None), and a map (b h n n) a layer if asked for.

        Only the last layer's outputs are read, so only there are the other queries left out. With maps it is
        computed whole, because a map is for looking at every token.
        """
        seen = []
        for layer in self.layers[:-1]:
            x, weights = layer(x, encoding, pos, None, maps)
            seen.append(weights)
        x, weights = self.layers[-1](x, encoding, pos, None if maps else read, maps)
        seen.append(weights)
        if maps:
            x = gather(x, read)
        return self.norm(x), [weights for weights in seen if weights is not None]


@dataclass(frozen=True)
class Tokens:
    """What a token is: one of `size` symbols (an index), or a vector of `size` values."""

    kind: Literal["symbol", "value"]
    size: int


class Output(NamedTuple):
    """What a model gives back: outputs (b q o) at the tokens read, and the attention maps (b h n n), if asked for."""

    outputs: Tensor
    maps: list[Tensor]


class Transformer(nn.Module):
    """Token embedding, positional encoding, encoder and readout: tokens in, outputs at the tokens read."""

    def __init__(
        self, tokens: Tokens, encoding: Encoding, encoder: Encoder, d: int, n_outputs: int, output_scale: float = 1.0
    ) -> None:
        super().__init__()
        if tokens.kind not in KINDS:
            raise unknown("kind of token", tokens.kind, KINDS)
        embedding = nn.Embedding(tokens.size, d) if tokens.kind == "symbol" else nn.Linear(tokens.size, d)
        self.embedding: nn.Module = embedding
        self.encoding = encoding
        self.encoder = encoder
        self.readout = nn.Linear(d, n_outputs)
        self.output_scale = output_scale

    def forward(self, tokens: Tensor, pos: Positions, read: Tensor | None = None, maps: bool = False) -> Output:
        """Tokens (b n, or b n f for values) and the tokens to read (b q) -> outputs (b q o)."""
        b, n = tokens.shape[:2]
        if pos.index.shape[-1] != n:
            raise InputError(f"{n} tokens a sample were given, with positions for {pos.index.shape[-1]}.")
        if read is not None and (read.ndim != 2 or len(read) != b):
            raise InputError(f"read must list tokens for each of the {b} samples (b q), not {tuple(read.shape)}.")
        x = self.encoding.embed(self.embedding(tokens), pos)
        y, seen = self.encoder(x, self.encoding, pos, read, maps)
        outputs = self.readout(y)
        return Output(outputs if self.output_scale == 1.0 else self.output_scale * outputs, seen)

    @torch.no_grad()
    def table(self, pos: Positions) -> Tensor | None:
        """The encoding's n × d table as it is now."""
        return self.encoding.table(pos)
