"""Options that commands share, above all those made from the configuration's dataclasses."""

from __future__ import annotations

import argparse
import os
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell import tasks
from placecell.cli.parser import Parser
from placecell.config import Key, RunConfig, keys
from placecell.config.presets import base_config
from placecell.config.values import coerce
from placecell.errors import InputError, unknown
from placecell.registry import ENCODINGS

if TYPE_CHECKING:
    from placecell.sweep.backends.base import MakeBackend

Options = argparse._ActionsContainer  # a parser, or a group of its options

# The options that every command has, and their values where they are left out.
EVERYWHERE: dict[str, Any] = {
    "json": False,
    "device": "auto",
    "seed": None,
    "out": None,
    "threads": "1",
}
SECTIONS = {
    "": "seeds and transplants",
    "data": "the task",
    "encoding": "the positional encoding",
    "model": "the encoder",
    "train": "training",
}
KEY = "key:"  # begins the names under which keys of the configuration stand in the arguments


def add_everywhere(parser: argparse.ArgumentParser) -> None:
    """Add the options that may stand before or after every command.

    Parameters
    ----------
    parser : ArgumentParser
        The parser.
    """
    everywhere = parser.add_argument_group("everywhere")
    for flag, metavar, about in (
        ("--device", "NAME", "auto, cpu, cuda or mps (default: auto)"),
        ("--seed", "N", "seed of a run (default: 0)"),
        ("--out", "FOLDER", "where results go (default: below runs/)"),
        ("--threads", "N", "threads of one run (default: 1, which repeats bit for bit)"),
    ):
        everywhere.add_argument(flag, default=argparse.SUPPRESS, help=about, metavar=metavar)
    about = "results as JSON on standard output"
    everywhere.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=about)
    add_plugin(everywhere)


def add_plugin(parser: Options) -> None:
    """Add --plugin, which may be given several times.

    Parameters
    ----------
    parser : Options
        The parser, or a group of its options.
    """
    about = "import a module or .py file with tasks or encodings of your own first (repeatable)"
    parser.add_argument(
        "--plugin", action="append", default=argparse.SUPPRESS, metavar="MODULE", help=about
    )


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Add FOLDER, a folder of runs.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    """
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder of runs")


# ------------------------------------------------------------------ the configuration


def add_configuration(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Add TASK, --preset, --config, and a flag for every key of the configuration they lead to.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command, with all its other options.
    words : sequence of str
        What follows the command's name. The task, preset and file that it names are read here,
        once; `starting_point` returns them later.
    """
    parser.add_argument("task", metavar="TASK", help=f"one of: {', '.join(tasks.available())}")
    add_start(parser)
    task = named_task(parser, words)
    if task is None:
        parser.epilog = f"Name a task to see its settings: {parser.prog} TASK --help"
        return
    start = Parser(prog=parser.prog, add_help=False)
    add_start(start)
    config, plan = base_config(task, **vars(start.parse_known_args(words)[0]))
    parser.set_defaults(starting_point=(config, plan))
    groups = {section: parser.add_argument_group(title) for section, title in SECTIONS.items()}
    for name, key in keys(config).items():
        if name == "seed":  # stands among the options that every command has
            continue
        default = "" if key.value is None else f" (default: {key.value})"
        names = ENCODINGS.names() if name == "encoding" else []
        about = f"one of: {', '.join(names)}" if names else key.help
        groups[key.section].add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"{KEY}{name}",
            metavar=metavar(key),
            default=argparse.SUPPRESS,
            help=(about + default).replace("%", "%%"),
        )


def add_start(parser: argparse.ArgumentParser) -> None:
    """Add --preset and --config: what a configuration starts from.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    """
    about = "settings to start from (default: quick)"
    parser.add_argument("--preset", default="quick", metavar="NAME", help=about)
    about = "a TOML file to start from instead, such as a run's config.toml"
    parser.add_argument("--config", type=Path, metavar="FILE", help=about)


def named_task(parser: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """Return the task that the words of a command line name.

    Options that the parser does not know yet are a task's; all of those take a value.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command, without the options of tasks.
    words : sequence of str
        What follows the command's name.

    Returns
    -------
    str or None
        None if they name none.
    """
    actions = parser._actions
    switches = {text for act in actions if act.nargs == 0 for text in act.option_strings}
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            return word if word in tasks.available() else None
        if "=" not in word and word not in switches:
            next(remaining, None)  # the option's value
    return None


def metavar(key: Key) -> str:
    """Return what --help shows for the value of a key: N, X, TEXT or its choices.

    Parameters
    ----------
    key : Key
        A key of the configuration.

    Returns
    -------
    str
    """
    inner = [arg for arg in typing.get_args(key.type) if arg is not type(None)]
    if inner and typing.get_origin(inner[0]) is typing.Literal:
        inner = list(typing.get_args(inner[0]))
    if inner and not isinstance(inner[0], type):
        return "{" + ",".join(map(str, inner)) + "}"
    return {int: "N", float: "X", str: "TEXT", bool: "true|false"}[inner[0] if inner else key.type]


def starting_point(args: argparse.Namespace) -> tuple[RunConfig, dict[str, Any]]:
    """Return the configuration of the preset or file, and its plan of a sweep.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    (RunConfig, dict)
    """
    ready: tuple[RunConfig, dict[str, Any]] | None = getattr(args, "starting_point", None)
    return ready or base_config(args.task, args.preset, args.config)


def chosen(args: argparse.Namespace) -> dict[str, str]:
    """Return the keys of the configuration that the command line sets.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    dict
        Short name to text.
    """
    given = {n.removeprefix(KEY): text for n, text in vars(args).items() if n.startswith(KEY)}
    return given | ({} if args.seed is None else {"seed": args.seed})


def refuse_lists(args: argparse.Namespace) -> None:
    """Refuse a list of values in a command that trains one model.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.
    """
    known = keys(starting_point(args)[0])
    for name, text in chosen(args).items():
        kinds = {known[name].type, *typing.get_args(known[name].type)} if name in known else {str}
        several = "," in text and not kinds.isdisjoint({int, float, bool})
        if several or (name == "encoding" and "," in text):
            raise InputError(
                f"--{name.replace('_', '-')} {text}: a list of values belongs to "
                f"`placecell sweep`; `placecell run` trains one model."
            )


# ------------------------------------------------------------------ training


def add_checkpoint_seconds(parser: argparse.ArgumentParser) -> None:
    """Add --checkpoint-seconds.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    """
    about = "time between checkpoints, which is what a kill can cost (default: 30)"
    parser.add_argument("--checkpoint-seconds", default="30", metavar="X", help=about)


def checkpoint_seconds(args: argparse.Namespace) -> float:
    """Return the value of --checkpoint-seconds.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    float
    """
    seconds = coerce(args.checkpoint_seconds, float, "--checkpoint-seconds")
    if not seconds >= 0:
        raise InputError(f"--checkpoint-seconds must be at least 0, not {seconds}.")
    return seconds


def add_many_runs(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that train many runs: seeds, workers, back end.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    """
    for flag, default, metavar, about in (
        ("--seeds", None, "N", "the seeds 0 to N−1 (default: the preset's)"),
        ("--workers", None, "N", "processes (default: one per core; 0: this process itself)"),
        ("--retries", "2", "N", "new tries for a run that died (default: 2)"),
        ("--backend", "local", "NAME", "local or ray (default: local)"),
        ("--address", None, "ADDRESS", "of a Ray cluster (default: start Ray on this machine)"),
        ("--cpus-per-run", None, "X", "CPUs a run asks Ray for (default: --threads)"),
        ("--gpus-per-run", None, "X", "GPUs a run asks Ray for (default: 0)"),
    ):
        parser.add_argument(flag, default=default, metavar=metavar, help=about)
    add_checkpoint_seconds(parser)


def seeds(args: argparse.Namespace, plan: dict[str, Any]) -> int:
    """Return the number of seeds: --seeds, else the preset's, else one.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.
    plan : dict
        The preset's plan of a sweep.

    Returns
    -------
    int
    """
    number: int = coerce(args.seeds or plan.get("seeds", 1), int, "--seeds")
    return number


def folder_of_runs(args: argparse.Namespace) -> Path:
    """Return the folder of a sweep: --out, else one named by task and preset.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    Path
    """
    return Path(args.out or f"runs/{args.task}-{args.config.stem if args.config else args.preset}")


def workers(args: argparse.Namespace) -> int:
    """Return the number of worker processes: --workers, else one for each core.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    int
    """
    default = max(1, (os.cpu_count() or 1) // args.threads)
    given = default if args.workers is None else args.workers
    return coerce(given, int, "--workers", at_least=0)


def backend(args: argparse.Namespace) -> MakeBackend:
    """Return the back end that the options ask for.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    MakeBackend
    """
    from placecell.sweep import local

    only_ray = ("address", "cpus_per_run", "gpus_per_run")
    given = [name for name in only_ray if getattr(args, name) is not None]
    if args.backend == "local":
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} belongs to --backend ray.")
        return local(workers(args))
    if args.backend != "ray":
        raise unknown("back end", args.backend, ("local", "ray"))
    from placecell.sweep.backends.ray import on_ray

    cpus = coerce(args.cpus_per_run or args.threads, float, "--cpus-per-run")
    gpus = coerce(args.gpus_per_run or 0.0, float, "--gpus-per-run")
    return on_ray(args.address, cpus, gpus, None if args.workers is None else workers(args))


# ------------------------------------------------------------------ items used with people


def add_people(parser: argparse.ArgumentParser, about_items: str) -> None:
    """Add --items and --human.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of a command.
    about_items : str
        Help of --items.
    """
    parser.add_argument("--items", type=Path, metavar="FILE", help=about_items)
    about = "people's accuracy item by item (.csv)"
    parser.add_argument("--human", type=Path, metavar="FILE", help=about)


def check_people(args: argparse.Namespace) -> None:
    """Refuse --human without --items.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.
    """
    if args.human is not None and args.items is None:
        raise InputError("--human needs the items that people worked on: --items FILE.")
