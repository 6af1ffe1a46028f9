"""Every write to disk: staged beside its destination, flushed, renamed. A kill leaves the old file or the new."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from placecell.errors import InputError


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` at once or not at all."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with staged.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            staged.unlink()
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror}).") from error
        raise
    _sync_folder(path.parent)


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def finite(value: Any) -> Any:
    """Plain values with the numbers that JSON cannot hold (NaN, infinity) as null."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, str] | None = None) -> None:
    """Tensors as a safetensors file, with a note of strings in its header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(plain, dict(note or {})))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the note of a safetensors file. Nothing in it is ever executed: a pickle is refused."""
    try:
        with path.open("rb") as start:
            first = start.read(2)
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except safetensors.SafetensorError as error:
        # only now: a header of 640 bytes begins as a pickle does, one of 19280 as a zip
        if first == b"PK" or (first[:1] == b"\x80" and first[1:] in b"\x02\x03\x04\x05"):
            raise InputError(f"{path}: a pickle, which could run code; expected a safetensors file.") from None
        raise InputError(f"{path}: not a whole safetensors file ({error}).") from None


def make_folder(path: Path) -> None:
    """Make `path` and see that it can be written to, before any work is done for it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".write-test.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{path}: the output folder cannot be written ({error.strerror}).") from None


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process. The lock is the kernel's: a killed process leaves none behind."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder}: another process is working on this run; wait for it or stop it.") from None
        yield


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut; where folders cannot be synced, the rename is as good as it gets."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
