"""Locks of folders, on every system (through the library filelock).

The system releases the lock of a process that is killed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from placecell.errors import InputError

NAME = ".lock"  # the file in a folder that is locked; it stays there when the lock is released
PATIENCE = 0.15  # seconds for which a lock is tried, because `is_locked` takes it for a moment too


class Busy(InputError):
    """Another process has the lock."""


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder for this process, as a context manager; raise `Busy` if another has it.

    Parameters
    ----------
    folder : Path
        The folder; its lock is the file `.lock` in it.
    """
    from filelock import FileLock, Timeout

    file_lock = FileLock(folder / NAME)
    try:
        file_lock.acquire(timeout=PATIENCE, poll_interval=0.02)
    except Timeout:
        raise Busy(
            f"{folder}: another process is working on this run; wait for it or stop it."
        ) from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be locked ({error.strerror}).") from None
    try:
        yield
    finally:
        file_lock.release()


def is_locked(folder: Path) -> bool:
    """Return whether some process has the lock of a folder now.

    Parameters
    ----------
    folder : Path
        The folder, perhaps shared with other machines.

    Returns
    -------
    bool
        False also if the folder cannot be read.
    """
    from filelock import FileLock, Timeout

    path = folder / NAME
    if not path.exists():
        return False
    try:
        with FileLock(path).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except PermissionError:  # another user's store
        return _is_locked_by_another_user(path)
    except OSError:
        return False


def _is_locked_by_another_user(path: Path) -> bool:
    """The same for a file that may only be read, which filelock does not open."""
    try:
        import fcntl
    except ImportError:  # on Windows
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
