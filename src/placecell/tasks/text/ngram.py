"""A character n-gram model that sees both sides of a masked character: the baseline of this task.

It is told the true order of the places, which the transformer is not."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Symbols = NDArray[np.int64]


class NGram:
    """P(c | left, right) ∝ P(c | left) · P(c | right) / P(c), each side an n-gram model.

    A side's context is the visible characters next to the masked one, up to n − 1 of them and up to
    the next masked one. Counts are interpolated with those of shorter contexts by Witten and Bell's
    rule.

    Parameters
    ----------
    text : int array of shape (length,)
        Symbols of the training text, in order.
    n_symbols : int
        Number of symbols.
    n : int
        Length of the longest context, plus 1.
    """

    def __init__(self, text: Symbols, n_symbols: int, n: int) -> None:
        self.n, self.n_symbols = n, n_symbols
        plain = text.tolist()
        self._sides = (_counts(plain, n), _counts(plain[::-1], n))
        counts = np.bincount(text, minlength=n_symbols) + 1.0
        self.unigram: Array = counts / counts.sum()

    def predict(self, windows: Symbols, masked: Symbols) -> Array:
        """Compute the probabilities of the symbols at masked places.

        Parameters
        ----------
        windows : int array of shape (b, n)
            Symbols in the true order; what stands at masked places is not read.
        masked : int array of shape (b, q)
            Masked places of each window.

        Returns
        -------
        array of shape (b, q, symbols)
        """
        probabilities = np.empty((*masked.shape, self.n_symbols))
        for row, (window, hidden) in enumerate(zip(windows.tolist(), masked.tolist(), strict=True)):
            away = set(hidden)
            for column, place in enumerate(hidden):
                left = _context(window, away, place, -1, self.n - 1)
                right = _context(window, away, place, 1, self.n - 1)
                both = self._given(0, left) * self._given(1, right) / self.unigram
                probabilities[row, column] = both / both.sum()
        return probabilities

    def _given(self, side: int, context: tuple[int, ...]) -> Array:
        """P(c | context) (symbols), the nearest character first in the context."""
        estimate = self.unigram
        for length in range(1, len(context) + 1):
            seen = self._sides[side].get(context[:length])
            if seen is None:
                break
            counts = np.zeros(self.n_symbols)
            counts[list(seen)] = list(seen.values())
            estimate = (counts + len(seen) * estimate) / (counts.sum() + len(seen))
        return estimate


def _counts(text: list[int], n: int) -> dict[tuple[int, ...], Counter[int]]:
    """How often each symbol follows each context of 1 to n − 1 symbols, the nearest first."""
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for length in range(1, n):
        for end in range(length, len(text)):
            counts[tuple(text[end - length : end][::-1])][text[end]] += 1
    return counts


def _context(
    window: list[int], hidden: set[int], place: int, step: int, most: int
) -> tuple[int, ...]:
    """Visible symbols next to a place on one side, the nearest first."""
    found: list[int] = []
    place += step
    while 0 <= place < len(window) and place not in hidden and len(found) < most:
        found.append(window[place])
        place += step
    return tuple(found)
