"""A text made from a small grammar: words, agreement over many characters, and repetition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

PEOPLE = {
    "she": ("anna", "clara", "emma", "greta", "ines", "karin", "lena", "olga", "ruth", "vera"),
    "he": ("bruno", "david", "felix", "hugo", "jonas", "karl", "leo", "otto", "simon", "victor"),
}
OWN = {"she": "her", "he": "his"}
NOUNS = (
    *("apple", "basket", "bottle", "bridge", "candle", "castle", "garden", "hammer", "kettle"),
    *("ladder", "lantern", "letter", "market", "mirror", "needle", "orchard", "painting", "river"),
    *("saddle", "shadow", "spider", "temple", "ticket", "tunnel", "violin", "window", "wagon"),
)
QUALITIES = (
    *("bright", "broken", "clever", "dusty", "empty", "fragile", "gentle", "golden", "hidden"),
    *("hollow", "narrow", "old", "quiet", "round", "silver", "strange", "tiny", "wooden"),
)
DEEDS = (
    *("bought", "carried", "cleaned", "counted", "described", "dropped", "found", "forgot"),
    *("lifted", "opened", "painted", "repaired", "remembered", "sold", "touched", "watched"),
)
WHERE = ("behind", "beside", "inside", "near", "under", "across from", "on top of", "far from")
NUMBERS = ("two", "three", "four", "seven", "ten", "twenty")


def generate_text(characters: int, rng: np.random.Generator) -> str:
    """Write sentences of a small grammar.

    A person who acts comes back as the right pronoun (`she … her`), a noun that was bought or found
    comes back in the second half of the sentence, numbers make plurals, and quotation marks are
    closed. So characters depend on others nearby (words) and on some far away (agreement).

    Parameters
    ----------
    characters : int
        Length of the text.
    rng : numpy.random.Generator

    Returns
    -------
    str
        Small letters, spaces, quotation marks, commas and full stops.
    """
    sentences: list[str] = []
    length = 0
    while length < characters:
        for draws in rng.random((256, 12)).tolist():  # many at a time: it is much faster
            sentences.append(_sentence(iter(draws)))
            length += len(sentences[-1]) + 1
    return " ".join(sentences)[:characters]


def _sentence(draws: Iterator[float]) -> str:
    """One sentence from numbers between 0 and 1."""
    pronoun = "she" if next(draws) < 0.5 else "he"
    person, other = _two(PEOPLE[pronoun], draws)
    noun, place = _two(NOUNS, draws)
    deed, later = _two(DEEDS, draws)
    quality, where, number = (_one(words, draws) for words in (QUALITIES, WHERE, NUMBERS))
    several, shape = next(draws) < 0.3, int(4 * next(draws))
    thing = f"{number} {quality} {noun}s" if several else f"the {quality} {noun}"
    be, them = ("were", "them") if several else ("was", "it")
    if shape == 0:
        return f"{person} {deed} {thing} {where} the {place}, and {pronoun} {later} {them} again."
    if shape == 1:
        return f'"{thing}," said {person}, "{be} {where} {OWN[pronoun]} {place}."'
    if shape == 2:
        return f"when {person} {deed} {OWN[pronoun]} {noun}, {other} {later} the same {noun}."
    return f"{thing} {where} the {place} {be} what {person} {later}."


def _one(words: tuple[str, ...], draws: Iterator[float]) -> str:
    return words[int(len(words) * next(draws))]


def _two(words: tuple[str, ...], draws: Iterator[float]) -> tuple[str, str]:
    """Two different words."""
    first, skip = int(len(words) * next(draws)), 1 + int((len(words) - 1) * next(draws))
    return words[first], words[(first + skip) % len(words)]
