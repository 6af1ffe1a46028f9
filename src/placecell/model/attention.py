"""Self-attention, the only caller of an encoding's hooks inside the layers."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from placecell.encodings.base import Encoding, head_width
from placecell.encodings.positions import Positions, neighbours
from placecell.errors import InputError
from placecell.model.attend import attend, attend_by_head
from placecell.model.distinct import Distinct

Reach = Literal["full", "neighbours"]


def visible_and_present(visible: Tensor | None, present: Tensor | None) -> Tensor | None:
    """Return which keys each query attends to: those that are both visible and present.

    A query may have no such key, for example one before the first present token under a causal
    mask. It then attends to itself or to whatever is visible. Such a query is absent and its output
    is not read, but its softmax must be finite.

    Parameters
    ----------
    visible : Tensor, optional
        Boolean mask of the encoding (... 1 q n). None: all keys are visible.
    present : Tensor, optional
        Boolean (b n), False for absent tokens. None: all are present.

    Returns
    -------
    Tensor or None
        Boolean mask (... 1 q n) or (b 1 1 n); None if every query attends to every key.
    """
    if present is None:
        return visible
    keys = present[:, None, None, :]  # b 1 1 n
    if visible is None:
        return keys
    both = visible & keys
    return torch.where(both.any(-1, keepdim=True), both, visible)


class Attention(nn.Module):
    """Multi-head self-attention that applies the hooks of an `Encoding`.

    Parameters
    ----------
    d : int
        Width.
    heads : int
        Number of heads h, a divisor of d.
    reach : {"full", "neighbours"}
        Which tokens a token attends to: all, or itself and its neighbours in the graph of the
        places (message passing with attention).
    """

    def __init__(self, d: int, heads: int = 1, reach: Reach = "full") -> None:
        super().__init__()
        self.heads, self.e, self.reach = heads, head_width(d, heads), reach
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def _visible(
        self, encoding: Encoding, q_pos: Positions, pos: Positions, present: Tensor | None
    ) -> Tensor | None:
        """Return which keys each query attends to, (... 1 q n); None if it attends to all."""
        visible = encoding.visible(q_pos, pos)
        if self.reach == "neighbours":
            near = neighbours(q_pos, pos)
            if near is None:
                raise InputError("attention to neighbours needs positions with a graph.")
            visible = near if visible is None else visible & near
        return visible_and_present(visible, present)

    def _by_head(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Split the last axis of x (b n parts·d) into parts, each by head (b h n e).

        One view with an axis for each of them: of parts that are split off first and by head
        afterwards, compiled code copies the gradients number by number.
        """
        by_head = x.unflatten(-1, (parts, self.heads, self.e)).unbind(2)  # b n h e
        return tuple(part.transpose(1, 2) for part in by_head)

    def _project(
        self, x: Tensor, x_q: Tensor, distinct: Distinct | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries of x_q (b q d) and the keys and values of x (b n d), by head."""
        if x_q is x:
            qkv = self.qkv(x) if distinct is None else distinct.apply(self.qkv).spread()
            q, k, v = self._by_head(qkv, 3)
        else:
            d = x.shape[-1]
            (q,) = self._by_head(F.linear(x_q, self.qkv.weight[:d], self.qkv.bias[:d]), 1)
            k, v = self._by_head(F.linear(x, self.qkv.weight[d:], self.qkv.bias[d:]), 2)
        return q, k, v

    def _folded(
        self, x: Tensor, x_q: Tensor, visible: Tensor | None, distinct: Distinct | None
    ) -> Tensor:
        """Attention of one head with two projections of the tokens instead of four.

        The weight matrices are multiplied first. With one head, (W_q x_i + b_q)·(W_k x_j + b_k)
        equals (W_kᵀW_q x_i + W_kᵀb_q)·x_j plus a term that is the same for every j and cancels in
        the softmax; and W_o Σ_j a_ij (W_v x_j + b_v) equals W_o W_v Σ_j a_ij x_j + W_o b_v. So the
        tokens themselves serve as keys and values.
        """
        (w_q, w_k, w_v), (b_q, _, b_v) = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        weight, bias = w_k.T @ w_q, b_q @ w_k
        if distinct is None:
            q = F.linear(x_q, weight, bias)  # b q d
        else:
            q = distinct.apply(lambda rows: F.linear(rows, weight, bias)).spread()
        y = attend(q, x, visible)
        return F.linear(y, self.out.weight @ w_v, F.linear(b_v, self.out.weight, self.out.bias))

    def _folded_heads(self, x: Tensor, x_q: Tensor, visible: Tensor | None) -> Tensor:
        """Attention of several heads in which only the query tokens are projected.

        As in `_folded` the tokens themselves serve as keys and values, for every head: the queries
        of a head are W_kᵀ(W_q x_i + b_q), and its values W_v Σ_j a_ij x_j + b_v. The products are
        as wide as the model instead of a head, so this is for few queries (`_folding_pays`).
        """
        (w_q, w_k, w_v), (b_q, _, b_v) = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        by_head = (self.heads, self.e, x.shape[-1])  # h e d
        q = F.linear(x_q, w_q, b_q).unflatten(-1, by_head[:2])  # b q h e
        q = torch.einsum("bqhe,hed->bqhd", q, w_k.view(by_head)).flatten(1, 2)  # b qh d
        if visible is not None and visible.shape[-2] > 1:
            visible = visible.repeat_interleave(self.heads, -2)  # ... 1 qh n
        # `attend` divides by √d, heads by √e
        y = attend(q * self.heads**0.5, x, visible).unflatten(1, (-1, self.heads))  # b q h d
        y = torch.einsum("bqhd,hed->bqhe", y, w_v.view(by_head)).flatten(2)  # b q d
        return self.out(y + b_v)

    def _folding_pays(self, queries: int, tokens: int) -> bool:
        """Whether `_folded_heads` needs less than half of the products that it saves."""
        d = self.heads * self.e
        return 2 * queries * (d + tokens * (self.heads - 1)) < tokens * d

    def forward(
        self,
        x: Tensor,
        x_q: Tensor,
        encoding: Encoding,
        pos: Positions,
        q_pos: Positions,
        present: Tensor | None = None,
        maps: bool = False,
        distinct: Distinct | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute what the query tokens gather from all present tokens.

        The fused kernel is used unless a map is asked for or the encoding adds values to the
        output. With one head, or with several and few queries, the projections are folded as well
        if the encoding leaves queries and logits alone.

        Parameters
        ----------
        x : Tensor
            Tokens that are attended to (b n d).
        x_q : Tensor
            Tokens that attend (b q d); x itself if all of them do.
        encoding : Encoding
            The positional encoding.
        pos, q_pos : Positions
            Positions of x and of x_q.
        present : Tensor, optional
            Boolean (b n), False for absent tokens. None: all are present.
        maps : bool
            Whether to return the attention map.
        distinct : Distinct, optional
            The different rows of x, if there are few and all of its tokens attend.

        Returns
        -------
        Tensor
            Attention output (b q d).
        Tensor or None
            Attention map (b h q n), if asked for.
        """
        if not maps and not encoding.acts_in_attention:
            if self.heads == 1:
                visible = self._visible(encoding, q_pos, pos, present)
                return self._folded(x, x_q, visible, distinct), None
            if self._folding_pays(x_q.shape[1], x.shape[1]):
                visible = self._visible(encoding, q_pos, pos, present)
                return self._folded_heads(x, x_q, visible), None
        q, k, v = self._project(x, x_q, distinct)
        q, k = encoding.rotate(q, q_pos), encoding.rotate(k, pos)
        bias, visible = (
            encoding.bias(q, q_pos, pos),
            self._visible(encoding, q_pos, pos, present),
        )
        if maps or encoding.adds_values:
            logits = q @ k.transpose(-1, -2) / self.e**0.5  # b h q n
            if bias is not None:
                logits = logits + bias
            if visible is not None:
                logits = logits.masked_fill(~visible, float("-inf"))
            weights = logits.softmax(-1)
            y = weights @ v
            extra = encoding.add_values(weights, q_pos, pos)
            if extra is not None:
                y = y + extra
        else:
            weights = None
            if bias is not None and visible is not None:
                bias = bias.masked_fill(~visible, float("-inf"))
            y = attend_by_head(q, k, v, visible if bias is None else bias)
        return self.out(y.transpose(1, 2).flatten(2)), weights if maps else None
