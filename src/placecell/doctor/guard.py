"""Leave a model as it was: mode, buffers, attributes, random state, settings of torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

_KEEP = ("_parameters", "_buffers", "_modules")
TINY = 1e-6  # parameters below this are lost in rounding


def unwrap(model: nn.Module) -> nn.Module:
    """Return the module inside a compiled or data-parallel one."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(
            model, nn.DataParallel | nn.parallel.DistributedDataParallel
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


@contextlib.contextmanager
def left_alone(model: nn.Module) -> Iterator[None]:
    """Evaluate a model without gradients, and put back whatever that changes in it.

    Attention is written out (no fast path, no fused kernel), compiled parts run as plain Python.
    The random state is the same at the start of every such block and is put back.
    """
    modules = list(model.modules())
    modes = [module.training for module in modules]
    attributes = [dict(vars(module)) for module in modules]
    registered = [{key: dict(vars(module)[key]) for key in _KEEP} for module in modules]
    containers = [
        (value, value.copy(), "cache" in key)
        for module in modules
        for key, value in vars(module).items()
        if type(value) in (dict, list, set) and key not in _KEEP
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    with contextlib.ExitStack() as stack:
        devices = {t.device.index or 0 for t in model.parameters() if t.device.type == "cuda"}
        stack.enter_context(torch.random.fork_rng(devices=sorted(devices)))
        stack.enter_context(torch.no_grad())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if "torch._dynamo" in sys.modules:  # something may be compiled
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            for module in modules:
                module.training = False
            for value, _, is_cache in containers:
                if is_cache:  # what an earlier pass made of a table is made anew, and so seen
                    value.clear()
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for value, before_value, _ in containers:
                if value != before_value if type(value) is set else _differs(value, before_value):
                    value.clear()
                    (value.extend if type(value) is list else value.update)(before_value)
            for module, mode, before, held in zip(
                modules, modes, attributes, registered, strict=True
            ):
                _restore(vars(module), before)
                for key in _KEEP:
                    _restore(vars(module)[key], held[key])
                module.training = mode


def _differs(now: Any, before: Any) -> bool:
    """Whether a list or dict holds other objects than before."""
    if len(now) != len(before):
        return True
    if isinstance(now, list):
        return any(a is not b for a, b in zip(now, before, strict=True))
    return any(key not in now or now[key] is not value for key, value in before.items())


def _restore(now: dict[str, Any], before: dict[str, Any]) -> None:
    """Bind the names of a dict as they were bound before."""
    for key in [key for key in now if key not in before]:
        del now[key]
    for key, value in before.items():
        if now.get(key) is not value:
            now[key] = value


@contextlib.contextmanager
def put_back_on_error(modules: Iterable[Any], tensors: Iterable[Tensor]) -> Iterator[None]:
    """Put attributes and buffers of modules, and tensors, back if the block fails."""
    attributes = [(vars(module), dict(vars(module))) for module in modules]
    buffers = [buffer for held, _ in attributes for buffer in held["_buffers"].values()]
    stored = [tensor for tensor in [*tensors, *buffers] if tensor is not None]
    values = [(tensor, tensor.detach().clone()) for tensor in stored]
    try:
        yield
    except BaseException:
        for held, before in attributes:
            _restore(held, before)
        with torch.no_grad():
            for tensor, value in values:
                tensor.copy_(value)
        raise


@contextlib.contextmanager
def zeros_filled(model: nn.Module, generator: torch.Generator) -> Iterator[bool]:
    """Give parameters that are (nearly) all zero random numbers, so that what they touch is seen.

    Biases are left alone: they hide nothing. Yields whether there were any.
    """
    filled: list[tuple[Tensor, Tensor | None]] = []  # with what it was, if not zero
    try:
        for name, parameter in model.named_parameters():
            data = parameter.detach()
            vector_bias = name.endswith("bias") and data.ndim == 1
            if not data.numel() or not data.is_floating_point() or vector_bias:
                continue
            largest = float(data.abs().max())
            if largest < TINY:
                filled.append((data, data.clone() if largest else None))
                noise = torch.randn(data.shape, generator=generator) * 0.02
                data.copy_(noise if data.numel() > 1 else torch.full(data.shape, 0.1))
        yield bool(filled)
    finally:
        for data, before in filled:
            data.zero_() if before is None else data.copy_(before)
