"""Colours of modules, which can be told apart by people who do not see red and green."""

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222255")


def colour(label: int) -> str:
    """The colour of a module (Tol's bright scheme); after eight they come again."""
    return COLOURS[label % len(COLOURS)]
