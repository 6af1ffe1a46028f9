"""A run in mid-training as one safetensors file: weights, optimizer state, and where the run stands."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from placecell.errors import InputError
from placecell.files import read_tensors, write_tensors
from placecell.train.loop import Row, State


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, state: State) -> None:
    """Write everything that the rest of the training depends on, at once."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, entries in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": v for name, v in entries.items() if isinstance(v, Tensor)}
    tensors |= {f"snapshot.{name}": tensor for name, tensor in state.snapshots.items()}
    note = asdict(replace(state, snapshots={}))
    write_tensors(path, tensors, {"state": json.dumps(note), "tensors": str(len(tensors))})


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Put a checkpoint back into `model` and `optimizer`; the run goes on as if it had never stopped."""
    tensors, note = read_tensors(path)
    try:
        values, count = json.loads(note["state"]), int(note["tensors"])
        snapshots = {name[9:]: tensor for name, tensor in tensors.items() if name.startswith("snapshot.")}
        state = State(**(values | {"rows": [Row(*row) for row in values["rows"]], "snapshots": snapshots}))
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{path}: not a placecell checkpoint (its header does not say where the run stands)."
        ) from None
    load_weights(model, {n[6:]: t for n, t in tensors.items() if n.startswith("model.")}, path)
    entries: dict[int, dict[str, Tensor]] = {}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = (*name.split("."), "", "")[:3]
            of = parameters[int(index)] if index.isdecimal() and int(index) < len(parameters) else None
            if of is None or not key or (tensor.ndim > 0 and tensor.shape != of.shape):  # fused kernels do not look
                raise InputError(f"{path}: of another optimizer: {name} {tuple(tensor.shape)} does not belong.")
            entries.setdefault(int(index), {})[key] = tensor
    if len(tensors) != count:
        raise InputError(f"{path}: not a whole checkpoint: {count} tensors were saved, found {len(tensors)}.")
    optimizer.load_state_dict(optimizer.state_dict() | {"state": entries})
    return state


def load_weights(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Fill `model` with `tensors`, refusing a set that is not exactly the model's, before anything is changed."""
    own = model.state_dict()
    for name in own.keys() | tensors.keys():
        expected = tuple(own[name].shape) if name in own else "nothing"
        found = tuple(tensors[name].shape) if name in tensors else "nothing"
        if expected != found:
            raise InputError(f"{path}: of another model: {name} should be {expected}, found {found}.")
    model.load_state_dict(tensors)
