"""Names of places where there is little room: in a mark, along an axis, in a legend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import eq

MARK = 12  # letters of a mark at most
MADE = re.compile(r"(?:node|region|position) (\d+)|row (\d+), column (\d+)")


def shortened(name: str, most: int) -> str:
    """Return a name of at most `most` letters, with its beginning and its end.

    Parameters
    ----------
    name : str
        The name.
    most : int
        Letters at most, 3 or more.

    Returns
    -------
    str

    Examples
    --------
    >>> shortened("left hemisphere, area V1", 12)
    'left h…ea V1'
    """
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end].rstrip()}…{name[len(name) - end :].lstrip()}"


def without_common_start(names: Sequence[str]) -> list[str]:
    """Return names without the parts, up to a separator, that all of them begin with.

    Parameters
    ----------
    names : sequence of str
        The names (n).

    Returns
    -------
    list of str
        The names as they are if all are short enough for a mark.

    Examples
    --------
    >>> without_common_start(["7Networks_LH_Vis_1", "7Networks_RH_Vis_1"])
    ['LH_Vis_1', 'RH_Vis_1']
    """
    first, last = min(names, default=""), max(names, default="")  # what they share, all share
    shared = [*map(eq, first, last), False].index(False)
    cut = max(first.rfind(separator, 0, shared) for separator in "_-., /:") + 1
    if max(map(len, names), default=0) <= MARK or any(len(name) == cut for name in names):
        cut = 0
    return [name[cut:] for name in names]


def marks(names: Sequence[str]) -> list[str]:
    """Return a mark for each place, short enough to be drawn beside it.

    Parameters
    ----------
    names : sequence of str
        The names of the places (n), no two the same.

    Returns
    -------
    list of str
        Of names such as `node 7` or `row 1, column 3` the numbers (7; 1,3); else the names, long
        ones shortened, without what all begin with (an atlas' name, say); the places' numbers,
        counted from 1, where that would make two the same.

    Examples
    --------
    >>> marks(["node 1", "node 2"]), marks(["Ulm", "node 2"])
    (['1', '2'], ['Ulm', 'node 2'])
    """
    made = [MADE.fullmatch(name) for name in names]
    found = [",".join(filter(None, match.groups())) if match else "" for match in made]
    if not all(found):
        found = [shortened(name, MARK) for name in without_common_start(names)]
    if len(set(found)) < len(found):
        found = [str(i + 1) for i in range(len(names))]
    return found


def as_drawn(name: str) -> str:
    """Return text that matplotlib shows as it is: it would read formulas between dollar signs.

    Parameters
    ----------
    name : str
        A name, shortened already.

    Returns
    -------
    str
    """
    return name.replace("$", r"\$")
