"""The command line."""

from placecell.cli.app import call, main

__all__ = ["call", "main"]
