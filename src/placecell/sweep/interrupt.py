"""Ctrl-C as a request to stop cleanly."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType, TracebackType
from typing import Self


def say(text: str) -> None:
    """Print a line on standard error; it does not matter if nobody reads it, as after `| head`.

    Parameters
    ----------
    text : str
        The line.
    """
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Interrupt:
    """Context manager that turns Ctrl-C or SIGTERM into a request to stop.

    The first signal sets `asked`; the second raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Self:
        self.before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("\nstopping as soon as all is saved; once more stops at once")
