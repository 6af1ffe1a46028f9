"""`placecell list`: the encodings, the tasks and their presets."""

from __future__ import annotations

import argparse
import tomllib

from placecell import tasks
from placecell.cli.common import print_json
from placecell.command import DONE, Command
from placecell.registry import ENCODINGS, TASKS


def run(args: argparse.Namespace) -> int:
    """Show the encodings and tasks, where each comes from, and the presets."""
    from placecell import encodings

    names = tasks.available()
    content = {
        "encodings": {n: first_line(cls.__doc__) for n, cls in encodings.available().items()},
        "tasks": {name: first_line(tasks.load(name).__doc__) for name in names},
        "presets": {
            f"{task} --preset {name}": tomllib.loads(text).get("about", "")
            for task in names
            for name, text in tasks.presets(task).items()
        },
    }
    sources = {
        "encodings": {name: ENCODINGS.source(name) for name in content["encodings"]},
        "tasks": {name: TASKS.source(name) for name in content["tasks"]},
    }
    if args.json:
        print_json({**content, "sources": sources})
        return DONE
    for title, entries in content.items():
        print(title)
        origin = sources.get(title, {})
        width, wide = (max(map(len, words), default=0) for words in (entries, origin.values()))
        for name, about in entries.items():
            print(f"  {name:<{width}}  {origin.get(name, ''):<{wide}}{'  ' if wide else ''}{about}")
    return DONE


def first_line(text: str | None) -> str:
    """Return the first line of a docstring."""
    return (text or "").strip().split("\n")[0]


COMMAND = Command(
    name="list",
    help="encodings, tasks and presets",
    usage="[--json]",
    run=run,
)
