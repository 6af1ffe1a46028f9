"""Which relabellings of the tokens a task cannot tell apart, and comparisons that do not depend on them.

A Latin square stays one when its rows are reordered, its columns are reordered or it is transposed. A model
that learned any of these grids has learned the right thing, so a comparison with a reference takes the best
of them and says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations as orders_of
from math import factorial

import numpy as np
from numpy.typing import NDArray

from placecell.analysis.statistics import Array
from placecell.errors import InputError

IntArray = NDArray[np.intp]
MOST = 100_000  # members of a group; 5 × 5 has 28 800, 6 × 6 has 1 036 800


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group of relabellings: member k takes token i to `permutations[k, i]`, and `words[k]` names it."""

    permutations: IntArray  # (g, n), the identity first
    words: tuple[str, ...]  # (g,)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The relabelling a comparison used: token i was compared with the reference's token `permutation[i]`."""

    permutation: IntArray  # (n,)
    words: str


def grid_symmetries(rows: int, cols: int) -> Symmetries:
    """All R!·C! reorderings of rows and columns of a grid read row by row, and their transposes if R = C.

    With ρ an order of the rows and γ of the columns, cell (i, j) goes to (ρ(i), γ(j)), or to (ρ(j), γ(i)) if
    transposed. A 4 × 4 grid has 2·(4!)² = 1152.
    """
    if rows < 1 or cols < 1:
        raise InputError(f"grid: expected at least one row and one column, found {rows} × {cols}")
    size = factorial(rows) * factorial(cols) * (2 if rows == cols > 1 else 1)
    if size > MOST:
        raise InputError(f"grid: expected at most {MOST} symmetries, found {size} for {rows} × {cols}")
    rho, gamma = (np.array(list(orders_of(range(k))), dtype=np.intp) for k in (rows, cols))
    grids = rho[:, None, :, None] * cols + gamma[None, :, None, :]  # (R!, C!, R, C)
    grids = grids.reshape(-1, rows, cols)
    words = [_words(i > 0, j > 0, False) for i in range(len(rho)) for j in range(len(gamma))]
    if rows == cols > 1:
        grids = np.concatenate([grids, grids.swapaxes(1, 2)])
        words += [_words(i > 0, j > 0, True) for i in range(len(rho)) for j in range(len(gamma))]
    return Symmetries(grids.reshape(size, rows * cols), tuple(words))


def group_for(n: int, symmetries: Symmetries | None) -> Symmetries:
    """The given group, checked to act on n tokens; the identity alone if there is none."""
    if symmetries is None:
        return Symmetries(np.arange(n, dtype=np.intp)[None], ("identity",))
    if symmetries.permutations.shape[1] != n:
        raise InputError(f"symmetries: expected {n} tokens, found {symmetries.permutations.shape[1]}")
    return symmetries


def distinct(matrices: Array, group: Symmetries) -> IntArray:
    """Members of the group that make (layers, n, n) different: the first of each kind, in order.

    A reference often has symmetries of its own. Distances on a 4 × 4 grid survive a flip and a transpose,
    so 144 of the 1152 relabellings are enough; the row-and-column relation survives all, so one is.
    """
    scale = np.abs(matrices).max() or 1.0
    rounded = np.round(_relabelled(matrices, group.permutations) / scale, 9) + 0.0  # no −0.0
    first: IntArray = np.unique(rounded.reshape(len(rounded), matrices.size), axis=0, return_index=True)[1]
    return np.sort(first)


def first_best(values: Array) -> IntArray:
    """Index of the largest along the last axis; the first of equals (rounding apart): identity wins ties."""
    best: IntArray = (values >= values.max(axis=-1, keepdims=True) - 1e-9).argmax(axis=-1)
    return best


def shuffles(n: int, count: int, rng: np.random.Generator | None) -> IntArray:
    """`count` random orders of n tokens (count, n); none without a generator."""
    if count < 0:
        raise InputError(f"permutations: expected 0 or more, found {count}")
    if rng is None:
        return np.empty((0, n), dtype=np.intp)
    return rng.permuted(np.tile(np.arange(n, dtype=np.intp), (count, 1)), axis=1)


def match(x: Array, y: Array, group: Symmetries, orders: IntArray) -> tuple[Array, Alignment, Array]:
    """Inner products by layer ⟨x, y relabelled⟩ (layers,) where their mean over layers is largest.

    x and y are (layers, n, n). Also returns the alignment and the same quantity, with the same freedom to
    choose a relabelling, for x with its tokens shuffled by each of `orders` (m, n): the null (m, layers).
    """
    members = distinct(y, group)
    layers, n, _ = x.shape

    def flat(matrices: Array, orders: IntArray) -> Array:  # (layers, m, n²)
        return _relabelled(matrices, orders).reshape(len(orders), layers, n * n).swapaxes(0, 1)

    candidates = flat(y, group.permutations[members]).swapaxes(1, 2)  # (layers, n², g)

    def best(some: IntArray) -> tuple[Array, IntArray]:
        products = flat(x, some) @ candidates  # (layers, m, g)
        chosen = first_best(products.mean(axis=0))  # (m,)
        return products[:, np.arange(len(some)), chosen].T, chosen

    values, chosen = best(np.arange(n, dtype=np.intp)[None])
    member = members[chosen[0]]
    chunks = np.array_split(orders, 1 + len(orders) * layers * (n * n + len(members)) // 2**22)
    null = np.concatenate([best(chunk)[0] for chunk in chunks])
    return values[0], Alignment(group.permutations[member], group.words[member]), null


def _relabelled(matrices: Array, permutations: IntArray) -> Array:
    """Rows and columns of (layers, n, n) taken in each of the orders (g, n): (g, layers, n, n)."""
    taken: Array = matrices[:, permutations[:, :, None], permutations[:, None, :]]
    return taken.swapaxes(0, 1)


def _words(rows: bool, cols: bool, transposed: bool) -> str:
    said = [("transposed", transposed), ("rows reordered", rows), ("columns reordered", cols)]
    return ", ".join(word for word, true in said if true) or "identity"
