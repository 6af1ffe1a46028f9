"""The only operations that change a disk.

They are small and few, so that a test can fail, kill or forget at any one of them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Fill a new file; until `sync`, a power cut may lose its content.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        All of its content.
    """
    with path.open("wb") as file:
        file.write(content)


def sync(path: Path) -> None:
    """Make a file's content last through a power cut.

    Parameters
    ----------
    path : Path
        The file.
    """
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # as Windows needs it
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(old: Path, new: Path) -> None:
    """Put a file in the place of another at once; until `sync_folder`, a power cut may undo it.

    Parameters
    ----------
    old, new : Path
        Its name now, and the name that it gets.
    """
    old.replace(new)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power cut, where the system can do that.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    with contextlib.suppress(OSError):
        sync(folder)


def remove(path: Path) -> None:
    """Remove a file, if it is there.

    Parameters
    ----------
    path : Path
        The file.
    """
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make one folder in a parent that exists.

    Parameters
    ----------
    path : Path
        The folder; one that exists is left alone.
    """
    path.mkdir(exist_ok=True)
