"""Muon against its definition by singular values, and AdamW for everything that is no matrix of a
layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from placecell.train import make_model, make_optimizer
from placecell.train.muon import COEFFICIENTS, MOMENTUM, ROUNDS, Muon, orthogonal

SHAPES = [(8, 8), (24, 8), (8, 32)]


def by_singular_values(matrix: np.ndarray) -> np.ndarray:
    """U p(p(p(p(p(S))))) Vᵀ of the matrix divided by its norm, with p(s) = a s + b s³ + c s⁵."""
    u, s, v = np.linalg.svd(matrix / np.linalg.norm(matrix), full_matrices=False)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        s = a * s + b * s**3 + c * s**5
    return (u * s) @ v


@pytest.mark.parametrize("shape", SHAPES)
def test_orthogonal_is_its_definition(shape: tuple[int, int]) -> None:
    matrices = torch.randn(
        3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    turned = orthogonal(matrices)
    for one, matrix in zip(turned.numpy(), matrices.numpy(), strict=True):
        np.testing.assert_allclose(one, by_singular_values(matrix), rtol=1e-8, atol=1e-10)
        assert (
            0.4
            < np.linalg.svd(one, compute_uv=False).min()
            <= np.linalg.svd(one, compute_uv=False).max()
            < 1.3
        )


def test_a_gradient_of_zero_moves_nothing() -> None:
    assert torch.equal(orthogonal(torch.zeros(1, 4, 6)), torch.zeros(1, 4, 6))


@pytest.mark.parametrize("shape", SHAPES)
def test_two_steps_by_hand(shape: tuple[int, int]) -> None:
    draw = torch.Generator().manual_seed(1)
    start, *gradients = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(3))
    p = nn.Parameter(start.clone())
    optimizer = Muon([{"params": [p], "orthogonal": True}], lr=0.1, weight_decay=0.5)
    expected, momentum = start.numpy(), np.zeros(shape)
    for gradient in gradients:
        p.grad = gradient.clone()
        optimizer.step()
        g = gradient.numpy()
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * g
        ahead = MOMENTUM * momentum + (1 - MOMENTUM) * g
        expected = expected * (1 - 0.1 * 0.5) - 0.1 * 0.2 * max(shape) ** 0.5 * by_singular_values(
            ahead
        )
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-7, atol=1e-9)


def test_all_but_the_matrices_of_the_layers_is_adamw(tiny, tiny_task) -> None:
    models = {name: make_model(tiny(optimizer=name), tiny_task) for name in ("muon", "adamw")}
    for name, model in models.items():
        optimizer = make_optimizer(model, tiny(optimizer=name, weight_decay=0.1).train)
        for step in range(3):
            for index, p in enumerate(model.parameters()):
                p.grad = torch.randn(
                    p.shape, generator=torch.Generator().manual_seed(100 * step + index)
                )
            optimizer.step()
    other = dict(models["adamw"].named_parameters())
    for name, p in models["muon"].named_parameters():
        matrix = name.startswith("encoder.") and p.ndim == 2
        assert torch.equal(p, other[name]) != matrix, name
