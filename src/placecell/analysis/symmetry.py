"""Relabellings of the tokens that a task cannot tell apart, and comparisons up to relabelling.

A Latin square stays one when its rows or columns are reordered or it is transposed. A model that
learned any of these grids has learned the right thing, so a comparison with a reference uses the
best relabelling and reports which it was.
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
MOST = 100_000  # members of a group; a 5 × 5 grid has 28 800, a 6 × 6 grid 1 036 800


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group of relabellings of the tokens.

    Attributes
    ----------
    permutations : int array of shape (g, n)
        Member k maps token i to `permutations[k, i]`; the identity comes first.
    words : tuple of g str
        A description of each member.
    """

    permutations: IntArray  # (g, n)
    words: tuple[str, ...]  # (g,)


@dataclass(frozen=True, eq=False)
class Alignment:
    """The relabelling that a comparison used.

    Attributes
    ----------
    permutation : int array of shape (n,)
        Token i was compared with token `permutation[i]` of the reference.
    words : str
        A description of the relabelling.
    """

    permutation: IntArray  # (n,)
    words: str


def grid_symmetries(rows: int, cols: int) -> Symmetries:
    """List all symmetries of a grid whose cells are numbered row by row.

    These are the R!·C! reorderings of its rows and columns and, if R = C, their transposes. With ρ
    an order of the rows and γ an order of the columns, cell (i, j) goes to (ρ(i), γ(j)), or to
    (ρ(j), γ(i)) if transposed.

    Parameters
    ----------
    rows, cols : int
        Size R × C of the grid.

    Returns
    -------
    Symmetries

    Examples
    --------
    >>> len(grid_symmetries(4, 4).words)  # 2 · (4!)²
    1152
    >>> grid_symmetries(1, 2).words
    ('identity', 'columns reordered')
    """
    if rows < 1 or cols < 1:
        raise InputError(f"grid: expected at least one row and one column, found {rows} × {cols}")
    size = factorial(rows) * factorial(cols) * (2 if rows == cols > 1 else 1)
    if size > MOST:
        raise InputError(
            f"grid: expected at most {MOST} symmetries, found {size} for {rows} × {cols}"
        )
    rho, gamma = (np.array(list(orders_of(range(k))), dtype=np.intp) for k in (rows, cols))
    grids = rho[:, None, :, None] * cols + gamma[None, :, None, :]  # (R!, C!, R, C)
    grids = grids.reshape(-1, rows, cols)
    words = [_words(i > 0, j > 0, False) for i in range(len(rho)) for j in range(len(gamma))]
    if rows == cols > 1:
        grids = np.concatenate([grids, grids.swapaxes(1, 2)])
        words += [_words(i > 0, j > 0, True) for i in range(len(rho)) for j in range(len(gamma))]
    return Symmetries(grids.reshape(size, rows * cols), tuple(words))


def rectangle_symmetries(rows: int, cols: int) -> Symmetries:
    """List the flips and turns of a grid whose cells are numbered row by row.

    A square has eight, a rectangle four.

    Parameters
    ----------
    rows, cols : int
        Size of the grid.

    Returns
    -------
    Symmetries

    Examples
    --------
    >>> len(rectangle_symmetries(4, 4).words), len(rectangle_symmetries(2, 3).words)
    (8, 4)
    """
    if rows < 1 or cols < 1:
        raise InputError(f"grid: expected at least one row and one column, found {rows} × {cols}")
    grid = np.arange(rows * cols, dtype=np.intp).reshape(rows, cols)
    words = {
        "identity": grid,
        "rows reversed": grid[::-1],
        "columns reversed": grid[:, ::-1],
        "turned by 180°": grid[::-1, ::-1],
    }
    if rows == cols:
        turned = {
            "transposed": grid.T,
            "turned by 90°": grid.T[::-1],
            "turned by 270°": grid.T[:, ::-1],
            "transposed along the other diagonal": grid.T[::-1, ::-1],
        }
        words |= turned
    orders = np.stack([order.flatten() for order in words.values()])
    return Symmetries(orders, tuple(words))


def renumbered(symmetries: Symmetries, cells: IntArray) -> Symmetries:
    """Give a group for tokens that stand at the cells of a grid in another order.

    Parameters
    ----------
    symmetries : Symmetries
        Relabellings of the n cells.
    cells : int array of shape (n,)
        The cell of each token.

    Returns
    -------
    Symmetries
        The same relabellings, of the tokens.
    """
    token_at = np.argsort(cells)
    return Symmetries(token_at[symmetries.permutations[:, cells]], symmetries.words)


def group_for(n: int, symmetries: Symmetries | None) -> Symmetries:
    """Return the given group after checking that it acts on n tokens.

    Parameters
    ----------
    n : int
        Number of tokens.
    symmetries : Symmetries or None
        None stands for the group that has only the identity.

    Returns
    -------
    Symmetries
    """
    if symmetries is None:
        return Symmetries(np.arange(n, dtype=np.intp)[None], ("identity",))
    if symmetries.permutations.shape[1] != n:
        raise InputError(
            f"symmetries: expected {n} tokens, found {symmetries.permutations.shape[1]}"
        )
    return symmetries


def distinct(matrices: Array, group: Symmetries) -> IntArray:
    """Find the members of a group that give different relabelled matrices.

    A reference often has symmetries of its own, so that fewer relabellings have to be tried.
    Distances on a 4 × 4 grid do not change under flips and transposition, so 144 of the 1152
    relabellings are enough; the row-and-column relation never changes, so one is enough.

    Parameters
    ----------
    matrices : array of shape (layers, n, n)
    group : Symmetries

    Returns
    -------
    int array
        Indices into the group, ascending: the first member for each different result.
    """
    scale = np.abs(matrices).max() or 1.0
    rounded = np.round(_relabelled(matrices, group.permutations) / scale, 9) + 0.0  # no −0.0
    flat = rounded.reshape(len(rounded), matrices.size)
    first: IntArray = np.unique(flat, axis=0, return_index=True)[1]
    return np.sort(first)


def first_best(values: Array) -> IntArray:
    """Find the index of the largest value along the last axis.

    Of values that are equal up to rounding the first is taken, so that the identity wins ties.

    Parameters
    ----------
    values : array of shape (..., g)

    Returns
    -------
    int array of shape (...)
    """
    best: IntArray = (values >= values.max(axis=-1, keepdims=True) - 1e-9).argmax(axis=-1)
    return best


def shuffles(n: int, count: int, rng: np.random.Generator | None) -> IntArray:
    """Draw random orders of n tokens.

    Parameters
    ----------
    n : int
        Number of tokens.
    count : int
        Number of orders.
    rng : numpy.random.Generator or None
        None draws no orders.

    Returns
    -------
    int array of shape (count, n), or (0, n) without a generator
    """
    if count < 0:
        raise InputError(f"permutations: expected 0 or more, found {count}")
    if rng is None:
        return np.empty((0, n), dtype=np.intp)
    return rng.permuted(np.tile(np.arange(n, dtype=np.intp), (count, 1)), axis=1)


def match(
    x: Array, y: Array, group: Symmetries, orders: IntArray
) -> tuple[Array, Alignment, Array]:
    """Compute ⟨x, y relabelled⟩ per layer, for the relabelling with the largest mean over layers.

    Parameters
    ----------
    x, y : array of shape (layers, n, n)
    group : Symmetries
        Relabellings of y to choose from.
    orders : int array of shape (m, n)
        Orders of the tokens of x for the null.

    Returns
    -------
    values : array of shape (layers,)
        The inner products.
    alignment : Alignment
        The relabelling that was chosen.
    null : array of shape (m, layers)
        The inner products for x shuffled by each of the orders, choosing among the same
        relabellings.
    """
    members = distinct(y, group)
    layers, n, _ = x.shape

    def flat(matrices: Array, orders: IntArray) -> Array:  # (layers, m, n²)
        return _relabelled(matrices, orders).reshape(len(orders), layers, n * n).swapaxes(0, 1)

    candidates = flat(y, group.permutations[members]).swapaxes(1, 2)  # (layers, n², g)

    def best(some_orders: IntArray) -> tuple[Array, IntArray]:
        products = flat(x, some_orders) @ candidates  # (layers, m, g)
        chosen = first_best(products.mean(axis=0))  # (m,)
        return products[:, np.arange(len(some_orders)), chosen].T, chosen

    values, chosen = best(np.arange(n, dtype=np.intp)[None])
    member = members[chosen[0]]
    chunks = np.array_split(orders, 1 + len(orders) * layers * (n * n + len(members)) // 2**22)
    null = np.concatenate([best(chunk)[0] for chunk in chunks])
    return values[0], Alignment(group.permutations[member], group.words[member]), null


def _relabelled(matrices: Array, permutations: IntArray) -> Array:
    """Relabel (layers, n, n) by each of the permutations (g, n): (g, layers, n, n)."""
    taken: Array = matrices[:, permutations[:, :, None], permutations[:, None, :]]
    return taken.swapaxes(0, 1)


def _words(rows: bool, cols: bool, transposed: bool) -> str:
    changes = [("transposed", transposed), ("rows reordered", rows), ("columns reordered", cols)]
    return ", ".join(word for word, applies in changes if applies) or "identity"
