"""The one exception for input that cannot be used; the command line prints it as a sentence and
exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """What was given cannot be used. The message names it, what was expected and what was found.

    Parameters
    ----------
    message : str
        The sentence.
    command : str
        What to type, which only the command line adds to the sentence.
    """

    def __init__(self, message: str, command: str = "") -> None:
        super().__init__(message)
        self.command = command


def unknown(kind: str, given: str, known: Iterable[str]) -> InputError:
    """Return an error for a name that does not exist, with the nearest one that does.

    Parameters
    ----------
    kind : str
        What the name should name, such as `task`.
    given : str
        The name that was given.
    known : iterable of str
        The names that exist.

    Returns
    -------
    InputError
        The error, to be raised.

    Examples
    --------
    >>> str(unknown("task", "latin", ["latin_square", "nmar"]))
    "unknown task 'latin': did you mean 'latin_square'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}."
    return InputError(f"unknown {kind} {given!r}: {hint}")
