"""A table against a reference, and what a model loses without its positions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from placecell.doctor.checkpoint import pick_tensor, read_checkpoint
from placecell.doctor.examples import call_model
from placecell.doctor.find import Table
from placecell.doctor.guard import unwrap
from placecell.errors import InputError
from placecell.seeds import torch_stream

SAME_DIRECTION = 1 - 1e-6  # cosine of a row with itself after decay, in single precision


@dataclass(frozen=True)
class Against:
    """A table beside a reference.

    Attributes
    ----------
    unchanged : int
        Rows that are the same to the last bit.
    unchanged_from : int
        The row from which on all are unchanged; n if the last one is not.
    decayed : int
        Rows that only shrank: the same direction, a smaller length.
    decayed_from : int
        The row from which on all only shrank (or stayed); n if the last one did not.
    shrink : float
        Median length of the rows that only shrank, relative to the reference's. NaN without any.
    moved : float
        Median over the other rows of the distance moved, relative to the reference's length.
    """

    unchanged: int
    unchanged_from: int
    decayed: int
    decayed_from: int
    shrink: float
    moved: float


def against(table: Tensor, reference: Tensor) -> Against:
    """Compare a table with a reference, row by row.

    Parameters
    ----------
    table, reference : Tensor of shape (n, d)
        The same shape.
    """
    if table.shape != reference.shape:
        raise InputError(
            f"reference: expected a table {tuple(table.shape)}, found {tuple(reference.shape)}."
        )
    now, before = (t.detach().to("cpu", torch.float64).flatten(1) for t in (table, reference))
    same = (now == before).all(dim=1)
    lengths = now.norm(dim=1), before.norm(dim=1)
    cosine = (now * before).sum(dim=1) / (lengths[0] * lengths[1]).clamp_min(1e-300)
    shrunk = ~same & (cosine >= SAME_DIRECTION) & (lengths[0] < lengths[1])
    rest = ~same & ~shrunk
    ratio = lengths[0][shrunk] / lengths[1][shrunk]
    moved = (now - before).norm(dim=1)[rest] / lengths[1][rest].clamp_min(1e-300)
    return Against(
        int(same.sum()),
        _tail(same),
        int(shrunk.sum()),
        _tail(same | shrunk) if bool(shrunk.any()) else len(now),
        float(ratio.median()) if len(ratio) else float("nan"),
        float(moved.median()) if len(moved) else 0.0,
    )


def _tail(flags: Tensor) -> int:
    """The first row from which on all flags are set."""
    wrong = (~flags).nonzero()
    return int(wrong[-1]) + 1 if len(wrong) else 0


def reference_tensors(reference: Any) -> Mapping[str, Tensor]:
    """Return the tensors of a reference: a file, a module, or a state dict."""
    if isinstance(reference, str | Path):
        return read_checkpoint(reference)
    if isinstance(reference, nn.Module):
        module = unwrap(reference)
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}
    if isinstance(reference, Mapping):
        return reference
    kind = type(reference).__name__
    raise InputError(f"reference: expected a file, a module or a state dict, found {kind}.")


def reference_of(name: str, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the reference's tensor for a table, whatever prefix either has."""
    for other in tensors:
        if other == name or other.endswith(f".{name}") or name.endswith(f".{other}"):
            return tensors[other]
    return pick_tensor(tensors, name, "reference")


@dataclass(frozen=True)
class Costs:
    """What a loss becomes without positions.

    Attributes
    ----------
    intact, shuffled, averaged, shifted : float
        The loss with the table as it is; with its rows in another order; with every row the mean
        row; with every row one place further. Rows that the example does not use are left out.
    """

    intact: float
    shuffled: float
    averaged: float
    shifted: float


def costs(
    model: nn.Module, example: Any, table: Table, tensor: Tensor, loss: Callable[..., Any]
) -> Costs:
    """Measure what shuffling, averaging and shifting a table's rows does to a loss."""
    axis, rows = row_axis(table), used_rows(table, tensor)
    generator = torch_stream(0, f"doctor/costs/{table.name}")
    order = rows[torch.randperm(len(rows), generator=generator)]

    def value() -> float:
        return loss_value(model, example, loss)

    before = tensor.detach().clone()
    changed = []
    moved = before.index_select(axis, rows)
    for new in (
        before.index_select(axis, order),
        moved.mean(dim=axis, keepdim=True).expand_as(moved),
        moved.roll(1, dims=axis),
    ):
        with _replaced(tensor, before.index_copy(axis, rows, new.contiguous())):
            changed.append(value())
    return Costs(value(), *changed)


def loss_value(model: nn.Module, example: Any, loss: Callable[..., Any]) -> float:
    """Return a loss as a number: `loss(output)`, `loss(model, example)`, or `loss(model)` if its
    one argument is called `model`."""
    try:
        needed = [
            p.name
            for p in inspect.signature(loss).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        needed = ["output"]
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            if len(needed) == 2:
                value = loss(model, example)
            elif needed == ["model"]:
                value = loss(model)
            else:
                value = loss(call_model(model, example))
    finally:
        for module, mode in modes:
            module.training = mode
    if not isinstance(value, Tensor | float | int) or torch.as_tensor(value).numel() != 1:
        raise InputError(f"loss: expected one number, found {type(value).__name__}.")
    return float(value)


def row_axis(table: Table) -> int:
    """Return the axis of a stored table along which its places lie."""
    long = [axis for axis, size in enumerate(table.shape) if size > 1]
    if table.kind == "relative":
        return max(long, key=lambda axis: table.shape[axis])
    return long[1] if table.layout == "channels first" else long[0]


def used_rows(table: Table, tensor: Tensor) -> Tensor:
    """Return the rows that the example used, as far as that is known; else all."""
    n = tensor.shape[row_axis(table)]
    if table.rows is not None and len(table.rows) > 1 and int(table.rows.max()) < n:
        return table.rows.long().to(tensor.device)
    return torch.arange(n, device=tensor.device)


@contextmanager
def _replaced(tensor: Tensor, values: Tensor) -> Iterator[None]:
    before = tensor.detach().clone()
    try:
        with torch.no_grad():
            tensor.copy_(values)
        yield
    finally:
        with torch.no_grad():
            tensor.copy_(before)
