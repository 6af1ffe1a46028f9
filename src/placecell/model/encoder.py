"""The transformer encoder of the paper. Its last layer computes only what the loss reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from placecell.encodings.base import Encoding, check_size
from placecell.encodings.positions import Positions
from placecell.errors import InputError, unknown
from placecell.model.attention import Attention, Reach
from placecell.model.distinct import HALVES, Distinct, has_hooks, is_exporting
from placecell.model.inputs import Inputs


class _CompiledReLU(torch.autograd.Function):
    """ReLU that saves its output for the backward pass, not which elements were positive.

    Inductor saves the latter as bytes. On a CPU, writing these bytes takes longer than everything
    else that is fused with the ReLU (docs/benchmarks.md).
    """

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
    """torch's ReLU, with a custom backward pass when it is compiled."""

    def forward(self, x: Tensor) -> Tensor:
        """Return max(x, 0).

        Parameters
        ----------
        x : Tensor
            A tensor of any shape.

        Returns
        -------
        Tensor
            A tensor of the same shape.
        """
        return _CompiledReLU.apply(x) if torch.compiler.is_compiling() else super().forward(x)


ACTIVATIONS = {"gelu": nn.GELU, "relu": ReLU}
NORMS = ("pre", "post")
KINDS = ("symbol", "value")


def gather(x: Tensor, read: Tensor | None) -> Tensor:
    """Return some tokens of each sample.

    Parameters
    ----------
    x : Tensor
        Tokens (b n d).
    read : Tensor, optional
        Which tokens of each sample (b q). None: all.

    Returns
    -------
    Tensor
        The tokens (b q d); x itself if `read` is None.
    """
    return x if read is None else x.gather(1, read[..., None].expand(-1, -1, x.shape[-1]))


class EncoderLayer(nn.Module):
    """Attention and an MLP, each with a residual connection and a layer norm.

    Parameters
    ----------
    d : int
        Width.
    heads : int
        Number of heads h.
    hidden : int
        Width of the MLP's hidden layer.
    norm : {"pre", "post"}
        Whether the layer norm comes before or after attention and MLP.
    activation : {"gelu", "relu"}
        Activation of the MLP.
    reach : {"full", "neighbours"}
        Which tokens a token attends to.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        hidden: int,
        norm: str,
        activation: str,
        reach: Reach = "full",
    ) -> None:
        super().__init__()
        self.pre = norm == "pre"
        self.attention = Attention(d, heads, reach)
        self.mlp = nn.Sequential(
            nn.Linear(d, hidden), ACTIVATIONS[activation](), nn.Linear(hidden, d)
        )
        self.norm_attention = nn.LayerNorm(d)
        self.norm_mlp = nn.LayerNorm(d)

    def forward(
        self,
        x: Tensor,
        encoding: Encoding,
        pos: Positions,
        read: Tensor | None = None,
        present: Tensor | None = None,
        maps: bool = False,
        distinct: Distinct | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Apply the layer, computing outputs only for the tokens that are read.

        Parameters
        ----------
        x : Tensor
            Tokens (b n d).
        encoding : Encoding
            The positional encoding.
        pos : Positions
            Positions of the n tokens.
        read : Tensor, optional
            Tokens to compute outputs for (b q). None: all.
        present : Tensor, optional
            Boolean (b n), False for absent tokens. None: all are present.
        maps : bool
            Whether to return the attention map.
        distinct : Distinct, optional
            The different rows of x, if there are few and outputs of all tokens are computed.

        Returns
        -------
        Tensor
            Outputs of the tokens read (b q d).
        Tensor or None
            Attention map (b h q n), if asked for.
        """
        q_pos = pos if read is None else pos.take(read)
        x_q = gather(x, read)
        if self.pre:
            normed = self.norm_attention(x)
            rows = None if distinct is None else distinct.apply(self.norm_attention)
            y, weights = self.attention(
                normed, gather(normed, read), encoding, pos, q_pos, present, maps, rows
            )
            x_q = x_q + y
            return x_q + self.mlp(self.norm_mlp(x_q)), weights
        y, weights = self.attention(x, x_q, encoding, pos, q_pos, present, maps, distinct)
        x_q = self.norm_attention(x_q + y)
        return self.norm_mlp(x_q + self.mlp(x_q)), weights


class Encoder(nn.Module):
    """A stack of encoder layers.

    The encoding is an argument of each call, so that the model owns it only once.

    Parameters
    ----------
    d : int
        Width.
    depth : int
        Number of layers.
    heads : int
        Number of heads h.
    mlp_ratio : float
        Width of the MLP's hidden layer, relative to d.
    norm : {"pre", "post"}
        Whether layer norms come before or after attention and MLP.
    activation : {"gelu", "relu"}
        Activation of the MLPs.
    reach : {"full", "neighbours"}
        Which tokens a token attends to: all, or itself and its neighbours in the graph of the
        places.
    """

    def __init__(
        self,
        d: int,
        depth: int = 4,
        heads: int = 1,
        mlp_ratio: float = 4.0,
        norm: Literal["pre", "post"] = "post",
        activation: Literal["gelu", "relu"] = "relu",
        reach: Reach = "full",
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise unknown("norm", norm, NORMS)
        if activation not in ACTIVATIONS:
            raise unknown("activation", activation, ACTIVATIONS)
        check_size("depth", depth)
        if not math.isfinite(mlp_ratio) or round(d * mlp_ratio) < 1:
            raise InputError(
                "mlp_ratio must be finite and give a hidden layer of at least 1, not "
                f"{mlp_ratio!r}."
            )
        hidden = round(d * mlp_ratio)
        self.layers = nn.ModuleList(
            EncoderLayer(d, heads, hidden, norm, activation, reach) for _ in range(depth)
        )
        self.norm = nn.LayerNorm(d) if norm == "pre" else nn.Identity()

    def forward(
        self,
        x: Tensor,
        encoding: Encoding,
        pos: Positions,
        read: Tensor | None = None,
        present: Tensor | None = None,
        maps: bool = False,
        distinct: Distinct | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Apply all layers.

        Only the last layer's outputs are read, so only the last layer skips the other queries. If
        maps are asked for, it computes all queries, because a map shows every token.

        Parameters
        ----------
        x : Tensor
            Embedded tokens (b n d).
        encoding : Encoding
            The positional encoding.
        pos : Positions
            Positions of the n tokens.
        read : Tensor, optional
            Tokens to return outputs for (b q). None: all.
        present : Tensor, optional
            Boolean (b n), False for absent tokens. None: all are present.
        maps : bool
            Whether to return the attention maps.
        distinct : Distinct, optional
            The different rows of x, if there are few.

        Returns
        -------
        Tensor
            Outputs of the tokens read (b q d).
        list of Tensor
            Attention map (b h n n) of every layer if asked for, else empty.
        """
        attention_maps = []
        for layer in self.layers[:-1]:
            x, weights = layer(x, encoding, pos, None, present, maps, distinct)
            distinct = None  # tokens have met: after a layer they differ
            attention_maps.append(weights)
        x, weights = self.layers[-1](x, encoding, pos, None if maps else read, present, maps)
        attention_maps.append(weights)
        if maps:
            x = gather(x, read)
        return self.norm(x), [weights for weights in attention_maps if weights is not None]


@dataclass(frozen=True)
class Tokens:
    """What a token is.

    Parameters
    ----------
    kind : {"symbol", "value"}
        "symbol": one of `size` symbols, given by its index. "value": a vector of `size` values.
    size : int
        Number of symbols, or of values per token.
    """

    kind: Literal["symbol", "value"]
    size: int


class Output(NamedTuple):
    """What a model returns.

    Parameters
    ----------
    outputs : Tensor
        Outputs at the tokens read (b q o).
    maps : list of Tensor
        Attention map (b h n n) of every layer if asked for, else empty.
    """

    outputs: Tensor
    maps: list[Tensor]


class Transformer(nn.Module):
    """Token embedding, positional encoding, encoder and readout.

    Parameters
    ----------
    tokens : Tokens
        Kind of the tokens.
    encoding : Encoding
        The positional encoding.
    encoder : Encoder
        The layers.
    d : int
        Width.
    n_outputs : int
        Number of outputs per token, o.
    output_scale : float
        Factor on the outputs.
    """

    def __init__(
        self,
        tokens: Tokens,
        encoding: Encoding,
        encoder: Encoder,
        d: int,
        n_outputs: int,
        output_scale: float = 1.0,
    ) -> None:
        super().__init__()
        if tokens.kind not in KINDS:
            raise unknown("kind of token", tokens.kind, KINDS)
        embedding = (
            nn.Embedding(tokens.size, d) if tokens.kind == "symbol" else nn.Linear(tokens.size, d)
        )
        self.embedding: nn.Module = embedding
        self.encoding = encoding
        self.encoder = encoder
        self.readout = nn.Linear(d, n_outputs)
        self.output_scale = output_scale

    def forward(self, inputs: Inputs, maps: bool = False) -> Output:
        """Compute the outputs at the tokens that are read.

        Parameters
        ----------
        inputs : Inputs
            Samples.
        maps : bool
            Whether to return the attention maps.

        Returns
        -------
        Output
            Outputs (b q o), and the attention map (b h n n) of every layer if asked for.
        """
        if not isinstance(inputs, Inputs):
            raise InputError(
                "a model takes Inputs(tokens, positions, read, present), not "
                f"{type(inputs).__name__}."
            )
        inputs.check_shapes()
        pos = inputs.positions
        x = self.encoding.embed(self.embedding(inputs.tokens), pos)
        distinct = None if maps else self._distinct(inputs)
        y, attention_maps = self.encoder(
            x, self.encoding, pos, inputs.read, inputs.present, maps, distinct
        )
        outputs = self.readout(y)
        return Output(
            outputs if self.output_scale == 1.0 else self.output_scale * outputs, attention_maps
        )

    def _distinct(self, inputs: Inputs) -> Distinct | None:
        """Return each symbol at each place, if these are at most half of the tokens.

        None as well where tokens of one symbol at one place may differ, or somebody looks at tokens
        on their way into the first layer.
        """
        pos, embedding, layers = inputs.positions, self.embedding, self.encoder.layers
        shared = pos.sizes[0] is None  # by all samples
        if type(embedding) is not nn.Embedding or not (shared and self.encoding.same_at_a_position):
            return None
        if len(layers) == 1 or embedding.weight.dtype in HALVES or is_exporting():
            return None
        if 2 * embedding.num_embeddings > len(inputs):
            return None
        if any(map(has_hooks, (embedding, self.encoder, *layers[0].modules()))):
            return None
        n, device = inputs.tokens.shape[1], inputs.tokens.device
        every = torch.arange(embedding.num_embeddings, device=device)[:, None].expand(-1, n)
        rows = self.encoding.embed(embedding(every), pos).flatten(0, 1)
        return Distinct(rows, inputs.tokens * n + torch.arange(n, device=device))

    @torch.no_grad()
    def table(self, pos: Positions) -> Tensor | None:
        """Return the current table of the encoding.

        Parameters
        ----------
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor or None
            Table (... n d), without gradient; None if the encoding has no table.
        """
        return self.encoding.table(pos)
