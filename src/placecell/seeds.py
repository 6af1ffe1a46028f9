"""Streams of random numbers, each with a generator of its own.

Changing what one stream draws leaves the others as they were.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def _number(seed: int, stream: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{stream}".encode()).digest()[:8], "little") >> 1


def torch_stream(seed: int, stream: str) -> torch.Generator:
    """Return the generator of a stream of random numbers; the same on every machine.

    Parameters
    ----------
    seed : int
        Seed of the run.
    stream : str
        Name of the stream, such as "pe" or "order/3".

    Returns
    -------
    torch.Generator
        A new generator at the start of the stream.
    """
    return torch.Generator().manual_seed(_number(seed, stream))


def numpy_stream(seed: int, stream: str) -> np.random.Generator:
    """Return the generator of a stream of random numbers for NumPy.

    Parameters
    ----------
    seed : int
        Seed of the run.
    stream : str
        Name of the stream.

    Returns
    -------
    numpy.random.Generator
        A new generator at the start of the stream.
    """
    return np.random.default_rng(_number(seed, stream))
