"""The example a model is traced with: how it is called, and other examples made from it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from placecell.errors import InputError

# Inputs that say where or which, not what: they stay as they are when tokens are exchanged.
_NOT_VALUES = ("position", "coord", "graph", "index", "read")
_NOT_TOKENS = (*_NOT_VALUES, "mask", "type", "segment", "length", "bbox", "cache", "offset", "grid")


class Arguments(dict[str, Any]):
    """Arguments with the names that the model's signature gives them; passed in order."""


def call_model(model: nn.Module, example: Any) -> Any:
    """Call a model on an example: a mapping as keywords, a tuple as arguments, else one argument.

    Whatever the model raises becomes one sentence.
    """
    try:
        if isinstance(example, Arguments):
            return model(*example.values())
        if isinstance(example, Mapping):
            return model(**example)
        if isinstance(example, tuple | list) and not hasattr(example, "_fields"):
            return model(*example)
        return model(example)
    except InputError:
        raise
    except Exception as error:  # a model's code may raise anything
        words = " ".join(str(error).split())[:300]
        raise InputError(
            f"the model failed on the example ({type(error).__name__}: {words}); "
            f"expected an example that the model takes: a tensor, a tuple of arguments "
            f"or a dict of keywords."
        ) from error


def map_tensors(value: Any, change: Callable[[str, Tensor], Tensor], name: str = "") -> Any:
    """Return `value` with every tensor in it replaced by `change(its name, tensor)`."""
    if isinstance(value, Tensor):
        return change(name, value)
    inside = f"{name}." if name else ""
    if isinstance(value, Mapping):
        changed = {key: map_tensors(v, change, f"{inside}{key}") for key, v in value.items()}
        return Arguments(changed) if isinstance(value, Arguments) else changed
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = zip(value._fields, value, strict=True)
        return type(value)(*(map_tensors(v, change, inside + key) for key, v in parts))
    if isinstance(value, list | tuple):
        return type(value)(map_tensors(v, change, name) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        changed = {key: map_tensors(v, change, inside + key) for key, v in fields.items()}
        return dataclasses.replace(value, **changed)
    return value


def tensors_of(value: Any) -> list[tuple[str, Tensor]]:
    """Return every tensor in an example with its name, in order."""
    found: list[tuple[str, Tensor]] = []

    def note(name: str, tensor: Tensor) -> Tensor:
        found.append((name, tensor))
        return tensor

    map_tensors(value, note)
    return found


def with_names(model: nn.Module, example: Any) -> Any:
    """Return a tuple of arguments with the names that the model's signature has for them."""
    if isinstance(example, Mapping):
        return example
    values = example if isinstance(example, tuple | list) else (example,)
    try:
        bound = inspect.signature(model.forward).bind(*values)
    except (TypeError, ValueError):  # no signature, or one that does not fit: the call will say so
        return example
    kinds = {p.kind for p in bound.signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}:
        return example
    return Arguments(bound.arguments)


def check_devices(model: nn.Module, example: Any) -> None:
    """See that model and example are on one device, and that it is one that holds numbers."""
    own = {t.device for t in (*model.parameters(), *model.buffers())}
    if any(device.type == "meta" for device in own):
        raise InputError(
            "the model is on the meta device, where tensors have shapes and no numbers; "
            "build it on a real device first (model.to_empty(device='cpu'), then its weights)."
        )
    given = {tensor.device for _, tensor in tensors_of(example)}
    if own and given and not given <= own:
        places = [" and ".join(sorted(map(str, devices))) for devices in (own, given)]
        raise InputError(
            f"the model is on {places[0]} and the example on {places[1]}; "
            f"expected both on one device: move the example with .to({places[0]!r})."
        )


def names_count(example: Any) -> bool:
    """Whether names tell inputs that say what from those that say where: not if all say where."""
    return any(is_tokens(name, t) or is_content(name, t) for name, t in tensors_of(example))


def is_tokens(name: str, tensor: Tensor, by_name: bool = True) -> bool:
    """Whether an integer input holds tokens: not masks, positions or types."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool:
        return False
    if tensor.numel() < 2 or (by_name and any(part in name.lower() for part in _NOT_TOKENS)):
        return False
    if tensor.ndim > 0 and tensor.shape[-1] > 2:
        steps = tensor.diff(dim=-1)
        if bool((steps == 1).all()):  # 0, 1, 2, ...: positions
            return False
    return True


def is_content(name: str, tensor: Tensor, by_name: bool = True) -> bool:
    """Whether a floating input holds values that a model reads: not a mask."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return False
    if by_name and any(part in name.lower() for part in _NOT_VALUES):
        return False
    return "mask" not in name.lower() or len(tensor.unique()) > 2


def check_variation(example: Any) -> None:
    """Refuse an example in which nothing can be exchanged or varied."""
    inputs = tensors_of(example)
    if not inputs:
        raise InputError("example: expected at least one tensor, found none.")
    varied, by_name = False, names_count(example)
    for name, tensor in inputs:
        if is_tokens(name, tensor, by_name) or is_content(name, tensor, by_name):
            if bool(tensor.isnan().all()):
                raise InputError(f"example: expected numbers, found only NaN in {name or 'it'}.")
            varied |= bool((tensor != tensor.flatten()[0]).any())
    if not varied:
        kinds = ", ".join(f"{name or 'input'} {tuple(t.shape)}" for name, t in inputs)
        raise InputError(
            "example: expected numbers that vary (at least two different tokens, or values as "
            f"torch.randn gives them), found the same value everywhere in {kinds}."
        )


def exchanged(example: Any, generator: torch.Generator) -> Any:
    """Return the example with two tokens exchanged in every row, and noise on floating inputs."""
    by_name = names_count(example)

    def change(name: str, tensor: Tensor) -> Tensor:
        if is_tokens(name, tensor, by_name):
            return _swap(tensor)
        if is_content(name, tensor, by_name):
            return _noisy(tensor, generator, 0.5)
        return tensor

    return map_tensors(example, change)


def variant(example: Any, generator: torch.Generator) -> Any:
    """Return another example of the same kind: tokens reordered, floating inputs drawn anew.

    Floating inputs get the example's own mean and standard deviation.
    """
    by_name = names_count(example)

    def change(name: str, tensor: Tensor) -> Tensor:
        if is_tokens(name, tensor, by_name):
            return _shuffle(tensor, generator)
        if is_content(name, tensor, by_name):
            return _noisy(tensor, generator, None)
        return tensor

    return map_tensors(example, change)


def batch_size(example: Any) -> int:
    """Return the size of the first axis of the first input with two axes or more."""
    sizes = [tensor.shape[0] for _, tensor in tensors_of(example) if tensor.ndim >= 2]
    return sizes[0] if sizes else 1


def _free(row: Tensor) -> Tensor:
    """Return where a row of tokens (n,) may be changed: not in the padding at its ends."""
    free = torch.ones(len(row), dtype=torch.bool)
    for end, step in ((0, 1), (len(row) - 1, -1)):
        run = 0
        while run < len(row) and row[end + step * run] == row[end]:
            run += 1
        if 2 <= run < len(row):  # a run of one token at an end is padding: none of it is touched
            free &= row.cpu() != row[end].cpu()
    inner = free.clone()
    inner[0] = inner[-1] = False  # a token that begins or ends a sentence may be special
    if len(row[inner.to(row.device)].unique()) > 1:
        return inner
    return free if len(row[free.to(row.device)].unique()) > 1 else torch.ones_like(free)


def _swap(tokens: Tensor) -> Tensor:
    changed = tokens.clone()
    rows = changed.reshape(-1, changed.shape[-1]) if changed.ndim > 1 else changed[None]
    if rows.shape[-1] == 1:  # one token a row: exchange whole rows
        rows = rows.T.contiguous()
        return _swap(rows[0]).reshape(changed.shape) if rows.shape[-1] > 1 else changed
    for row in rows:
        places = _free(row).nonzero()[:, 0]
        first = int(places[0])
        others = [int(p) for p in places if row[p] != row[first]]
        if others:
            second = others[len(others) // 2]
            row[first], row[second] = row[second].clone(), row[first].clone()
    return rows.reshape(changed.shape)


def _shuffle(tokens: Tensor, generator: torch.Generator) -> Tensor:
    changed = tokens.clone()
    rows = changed.reshape(-1, changed.shape[-1]) if changed.ndim > 1 else changed[None]
    for row in rows:
        places = _free(row).nonzero()[:, 0]
        order = places[torch.randperm(len(places), generator=generator)]
        row[places.to(row.device)] = row[order.to(row.device)].clone()
    return rows.reshape(changed.shape)


def _noisy(values: Tensor, generator: torch.Generator, amount: float | None) -> Tensor:
    numbers = values.detach().to("cpu", torch.float32 if not values.is_complex() else values.dtype)
    noise = torch.randn(numbers.shape, generator=generator)
    finite = torch.isfinite(numbers)
    inside = numbers[finite]
    spread = inside.std() if inside.numel() > 1 else inside.abs().mean()
    spread = spread if bool(spread.abs() > 0) else torch.tensor(1.0)
    if amount is None:
        changed = inside.mean() + spread * noise
    else:
        changed = numbers + amount * spread * noise
    return torch.where(finite, changed, numbers).to(values.device, values.dtype)
