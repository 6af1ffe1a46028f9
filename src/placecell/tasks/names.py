"""Names that users give to places. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from placecell.errors import InputError


def tidy(name: str) -> str:
    """Return a name in one line: without quotes around it, with single spaces, all printable.

    Parameters
    ----------
    name : str
        As a file has it.

    Returns
    -------
    str

    Examples
    --------
    >>> tidy('" left\\tV1 "')
    'left V1'
    """
    bare = name.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == '"':
        bare = bare[1:-1]
    spaced = " ".join(bare.split())
    return "".join(letter for letter in spaced if letter.isprintable())


def refuse_same_names(names: Sequence[str], where: str, what: str) -> None:
    """Refuse names of which two are the same: nobody could tell their places apart.

    Parameters
    ----------
    names : sequence of str
        The names (n).
    where : str
        The file that they come from.
    what : str
        What has these names, such as `regions`.
    """
    first: dict[str, int] = {}
    for place, name in enumerate(names):
        same = first.setdefault(name, place)
        if same != place:
            raise InputError(
                f"{where}: {what} {same + 1} and {place + 1} are both called {name!r}; give each a "
                "name of its own."
            )
