"""The settings of the image task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from placecell.config.values import check_fields, option
from placecell.errors import InputError

MOST = 10**7  # images


@dataclass(frozen=True)
class Config:
    """Which images, how they are cut, and what is asked of them."""

    dataset: Literal["digits", "files"] = option(
        "digits", "scikit-learn's digits (1797 of 8 × 8 pixels), or `files` for one's own"
    )
    images: str | None = option(
        None, "one's own: an .npz (images, labels), a folder of images, or an idx file as MNIST's"
    )
    labels: str | None = option(None, "idx file of the labels, beside an idx file of images")
    patch: int = option(2, "side of a patch in pixels", at_least=1, at_most=4096)
    objective: Literal["classify", "masked"] = option(
        "classify", "say the class of an image, or the pixels of masked patches"
    )
    pooling: Literal["mean", "class-token"] = option(
        "mean", "where the class is read: the mean over patches, or a class token"
    )
    mask: float = option(0.5, "share of the patches masked (objective masked)", above=0, below=1)
    shift: int = option(
        0,
        "move training images by up to so many pixels at random; it gives neighbours away",
        at_least=0,
        at_most=1000,
    )
    n_train: int = option(500, "training images", at_least=2, at_most=MOST)
    n_valid: int = option(300, "validation images", at_least=1, at_most=MOST)
    n_test: int = option(900, "test images", at_least=1, at_most=MOST)
    split_seed: int = option(
        0, "seed of the split, the order of the patches, and the masks of held-out images"
    )
    contents: str | None = option(
        None, "digest of one's own images, filled in as they are read; others are refused"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dataset == "files" and self.images is None:
            raise InputError("dataset `files` needs `images`: an .npz, a folder, or an idx file.")
        own = [key for key in ("images", "labels", "contents") if getattr(self, key) is not None]
        if self.dataset == "digits" and own:
            raise InputError(f"{own[0]} is for one's own images; set `dataset` to files.")
