"""What people do to a position table: set its scale, resize it, freeze it, keep it from decay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from placecell.doctor.compare import row_axis
from placecell.doctor.find import Table, Tables, find_tables, stored_tensors
from placecell.doctor.guard import unwrap
from placecell.doctor.measure import as_built
from placecell.encodings.learnable import AUTO_SHARE
from placecell.errors import InputError, unknown
from placecell.seeds import torch_stream


@dataclass(frozen=True)
class Change:
    """What `init_` did to one table.

    Attributes
    ----------
    name : str
    sigma : float
        Standard deviation of what is joined with the tokens now.
    before : float
        The same before.
    rho : float
        The share of positions now.
    """

    name: str
    sigma: float
    before: float
    rho: float

    def __str__(self) -> str:
        return f"{self.name}: σ {self.before:.4g} → {self.sigma:.4g}, share ρ {self.rho:.3g}"


def init_(
    model: nn.Module,
    example: Any,
    *,
    sigma: float | None = None,
    rho: float | None = None,
    names: Iterable[str] | None = None,
    seed: int = 0,
) -> list[Change]:
    """Draw a model's absolute position tables anew, in place, at a given scale.

    Each table becomes σ·z with z from a stream of its own: the same seed with another σ has the
    same z, and no other random number of the program moves. σ is the standard deviation of what is
    joined with the tokens: where the model multiplies the table on the way, that is made up for.

    Parameters
    ----------
    model : torch.nn.Module
    example
        What the model takes: a tensor, a tuple of arguments or a dict of keywords.
    sigma : float, optional
        The standard deviation.
    rho : float, optional
        Instead of σ: the share of positions to reach, between 0 and 1 (see `share_of_position`).
        Without either it is 0.4, the rule of docs/which_sigma.md.
    names : iterable of str, optional
        The tables to set; None takes every absolute table. A fixed or relative one is refused.
    seed : int

    Returns
    -------
    list of Change
        What was done; print it.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=1.0))
    >>> (change,) = placecell.init_(model, torch.randn(64, 16, 3), sigma=0.02)
    >>> round(change.sigma, 3)
    0.02
    """
    if sigma is not None and rho is not None:
        raise InputError("init_: expected sigma or rho, found both.")
    if sigma is None and rho is None:
        rho = AUTO_SHARE
    if sigma is not None and not 0 <= sigma < float("inf"):
        raise InputError(f"sigma: expected a number from 0 on, found {sigma}.")
    if rho is not None and not 0 < rho < 1:
        raise InputError(f"rho: expected a number between 0 and 1, found {rho}.")
    tables = find_tables(model, example)
    chosen = _chosen(tables, names)
    tensors = stored_tensors(unwrap(model))
    before = as_built(model, example, tables)
    for table in chosen:
        z = torch.randn(table.shape, generator=torch_stream(seed, f"doctor/init/{table.name}"))
        _write(tensors[table.name], z * (1.0 if sigma is None else sigma))
    if sigma != 0:
        drawn = as_built(model, example, tables)
        for table in chosen:
            now = drawn[table.name]
            if now.sigma > 0:
                wanted = sigma if sigma is not None else _sigma_for(float(rho or 0), now)
                _write(tensors[table.name], tensors[table.name] * (wanted / now.sigma))
    after = as_built(model, example, tables)
    return [
        Change(t.name, after[t.name].sigma, before[t.name].sigma, after[t.name].rho) for t in chosen
    ]


def _sigma_for(rho: float, now: Any) -> float:
    """Return the σ that has a share, from a measurement at another σ: both are variances."""
    if not 0 < now.rho < 1:
        raise InputError("rho: the example does not vary where the table is added; give sigma.")
    content = now.sigma**2 * (1 - now.rho) / now.rho
    return float((content * rho / (1 - rho)) ** 0.5)


def _chosen(tables: Tables, names: Iterable[str] | None) -> list[Table]:
    if names is None:
        absolute = [t for t in tables if t.kind == "absolute"]
        chosen = [t for t in absolute if t.trainable]
        if absolute and not chosen:
            listed = ", ".join(t.name for t in absolute)
            raise InputError(f"init_: {listed} is fixed, not trained; expected a trainable table.")
        if not chosen:
            found = str(tables).splitlines()[0]
            raise InputError(f"init_: expected an absolute table, found none ({found}).")
        return chosen
    chosen = []
    for name in names:
        if name not in tables.names:
            raise unknown("table", name, tables.names or ["none"])
        table = tables[name]
        if not table.trainable:
            raise InputError(f"init_: {name} is fixed, not trained; its numbers are left alone.")
        if table.kind in ("relative", "unknown") or table.how == "product":
            raise InputError(
                f"init_: {name} is {table.kind}; only tables that are joined with tokens have a σ "
                "beside them."
            )
        chosen.append(table)
    return chosen


def _write(tensor: Tensor, values: Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values.to(tensor.device, tensor.dtype))


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


__all__ = ["Change", "extend", "freeze", "init_", "param_groups", "resize", "row_axis"]
