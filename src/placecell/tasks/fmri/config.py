"""The settings of the fMRI task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from placecell.config.values import check_fields, option
from placecell.errors import InputError

HCP_SECONDS = 0.72  # a volume of the Human Connectome Project
OF_FILES = ("test_share", "atlas", "networks", "centroids", "confounds", "contents")


@dataclass(frozen=True)
class Config:
    """Whose data, how they are cleaned, what is held out, and how much of a volume is masked."""

    dataset: Literal["hcp-schaefer100", "hcp-aal2", "files"] = option(
        "hcp-schaefer100", "a dataset of `placecell fetch`, or `files` for one's own"
    )
    split: Literal["session", "subject", "scanner"] | None = option(
        None, "what of a fetched dataset is held out for the test; left out: session"
    )
    train_files: Sequence[str] | None = option(
        None, "one's own runs to train on: file names or patterns, joined by ;", separator=";"
    )
    test_files: Sequence[str] | None = option(
        None,
        "one's own runs to test on, likewise",
        separator=";",
    )
    test_share: float | None = option(
        None,
        "in place of test_files: the last part of every training run, kept for the test",
        above=0,
        at_most=0.5,
    )
    orientation: Literal["auto", "time-first", "regions-first"] = option(
        "auto", "axes of a matrix of time series; auto asks where they cannot be told apart"
    )
    atlas: str | None = option(None, "label image (NIfTI) whose regions are averaged in 4D images")
    networks: str | None = option(None, "text file with the network of each region, one per line")
    centroids: str | None = option(
        None, "text file with x, y, z of each region in mm, one region per line"
    )
    repetition_time: float | None = option(
        None, "seconds per volume, which a filter needs, where files do not say it", above=0
    )
    detrend: bool = option(True, "take away each region's straight line over a run")
    high_pass: float | None = option(None, "lowest frequency kept, in Hz; left out: all", above=0)
    low_pass: float | None = option(None, "highest frequency kept, in Hz; left out: all", above=0)
    confounds: str | None = option(
        None, "pattern of one file of confounds beside each run, such as *_confounds.tsv"
    )
    global_signal: bool = option(False, "take away what follows the mean over all regions")
    standardize: bool = option(True, "mean 0 and standard deviation 1 for each region of each run")
    mask: float = option(0.5, "share of the regions masked in a sample", above=0, below=1)
    flip: bool = option(
        False, "turn the sign of training samples at random: fluctuations have no up or down"
    )
    valid_share: float = option(
        0.1, "last part of each training run, kept for validation", above=0, at_most=0.5
    )
    split_seed: int = option(0, "seed of the masks of held-out volumes")
    contents: str | None = option(
        None, "digest of one's own files, filled in as they are read; others are refused"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dataset != "files" and self.repetition_time not in (None, HCP_SECONDS):
            raise InputError(
                f"repetition_time is {HCP_SECONDS} for {self.dataset}, not {self.repetition_time}."
            )
        if (
            self.high_pass is not None
            and self.low_pass is not None
            and self.high_pass >= self.low_pass
        ):
            raise InputError(
                f"high_pass ({self.high_pass} Hz) must be below low_pass ({self.low_pass} Hz)."
            )
        own = [key for key in ("train_files", "test_files") if getattr(self, key) is not None]
        if self.dataset == "files" and self.train_files is None:
            raise InputError("dataset files needs train_files.")
        if self.dataset == "files" and (self.test_files is None) == (self.test_share is None):
            raise InputError(
                "dataset files needs test_files, or test_share = 0.2 to keep the last part of "
                "every training run for the test; one of the two.",
                "The options are --test-files and --test-share.",
            )
        if self.dataset == "files" and self.split is not None:
            raise InputError(
                f"split {self.split!r} is for fetched datasets; of your own files test_files "
                f"says what is held out."
            )
        if self.dataset != "files":
            own += [k for k in OF_FILES if getattr(self, k) is not None]
            if own:
                raise InputError(
                    f"{own[0]} is for one's own data; set dataset to files (it is "
                    f"{self.dataset!r} now)."
                )
