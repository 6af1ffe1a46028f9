"""The examination: find the tables of a model, measure each, say what the evidence says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from placecell.analysis.structure import first_untrained_row, structure
from placecell.doctor.checkpoint import pick_tensor, read_checkpoint
from placecell.doctor.compare import against, costs, reference_of, reference_tensors
from placecell.doctor.examples import batch_size, tensors_of, with_names
from placecell.doctor.find import Table, find_tables, stored_tensors
from placecell.doctor.guard import unwrap
from placecell.doctor.measure import ENOUGH, AsBuilt, as_built
from placecell.doctor.report import Report, TableReport, beside_the_wild, findings_of
from placecell.doctor.rows import Rows, as_rows
from placecell.errors import InputError
from placecell.seeds import numpy_stream

MOST_NUMBERS = 2**26  # of a table that is looked into row by row


def examine(
    model: nn.Module,
    example: Any,
    loss: Callable[..., Any] | None = None,
    reference: Any = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Report:
    """Find a model's position tables and examine them; see `placecell.doctor`."""
    tables = find_tables(model, example)
    inner = unwrap(model)
    named = with_names(inner, example)
    tensors = stored_tensors(inner)
    built = as_built(inner, example, tables)
    beside = None if reference is None else reference_tensors(reference)
    image = any(t.ndim >= 4 and t.is_floating_point() for _, t in tensors_of(named))
    reports = []
    for table in tables:
        tensor = tensors[table.name]
        rows = _rows(table, tensor, image)
        cost = None
        if loss is not None and table.exercised:
            cost = costs(model, example, table, tensor, loss)
        compared = None
        if beside is not None:
            other = _rows(table, reference_of(table.name, beside), image)
            compared = against(torch.from_numpy(rows.values), torch.from_numpy(other.values))
        decay = None if optimizer is None else decay_of(optimizer, tensor)
        one = examine_rows(table, rows, built.get(table.name), compared, cost, decay)
        reports.append(one)
    findings = tuple(f for report in reports for f in findings_of(report))
    notes = []
    if built and batch_size(named) < ENOUGH:
        notes.append(
            f"the example has fewer than {ENOUGH} samples: shares were measured with more, made "
            "by reordering its tokens or drawing its values anew."
        )
    if not tables.trace.aligned:
        notes.append("the model went another way when tokens were exchanged: some may be missed.")
    return Report(
        tuple(reports),
        findings,
        tables.others,
        tuple(notes),
        beside_the_wild(findings),
        f"{type(inner).__name__}: {_count(len(reports))}",
    )


def examine_tensor(
    path: Path | str,
    name: str,
    *,
    grid: tuple[int, int] | None = None,
    reference: Path | str | None = None,
) -> Report:
    """Examine one tensor of a checkpoint; no model is needed.

    Parameters
    ----------
    path : path or str
        A safetensors file or a torch checkpoint of tensors.
    name : str
        The tensor's name, or the end of it.
    grid : (h, w), optional
        Its rows are the cells of a grid, perhaps after some others (a class token).
    reference : path or str, optional
        Another checkpoint, in which the tensor has the same name.

    Returns
    -------
    Report
    """
    tensor = pick_tensor(read_checkpoint(path), name, str(path))
    table = Table(name, "unknown", "", tuple(tensor.shape), trainable=True)
    rows = as_rows(tensor)
    if grid is not None:
        before = len(rows.values) - grid[0] * grid[1]
        if before < 0 or min(grid) < 2:
            text = f"{grid[0]} × {grid[1]}"
            raise InputError(f"grid: expected at most {len(rows.values)} cells, found {text}.")
        rows = Rows(rows.values, before, grid)
    compared = None
    if reference is not None:
        other = pick_tensor(read_checkpoint(reference), name, str(reference))
        compared = against(torch.from_numpy(rows.values), torch.from_numpy(as_rows(other).values))
    one = examine_rows(table, rows, None, compared, None, None)
    findings = tuple(findings_of(one))
    return Report((one,), findings, {}, (), (), f"{Path(path).name}: {name}")


def examine_rows(
    table: Table, rows: Rows, built: AsBuilt | None, compared: Any, cost: Any, decay: float | None
) -> TableReport:
    """Measure the rows of one table and put everything into its report."""
    values = rows.values
    zero = not values.any()
    found, cut = None, None
    enough = len(values) - rows.before >= 3 and values.size <= MOST_NUMBERS and not zero
    if enough:
        cut = None if rows.grid else first_untrained_row(values)
        trained = values[rows.before :] if rows.grid else values[: cut or len(values)]
        if len(trained) >= 3 and trained.shape[1] > 1:
            rng = numpy_stream(0, f"doctor/structure/{table.name}")
            found = structure(trained, rng=rng, grid=rows.grid)
    return TableReport(
        table,
        zero,
        float(values.std()),
        built,
        found,
        cut,
        compared,
        cost,
        decay,
        values,
    )


def _rows(table: Table, tensor: Tensor, image: bool) -> Rows:
    return as_rows(
        tensor,
        channels_first=table.layout == "channels first",
        relative=table.kind == "relative",
        image=image and table.kind != "relative",
    )


def decay_of(optimizer: torch.optim.Optimizer, tensor: Tensor) -> float | None:
    """Return an optimizer's weight decay on a tensor; None if it does not train it."""
    for group in optimizer.param_groups:
        if any(parameter is tensor for parameter in group["params"]):
            return float(group.get("weight_decay", 0.0))
    return None


def _count(tables: int) -> str:
    return {0: "no position table", 1: "1 position table"}.get(tables, f"{tables} position tables")
