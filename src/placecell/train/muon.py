"""Muon: steps of momentum made orthogonal, for the matrices of the layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# Five rounds of p(s) = a s + b s³ + c s⁵ bring every singular value of a matrix of norm 1 near 1;
# Jordan et al. 2024.
ROUNDS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)
MOMENTUM = 0.95


class Muon(torch.optim.AdamW):
    """AdamW with orthogonal steps for the parameters of some groups.

    In groups that have `orthogonal`, a parameter moves along its momentum made orthogonal. The step
    of an m × n matrix is lr · 0.2 · √max(m, n) times an orthogonal matrix: entries then move about
    as far as with Adam, so that one learning rate does for both. torch's own Muon works in
    bfloat16, which some processors cannot do; this one keeps the precision of the parameters, and
    handles all matrices of one shape at once. Sources: Jordan et al. 2024 (the method); Liu et al.,
    arXiv 2502.16982 (the factor).
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients.

        Returns
        -------
        Any
            What `closure` returned; None without one.
        """
        loss = None
        if closure is not None:  # first, for it makes the gradients
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("orthogonal"):
                self._turn(group)
        super().step()
        return loss

    def _turn(self, group: dict[str, Any]) -> None:
        alike = defaultdict(list)
        for p in group["params"]:
            if p.grad is not None:
                alike[p.shape].append(p)
        for shape, parameters in alike.items():
            steps = []
            for p in parameters:
                state = self.state[p]
                # under the names that AdamW knows, so that a checkpoint of it can be put back
                if not state:
                    state |= {"step": torch.zeros(()), "exp_avg": torch.zeros_like(p)}
                state["step"] += 1
                momentum = state["exp_avg"].lerp_(p.grad, 1 - MOMENTUM)
                steps.append(p.grad.lerp(momentum, MOMENTUM))  # Nesterov's: one step ahead
                p.grad = None  # or AdamW would take a step as well
            size = -group["lr"] * 0.2 * max(shape) ** 0.5
            for p, step in zip(parameters, orthogonal(torch.stack(steps)), strict=True):
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(step, alpha=size)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return matrices with their singular values brought to about 1 (0.7 to 1.2).

    Parameters
    ----------
    matrices : Tensor
        Matrices (k m n).

    Returns
    -------
    Tensor
        Matrices (k m n) with the same singular vectors.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
