"""Where a run is computed, and what its result depends on besides its configuration."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from placecell.errors import InputError


def pick_device(device: str) -> torch.device:
    """Return the device that was asked for.

    Parameters
    ----------
    device : str
        `cpu`, `cuda` or `mps`, or `auto`: the fastest that this machine has.

    Returns
    -------
    torch.device
        The device. One that this machine does not have is an `InputError`.
    """
    usable = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if device == "auto":
        device = "cuda" if usable["cuda"] else "mps" if usable["mps"] else "cpu"
    if not usable.get(device, False):
        raise InputError(
            f"device {device!r} is not available here; use auto or one of: "
            f"{', '.join(d for d in usable if usable[d])}."
        )
    return torch.device(device)


def compile_options(device: torch.device) -> dict[str, Any] | None:
    """Return the options for torch.compile.

    On a CPU the calls between kernels become C++ as well: in a small step they take a few per cent
    of the time.

    Parameters
    ----------
    device : torch.device
        Where the compiled code will run.

    Returns
    -------
    dict or None
        The options.
    """
    return {"cpp_wrapper": True} if device.type == "cpu" else None


def not_compilable(error: Exception) -> bool:
    """Return whether it was torch's compiler that failed.

    Parameters
    ----------
    error : Exception
        What was raised.

    Returns
    -------
    bool
        True if it came from the compiler.
    """
    from torch._dynamo.exc import TorchDynamoException  # here, since to import it takes a second

    return isinstance(error, TorchDynamoException)


def environment(device: torch.device) -> dict[str, Any]:
    """Return what a result depends on besides its configuration.

    Parameters
    ----------
    device : torch.device
        Where the run is computed.

    Returns
    -------
    dict
        Versions of packages, commit, processor, device, threads.
    """
    packages = ("placecell", "torch", "numpy", "scipy", "scikit-learn", "safetensors")
    return {
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "git_commit": _git_commit(),
        "platform": platform.platform(),
        "processor": _processor(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
    }


def _git_commit() -> str | None:
    """The commit of the source tree that this package runs from, with `-dirty` if it has been
    changed since; None when it is installed from a wheel, even below some other project's tree."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
