"""A setting of the system's allocator that training steps gain by."""

from __future__ import annotations

import ctypes
import platform

KEEP = 1 << 30  # bytes: more than the activations of a step


def keep_memory() -> bool:
    """Let glibc keep freed memory for the next training step.

    It would otherwise return the activations to the system after each step and fault them in again
    (benchmarks/train_step.py shows how much that costs).

    Returns
    -------
    bool
        Whether the setting was made.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
    libc = ctypes.CDLL(None)
    return bool(libc.mallopt(trim_threshold, KEEP)) and bool(libc.mallopt(mmap_threshold, KEEP))
