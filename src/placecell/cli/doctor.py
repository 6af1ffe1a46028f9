"""`placecell doctor`: is my position table all right?"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placecell.cli.common import print_json, setup_torch
from placecell.command import DONE, Command
from placecell.errors import InputError
from placecell.plugins import load_plugin

if TYPE_CHECKING:
    from placecell.doctor import Report


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `placecell doctor`."""
    about = "module:factory or file.py:factory, a function that returns (model, example); or a file"
    parser.add_argument("target", metavar="TARGET", help=f"{about} of weights, with --tensor")
    about = "weights to load into the model: safetensors, or a state dict that torch saved"
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help=about)
    about = "an earlier checkpoint: tells rows that never changed or only decayed"
    parser.add_argument("--reference", type=Path, metavar="FILE", help=about)
    about = "examine this tensor of a file of weights; no model is needed"
    parser.add_argument("--tensor", metavar="NAME", help=about)
    about = "with --tensor: its rows are the cells of a grid, perhaps after a class token"
    parser.add_argument("--grid", metavar="HxW", help=about)
    about = "write a page with pictures"
    parser.add_argument("-o", dest="out", metavar="FILE", default=argparse.SUPPRESS, help=about)


def run(args: argparse.Namespace) -> int:
    """Find the position tables of a torch model, or take one from a file of weights, and say what
    they are, what share of the input they carry and whether they were trained."""
    report = examine_tensor(args) if args.tensor is not None else examine_model(args)
    if args.out:
        from placecell.store import files

        files.write_text(Path(args.out), report.html())
    if args.json:
        print_json(report.to_dict())
    else:
        print(report)
        if args.out:
            print(f"page: {args.out}")
    return DONE


def examine_tensor(args: argparse.Namespace) -> Report:
    """Examine one tensor of a file of weights.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    Report
    """
    if args.checkpoint is not None:
        raise InputError("--checkpoint belongs to a model; with --tensor name the file itself.")
    grid = parse_grid(args.grid) if args.grid is not None else None
    setup_torch(args)
    from placecell.doctor import examine_tensor

    return examine_tensor(args.target, args.tensor, grid=grid, reference=args.reference)


def parse_grid(text: str) -> tuple[int, int]:
    """Return the grid that a text like 14x14 names."""
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) != 2 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise InputError(f"--grid: expected two numbers such as 14x14, found {text!r}.")
    return int(sides[0]), int(sides[1])


def examine_model(args: argparse.Namespace) -> Report:
    """Build a model by the user's factory and examine it.

    Parameters
    ----------
    args : Namespace
        The parsed arguments.

    Returns
    -------
    Report
    """
    if args.grid is not None:
        raise InputError("--grid belongs to --tensor.")
    module, colon, name = args.target.rpartition(":")
    if not colon or not module or not name:
        if Path(args.target).is_file():
            raise InputError(f"{args.target}: name the tensor to examine: --tensor NAME.")
        raise InputError(
            f"expected module:factory or a file of weights with --tensor, found {args.target!r}."
        )
    setup_torch(args)
    import torch

    from placecell.doctor import doctor, load_checkpoint

    made = call_factory(module, name)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise InputError(
            f"{args.target}: expected a function that returns (model, example), "
            f"found that it returns {type(made).__name__}."
        )
    model, example = made
    if args.checkpoint is not None:
        load_checkpoint(model, args.checkpoint)
    return doctor(model, example, reference=args.reference)


def call_factory(module: str, name: str) -> Any:
    """Import a module or file and call its function.

    Parameters
    ----------
    module : str
        A module's name or the path of a Python file.
    name : str
        The function, without arguments.

    Returns
    -------
    object
        What the function returns.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        loaded = importlib.import_module(load_plugin(module))
    except InputError as error:
        raise InputError(str(error).removeprefix("plugin ")) from error
    factory = getattr(loaded, name, None)
    if not callable(factory):
        names = [key for key, value in vars(loaded).items() if callable(value) and key[0] != "_"]
        listed = ", ".join(sorted(names)[:8]) or "none"
        raise InputError(f"{module}: has no function {name!r}; it has: {listed}.")
    try:
        return factory()
    except InputError:
        raise
    except Exception as error:  # the user's code may raise anything
        words = " ".join(str(error).split())[:300]
        raise InputError(f"{module}:{name} failed ({type(error).__name__}: {words}).") from error


COMMAND = Command(
    name="doctor",
    help="is my position table all right?",
    usage="MODULE:FACTORY [--checkpoint FILE] | FILE --tensor NAME [-o FILE]",
    run=run,
    add_options=add_options,
)
