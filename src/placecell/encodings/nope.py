"""No positional encoding, with and without a causal mask."""

from __future__ import annotations

import torch
from torch import Tensor

from placecell.encodings.base import Encoding, register
from placecell.encodings.positions import Positions, both_placed


@register("nope")
class NoPE(Encoding):
    """No encoding: the encoder sees a set of tokens and is equivariant to permutations of them.

    It is the lower reference of every comparison. Source: Ito et al., arXiv 2406.08272 (as a
    baseline).

    Parameters
    ----------
    device, dtype : optional
        Ignored, because nothing is stored; accepted so that all encodings are built alike.
    """

    adds_table = True  # `embed` adds nothing

    def __init__(
        self, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()


@register("nope-causal")
class CausalNoPE(NoPE):
    """No encoding, but a causal mask: a token attends to itself and to earlier tokens only.

    The mask reveals some information about position.

    A token without a place attends to all tokens, and only other tokens without a place attend to
    it. Otherwise information about later tokens would reach every token through it.

    Source: Haviv et al., arXiv 2203.16634; Kazemnejad et al., arXiv 2305.19466.

    Parameters
    ----------
    device, dtype : optional
        Ignored, because nothing is stored; accepted so that all encodings are built alike.
    """

    adds_table = True  # `embed` adds nothing

    def visible(self, q_pos: Positions | Tensor, k_pos: Positions | Tensor) -> Tensor:
        """Return the causal mask.

        Parameters
        ----------
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor
            Boolean (... 1 q k), True where the key is not later than the query.
        """
        q_pos, k_pos = Positions.of(q_pos), Positions.of(k_pos)
        before = (k_pos.index.unsqueeze(-2) <= q_pos.index.unsqueeze(-1)).unsqueeze(-3)  # ... 1 q k
        placed = both_placed(q_pos, k_pos)
        if placed is None or q_pos.placed is None:
            return before
        return (before & placed) | ~q_pos.placed[..., None, :, None]
