"""How numbers vary in a tensor: along which axes, as a mask, along a line, as a choice."""

from __future__ import annotations

import torch
from torch import Tensor

from placecell.doctor.labels import Label


def varying_axes(tensor: Tensor) -> list[int]:
    """Return the axes along which a tensor's numbers vary."""
    axes = []
    for axis in range(tensor.ndim):
        if tensor.shape[axis] > 1 and tensor.stride(axis) != 0:
            first = tensor.narrow(axis, 0, 1)
            if bool((tensor != first).any()):
                axes.append(axis)
    return axes


def inside_row(axes: list[int], other: Tensor, width: int | None) -> bool:
    """Whether all axes lie inside one row of features: a bias by head, not by token."""
    if width is None or not axes or axes[-1] >= other.ndim or min(axes) < 0:
        return False
    if other.is_complex():
        width //= 2
    return all(other.stride(axis) < width for axis in axes)


def feature_axis(other: Tensor, label: Label) -> int:
    """Return which axis of what a table is joined with holds the features, from the end."""
    if other.ndim < 3:
        return -1
    strides, sizes = other.stride(), other.shape
    if label.width is not None:
        inside = [axis for axis in range(other.ndim) if 0 < strides[axis] < label.width]
        return inside[-1] - other.ndim if inside else -1
    if label.channels is not None:
        for axis in range(other.ndim - 1, 0, -1):
            if (sizes[axis], strides[axis]) == label.channels:
                return axis - other.ndim
    return -1


def is_mask(tensor: Tensor) -> bool:
    """Whether numbers only let through or hide: nothing but 0 or 1 and huge or tiny ones."""
    real = tensor.abs() if tensor.is_complex() else tensor
    if real.dtype is torch.bool or not real.is_floating_point():
        return True
    visible = real[real > -1e4]
    return len(visible.flatten()[: 2**20].unique()) <= 2


def is_linear(tensor: Tensor) -> bool:
    """Whether the numbers grow linearly along the last axis (ALiBi), masked ones aside."""
    rows = tensor.detach().double().reshape(-1, tensor.shape[-1])[:256]
    if rows.shape[1] < 3:
        return False
    rows = torch.where(rows > -1e4, rows, torch.nan)
    bend = rows.diff(n=2, dim=1).abs()
    size = rows[rows.isfinite()].abs().max() if bool(rows.isfinite().any()) else torch.tensor(0.0)
    flat = (bend[bend.isfinite()] <= 1e-3 * size).double()
    return bool(size > 0) and flat.numel() > 0 and float(flat.mean()) > 0.8


def is_choice(tensor: Tensor) -> bool:
    """Whether every row, or every column, picks one entry: a look-up written as a product."""
    if tensor.numel() > 2**24 or not bool(((tensor == 0) | (tensor == 1)).all()):
        return False
    sums = [(tensor.sum(dim=axis) <= 1).all() for axis in (-1, -2)]
    return bool(tensor.any()) and bool(sums[0] | sums[1])


def few_rows(tensor: Tensor) -> bool:
    """Whether a matrix has fewer than two rows or columns."""
    return tensor.ndim < 2 or min(tensor.shape[-2:]) < 2
