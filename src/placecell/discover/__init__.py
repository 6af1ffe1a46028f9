"""Discover: the hidden arrangement of the columns of any table.

`PlaceMap` is the estimator; `read_table` reads files; `write_map` writes what was found.
"""

from placecell.discover.place_map import PlaceMap

__all__ = ["PlaceMap"]
