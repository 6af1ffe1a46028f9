"""Runs of fMRI, read and checked: from the cache of `placecell fetch`, or from one's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.tasks.fmri.config import HCP_SECONDS, Config
from placecell.tasks.fmri.fetch import folder_of
from placecell.tasks.fmri.loaders import LEAST_VOLUMES, load_confounds, load_series
from placecell.tasks.names import refuse_same_names, tidy
from placecell.tasks.tables import numbers, words

Array = NDArray[np.float64]
YEO7 = (
    "Visual",
    "Somatomotor",
    "Dorsal attention",
    "Ventral attention",
    "Limbic",
    "Frontoparietal",
    "Default",
)
GAP = 20  # volumes left out between parts of a run, which would be alike
SAME = 1e-6  # correlation this near to 1 makes two regions one


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one person.

    Attributes
    ----------
    name : str
        Where it was read from, for messages.
    subject, session, scanner : str
        Whose run it is, and where it was made.
    series : ndarray
        A time series for each region (time n).
    confounds : ndarray or None
        Confounds (time c).
    regions : tuple of str
        Names of the regions; empty if the file has none.
    seconds : float or None
        Seconds per volume; None if not known.
    """

    name: str  # for messages: where it was read from
    subject: str
    session: str
    scanner: str
    series: Array  # time n
    confounds: Array | None = None  # time c
    regions: tuple[str, ...] = ()  # their names, where the file has them
    seconds: float | None = None  # a volume, where it is known

    def region(self, index: int) -> str:
        """Name a region in a message.

        Parameters
        ----------
        index : int
            Number of the region, from 0.

        Returns
        -------
        str
        """
        named = self.regions and self.regions[index]
        return f"region {index + 1}" + (f" ({named})" if named else "")


@dataclass(frozen=True, eq=False)
class Regions:
    """What is known of the regions besides their time series; None where it is not known.

    Attributes
    ----------
    n : int
        Number of regions.
    networks : ndarray or None
        The network of each region (n).
    names : tuple of str
        Names of the networks.
    centroids : ndarray or None
        Coordinates in mm (n 3).
    sphere : ndarray or None
        Coordinates on the spherical surface of the hemisphere, for spins (n 3).
    mirror : ndarray or None
        The same number for both regions of a pair across the hemispheres (n).
    group_fc : ndarray or None
        Functional connectivity of other people (n n).
    """

    n: int
    networks: NDArray[np.int64] | None = None  # n
    names: tuple[str, ...] = ()  # of the networks
    centroids: Array | None = None  # n 3, in mm
    sphere: Array | None = None  # n 3, on the spherical surface of its hemisphere, for spins
    mirror: NDArray[np.int64] | None = None  # n: pairs across the hemispheres have the same number
    group_fc: Array | None = None  # n n, of other people


def load_regions(config: Config, n: int) -> Regions:
    """Load what is known of the regions.

    Parameters
    ----------
    config : Config
        The settings.
    n : int
        Number of regions.

    Returns
    -------
    Regions
    """
    if config.dataset == "hcp-schaefer100":
        at = folder_of(config.dataset)
        return Regions(
            n,
            np.loadtxt(at / "ctx_parc-schaefer-100_desc-yeo7.txt").astype(np.int64),
            YEO7,
            np.loadtxt(at / "centroids.csv", delimiter=","),
            np.loadtxt(at / "sphere.csv", delimiter=","),
            None,
            npz(at / "ctx_parc-schaefer-100_desc-fc.npz"),
        )
    if config.dataset == "hcp-aal2":
        # the atlas lists left and right in turn
        return Regions(n, mirror=np.repeat(np.arange(n // 2), 2))
    networks: NDArray[np.int64] | None = None
    names: tuple[str, ...] = ()
    centroids: Array | None = None
    if config.networks is not None:
        labels = words(Path(config.networks))
        if "" in labels:
            raise InputError(
                f"{config.networks}: line {labels.index('') + 1} is empty; expected one label per "
                f"region."
            )
        if len(labels) != n:
            raise InputError(
                f"{config.networks}: {len(labels)} labels for {n} regions; expected one each."
            )
        kinds, networks = np.unique(labels, return_inverse=True)
        names = tuple(map(str, kinds))
        if len(names) < 2:
            raise InputError(
                f"{config.networks}: every region has the label {labels[0]!r}; expected two "
                f"networks or more."
            )
    if config.centroids is not None:
        centroids = numbers(Path(config.centroids))
        if centroids.shape != (n, 3):
            raise InputError(
                f"{config.centroids}: expected x, y, z for {n} regions, found {centroids.shape}."
            )
        if not np.isfinite(centroids).all() or len(np.unique(centroids, axis=0)) < n:
            raise InputError(
                f"{config.centroids}: expected finite numbers, and a place of its own for each "
                f"region."
            )
    return Regions(n, networks, names, centroids)


def load_runs(config: Config) -> dict[str, list[Run]]:
    """Load and check the runs to train on and to test on.

    Parameters
    ----------
    config : Config
        The settings.

    Returns
    -------
    dict
        The runs of `train` and `test`.
    """
    by = config.split or "session"
    if config.dataset == "files":
        runs = {"train": _own(config, config.train_files)}
        if config.test_share is None:
            runs["test"] = _own(config, config.test_files)
        else:
            _refuse_repeats(runs)  # before parts of a run that came twice look different
            runs = _cut(runs["train"], config.test_share)
    elif config.dataset == "hcp-schaefer100":
        runs = _split(_schaefer(folder_of(config.dataset)), config.dataset, by)
    else:
        runs = _split(_aal2(folder_of(config.dataset)), config.dataset, by)
    every = [run for part in runs.values() for run in part]
    n = every[0].series.shape[1]
    for run in every:
        if run.series.shape[1] != n:
            raise InputError(f"{run.name}: {run.series.shape[1]} regions; {every[0].name} has {n}.")
        check(run)
    named = [run for run in every if run.regions]
    for run in named:
        other = [i for i in range(n) if run.regions[i] != named[0].regions[i]]
        if other:
            raise InputError(
                f"{run.name}: {run.region(other[0])} is {named[0].region(other[0])} in "
                f"{named[0].name}."
            )
    if named:
        refuse_same_names(named_regions(named[0].regions, n), named[0].name, "regions")
    _refuse_repeats(runs)
    return runs


def named_regions(names: Sequence[str], n: int) -> list[str]:
    """Return a name for each region: its own, or its number where it has none.

    Parameters
    ----------
    names : sequence of str
        Names of the n regions, some of which may be empty; or nothing.
    n : int
        Number of regions.

    Returns
    -------
    list of str

    Examples
    --------
    >>> named_regions(["V1", ""], 2)
    ['V1', 'region 2']
    """
    return [tidy(name) or f"region {i + 1}" for i, name in enumerate(names or [""] * n)]


def _refuse_repeats(runs: Mapping[str, Sequence[Run]]) -> None:
    """Refuse the same time series twice, and say what to do."""
    seen: dict[bytes, Run] = {}
    for split, part in runs.items():
        for run in part:
            first = seen.setdefault(hashlib.sha256(run.series.tobytes()).digest(), run)
            if first is not run:
                both = (
                    "a run to train on cannot be tested on as well: name another, or keep the last "
                    "part of each for the test with test_share = 0.2"
                    if split == "test"
                    else "each is needed once: leave one out"
                )
                raise InputError(
                    f"{run.name}: the same time series as {first.name}; {both}.",
                    "The option is --test-share 0.2." if split == "test" else "",
                )


def _cut(runs: Sequence[Run], share: float) -> dict[str, list[Run]]:
    """The first part of every run to train on and the last to test on, with a gap between."""
    parts: dict[str, list[Run]] = {"train": [], "test": []}
    for run in runs:
        last = round(share * len(run.series))
        cuts = {"train": slice(0, len(run.series) - last - GAP), "test": slice(-last, None)}
        for split, cut in cuts.items():
            words = "first part" if split == "train" else "last part"
            confounds = None if run.confounds is None else run.confounds[cut]
            name = f"{run.name} ({words})"
            parts[split].append(
                replace(run, name=name, series=run.series[cut], confounds=confounds)
            )
    return parts


def check(run: Run) -> None:
    """Refuse a run that nothing sensible can be learned from.

    Parameters
    ----------
    run : Run
        The run.

    Raises
    ------
    InputError
        For too few regions or volumes, values that are not finite, constant or repeated regions; it
        names the file and the region, counted from 1.
    """
    series = run.series
    if series.shape[1] < 2:
        raise InputError(f"{run.name}: one region; at least two are needed.")
    if len(series) < LEAST_VOLUMES:
        raise InputError(f"{run.name}: {len(series)} volumes; at least {LEAST_VOLUMES} are needed.")
    bad = np.flatnonzero(~np.isfinite(series).all(axis=0))
    if len(bad):
        raise InputError(
            f"{run.name}: {run.region(bad[0])} has values that are not finite (NaN or infinite)."
        )
    still = np.flatnonzero(series.std(axis=0) <= 1e-9 * np.abs(series).max(axis=0))
    if len(still):
        raise InputError(
            f"{run.name}: {run.region(still[0])} is constant; leave it out or use another atlas."
        )
    same = np.argwhere(np.triu(np.abs(np.corrcoef(series.T)), 1) > 1 - SAME)
    if len(same):
        one, two = (run.region(index) for index in same[0])
        raise InputError(f"{run.name}: {one} and {two} are duplicates of each other.")


def digest(runs: Mapping[str, Sequence[Run]], regions: Regions) -> str:
    """Compute a digest of all that was read.

    In single precision, because an average of voxels may differ in its last digits from one version
    of a library to the next.

    Parameters
    ----------
    runs : mapping
        The runs of each split.
    regions : Regions
        What is known of the regions.

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    seen = hashlib.sha256()
    parts: list[NDArray[Any] | None] = [regions.networks, regions.centroids]
    for split, of_split in runs.items():
        for run in of_split:
            seen.update(repr((split, run.subject, run.regions)).encode())
            parts += [run.series, run.confounds]
    for part in parts:
        seen.update(
            b"" if part is None else repr(part.shape).encode() + part.astype("<f4").tobytes()
        )
    return seen.hexdigest()[:12]


def npz(path: Path) -> Array:
    """Load the only array of an .npz file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ndarray
    """
    with np.load(path, allow_pickle=False) as file:
        return np.asarray(file["arr_0"], dtype=np.float64)


def _schaefer(at: Path) -> list[Run]:
    runs = []
    for path in sorted(at.glob("*_REST*_desc-bold.npz")):
        subject, session = path.name.split("_")[:2]
        runs.append(Run(str(path), subject, session, "HCP", npz(path).T, seconds=HCP_SECONDS))
    return runs


def _aal2(at: Path) -> list[Run]:
    runs = []
    for path in sorted(at.glob("*.mat")):
        scanner, subject = path.stem.split("-", 1)
        series = np.asarray(scipy.io.loadmat(path)["tc"], dtype=np.float64).T
        seconds = HCP_SECONDS if scanner == "HCP" else None  # the other scanner's files do not say
        runs.append(Run(str(path), subject, "rest", scanner, series, seconds=seconds))
    return runs


def _split(runs: Sequence[Run], dataset: str, by: str) -> dict[str, list[Run]]:
    """Training and test runs that differ in the session, the subject or the scanner."""
    values = sorted({getattr(run, by) for run in runs}, key=lambda v: (v != "HCP", v))
    if len(values) < 2:
        names = ", ".join(values)
        raise InputError(f"dataset {dataset} cannot be split by {by}: it has one only ({names}).")
    if by == "subject":
        # of one scanner only, so that training and test differ in people and in nothing else
        runs = [run for run in runs if run.scanner == "HCP"]
        values = sorted({run.subject for run in runs})
    test_values = set(values[-max(1, len(values) // 3) :]) if by == "subject" else set(values[1:])
    return {
        "train": [run for run in runs if getattr(run, by) not in test_values],
        "test": [run for run in runs if getattr(run, by) in test_values],
    }


def _own(config: Config, patterns: Sequence[str] | None) -> list[Run]:
    runs: list[Run] = []
    known = None if config.networks is None else len(words(Path(config.networks)))
    for pattern in filter(None, (part.strip() for part in patterns or ())):
        at = Path(pattern)
        try:
            paths = (
                [at]
                if at.exists()
                else sorted(Path(at.anchor or ".").glob(str(at.relative_to(at.anchor))))
            )
        except ValueError as error:
            raise InputError(f"{pattern}: not a pattern of file names ({error}).") from None
        if not paths:
            raise InputError(f"{pattern}: no such file (looked for from {Path.cwd()}).")
        for path in paths:
            series, names, seconds = load_series(path, config.orientation, config.atlas, known)
            configured = config.repetition_time
            if (
                seconds is not None
                and configured is not None
                and abs(seconds - configured) > 0.01 * configured
            ):
                raise InputError(
                    f"{path}: {seconds:g} s per volume by its header, not {configured:g} "
                    f"(repetition_time)."
                )
            confounds = (
                None
                if config.confounds is None
                else load_confounds(path, config.confounds, len(series))
            )
            subject = path.name.split("_")[0]
            runs.append(
                Run(
                    str(path),
                    subject,
                    path.name,
                    "own",
                    series,
                    confounds,
                    names,
                    seconds or configured,
                )
            )
    return runs
