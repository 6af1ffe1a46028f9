"""The command line: finds the commands, reads the words, runs one, returns its exit code.

Every command is a file of this folder with its options and its action together; tasks add their
own. torch is not imported until a command needs it.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from placecell import __version__, tasks
from placecell.cli.options import EVERYWHERE, add_configuration, add_everywhere, add_plugin
from placecell.cli.parser import Parser
from placecell.command import BAD_INPUT, DONE, FAILED, INTERRUPTED, Command
from placecell.errors import InputError, unknown
from placecell.plugins import load_plugin
from placecell.registry import TASKS

# The files of this folder that are commands, in the order of --help, where those of tasks
# come before `list`.
OWN = (
    "demo",
    "run",
    "sweep",
    "transplant",
    "status",
    "export",
    "analyse",
    "report",
    "figures",
    "evaluate",
    "extend",
    "doctor",
    "discover",
    "list",
)
EXAMPLES = """Positional encodings that transformers learn and people can read.

  placecell demo                                   the finding in about two minutes, with a page
  placecell list                                   what there is
  placecell run latin_square                       train one model (preset quick)
  placecell run latin_square --sigma 2             the same with a large initial table
  placecell run latin_square --help                every setting of that task
  placecell sweep latin_square                     the finding: all encodings, several σ and seeds
  placecell status runs/latin_square-quick         how it stands, at any time
  placecell analyse runs/latin_square-quick        what the sweep found, as tables and figures
  placecell analyse FOLDER --lazy-rich             was it lazy or rich learning? \
kernels and weights of the runs
  placecell report runs/latin_square-quick         the same as one page; \
--live follows a running sweep
  placecell transplant latin_square                is it the table that generalises?
  placecell evaluate RUN --items taskData.mat      a trained model beside people
  placecell doctor my_model.py:make                position tables of any torch model
  placecell discover data.csv                      the hidden map of your own table
  placecell fetch hcp-schaefer100                  real brains, for the task fmri"""


class CommandParser(Parser):
    """The parser of one command. It gets its options when it first has something to parse.

    So the configuration is read for the command that was asked for, and for no other.
    """

    def __init__(self, command: Command, **kwargs: Any) -> None:
        super().__init__(description=command.description, **kwargs)
        self.usage = f"placecell {command.name} {command.usage}"
        self.set_defaults(command=command)
        self._waiting: Command | None = command  # None when its options are there

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the command's options, then parse as argparse does."""
        command, self._waiting = self._waiting, None
        if command is not None:
            command.add_options(self)
            if command.configured:
                add_configuration(self, args or ())  # of the task that they name
        return super().parse_known_args(args, namespace)


def main() -> None:
    """Entry point of `placecell`."""
    streams = [s for s in (sys.stdout, sys.stderr) if isinstance(s, io.TextIOWrapper)]
    for stream in streams:
        stream.reconfigure(errors="replace")  # σ, where it cannot be written, is no reason to fail
    try:
        sys.exit(call(sys.argv[1:]))
    finally:
        for stream in streams:
            try:
                stream.flush()
            except BrokenPipeError:  # the reader of our output went away, as `head` does
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def call(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str
        The words after `placecell`.

    Returns
    -------
    int
        0 done, 1 failed, 2 input that cannot be used, 130 interrupted.
    """
    try:
        return _call(argv)
    except InputError as error:
        _complain(f"{error} {error.command}".rstrip())
        return BAD_INPUT
    except KeyboardInterrupt:
        _complain("stopped at once; what was saved before is still there.")
        return INTERRUPTED
    except BrokenPipeError:  # in the middle of what there was to say; nobody is left to hear why
        return FAILED
    except OSError as error:  # a disk that is full, a folder that may not be entered
        _complain(str(error))
        return BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        full = any(words in str(error) for words in ("allocate memory", "out of memory"))
        if not (full or isinstance(error, MemoryError)):
            raise
        _complain("out of memory; try a smaller model, a smaller --batch-size or less data.")
        return FAILED


def _call(argv: Sequence[str]) -> int:
    plugins = load_plugins(argv)
    parser, parsers = build_parser()
    args, left = parser.parse_known_args(argv)
    if hasattr(args, "task"):
        tasks.check(args.task)  # before the options, which depend on it
    command: Command | None = args.command
    its_parser = parsers[command.name] if command else parser
    if left and left[0].startswith("-"):
        option = left[0].split("=")[0]
        raise misplaced(option, command) or unknown("option", option, its_parser.options())
    if left:
        raise InputError(f"{left[0]!r} is a word too many; see `{its_parser.prog} --help`.")
    if command is None:
        parser.print_help()
        return DONE
    for name, default in EVERYWHERE.items():
        setattr(args, name, getattr(args, name, default))
    args.plugin = plugins
    return command.run(args)


def misplaced(option: str, command: Command | None) -> InputError | None:
    """Make an error for an option that other commands have.

    Parameters
    ----------
    option : str
        The option as it was written.
    command : Command or None
        The command it was given to.

    Returns
    -------
    InputError or None
        None if no command has it.
    """
    owners = []
    for other in all_commands():
        parser = Parser(prog=other.name, add_help=False)
        other.add_options(parser)
        if option in parser.options():
            owners.append(f"`placecell {other.name}`")
    if not owners:
        return None
    here = f", not of `placecell {command.name}`" if command else "; name the command first"
    return InputError(f"{option} is an option of {' and '.join(owners)}{here}.")


def _complain(text: str) -> None:
    print(f"placecell: {text}", file=sys.stderr)


def load_plugins(argv: Sequence[str]) -> list[str]:
    """Import every --plugin, wherever it stands on the command line.

    This comes first, because commands, tasks and encodings of a plugin are options of the parser.

    Parameters
    ----------
    argv : sequence of str
        The words after `placecell`.

    Returns
    -------
    list of str
        Names of the modules.
    """
    parser = Parser(prog="placecell", add_help=False)
    add_plugin(parser)
    given = getattr(parser.parse_known_args(argv)[0], "plugin", [])
    return [load_plugin(text) for text in given]


def build_parser() -> tuple[Parser, dict[str, CommandParser]]:
    """Make the parser, and one for each command.

    Returns
    -------
    (Parser, dict of str to CommandParser)
        The parser, and those of the commands by name; these get their options when used.
    """
    common: Any = Parser(add_help=False)
    add_everywhere(common)
    parser = Parser(prog="placecell", parents=[common], description=EXAMPLES)
    version = f"placecell {__version__}"
    parser.add_argument("--version", action="version", version=version, help="show it and exit")
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=CommandParser
    )
    parsers = {
        command.name: subparsers.add_parser(
            command.name, parents=[common], help=command.help, command=command
        )
        for command in all_commands()
    }
    return parser, parsers


def all_commands() -> list[Command]:
    """Return the commands of this folder and of the tasks, in the order of --help.

    Returns
    -------
    list of Command
    """
    *first, last = (importlib.import_module(f"placecell.cli.{name}").COMMAND for name in OWN)
    commands = [*first, *task_commands(), last]
    names = [command.name for command in commands]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two commands are called {name!r}; a task's needs another name.")
    return commands


def task_commands() -> list[Command]:
    """Return the commands of tasks: `COMMANDS` of the module `commands` in their folder.

    Returns
    -------
    list of Command
    """
    return TASKS.commands()
