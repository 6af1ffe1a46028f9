"""Images and labels from scikit-learn, or from the user's files: .npz, a folder, or idx."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
LARGEST = 1e15  # value of a pixel; models reckon in 32 bits
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size.

    Attributes
    ----------
    name : str
        Where they come from, for messages.
    pixels : array of shape (b, height, width, channels)
    labels : int array of shape (b,), optional
        Class of each image, from 0; None if not known.
    classes : tuple of str
        Names of the classes.
    """

    name: str
    pixels: NDArray[np.float64]
    labels: NDArray[np.int64] | None
    classes: tuple[str, ...]


def load_digits() -> Images:
    """Return scikit-learn's handwritten digits.

    Returns
    -------
    Images
        1797 images of 8 × 8 pixels, values 0 to 16.
    """
    from sklearn.datasets import load_digits as load

    digits = load()
    return Images(
        "digits",
        digits.images[..., None].astype(np.float64),
        digits.target.astype(np.int64),
        tuple(map(str, digits.target_names)),
    )


def load_files(path: Path, labels: Path | None) -> Images:
    """Read images, and labels where there are some.

    Parameters
    ----------
    path : Path
        An .npz with `images` and `labels`; a folder of images, in a subfolder for each class or all
        together; or an idx file (.gz or not).
    labels : Path, optional
        An idx file of labels, beside an idx file of images.

    Returns
    -------
    Images
        Checked: more than one image, all of one size, a label for each.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file or folder (looked for from {Path.cwd()}).")
    given: NDArray[Any] | None
    if path.is_dir():
        pixels, given = _folder(path)
    elif path.suffix == ".npz":
        pixels, given = _npz(path)
    else:
        pixels, given = _idx(path), None
    if labels is not None:
        if path.is_dir() or path.suffix == ".npz":
            raise InputError(f"{labels}: `labels` is for idx files; {path} has labels of its own.")
        given = _idx(labels)
    return _checked(str(path), pixels, given)


def _checked(name: str, pixels: NDArray[Any], labels: NDArray[Any] | None) -> Images:
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    if pixels.ndim != 4 or 0 in pixels.shape:
        raise InputError(
            f"{name}: expected images × height × width (× channels), found {pixels.shape}."
        )
    if len(pixels) < 2:
        raise InputError(f"{name}: one image; at least two are needed.")
    if pixels.dtype.kind not in "biuf" or not (np.abs(pixels * 1.0) <= LARGEST).all():
        raise InputError(f"{name}: pixels must be finite numbers, at most {LARGEST:g}.")
    if labels is None:
        return Images(name, pixels.astype(np.float64), None, ())
    if labels.shape != (len(pixels),):
        raise InputError(
            f"{name}: {len(pixels)} images and labels of shape {labels.shape}; expected one label "
            "an image."
        )
    if labels.dtype.kind not in "biufUS" or (labels.dtype.kind == "f" and (labels % 1 != 0).any()):
        raise InputError(f"{name}: labels must be whole numbers or words.")
    classes, numbers = np.unique(labels, return_inverse=True)
    return Images(
        name, pixels.astype(np.float64), numbers.astype(np.int64), tuple(map(str, classes))
    )


def _npz(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    try:
        with np.load(path, allow_pickle=False) as file:
            if "images" not in file:
                raise InputError(
                    f"{path}: expected an array `images`, found {', '.join(file.files) or 'none'}."
                )
            return file["images"], file.get("labels")
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: not an .npz of plain arrays; write one with "
            "numpy.savez(file, images=…, labels=…)."
        ) from None


def _folder(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError("a folder of images needs Pillow: pip install pillow.") from None
    files = sorted(p for p in path.rglob("*") if p.suffix.lower() in PICTURES)
    if not files:
        raise InputError(f"{path}: no image here (looked for {', '.join(PICTURES)}).")
    pictures: list[NDArray[Any]] = []
    for file in files:
        try:
            with Image.open(file) as opened:
                grey = opened.mode in ("1", "L", "I", "F", "I;16")
                picture = np.asarray(opened if grey else opened.convert("RGB"), dtype=np.float64)
        except (OSError, UnidentifiedImageError, ValueError) as error:
            raise InputError(f"{file}: cannot be read as an image ({error}).") from None
        picture = picture if picture.ndim == 3 else picture[..., None]
        if pictures and picture.shape != pictures[0].shape:
            sizes = (_size(picture), _size(pictures[0]))
            raise InputError(
                f"{file}: {sizes[0]}, but {files[0]} has {sizes[1]}; all must have one size."
            )
        pictures.append(picture)
    parents = [file.relative_to(path).parts[:-1] for file in files]
    named = all(parents)
    labels = np.array([part[0] for part in parents]) if named else None
    return np.stack(pictures), labels


def _size(picture: NDArray[Any]) -> str:
    height, width, channels = picture.shape
    return f"{height} × {width} pixels of {channels} channel{'s' if channels > 1 else ''}"


def _idx(path: Path) -> NDArray[Any]:
    """An array in the format of MNIST's files: two zeros, type, dimensions, sizes, then values."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({why}).") from None
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise InputError(f"{path}: expected an .npz, a folder of images, or an idx file.")
    dims = content[3]
    start = 4 + 4 * dims
    sizes = np.frombuffer(content[4:start], ">u4").astype(int)
    kind = np.dtype(IDX_TYPES[content[2]])
    expected = int(np.prod(sizes)) * kind.itemsize
    if len(sizes) != dims or len(content) - start != expected:
        raise InputError(
            f"{path}: an idx file of {' × '.join(map(str, sizes))} values has {expected} bytes "
            f"after its header, found {len(content) - start}."
        )
    return np.frombuffer(content[start:], kind).reshape(tuple(sizes))
