"""Self-attention: the one caller of an encoding's hooks inside the layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from placecell.encodings.base import Encoding, Positions, head_width

FEW = 128  # tokens, up to which compiled attention is faster written out (docs/benchmarks.md)


class _CompiledAttend(torch.autograd.Function):
    """`attend` written out for the compiler. The gradient of the tokens, as keys and as values, is one product."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, x: Tensor) -> Tensor:
        weights = (q @ x.mT / q.shape[-1] ** 0.5).softmax(-1)  # b q n
        ctx.save_for_backward(q, x, weights)
        return weights @ x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        q, x, weights = ctx.saved_tensors
        pull = gradient @ x.mT
        logits = weights * (pull - (weights * pull).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5  # their gradient
        return logits @ x, torch.cat((logits, weights), 1).mT @ torch.cat((q, gradient), 1)


def attend(q: Tensor, x: Tensor, visible: Tensor | None = None) -> Tensor:
    """What queries (b q d) gather from tokens (b n d) that are keys and values as they are: softmax(q xᵀ/√d) x.

    By torch's fused kernel; but with few tokens on a CPU, compiled code is faster than that.
    """
    if torch.compiler.is_compiling() and x.device.type == "cpu" and x.shape[1] <= FEW and visible is None:
        return _CompiledAttend.apply(q, x)
    return F.scaled_dot_product_attention(q[:, None], x[:, None], x[:, None], attn_mask=visible)[:, 0]


class Attention(nn.Module):
    """Multi-head self-attention over tokens whose positions an `Encoding` explains."""

    def __init__(self, d: int, heads: int = 1) -> None:
        super().__init__()
        self.heads, self.e = heads, head_width(d, heads)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def _split(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        return x.view(b, n, self.heads, self.e).transpose(1, 2)  # b n d -> b h n e

    def _project(self, x: Tensor, x_q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of x_q (b q d), keys and values of x (b n d)."""
        if x_q is x:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
        else:
            d = x.shape[-1]
            q = F.linear(x_q, self.qkv.weight[:d], self.qkv.bias[:d])
            k, v = F.linear(x, self.qkv.weight[d:], self.qkv.bias[d:]).chunk(2, dim=-1)
        return self._split(q), self._split(k), self._split(v)

    def _folded(self, x: Tensor, x_q: Tensor, visible: Tensor | None) -> Tensor:
        """The same with two projections of the tokens instead of four, by multiplying weights first.

        With one head, (W_q x_i + b_q)·(W_k x_j + b_k) is (W_kᵀW_q x_i + W_kᵀb_q)·x_j and a term that is alike for
        every j, which the softmax does not see; and W_o Σ_j a_ij (W_v x_j + b_v) is W_o W_v Σ_j a_ij x_j + W_o b_v.
        So keys and values are the tokens themselves.
        """
        (w_q, w_k, w_v), (b_q, _, b_v) = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        q = F.linear(x_q, w_k.T @ w_q, b_q @ w_k)  # b q d
        y = attend(q, x, visible)
        return F.linear(y, self.out.weight @ w_v, F.linear(b_v, self.out.weight, self.out.bias))

    def forward(
        self, x: Tensor, x_q: Tensor, encoding: Encoding, pos: Positions, q_pos: Positions, maps: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """What the tokens x_q (b q d) gather from the tokens x (b n d), and the attention map (b h q n) if asked for.

        Without a map to show, and unless the encoding mixes into the output, the fused kernel is used; and with one
        head, where the encoding leaves queries and logits alone, so are folded projections.
        """
        if self.heads == 1 and not maps and not encoding.acts_in_attention:
            return self._folded(x, x_q, encoding.visible(q_pos, pos)), None
        q, k, v = self._project(x, x_q)
        q, k = encoding.rotate(q, q_pos), encoding.rotate(k, pos)
        bias, visible = encoding.bias(q, q_pos, pos), encoding.visible(q_pos, pos)
        if maps or encoding.mixes:
            logits = q @ k.transpose(-1, -2) / self.e**0.5  # b h q n
            if bias is not None:
                logits = logits + bias
            if visible is not None:
                logits = logits.masked_fill(~visible, float("-inf"))
            weights = logits.softmax(-1)
            y = weights @ v
            extra = encoding.mix(weights, q_pos, pos)
            if extra is not None:
                y = y + extra
        else:
            weights = None
            if bias is not None and visible is not None:
                bias = bias.masked_fill(~visible, float("-inf"))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible if bias is None else bias)
        return self.out(y.transpose(1, 2).flatten(2)), weights if maps else None
