"""Doctor: is my position table all right?

The module is also the function: `placecell.doctor(model, example)` finds the position tables of any
torch model and says what they are, what share of the input they carry and whether they were
trained.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from placecell.doctor.checkpoint import load_checkpoint, read_checkpoint
from placecell.doctor.compare import Against, Costs
from placecell.doctor.draw import Change, init_
from placecell.doctor.examination import examine, examine_tensor
from placecell.doctor.find import Table, Tables, find_tables
from placecell.doctor.measure import AsBuilt, share_of_position
from placecell.doctor.mend import extend, freeze, param_groups, resize
from placecell.doctor.report import Finding, Report, TableReport

__all__ = [
    "Against",
    "AsBuilt",
    "Change",
    "Costs",
    "Finding",
    "Report",
    "Table",
    "TableReport",
    "Tables",
    "doctor",
    "examine_tensor",
    "extend",
    "find_tables",
    "freeze",
    "init_",
    "load_checkpoint",
    "param_groups",
    "read_checkpoint",
    "resize",
    "share_of_position",
]


def doctor(
    model: torch.nn.Module,
    example: Any,
    loss: Callable[..., Any] | None = None,
    reference: Any = None,
    *,
    optimizer: torch.optim.Optimizer | None = None,
) -> Report:
    """Examine the position tables of any torch model. The model is left as it was.

    Parameters
    ----------
    model : torch.nn.Module
        Trained or not, from any library or your own.
    example
        What the model takes: a tensor, a tuple of arguments or a dict of keywords. Four samples or
        more, as they come in training, make the shares those of your data.
    loss : callable, optional
        ``loss(output)`` or ``loss(model, example)``, one number. With it the report says what
        shuffling, averaging and shifting the rows cost. A change of the output alone misleads: it
        is larger in an untrained model.
    reference : optional
        An earlier checkpoint (a file, a state dict or a module): rows that never changed or only
        decayed are told.
    optimizer : torch.optim.Optimizer, optional
        With it the report says which tables it decays.

    Returns
    -------
    Report
        `tables`, `findings`, `to_dict()`, `html()`; it prints as text and shows itself in a
        notebook.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=0.1))
    >>> report = placecell.doctor(model, torch.randn(64, 16, 3))
    >>> report.tables[0].name, report.tables[0].trained
    ('1.weight', 'untrained')
    """
    return examine(model, example, loss, reference, optimizer)


class _Doctor(types.ModuleType):
    __call__ = staticmethod(doctor)


sys.modules[__name__].__class__ = _Doctor
