"""`python -m placecell` is the command line."""

from placecell.cli import main

main()
