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
    entries_by_title = {"encodings": ENCODINGS.describe(), "tasks": TASKS.describe()}
    content = {
        title: {entry.name: entry.about for entry in entries}
        for title, entries in entries_by_title.items()
    }
    content["presets"] = {
        f"{task} --preset {name}": tomllib.loads(text).get("about", "")
        for task in content["tasks"]
        for name, text in tasks.presets(task).items()
    }
    sources = {
        title: {entry.name: entry.source for entry in entries}
        for title, entries in entries_by_title.items()
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


COMMAND = Command(
    name="list",
    help="encodings, tasks and presets",
    usage="[--json]",
    run=run,
)
