"""What several commands do: set up torch, print JSON."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Any

from placecell.config.values import coerce

if TYPE_CHECKING:
    import torch


def setup_torch(args: argparse.Namespace) -> torch.device:
    """Set the number of threads and return the device.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    torch.device
    """
    args.threads = coerce(args.threads, int, "--threads", at_least=1, at_most=1024)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # for libraries imported from here on
        os.environ[name] = str(args.threads)

    import torch
    from threadpoolctl import threadpool_limits

    from placecell.train.device import pick_device
    from placecell.train.memory import keep_memory

    torch.set_num_threads(args.threads)
    threadpool_limits(args.threads)  # NumPy's and SciPy's, which analyses use
    keep_memory()
    return pick_device(args.device)


def print_json(content: Any) -> None:
    """Print one line of JSON. Numbers that JSON does not have become null.

    Parameters
    ----------
    content : Any
        Plain values.
    """
    from placecell.store.files import finite

    print(json.dumps(finite(content), ensure_ascii=False))
