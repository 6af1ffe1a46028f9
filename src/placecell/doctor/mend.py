"""What people do to a position table: resize it, freeze it, keep it from decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from placecell.doctor.find import find_tables
from placecell.doctor.guard import unwrap
from placecell.errors import InputError, unknown
from placecell.seeds import torch_stream


def resize(table: Tensor, grid: tuple[int, int], *, before: int | None = None) -> Tensor:
    """Interpolate a table of patches to another grid.

    Parameters
    ----------
    table : Tensor of shape (n, d) or (1, n, d)
        Rows before the grid (class token, registers), then a square grid row by row.
    grid : (h, w)
        The new grid.
    before : int, optional
        How many rows come before the grid; they are kept as they are. None works it out: the
        fewest that leave a square.

    Returns
    -------
    Tensor
        (before + h·w, d), or with the same leading axis of one; bicubic, anti-aliased.

    Examples
    --------
    >>> import torch
    >>> resize(torch.randn(1, 1 + 14 * 14, 32), (24, 24)).shape
    torch.Size([1, 577, 32])
    """
    rows = _rows_of(table)
    if before is None:
        fits = [
            b for b in range(min(6, len(rows))) if int((len(rows) - b) ** 0.5) ** 2 == len(rows) - b
        ]
        if not fits:
            raise InputError(f"resize: {len(rows)} rows are no square grid after 0 to 5 others.")
        before = fits[0]
    side = int(max(len(rows) - before, 0) ** 0.5)
    if side < 1 or side * side != len(rows) - before:
        raise InputError(f"resize: {len(rows)} rows less {before} are no square grid.")
    if len(grid) != 2 or min(grid) < 1:
        raise InputError(f"resize: expected a grid (h, w), found {grid}.")
    head, cells = rows[:before], rows[before:]
    picture = cells.reshape(1, side, side, -1).permute(0, 3, 1, 2).float()
    if tuple(grid) != (side, side):
        picture = nn.functional.interpolate(
            picture, size=tuple(grid), mode="bicubic", align_corners=False, antialias=True
        )
    new = picture[0].flatten(1).T.to(table.dtype)
    result = torch.cat([head, new])
    return result[None] if table.ndim == 3 else result


def extend(
    table: Tensor, rows: int, *, how: str = "interpolate", sigma: float | None = None, seed: int = 0
) -> Tensor:
    """Give a table of a sequence more rows (or fewer).

    Parameters
    ----------
    table : Tensor of shape (n, d) or (1, n, d)
    rows : int
        Rows of the new table.
    how : str
        "interpolate" stretches the old table over the new length, so that every row changes its
        place; "append" keeps the old rows and draws new ones; "repeat" keeps the old rows and
        begins again after them.
    sigma : float, optional
        For "append": standard deviation of the new rows; None takes that of the old.
    seed : int
        For "append".

    Returns
    -------
    Tensor
        (rows, d), or with the same leading axis of one.

    Examples
    --------
    >>> import torch
    >>> extend(torch.randn(512, 32), 1024).shape
    torch.Size([1024, 32])
    """
    old = _rows_of(table)
    if rows < 1:
        raise InputError(f"rows: expected 1 or more, found {rows}.")
    if how == "interpolate":
        line = nn.functional.interpolate(
            old.T[None].float(), size=rows, mode="linear", align_corners=True
        )
        new = line[0].T.to(table.dtype)
    elif how == "append":
        spread = float(old.float().std()) if sigma is None else sigma
        generator = torch_stream(seed, "doctor/extend")
        drawn = torch.randn(max(rows - len(old), 0), old.shape[1], generator=generator) * spread
        new = torch.cat([old[:rows], drawn.to(old.device, old.dtype)])
    elif how == "repeat":
        new = old.repeat(-(-rows // len(old)), 1)[:rows]
    else:
        raise unknown("way to extend", how, ("interpolate", "append", "repeat"))
    return new[None] if table.ndim == 3 else new


def _rows_of(table: Tensor) -> Tensor:
    values = table.detach()
    if values.ndim == 3 and values.shape[0] == 1:
        values = values[0]
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"table: expected shape (n, d) or (1, n, d), found {tuple(table.shape)}.")
    return values


def freeze(model: nn.Module, example: Any, names: Iterable[str] | None = None) -> list[str]:
    """Take a model's position tables out of training (`requires_grad_(False)`).

    Parameters
    ----------
    model : torch.nn.Module
    example
        What the model takes.
    names : iterable of str, optional
        The tables; None takes every one that is trained.

    Returns
    -------
    list of str
        The names of the tables that were frozen.
    """
    tables = find_tables(model, example)
    wanted = [t.name for t in tables if t.trainable] if names is None else list(names)
    parameters = dict(unwrap(model).named_parameters())
    for name in wanted:
        if name not in tables.names or name not in parameters:
            raise unknown("table", name, [n for n in tables.names if n in parameters] or ["none"])
        parameters[name].requires_grad_(False)
    return wanted


def param_groups(
    model: nn.Module, example: Any, *, weight_decay: float = 0.01, **table_options: Any
) -> list[dict[str, Any]]:
    """Split a model's parameters for an optimizer: position tables are not decayed.

    Parameters
    ----------
    model : torch.nn.Module
    example
        What the model takes.
    weight_decay : float
        For matrices. Position tables, biases, norms and other vectors have none.
    **table_options
        More options of the tables' group, such as ``lr``.

    Returns
    -------
    list of dict
        Groups named "weights", "vectors" and "positions"; give them to any torch optimizer.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=0.1))
    >>> groups = placecell.param_groups(model, torch.randn(4, 16, 3), weight_decay=0.1)
    >>> [(g["name"], len(g["params"]), g["weight_decay"]) for g in groups]
    [('weights', 1, 0.1), ('vectors', 1, 0.0), ('positions', 1, 0.0)]
    """
    names = set(find_tables(model, example).names)
    weights: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    positions: list[nn.Parameter] = []
    for name, parameter in unwrap(model).named_parameters():
        if not parameter.requires_grad:
            continue
        if name in names:
            positions.append(parameter)
        else:
            (weights if parameter.ndim >= 2 else vectors).append(parameter)
    return [
        {"name": "weights", "params": weights, "weight_decay": weight_decay},
        {"name": "vectors", "params": vectors, "weight_decay": 0.0},
        {"name": "positions", "params": positions, "weight_decay": 0.0, **table_options},
    ]
