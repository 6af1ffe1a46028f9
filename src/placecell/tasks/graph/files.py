"""Read a graph of one's own, and tables of numbers with names."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from placecell.errors import InputError
from placecell.tasks.graph.config import Config
from placecell.tasks.graph.network import Array, Network, count_parts, numbered
from placecell.tasks.names import refuse_same_names, tidy
from placecell.tasks.tables import is_number, read_cells, split_left, to_numbers, words
from placecell.tasks.tables import read_table as read_text

LARGEST = 1e15  # of weights and values; models reckon in 32 bits
BINARY = (".npy", ".npz")


def load_graph(config: Config) -> Network:
    """Read and check a graph of one's own.

    Parameters
    ----------
    config : Config

    Returns
    -------
    Network
    """
    path = Path(str(config.adjacency))
    weights, heads = read_adjacency(path)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise InputError(f"{path}: an adjacency is square, found {weights.shape}.")
    n = len(weights)
    if n < 6:
        raise InputError(f"{path}: {n} nodes; at least six are needed.")
    if not (np.abs(weights) <= LARGEST).all():
        raise InputError(f"{path}: weights must be finite numbers, at most {LARGEST:g}.")
    if not np.allclose(weights, weights.T):
        i, j = np.argwhere(~np.isclose(weights, weights.T))[0]
        raise InputError(
            f"{path}: an adjacency is symmetric, but row {i + 1}, column {j + 1} is "
            f"{weights[i, j]:g} and the other way round {weights[j, i]:g}."
        )
    if (weights < 0).any():
        i, j = np.argwhere(weights < 0)[0]
        raise InputError(
            f"{path}: weights must not be negative; row {i + 1}, column {j + 1} is "
            f"{weights[i, j]:g}."
        )
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0.0)
    parts = count_parts(weights)
    if parts > 1:
        raise InputError(
            f"{path}: the graph falls into {parts} parts; it must be connected, so keep one part."
        )
    given, where = heads, str(path)
    if config.names is not None:
        given, where = tuple(words(Path(config.names))), config.names
        if len(given) != n:
            raise InputError(f"{where}: {len(given)} names for {n} nodes.")
    names = [tidy(name) for name in given] or numbered(n)
    if "" in names:
        raise InputError(f"{where}: the name of node {names.index('') + 1} is empty.")
    refuse_same_names(names, where, "nodes")
    return Network(weights, tuple(names), named=bool(given))


def read_adjacency(path: Path) -> tuple[Array, tuple[str, ...]]:
    """Read a square table as programs write it: with names above, to the left, both or neither.

    Parameters
    ----------
    path : Path
        As `read_table` reads it.

    Returns
    -------
    weights : array of shape (n, n)
    names : tuple of str
        Of the columns, or of the rows; empty if there are none.
    """
    if path.suffix in BINARY or path.is_dir():
        return read_table(path)
    cells = read_cells(path)
    corner, *above = cells[0]
    if (not corner or not is_number(corner)) and [row[0] for row in cells[1:]] == above:
        # the same above and to the left, so even numbers (or `NA`) are names
        return to_numbers(path, [row[1:] for row in cells[1:]])[0], tuple(above)
    left, cells = split_left(cells)
    weights, names = to_numbers(path, cells, counted=True)
    if len(weights) < weights.shape[1]:
        plain, heads = to_numbers(path, cells)  # weights 0, 1, 2, … in the first row are no names
        weights, names = (weights, names) if heads else (plain, ())
    if not left:
        return weights, names
    left = left[1:] if names else left
    other = [i for i, name in enumerate(names[: len(left)]) if tidy(name) != tidy(left[i])]
    if other:
        i = other[0]
        raise InputError(
            f"{path}: row {i + 1} is called {left[i]!r} and column {i + 1} {names[i]!r}; an "
            "adjacency has the same nodes in both, in one order."
        )
    return weights, tuple(left)


def read_table(path: Path) -> tuple[Array, tuple[str, ...]]:
    """Read a table of numbers from .npy, .npz (its first array) or a text file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    values : array of shape (rows, columns)
    names : tuple of str
        Of the columns; empty if there are none.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected the name of a file in it.")
    if path.suffix not in BINARY:
        return read_text(path, counted=True)
    try:
        return load_array(path), ()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file (looked for from {Path.cwd()}).") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        why = "damaged, or Python objects" if "pickle" in str(error) else error
        raise InputError(f"{path}: not a plain array of numbers ({why}).") from None


def load_array(path: Path) -> Array:
    """Load an .npy file, or the first array of an .npz file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    array
    """
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.ndarray):
        with loaded as file:
            if not file.files:
                raise ValueError("it is empty")
            loaded = file[file.files[0]]
    if np.iscomplexobj(loaded):
        raise ValueError("its numbers are complex")
    return np.asarray(loaded, dtype=np.float64)
