"""Images to patches and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def cut(images: NDArray[Any], side: int) -> NDArray[Any]:
    """Cut images into square patches, row by row.

    Parameters
    ----------
    images : array of shape (b, height, width, channels)
        `side` divides height and width.
    side : int
        Side of a patch in pixels.

    Returns
    -------
    array of shape (b, patches, side * side * channels)
    """
    b, height, width, channels = images.shape
    rows, columns = height // side, width // side
    blocks = images.reshape(b, rows, side, columns, side, channels).swapaxes(2, 3)
    return blocks.reshape(b, rows * columns, side * side * channels)


def join(patches: NDArray[Any], side: int, rows: int, columns: int) -> NDArray[Any]:
    """Put patches together again.

    Parameters
    ----------
    patches : array of shape (b, rows * columns, side * side * channels)
    side : int
        Side of a patch in pixels.
    rows, columns : int
        Size of the grid of patches.

    Returns
    -------
    array of shape (b, rows * side, columns * side, channels)
    """
    b, channels = len(patches), patches.shape[-1] // side**2
    blocks = patches.reshape(b, rows, columns, side, side, channels).swapaxes(2, 3)
    return blocks.reshape(b, rows * side, columns * side, channels)


def shifted(
    images: NDArray[np.float64], most: int, empty: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Move every image by up to `most` pixels along each axis, filling up with `empty`.

    Parameters
    ----------
    images : array of shape (b, height, width, channels)
    most : int
        Largest number of pixels.
    empty : float
        Value of the pixels that come in from outside.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (b, height, width, channels)
    """
    _, height, width, _ = images.shape
    padded = np.pad(images, ((0, 0), (most, most), (most, most), (0, 0)), constant_values=empty)
    starts = rng.integers(0, 2 * most + 1, (len(images), 2))
    moved = [p[y : y + height, x : x + width] for p, (y, x) in zip(padded, starts, strict=True)]
    return np.stack(moved)
