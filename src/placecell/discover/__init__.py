"""Discover: the hidden arrangement of the columns of any table.

`PlaceMap` is the estimator, `read_table` reads files, `write_map` writes what was found.
"""

from placecell.discover.place_map import PlaceMap
from placecell.discover.read import read_table
from placecell.discover.write import write_map

__all__ = ["PlaceMap", "read_table", "write_map"]
