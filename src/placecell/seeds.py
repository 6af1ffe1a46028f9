"""Streams of random numbers. Each has a generator of its own, so that changing one leaves the
others as they were."""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def _number(seed: int, stream: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()[:8], "little") >> 1


def torch_stream(seed: int, stream: str) -> torch.Generator:
    """The generator of `stream` (say "pe" or "order/3") under `seed`; always the same, on every
    machine."""
    return torch.Generator().manual_seed(_number(seed, stream))


def numpy_stream(seed: int, stream: str) -> np.random.Generator:
    """The same for NumPy."""
    return np.random.default_rng(_number(seed, stream))
