"""Balanced sets of order-4 puzzles, and splits that do not leak.

Up to renaming, 530 294 puzzles with the probe in the first cell belong to one of the six conditions: few
enough to list them all (`deck`, under a second). Exchanging rows and columns carries the probe to any other
cell, renaming makes any symbol the answer, and neither changes the condition. So puzzles are dealt from the
deck instead of being tried at random: none comes twice, also not under another naming, and how many there are
is known.

Numbers of givens run from 4 to 11 unless asked otherwise: with 5 to 11 every condition exists, with 4 all but
1v2s, and with fewer or more there are so few that a training set would use them up. Within a condition every
number gets an equal share, except that one set is dealt at most half of what is left of a kind (condition and
number of givens), so that later splits have theirs. Up to 15 000 puzzles that touches only 1v2s with 5 givens
and 3v2s with 11, and those slightly.
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

CONDITIONS = ("1v1s", "1v2s", "2v1s", "2v2s", "3v1s", "3v2s")  # vectors, steps; the order of people's items
GIVENS = (4, 11)
PATIENCE = 2000  # puzzles in a row that are too near to the training set, before giving up
ROUNDS = 200  # and how often in all a set is completed anew

Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Puzzles:
    """Puzzles with one possible answer each; every field is an array (n,)."""

    givens: b.Boards
    probe: NDArray[np.uint8]  # cell 0..15
    answer: NDArray[np.uint8]  # 1..4
    vectors: NDArray[np.uint8]  # 1..3
    steps: NDArray[np.uint8]  # 1..2; both 0 for a puzzle that takes more

    def __len__(self) -> int:
        return len(self.givens)

    @property
    def condition(self) -> NDArray[np.int8]:
        """Index (n,) into CONDITIONS; -1 for a puzzle of none of them."""
        index = 2 * self.vectors.astype(np.int8) + self.steps.astype(np.int8) - 3
        return np.maximum(index, -1, dtype=np.int8)

    def cells(self) -> NDArray[np.uint8]:
        """Cells (n, 16): 0 blank, 1..4 a given symbol, 5 the probe."""
        cells = b.decode(self.givens)
        cells[np.arange(len(self)), self.probe] = b.PROBE
        return cells

    def keys(self) -> b.Boards:
        """One word (n,) per puzzle, the same for two puzzles exactly if renaming symbols makes them equal."""
        return b.canonical(self.givens) | np.uint64(15) << 4 * self.probe.astype(np.uint64)

    def take(self, rows: Ints | NDArray[np.bool_] | slice) -> Puzzles:
        """The puzzles of these rows."""
        return Puzzles(*(getattr(self, field.name)[rows] for field in fields(self)))


def generate(
    n: int,
    rng: np.random.Generator | int,
    *,
    conditions: Sequence[str] = CONDITIONS,
    givens: tuple[int, int] = GIVENS,
) -> Puzzles:
    """Draw n different puzzles in random order, balanced over conditions, answers, probes and givens.

    Numbers of puzzles by condition, by answer and by both differ by at most one. ``rng`` is a generator or a
    seed.
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
    """Draw several sets, each as `generate` does, that share no puzzle, also not after renaming.

    The first is the training set: it is the same whatever follows it, and every puzzle of the others is at
    least ``min_distance`` (see `nearest`) from all of it. Then numbers of givens are only as even as that
    permits.
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
    kinds = [[16 * CONDITIONS.index(c) + k for k in range(givens[0], givens[1] + 1)] for c in conditions]
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
    """Jaccard distance (n,) from each board to the nearest of the others, 1 if there are none.

    The distance of two sets of given (cell, symbol) pairs is the share of their union that only one of them
    has.
    """
    distance = np.ones(len(boards))
    rows = max(1, b.CHUNK // max(1, len(others)))
    for start in range(0, len(boards) if len(others) else 0, rows):
        mine = boards[start : start + rows, None]
        union = np.maximum(np.bitwise_count(mine | others), 1)  # two empty boards are at distance 0
        ratio = np.divide(np.bitwise_count(mine ^ others), union, dtype=np.float64)
        distance[start : start + rows] = ratio.min(axis=1)
    return distance


class Deck(NamedTuple):
    """All puzzles of the six conditions with the probe in cell 0, one naming of each; arrays (m,)."""

    givens: b.Boards
    kind: NDArray[np.uint8]  # 16 * condition + number of givens, ascending


@cache
def deck() -> Deck:
    """List every puzzle with the probe in cell 0: all ways to blank out cells of all squares."""
    kept = np.arange(1 << 15, dtype=np.uint64)[:, None] >> np.arange(15, dtype=np.uint64) & 1  # (32768, 15)
    masks = np.bitwise_or.reduce(kept * 15 << np.arange(4, 64, 4, dtype=np.uint64), axis=1)
    squares = np.unique(b.canonical(b.squares()))  # (24,)
    named = np.sort(b.canonical((masks[:, None] & squares).reshape(-1)))
    givens = named[np.diff(named, prepend=~named[:1]) != 0]  # np.unique hashes, at twenty times the cost
    vectors, steps = b.rules(givens, np.zeros_like(givens))
    kind = (16 * (2 * vectors + steps - 3) + np.bitwise_count(givens))[vectors > 0]
    order = np.argsort(kind, kind="stable")
    cards = Deck(givens[vectors > 0][order], kind[order])
    for array in cards:
        array.flags.writeable = False
    return cards


class _Slots(NamedTuple):
    """What is wanted of each puzzle of a set, arrays (n,)."""

    kind: Ints
    probe: Ints
    answer: Ints


def _plan(n: int, rng: np.random.Generator, undealt: NDArray[np.bool_], kinds: list[list[int]]) -> _Slots:
    """Balanced wishes for n puzzles, of these kinds by condition."""
    place = np.arange(n)
    # Condition and answer, counted up together, meet in every combination once if the answer slips a step
    # whenever both are back at their beginning.
    answer = (place + place // lcm(len(kinds), 4)) % 4 + 1
    kind, probe = np.zeros(n, np.intp), np.zeros(n, np.intp)
    for i, same in enumerate(kinds):
        rows = place[i :: len(kinds)]
        room = [16 * (_per_probe(k, undealt) // 2) for k in same]
        if len(rows) > sum(room):
            name = CONDITIONS[same[0] // 16]
            raise InputError(f"{len(rows)} puzzles of {name} wanted, at most {sum(room)} can be dealt")
        kind[rows] = np.repeat(same, _shares(len(rows), room))
        probe[rows] = np.resize(rng.permutation(16), len(rows))  # in turn: evenly for each kind too
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
    """Puzzles for these slots, far enough from ``train``, in random order; struck from ``undealt``."""
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
                f"only {len(kind) - len(waiting)} of {len(kind)} puzzles were found at a distance of "
                f"{min_distance} or more from the {len(train)} of training; lower min_distance or the sizes"
            )
        for same in kinds if len(waiting) else []:  # perhaps another number of givens can be far enough
            rows = waiting[kind[waiting] // 16 == same[0] // 16]
            roomy = [k for k in same if _per_probe(k, undealt) >= len(rows)]
            kind[rows] = rng.choice(roomy, len(rows)) if roomy else kind[rows]
    vectors, steps, _, found = b.classify(givens, probe)
    return Puzzles(givens, probe.astype(np.uint8), found, vectors, steps).take(rng.permutation(len(kind)))


def _members(kind: int) -> slice:
    """Where the puzzles of a kind are in the deck."""
    wanted = np.array([kind, kind + 1], np.uint8)  # of another dtype, the whole deck would be cast each time
    return slice(*np.searchsorted(deck().kind, wanted))


def _per_probe(kind: int, undealt: NDArray[np.bool_]) -> int:
    """How many puzzles of a kind are left for every probe."""
    return int(undealt[_members(kind)].sum(axis=0).min())


def _shares(total: int, room: Sequence[int]) -> list[int]:
    """Parts of ``total`` as equal as the room for each permits."""
    shares = [0] * len(room)
    for done, i in enumerate(sorted(range(len(room)), key=room.__getitem__)):
        shares[i] = min(room[i], (total - sum(shares)) // (len(room) - done))
    return shares


def _pick(kind: Ints, probe: Ints, rng: np.random.Generator, undealt: NDArray[np.bool_]) -> Ints:
    """For each kind and probe (n,) a random undealt puzzle of the deck (n,), none twice."""
    card = np.zeros(len(kind), np.intp)
    for k, cell in np.unique(np.stack([kind, probe]), axis=1).T:
        rows = np.flatnonzero((kind == k) & (probe == cell))
        members = _members(k)
        left = members.start + np.flatnonzero(undealt[members, cell])
        card[rows] = rng.choice(left, len(rows), replace=False)
    return card


def _turn(boards: b.Boards, probe: Ints, answer: Ints, rng: np.random.Generator) -> b.Boards:
    """Carry the probe from cell 0 to ``probe`` and rename symbols at random, the answer to ``answer``."""
    exchange = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3], [3, 1, 2, 0]])  # line 0 with line i
    row, column = exchange[probe // 4], exchange[probe % 4]  # (n, 4)
    i = np.arange(len(boards))
    cells = b.decode(boards).reshape(-1, 4, 4)[i[:, None, None], row[:, :, None], column[:, None, :]]
    old = b.classify(boards, 0).answer
    names = np.tile(np.arange(1, 5), (len(boards), 1))  # (n, 4): symbol s becomes names[s - 1]
    names = rng.permuted(names, axis=1)
    names[names == answer[:, None]] = names[i, old - 1]
    names[i, old - 1] = answer
    names = np.pad(names, ((0, 0), (1, 0)))  # (n, 5): a blank stays 0
    return b.encode(names[i[:, None, None], cells])
