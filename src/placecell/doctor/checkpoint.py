"""Read tensors of a checkpoint without running anything that is in it."""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from placecell.errors import InputError
from placecell.store import files

_INSIDE = ("state_dict", "model", "model_state_dict", "module", "net", "weights")


def read_checkpoint(path: Path | str) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or a torch checkpoint by name.

    A checkpoint is read with ``torch.load(weights_only=True)``: a pickle that would run code is
    refused, and nothing of it is executed.

    Parameters
    ----------
    path : path or str
        `.safetensors`, or what `torch.save` wrote of a state dict (also inside a dict under
        "state_dict" or "model").

    Returns
    -------
    dict of str to Tensor
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    if path.suffix == ".safetensors":
        return files.read_tensors(path)[0]
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file fails in many ways
        if isinstance(error, pickle.UnpicklingError) or _is_pickle(path):
            refused = _what_was_refused(str(error))
            raise InputError(
                f"{path}: refused, because it holds more than tensors{refused}, which could run "
                "code; expected a state dict (torch.save(model.state_dict(), …)) or a safetensors "
                "file."
            ) from None
        words = " ".join(str(error).split())[:160]
        raise InputError(f"{path}: not a checkpoint that torch can read ({words}).") from None
    tensors = _tensors_in(content)
    if not tensors:
        raise InputError(f"{path}: expected a dict of tensors, found {type(content).__name__}.")
    return tensors


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"\x80"


def _what_was_refused(message: str) -> str:
    marks = ("Unsupported global: GLOBAL ", "Unsupported class ", "Unsupported operand ")
    for mark in marks:
        if mark in message:
            return f" ({message.split(mark)[1].split()[0]})"
    return ""


def _tensors_in(content: Any) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        return {"tensor": content} if isinstance(content, Tensor) else {}
    tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    if tensors:
        return tensors
    for key in _INSIDE:
        if isinstance(content.get(key), Mapping):
            return _tensors_in(content[key])
    return {}


def pick_tensor(tensors: Mapping[str, Tensor], name: str, where: str) -> Tensor:
    """Return a tensor by its name; a name that is not there is answered with the nearest."""
    if name in tensors:
        return tensors[name]
    ends = [key for key in tensors if key.endswith(f".{name}")]
    if len(ends) == 1:
        return tensors[ends[0]]
    near = ends or difflib.get_close_matches(name, tensors, n=3, cutoff=0.3)
    near += [key for key in tensors if "pos" in key and key not in near]
    listed = ", ".join(near[:3] or sorted(tensors)[:3])
    raise InputError(f"{where}: no tensor is called {name!r}; nearest: {listed}.")


def load_checkpoint(model: nn.Module, path: Path | str) -> None:
    """Load a checkpoint into a model; one that does not fit is one sentence."""
    tensors = read_checkpoint(path)
    own = model.state_dict()
    for prefix in ("module.", "_orig_mod.", "model."):
        if not set(tensors) & set(own) and any(key.startswith(prefix) for key in tensors):
            tensors = {key.removeprefix(prefix): value for key, value in tensors.items()}
    faults = [f"it lacks {key}" for key in own if key not in tensors]
    faults += [f"the model has no {key}" for key in tensors if key not in own]
    faults += [
        f"{key} is {_shape(tensors[key])} instead of {_shape(own[key])}"
        for key in own
        if key in tensors and tensors[key].shape != own[key].shape
    ]
    if faults:
        more = f" and {len(faults) - 2} more" if len(faults) > 2 else ""
        raise InputError(f"{path}: does not fit the model: {'; '.join(faults[:2])}{more}.")
    model.load_state_dict(tensors)


def _shape(tensor: Tensor) -> str:
    return " × ".join(map(str, tensor.shape)) or "a number"
