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
    """Set the table of a model to that of a finished run.

    A `random` encoding keeps it frozen, a `learnable` one trains it on.

    Parameters
    ----------
    model : Transformer
        The model that gets the table.
    donor : Path
        Folder of the finished run.
    change : {"kept", "shuffled", "norms"}, optional
        What `changed` does to the table. None: kept.
    generator : torch.Generator
        Source of the random numbers of the change.
    """
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
    """Return a learned table, or a control that keeps only some of its properties.

    Parameters
    ----------
    table : Tensor
        The table (n d).
    change : {"kept", "shuffled", "norms"}
        As it is, with its rows shuffled, or random rows of the same norms.
    generator : torch.Generator
        Source of the random numbers.

    Returns
    -------
    Tensor
        The new table (n d).
    """
    if change == "shuffled":
        return table[torch.randperm(len(table), generator=generator)]
    if change == "norms":
        z = torch.randn(table.shape, generator=generator)
        return z * (table.norm(dim=1, keepdim=True) / z.norm(dim=1, keepdim=True))
    return table
