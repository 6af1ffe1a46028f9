"""The only operations that change a disk. Small and few, so that a test can fail, kill or forget at
any one of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Fill a new file. Until `sync`, a power cut may lose its content."""
    with path.open("wb") as file:
        file.write(content)


def sync(path: Path) -> None:
    """Make a file's content last through a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(old: Path, new: Path) -> None:
    """Put a file in the place of another at once. Until `sync_folder`, a power cut may undo it."""
    old.replace(new)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last; where folders cannot be synced, that is as good as it
    gets."""
    with contextlib.suppress(OSError):
        sync(folder)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make one folder; its parent is there."""
    path.mkdir(exist_ok=True)
