"""What a command of the command line is. Standard library only: a task, too, may have commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # exit codes


def no_options(parser: argparse.ArgumentParser) -> None:
    """Add nothing: for a command that has only the options of every command."""


@dataclass(frozen=True)
class Command:
    """One command, `placecell NAME`: its options and its action.

    Parameters
    ----------
    name : str
        The word that follows `placecell`.
    help : str
        A few words for the list of commands.
    usage : str
        What follows the name, such as ``"FOLDER [--json]"``.
    run : callable
        Takes the parsed arguments, does the work, prints, and returns the exit code.
        Its docstring is the description that `placecell NAME --help` shows.
    add_options : callable
        Adds the command's own options to its parser. Called only if the command is the one
        that was asked for.
    configured : bool
        Whether the command takes a task, a preset and a flag for every key of the configuration.

    Examples
    --------
    >>> def run(args):
    ...     '''Greet someone.'''
    ...     print(f"hello, {args.someone}")
    ...     return DONE
    >>> def add_options(parser):
    ...     parser.add_argument("someone", metavar="NAME", help="who is greeted")
    >>> COMMANDS = [Command("greet", "say hello", "NAME", run, add_options)]
    """

    name: str
    help: str
    usage: str
    run: Callable[[argparse.Namespace], int]
    add_options: Callable[[argparse.ArgumentParser], None] = no_options
    configured: bool = False

    @property
    def description(self) -> str:
        """The docstring of `run`, as one paragraph."""
        return " ".join((self.run.__doc__ or "").split())
