"""No positional encoding, with and without a causal mask."""

from __future__ import annotations

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, Positions, register


@register("nope")
class NoPE(Encoding):
    """Nothing: the encoder sees a set of tokens and is equivariant to their order. The floor for every comparison.

    Source: Ito et al., arXiv 2406.08272 (as a baseline).
    """

    def __init__(self, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()  # nothing is stored: the arguments are taken so that every encoding is built alike


@register("nope-causal")
class CausalNoPE(NoPE):
    """No encoding, but a token sees only itself and those before it, which lets position leak in.

    Source: Haviv et al., arXiv 2203.16634; Kazemnejad et al., arXiv 2305.19466.
    """

    def visible(self, q_pos: Positions, k_pos: Positions) -> Tensor:
        return (k_pos.index.unsqueeze(-2) <= q_pos.index.unsqueeze(-1)).unsqueeze(-3)  # ... 1 q k
