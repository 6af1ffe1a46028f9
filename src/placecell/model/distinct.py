"""The different rows of a batch: before the first layer a token is its symbol and its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, eq=False)
class Distinct:
    """The rows that enter the first layer, each once.

    A batch has b · n tokens, but of s symbols at n places there are only s · n different rows. What
    the first layer computes of each token by itself is computed once a row and handed out.

    Parameters
    ----------
    rows : Tensor
        The different rows (r d).
    index : Tensor
        Which of them each token is (b n).
    """

    rows: Tensor
    index: Tensor

    def apply(self, function: Callable[[Tensor], Tensor]) -> Distinct:
        """Return the rows after a function of each row by itself, such as a layer norm."""
        return replace(self, rows=function(self.rows))

    def spread(self) -> Tensor:
        """Return the row of every token (b n d).

        An embedding, since its backward pass adds whole rows.
        """
        return F.embedding(self.index, self.rows)
