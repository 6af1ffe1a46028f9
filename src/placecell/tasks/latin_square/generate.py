"""Balanced sets of order-4 puzzles, and splits that do not leak.

Up to renaming of symbols, 530 294 puzzles with the probe in the first cell belong to one of the six
conditions, few enough to list them all (`deck`, in less than a second). Exchanging rows and columns
moves the probe to any other cell, renaming makes any symbol the answer, and neither changes the
condition. So puzzles are dealt from this deck instead of being found by trial and error: none is
dealt twice, not even with renamed symbols, and the number of puzzles that are left is known.

The number of givens is 4 to 11 by default. With 5 to 11 every condition exists, with 4 all but
1v2s, and with fewer or more there are so few puzzles that a training set would use them up. Within
a condition, puzzles are divided equally among the numbers of givens. But one set gets at most half
of what is left of a kind (condition and number of givens), so that later sets get some too. For
sets of up to 15 000 puzzles this limit matters only for 1v2s with 5 givens and 3v2s with 11, and
there only slightly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError, unknown
from placecell.tasks.latin_square import boards as b

# Number of vectors and steps, in the order of the items used with people.
CONDITIONS = ("1v1s", "1v2s", "2v1s", "2v2s", "3v1s", "3v2s")
GIVENS = (4, 11)
PATIENCE = 2000  # give up after so many puzzles in a row that are too near to the training set
ROUNDS = 200  # and after so many attempts to complete a set

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Puzzles:
    """Puzzles with one possible answer each; every field is an array of shape (n,).

    Attributes
    ----------
    givens : uint64 array
        Boards.
    probe : uint8 array
        The cell that is asked for, 0..15.
    answer : uint8 array
        The symbol there, 1..4.
    vectors, steps : uint8 array
        1..3 and 1..2; both 0 for a puzzle that takes more.
    """

    givens: b.Boards
    probe: NDArray[np.uint8]
    answer: NDArray[np.uint8]
    vectors: NDArray[np.uint8]
    steps: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.givens)

    @property
    def condition(self) -> NDArray[np.int8]:
        """Index (n,) into CONDITIONS; -1 for a puzzle that has none of them."""
        index = 2 * self.vectors.astype(np.int8) + self.steps.astype(np.int8) - 3
        return np.maximum(index, -1, dtype=np.int8)

    def cells(self) -> NDArray[np.uint8]:
        """Return the cells: 0 is a blank, 1..4 a given symbol, 5 the probe.

        Returns
        -------
        ndarray
            Cells (n, 16).
        """
        cells = b.decode(self.givens)
        cells[np.arange(len(self)), self.probe] = b.PROBE
        return cells

    def keys(self) -> b.Boards:
        """Return a key of every puzzle, equal for puzzles that differ only in names.

        Returns
        -------
        b.Boards
            Keys (n,).
        """
        return b.canonical(self.givens) | np.uint64(15) << 4 * self.probe.astype(np.uint64)

    def take(self, rows: Ints | NDArray[np.bool_] | slice) -> Puzzles:
        """Select puzzles.

        Parameters
        ----------
        rows : Ints or ndarray or slice
            Indices, a mask or a slice.

        Returns
        -------
        Puzzles
        """
        return Puzzles(*(getattr(self, field.name)[rows] for field in fields(self)))


def generate(
    n: int,
    rng: np.random.Generator | int,
    *,
    conditions: Sequence[str] = CONDITIONS,
    givens: tuple[int, int] = GIVENS,
) -> Puzzles:
    """Draw different puzzles, balanced over conditions, answers, probes and numbers of givens.

    The numbers of puzzles per condition, per answer and per combination of both differ by at most
    one.

    Parameters
    ----------
    n : int
        Number of puzzles.
    rng : numpy.random.Generator or int
        A generator or a seed.
    conditions : sequence of str
        Which of `CONDITIONS` to draw from.
    givens : tuple of int
        Smallest and largest number of givens.

    Returns
    -------
    Puzzles
        In random order.

    Examples
    --------
    >>> puzzles = generate(12, 0, conditions=("1v1s", "2v1s"))
    >>> np.bincount(puzzles.vectors).tolist()
    [0, 6, 6]
    """
    return split({"puzzles": n}, rng, conditions=conditions, givens=givens)["puzzles"]


def split(
    sizes: Mapping[str, int],
    rng: np.random.Generator | int,
    *,
    min_distance: float = 0.0,
    conditions: Sequence[str] = CONDITIONS,
    givens: tuple[int, int] = GIVENS,
) -> dict[str, Puzzles]:
    """Draw several sets, each as `generate` does, that share no puzzle, even after renaming.

    The first is the training set. It does not depend on the sets that follow it.

    Parameters
    ----------
    sizes : mapping of str to int
        Name and number of puzzles of each set, the training set first.
    rng : numpy.random.Generator or int
        A generator or a seed.
    min_distance : float
        Smallest distance (see `nearest`) of every puzzle of the other sets from all training
        puzzles. With it, numbers of givens are only as balanced as the distance permits.
    conditions : sequence of str
        Which of `CONDITIONS` to draw from.
    givens : tuple of int
        Smallest and largest number of givens.

    Returns
    -------
    dict of str to Puzzles
    """
    for name in conditions:
        if name not in CONDITIONS:
            raise unknown("condition", name, CONDITIONS)
    if not conditions or len(set(conditions)) != len(conditions):
        raise InputError(f"conditions must be different and at least one, found {list(conditions)}")
    if not 0 <= givens[0] <= givens[1] <= 15:
        raise InputError(f"givens must be a range within 0 to 15, found {tuple(givens)}")
    if not 0 <= min_distance <= 1:
        raise InputError(f"min_distance must be from 0 to 1, found {min_distance}")
    rng = np.random.default_rng(rng)
    kinds = [
        [16 * CONDITIONS.index(c) + k for k in range(givens[0], givens[1] + 1)] for c in conditions
    ]
    undealt = np.ones((len(deck().givens), 16), bool)  # puzzle of the deck × probe
    train = np.zeros(0, np.uint64)
    sets: dict[str, Puzzles] = {}
    for name, n in sizes.items():
        if n < 0:
            raise InputError(f"the size of {name!r} must not be negative, found {n}")
        try:
            slots = _plan(n, rng, undealt, kinds)
            sets[name] = _deal(slots, rng, undealt, kinds, train, min_distance)
        except InputError as error:
            raise InputError(f"{name!r}: {error}") from None
        if len(sets) == 1 and min_distance > 0:
            train = sets[name].givens
    return sets


def nearest(boards: b.Boards, others: b.Boards) -> NDArray[np.float64]:
    """Compute the Jaccard distance from each board to the nearest of the others.

    The distance of two sets of given (cell, symbol) pairs is the fraction of their union that only
    one of them contains.

    Parameters
    ----------
    boards : uint64 array of shape (n,)
    others : uint64 array of shape (m,)

    Returns
    -------
    array of shape (n,)
        Distances; 1 if there are no others.
    """
    distance = np.ones(len(boards))
    rows = max(1, b.CHUNK // max(1, len(others)))
    for start in range(0, len(boards) if len(others) else 0, rows):
        part = boards[start : start + rows, None]
        union = np.maximum(np.bitwise_count(part | others), 1)  # two empty boards are at distance 0
        ratio = np.divide(np.bitwise_count(part ^ others), union, dtype=np.float64)
        distance[start : start + rows] = ratio.min(axis=1)
    return distance


class Deck(NamedTuple):
    """All puzzles of the six conditions with the probe in cell 0, up to renaming of symbols.

    Attributes
    ----------
    givens : uint64 array of shape (m,)
        Boards.
    kind : uint8 array of shape (m,)
        16 * condition + number of givens, ascending.
    """

    givens: b.Boards
    kind: NDArray[np.uint8]


@cache
def deck() -> Deck:
    """List every puzzle with the probe in cell 0.

    They are all ways to blank out cells of all squares.

    Returns
    -------
    Deck
        Read-only arrays.
    """
    subsets = np.arange(1 << 15, dtype=np.uint64)[:, None]
    kept = subsets >> np.arange(15, dtype=np.uint64) & 1  # (32768, 15)
    masks = np.bitwise_or.reduce(kept * 15 << np.arange(4, 64, 4, dtype=np.uint64), axis=1)
    squares = np.unique(b.canonical(b.squares()))  # (24,)
    named = np.sort(b.canonical((masks[:, None] & squares).reshape(-1)))
    # Like np.unique, which hashes and is twenty times slower.
    givens = named[np.diff(named, prepend=~named[:1]) != 0]
    vectors, steps = b.rules(givens, np.zeros_like(givens))
    kind = (16 * (2 * vectors + steps - 3) + np.bitwise_count(givens))[vectors > 0]
    order = np.argsort(kind, kind="stable")
    cards = Deck(givens[vectors > 0][order], kind[order])
    for array in cards:
        array.flags.writeable = False
    return cards


class _Slots(NamedTuple):
    """The wanted properties of each puzzle of a set; arrays (n,)."""

    kind: Ints
    probe: Ints
    answer: Ints


def _plan(
    n: int, rng: np.random.Generator, undealt: NDArray[np.bool_], kinds: list[list[int]]
) -> _Slots:
    """Balanced properties for n puzzles; `kinds` lists the allowed kinds of each condition."""
    place = np.arange(n)
    # Conditions and answers both cycle. To get every combination equally often, the answer is
    # shifted by one whenever both cycles start again together.
    answer = (place + place // lcm(len(kinds), 4)) % 4 + 1
    kind, probe = np.zeros(n, np.intp), np.zeros(n, np.intp)
    for i, same in enumerate(kinds):
        rows = place[i :: len(kinds)]
        room = [16 * (_per_probe(k, undealt) // 2) for k in same]
        if len(rows) > sum(room):
            name = CONDITIONS[same[0] // 16]
            raise InputError(
                f"{len(rows)} puzzles of {name} wanted, at most {sum(room)} can be dealt"
            )
        kind[rows] = np.repeat(same, _shares(len(rows), room))
        probe[rows] = np.resize(rng.permutation(16), len(rows))  # so balanced within each kind too
        answer[rows] = rng.permutation(answer[rows])
    return _Slots(kind, probe, answer)


def _deal(
    slots: _Slots,
    rng: np.random.Generator,
    undealt: NDArray[np.bool_],
    kinds: list[list[int]],
    train: b.Boards,
    min_distance: float,
) -> Puzzles:
    """Deal puzzles for these slots, far enough from ``train``, in random order.

    They are removed from ``undealt``.
    """
    kind, probe, answer = slots
    givens = np.zeros(len(kind), np.uint64)
    waiting = np.arange(len(kind))
    rounds = failures = 0
    while len(waiting):
        card = _pick(kind[waiting], probe[waiting], rng, undealt)
        drawn = _turn(deck().givens[card], probe[waiting], answer[waiting], rng)
        far = nearest(drawn, train) >= min_distance
        givens[waiting[far]] = drawn[far]
        undealt[card[far], probe[waiting[far]]] = False
        waiting = waiting[~far]
        rounds, failures = rounds + 1, 0 if far.any() else failures + len(far)
        if len(waiting) and (failures > PATIENCE or rounds == ROUNDS):
            raise InputError(
                f"only {len(kind) - len(waiting)} of {len(kind)} puzzles were found at a distance "
                f"of {min_distance} or more from the {len(train)} of training; "
                "lower min_distance or the sizes"
            )
        for same in kinds if len(waiting) else []:  # another number of givens may be far enough
            rows = waiting[kind[waiting] // 16 == same[0] // 16]
            roomy = [k for k in same if _per_probe(k, undealt) >= len(rows)]
            kind[rows] = rng.choice(roomy, len(rows)) if roomy else kind[rows]
    vectors, steps, _, solution = b.classify(givens, probe)
    return Puzzles(givens, probe.astype(np.uint8), solution, vectors, steps).take(
        rng.permutation(len(kind))
    )


def _members(kind: int) -> slice:
    """Where the puzzles of a kind are in the deck."""
    # With another dtype the whole deck would be cast each time.
    bounds = np.array([kind, kind + 1], np.uint8)
    return slice(*np.searchsorted(deck().kind, bounds))


def _per_probe(kind: int, undealt: NDArray[np.bool_]) -> int:
    """How many puzzles of a kind are left for every probe."""
    return int(undealt[_members(kind)].sum(axis=0).min())


def _shares(total: int, room: Sequence[int]) -> list[int]:
    """Divide ``total`` into parts as equal as the room for each permits."""
    shares = [0] * len(room)
    for done, i in enumerate(sorted(range(len(room)), key=room.__getitem__)):
        shares[i] = min(room[i], (total - sum(shares)) // (len(room) - done))
    return shares


def _pick(kind: Ints, probe: Ints, rng: np.random.Generator, undealt: NDArray[np.bool_]) -> Ints:
    """Pick a random undealt puzzle of the deck for each kind and probe (n,), none twice."""
    card = np.zeros(len(kind), np.intp)
    for k, cell in np.unique(np.stack([kind, probe]), axis=1).T:
        rows = np.flatnonzero((kind == k) & (probe == cell))
        members = _members(k)
        left = members.start + np.flatnonzero(undealt[members, cell])
        card[rows] = rng.choice(left, len(rows), replace=False)
    return card


def _turn(boards: b.Boards, probe: Ints, answer: Ints, rng: np.random.Generator) -> b.Boards:
    """Move the probe from cell 0 to ``probe`` and rename symbols at random.

    The answer is renamed to ``answer``.
    """
    # Row i exchanges line 0 with line i.
    exchange = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3], [3, 1, 2, 0]])
    row, column = exchange[probe // 4], exchange[probe % 4]  # (n, 4)
    i = np.arange(len(boards))
    cells = b.decode(boards).reshape(-1, 4, 4)[
        i[:, None, None], row[:, :, None], column[:, None, :]
    ]
    old = b.classify(boards, 0).answer
    names = np.tile(np.arange(1, 5), (len(boards), 1))  # (n, 4): symbol s becomes names[s - 1]
    names = rng.permuted(names, axis=1)
    names[names == answer[:, None]] = names[i, old - 1]
    names[i, old - 1] = answer
    names = np.pad(names, ((0, 0), (1, 0)))  # (n, 5): a blank stays 0
    return b.encode(names[i[:, None, None], cells])
