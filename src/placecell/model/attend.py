"""Attention itself: torch's fused kernel, or written out where compiled code is faster so."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# Tokens up to which compiled code is faster written out (docs/benchmarks.md): where the tokens
# themselves are keys and values, and by head.
MAX_WRITTEN_OUT = 128
MAX_WRITTEN_OUT_BY_HEAD = 32


class _CompiledAttend(torch.autograd.Function):
    """`attend` written out for the compiler.

    The tokens are both keys and values; their gradient is computed as one matrix product.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, x: Tensor) -> Tensor:
        weights = (q @ x.mT / q.shape[-1] ** 0.5).softmax(-1)  # b q n
        ctx.save_for_backward(q, x, weights)
        return weights @ x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        q, x, weights = ctx.saved_tensors
        logits = _gradient_of_logits(weights, gradient @ x.mT, q.shape[-1])
        return logits @ x, torch.cat((logits, weights), 1).mT @ torch.cat((q, gradient), 1)


class _CompiledAttendByHead(torch.autograd.Function):
    """`attend_by_head` written out for the compiler."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)  # b h q n
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, weights = ctx.saved_tensors
        logits = _gradient_of_logits(weights, gradient @ v.mT, q.shape[-1])
        return logits @ k, logits.mT @ q, weights.mT @ gradient


def _gradient_of_logits(weights: Tensor, pull: Tensor, width: int) -> Tensor:
    """The gradient of q·k from `pull`, that of the weights softmax(q·k/√width)."""
    return weights * (pull - (weights * pull).sum(-1, keepdim=True)) / width**0.5


def _pays_written_out(x: Tensor, most: int) -> bool:
    """Whether attention over these tokens (... n d) is compiled for a CPU, and they are few."""
    return torch.compiler.is_compiling() and x.device.type == "cpu" and x.shape[-2] <= most


def attend(q: Tensor, x: Tensor, visible: Tensor | None = None) -> Tensor:
    """Attention with the tokens themselves as keys and values: softmax(q xᵀ/√d) x.

    This uses torch's fused kernel, except in compiled code on a CPU: with at most
    `MAX_WRITTEN_OUT` tokens and no mask, attention written out as matrix products is faster there.

    Parameters
    ----------
    q : Tensor
        Queries (b q d).
    x : Tensor
        Tokens (b n d).
    visible : Tensor, optional
        Boolean mask (... 1 q n), True where a query may attend. None: it may attend to all.

    Returns
    -------
    Tensor
        Weighted sums of the tokens (b q d).
    """
    if visible is None and _pays_written_out(x, MAX_WRITTEN_OUT):
        return _CompiledAttend.apply(q, x)
    return F.scaled_dot_product_attention(q[:, None], x[:, None], x[:, None], attn_mask=visible)[
        :, 0
    ]


def attend_by_head(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of several heads, softmax(q kᵀ/√e) v.

    Like `attend` it uses torch's fused kernel, except where compiled code is faster without.

    Parameters
    ----------
    q : Tensor
        Queries (b h q e).
    k, v : Tensor
        Keys and values (b h n e).
    mask : Tensor, optional
        Boolean mask, True where a query may attend, or what is added to the logits (... q n).

    Returns
    -------
    Tensor
        Weighted sums of the values (b h q e).
    """
    if mask is None and _pays_written_out(k, MAX_WRITTEN_OUT_BY_HEAD):
        return _CompiledAttendByHead.apply(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
