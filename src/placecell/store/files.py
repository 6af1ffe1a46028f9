"""Every write to disk: staged beside its destination, flushed, renamed.

A kill leaves the old file or the new one, never a part of it.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors

from placecell.errors import InputError
from placecell.store import disk

if TYPE_CHECKING:  # torch is imported where tensors are, so that `placecell status` is quick
    from torch import Tensor

STAGED = ".*.tmp"  # what a kill leaves of a write


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file at once or not at all.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        All of its new content.
    """
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        disk.write(staged, content)
        disk.sync(staged)
        disk.rename(staged, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            disk.remove(staged)
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = "; make room and repeat the command" if full else ""
            raise InputError(f"{path}: cannot be written ({error.strerror}){advice}.") from error
        raise
    disk.sync_folder(path.parent)


def write_text(path: Path, content: str) -> None:
    """Replace a file by text in UTF-8, at once or not at all.

    Parameters
    ----------
    path : Path
        The file.
    content : str
        All of its new content.
    """
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Replace a file by a value as JSON with sorted keys, at once or not at all.

    Parameters
    ----------
    path : Path
        The file.
    content
        Plain values; see `finite` for NaN and infinity.
    """
    write_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def csv_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns as CSV.

    Parameters
    ----------
    columns : mapping
        Name -> values. None is an empty cell, and numbers read back unchanged.

    Returns
    -------
    bytes
        The content of the file, in UTF-8.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def finite(value: Any) -> Any:
    """Return plain values with NaN and infinity, which JSON does not have, as None.

    Parameters
    ----------
    value
        A number, text, None, or dicts and lists of these.

    Returns
    -------
    Any
        The same, as dicts and lists.
    """
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Any
        Its value. A file that is missing or no JSON is an `InputError`.
    """
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:  # the second if it is nested too deep
        raise InputError(f"{path}: not valid JSON ({error}).") from None


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], note: Mapping[str, str] | None = None
) -> None:
    """Replace a file by tensors (safetensors), at once or not at all.

    Parameters
    ----------
    path : Path
        The file.
    tensors : mapping
        Name -> tensor.
    note : mapping, optional
        Text -> text, for the header of the file.
    """
    import safetensors.torch

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(plain, dict(note or {})))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the note of a safetensors file.

    Nothing in the file is ever executed: a pickle is refused.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        Name -> tensor.
    dict
        The note that `write_tensors` was given.
    """
    with _open_tensors(path, "pt") as file:
        names = list(file.keys())
        return {name: file.get_tensor(name) for name in names}, file.metadata() or {}


def is_inside(path: Path, folder: Path) -> bool:
    """Say whether a path stays inside a folder when its links are followed.

    Parameters
    ----------
    path : Path
        The path; it need not exist.
    folder : Path
        The folder.

    Returns
    -------
    bool
        False also for links that lead in a circle.
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def check_tensors(path: Path) -> None:
    """Raise `InputError` if a safetensors file is cut off or no such file; torch is not imported.

    Only the header is read. It says how long the file must be.

    Parameters
    ----------
    path : Path
        The file.
    """
    with _open_tensors(path, "np"):
        pass


@contextlib.contextmanager
def _open_tensors(path: Path, framework: str) -> Iterator[Any]:
    try:
        with path.open("rb") as start:
            first = start.read(2)
        with safetensors.safe_open(path, framework=framework) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except safetensors.SafetensorError as error:
        # only now: a header of 640 bytes begins as a pickle does, one of 19280 as a zip
        if first == b"PK" or (first[:1] == b"\x80" and first[1:] in b"\x02\x03\x04\x05"):
            raise InputError(
                f"{path}: a pickle, which could run code; expected a safetensors file."
            ) from None
        raise InputError(f"{path}: not a whole safetensors file ({error}).") from None


def remove(path: Path) -> None:
    """Remove a file, if it is there, so that it stays away after a power cut.

    Parameters
    ----------
    path : Path
        The file.
    """
    if path.exists():
        disk.remove(path)
        disk.sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and check that it can be written to.

    Parameters
    ----------
    path : Path
        The folder.
    """
    probe = path / f".write-test.{os.getpid()}.tmp"
    try:
        for missing in reversed(
            [folder for folder in (path, *path.parents) if not folder.exists()]
        ):
            disk.make_folder(missing)
            disk.sync_folder(missing.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        disk.write(probe, b"")
        disk.remove(probe)
    except OSError as error:
        raise InputError(
            f"{path}: the output folder cannot be written ({error.strerror}); choose another.",
            "The option is --out FOLDER.",
        ) from None


def remove_left_over(folder: Path) -> None:
    """Remove what a kill left half-written in a folder. Only the process that has its lock may.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    for path in folder.glob(STAGED):
        disk.remove(path)
