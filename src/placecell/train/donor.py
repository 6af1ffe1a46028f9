"""Transplants: a fresh model that starts from another run's learned table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from placecell.encodings import LearnablePE, RandomPE
from placecell.errors import InputError
from placecell.model import Transformer
from placecell.store.files import read_tensors

Change = Literal["kept", "shuffled", "norms"]


def take_table(
    model: Transformer, donor: Path, change: Change | None, generator: torch.Generator
) -> None:
    """Put the table of the finished run in the folder `donor` into `model`. A `random` encoding
    keeps it frozen, a `learnable` one trains it on."""
    if not isinstance(model.encoding, LearnablePE | RandomPE):
        raise InputError(
            "a donor needs an encoding with a table (learnable or random), not "
            f"{model.encoding.name!r}."
        )
    path = donor / "weights.safetensors"
    if not path.exists():
        raise InputError(f"{donor}: no finished run to take a table from; run the donor first.")
    table = read_tensors(path)[0].get("encoding.weight")
    own = model.encoding.weight
    if table is None or table.shape != own.shape:
        shape = "none" if table is None else tuple(table.shape)
        raise InputError(f"{path}: the donor's table should be {tuple(own.shape)}, found {shape}.")
    with torch.no_grad():
        own.copy_(changed(table, change or "kept", generator))


def changed(table: Tensor, change: Change, generator: torch.Generator) -> Tensor:
    """A learned table (n d) as it is, with its rows shuffled, or replaced by random rows of the
    same norms."""
    if change == "shuffled":
        return table[torch.randperm(len(table), generator=generator)]
    if change == "norms":
        z = torch.randn(table.shape, generator=generator)
        return z * (table.norm(dim=1, keepdim=True) / z.norm(dim=1, keepdim=True))
    return table
