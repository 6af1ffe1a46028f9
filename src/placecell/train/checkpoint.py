"""A run in mid-training as one safetensors file: weights, optimizer state, and its progress."""

from __future__ import annotations

import json
import typing
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from placecell.config.values import check_fields, check_value
from placecell.errors import InputError
from placecell.store.files import read_tensors, write_tensors
from placecell.store.runs import Row
from placecell.train.loop import State


def save(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: State, run: str
) -> None:
    """Write everything that the rest of the training depends on, at once.

    Parameters
    ----------
    path : Path
        The file.
    model : nn.Module
        The model.
    optimizer : torch.optim.Optimizer
        Its optimizer, from `make_optimizer`.
    state : State
        The progress of the run.
    run : str
        Name of the run.
    """
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, entries in optimizer.state_dict()["state"].items():
        tensors |= {
            f"optimizer.{index}.{name}": v for name, v in entries.items() if isinstance(v, Tensor)
        }
    tensors |= {f"snapshot.{name}": tensor for name, tensor in state.snapshots.items()}
    note = asdict(replace(state, snapshots={}))
    write_tensors(
        path, tensors, {"run": run, "state": json.dumps(note), "tensors": str(len(tensors))}
    )


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, run: str) -> State:
    """Load a checkpoint; the run goes on as if it had never stopped.

    Parameters
    ----------
    path : Path
        The file.
    model : nn.Module
        Its weights are set in place.
    optimizer : torch.optim.Optimizer
        Its state is set in place.
    run : str
        Name of the run; a checkpoint of another run is refused.

    Returns
    -------
    State
        The progress of the run.
    """
    tensors, note = read_tensors(path)
    if note.get("run", run) != run:  # older versions did not write it
        raise InputError(f"{path}: of another run: {note['run']}, not {run}.")
    try:
        values, count = json.loads(note["state"]), int(note["tensors"])
        snapshots = {
            name[9:]: tensor for name, tensor in tensors.items() if name.startswith("snapshot.")
        }
        state = State(
            **(values | {"rows": [_row(row) for row in values["rows"]], "snapshots": snapshots})
        )
        check_fields(state)
        if min(state.step, state.stale, state.seconds) < 0:
            raise ValueError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"{path}: not a placecell checkpoint (its header does not say where the run stands)."
        ) from None
    load_weights(model, {n[6:]: t for n, t in tensors.items() if n.startswith("model.")}, path)
    entries: dict[int, dict[str, Tensor]] = {}
    parts = [
        (p, _kept(optimizer, group)) for group in optimizer.param_groups for p in group["params"]
    ]
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = (*name.split("."), "", "")[:3]
            of, kept = (
                parts[int(index)] if index.isdecimal() and int(index) < len(parts) else (tensor, ())
            )
            like = torch.zeros(()) if key == "step" else of  # fused kernels do not check
            if key not in kept or _kind(tensor) != _kind(like):
                raise InputError(
                    f"{path}: of another optimizer: {name} {_kind(tensor)} does not belong."
                )
            entries.setdefault(int(index), {})[key] = tensor
    if len(tensors) != count:
        raise InputError(
            f"{path}: not a whole checkpoint: {count} tensors were saved, found {len(tensors)}."
        )
    lacking = [
        kept for index, (_, kept) in enumerate(parts) if len(entries.get(index, kept)) < len(kept)
    ]
    if lacking or (state.step and not entries and any(kept for _, kept in parts)):
        raise InputError(
            f"{path}: of another optimizer: what this one remembers of its steps is missing."
        )
    optimizer.load_state_dict(optimizer.state_dict() | {"state": entries})
    return state


def _kept(optimizer: torch.optim.Optimizer, group: dict[str, typing.Any]) -> tuple[str, ...]:
    """The tensors that an optimizer of `make_optimizer` keeps for each parameter of a group."""
    if isinstance(optimizer, torch.optim.SGD):
        return ("momentum_buffer",) if group["momentum"] else ()
    return ("step", "exp_avg") if group.get("orthogonal") else ("step", "exp_avg", "exp_avg_sq")


def _row(values: list[typing.Any]) -> Row:
    kinds = typing.get_type_hints(Row)
    return Row(
        *(
            check_value(value, kind, "row")
            for value, kind in zip(values, kinds.values(), strict=True)
        )
    )


def _kind(tensor: Tensor) -> str:
    """Shape and type of a tensor; one of another type would be converted without a word."""
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def load_weights(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Set the weights of a model; tensors that are not exactly the model's are refused.

    Parameters
    ----------
    model : nn.Module
        The model; if the tensors are refused, it is unchanged.
    tensors : dict
        Name -> tensor.
    path : Path
        Where the tensors come from, for the error message.
    """
    own = model.state_dict()
    for name in own.keys() | tensors.keys():
        expected, actual = (
            _kind(all_of[name]) if name in all_of else "nothing" for all_of in (own, tensors)
        )
        if expected != actual:
            raise InputError(
                f"{path}: of another model: {name} should be {expected}, found {actual}."
            )
    model.load_state_dict(tensors)
