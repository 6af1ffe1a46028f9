"""The different rows of a batch: before the first layer a token is its symbol and its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HALVES = (torch.float16, torch.bfloat16)  # in these a sum of many gradients loses digits

# An exported model may take batches of any size. Before torch 2.7 nobody says that it exports.
is_exporting: Callable[[], bool] = getattr(
    torch.compiler, "is_exporting", torch.compiler.is_compiling
)


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


def has_hooks(module: nn.Module) -> bool:
    """Return whether somebody has registered a hook that runs when a module is called.

    Parameters
    ----------
    module : nn.Module
        A module; hooks of its parts do not count.

    Returns
    -------
    bool
    """
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
