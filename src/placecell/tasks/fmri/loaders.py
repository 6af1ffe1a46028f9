"""Time series of regions from the user's own files: NumPy, text, MATLAB, CIFTI, or a 4D image with an atlas."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from placecell import files
from placecell.errors import InputError
from placecell.tasks.fmri.fetch import cache

Array = NDArray[np.float64]
KNOWN = ".npy, .npz, .csv, .tsv, .mat, .ptseries.nii, or .nii/.nii.gz with an atlas"
LEAST_VOLUMES = 50  # of a run: fewer say next to nothing of how regions go together
MOST_REGIONS = 1100  # of the parcellations in use; an axis that is longer is time
NO_TIME = 20  # an axis shorter than this is not time: nobody stops a scan so soon
NEED_EXTRA = "{}: reading NIfTI needs nibabel and nilearn; install them with: pip install 'placecell[fmri]'"


class Series(NamedTuple):
    """The time series of one run, and the names of its regions where the file has them."""

    values: Array  # time n
    names: tuple[str, ...] = ()
    seconds: float | None = None  # a volume, where the file says it


def load_series(path: Path, orientation: str = "auto", atlas: str | None = None, regions: int | None = None) -> Series:
    """The time series of one run.

    `orientation` says how a matrix lies, `time-first` or `regions-first`; `auto` works it out from the number of
    `regions`, where that is known, from names over the columns (they are regions), or where one axis only can be time,
    and asks otherwise. CIFTI and 4D images say it themselves.
    """
    if path.is_dir():
        raise InputError(f"{path}: a folder; name its files, with a pattern such as {path.name}/*_timeseries.tsv.")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    name = path.name.lower()
    if name.endswith(".ptseries.nii"):
        return _cifti(path)
    if name.endswith((".nii", ".nii.gz")):
        return _image(path, atlas)
    if name.endswith((".csv", ".tsv")):
        matrix, names = _text(path, counted=True)  # so tables without names are saved by many programs
        if names and orientation != "regions-first":
            return Series(matrix, names)
    elif name.endswith((".npy", ".npz")):
        found = _numpy(path)
        matrix = _one_matrix(path, {"": found} if isinstance(found, np.ndarray) else found)
    elif name.endswith(".mat"):
        matrix = _one_matrix(path, _matlab(path))
    else:
        raise InputError(f"{path}: not a file of time series that is known here; expected {KNOWN}.")
    return Series(_oriented(path, matrix, orientation, regions))


def load_confounds(path: Path, pattern: str, volumes: int) -> Array:
    """The confounds (volumes c) of the run at `path`, from the one file beside it that fits the pattern.

    A file of another person, session or run is not taken; of several that fit, the one whose name begins most like the
    run's is. Empty cells, as derivatives have in their first row, count as 0.
    """
    try:
        found = [p for p in path.parent.glob(pattern) if p != path]
    except (ValueError, NotImplementedError):
        raise InputError(
            f"confounds: {pattern!r} is no pattern of names beside a run, such as *_confounds.tsv."
        ) from None
    found = [p for p in found if p.name == pattern or _same_run(p.name, path.name)]
    shared = {p: len(_common(p.name, path.name)) for p in found}
    best = [p for p in found if shared[p] == max(shared.values())]
    if len(best) != 1:
        names = ", ".join(sorted(p.name for p in best)) or "none"
        raise InputError(f"{path}: expected one file of its confounds beside it ({pattern}), found {names}.")
    matrix, _ = _text(best[0], blank=0.0)
    if len(matrix) != volumes:
        raise InputError(f"{best[0]}: {len(matrix)} rows for the {volumes} volumes of {path.name}.")
    if not np.isfinite(matrix).all():
        column = int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])
        raise InputError(f"{best[0]}: column {column + 1} has values that are not finite.")
    return matrix


def words(path: Path) -> list[str]:
    """The lines of a text file, empty ones at the end apart."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").rstrip().splitlines()]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file (looked for from {Path.cwd()}).") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error}).") from None


def numbers(path: Path) -> Array:
    """A table of numbers, separated by commas, tabs or spaces, with or without a row of names."""
    return _text(path)[0]


def _text(path: Path, blank: float = np.nan, counted: bool = False) -> tuple[Array, tuple[str, ...]]:
    """A table of numbers and the names in its first row, if those are names; 0, 1, 2, … or 1, 2, 3, … may be `counted`
    among them. Blank and `n/a` cells become `blank`."""
    if not any(words(path)):
        raise InputError(f"{path}: an empty file; expected a table of numbers.")
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    separator = next((s for s in ("\t", ",") if s in lines[0]), None)
    cells = [[cell.strip() for cell in line.split(separator)] for line in lines]
    named = any(not _is_number(cell) for cell in cells[0])
    heads = cells[0][1:] if not cells[0][0] else cells[0]
    named |= counted and heads in [[str(i + first) for i in range(len(heads))] for first in (0, 1)]
    rows = cells[1:] if named else cells
    for number, row in enumerate(rows, 1 + named):
        if len(row) != len(cells[0]):
            raise InputError(f"{path}: line {number} has {len(row)} cells, the first has {len(cells[0])}.")
        wrong = next((cell for cell in row if not _is_number(cell)), None)
        if wrong is not None:
            raise InputError(f"{path}: line {number} has {wrong!r} where a number was expected.")
    if not rows:
        raise InputError(f"{path}: a row of names and no numbers.")
    matrix = np.array([[blank if c.lower() in BLANK else float(c) for c in row] for row in rows])
    if named and counted and not cells[0][0]:  # pandas writes its index so
        if not np.array_equal(matrix[:, 0], np.arange(len(matrix))):
            raise InputError(f"{path}: the first column has no name; name it, or leave it out if it is an index.")
        return matrix[:, 1:], tuple(cells[0][1:])
    return matrix, tuple(cells[0]) if named else ()


BLANK = ("", "n/a", "na")
RUN = ("ses", "task", "acq", "dir", "run", "echo")


def _is_number(cell: str) -> bool:
    if cell.lower() in BLANK:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numpy(path: Path) -> Any:
    """The content of a .npy or .npz file; one that holds Python objects (a pickle) is refused unread."""
    with path.open("rb") as file:
        first = file.read(6)
        file.seek(0)
        if first[:4] != b"PK\x03\x04" and first != b"\x93NUMPY":
            what = "a pickle, which could run code" if first[:1] == b"\x80" else "not a NumPy file"
            raise InputError(f"{path}: {what}; save plain numbers with numpy.save.")
        try:
            found = np.load(file, allow_pickle=False)
            return found if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
        except Exception as error:  # a cut or foreign zip fails in many ways
            if "pickle" in str(error):
                raise InputError(
                    f"{path}: holds a pickle, which could run code; save plain numbers with numpy.save."
                ) from None
            raise InputError(f"{path}: cannot be read as a NumPy file ({_first(error)}).") from None


def _matlab(path: Path) -> dict[str, Any]:
    try:
        return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    except NotImplementedError:
        raise InputError(f"{path}: a MATLAB 7.3 file; save it again with save(…, '-v7').") from None
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a MATLAB file ({error}).") from None


def _one_matrix(path: Path, found: dict[str, Any]) -> Array:
    """The one array of numbers with two axes (and more than one row and column) among those of a file."""
    fit = {
        name: value
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.ndim == 2 and min(value.shape) > 1 and value.dtype.kind in "fiu"
    }
    if len(fit) == 1:
        return np.asarray(next(iter(fit.values())), dtype=np.float64)
    if fit:
        raise InputError(f"{path}: several matrices ({', '.join(fit)}); keep the one of time series.")
    there = ", ".join(f"{name} {getattr(v, 'shape', '')}".strip() for name, v in found.items()) or "nothing"
    raise InputError(f"{path}: no matrix of time series (time × regions) in it, found {there}.")


def _oriented(path: Path, matrix: Array, orientation: str, regions: int | None) -> Array:
    if orientation == "time-first":
        return matrix
    if orientation == "regions-first":
        return matrix.T
    rows, columns = matrix.shape
    if regions is not None and (rows == regions) != (columns == regions):
        return matrix if columns == regions else matrix.T
    short, long = sorted(matrix.shape)
    if long < 2 * short or NO_TIME <= short <= long <= MOST_REGIONS:
        raise InputError(
            f"{path}: {rows} × {columns} could be time × regions or the reverse; "
            "say which with --orientation time-first or regions-first."
        )
    return matrix if rows > columns else matrix.T


def _cifti(path: Path) -> Series:
    try:
        import nibabel
    except ImportError:
        raise InputError(NEED_EXTRA.format(path)) from None
    try:
        image: Any = nibabel.load(path)
        axes = [image.header.get_axis(i) for i in range(image.ndim)]
        data = np.asarray(image.get_fdata(), dtype=np.float64)
    except Exception as error:
        raise InputError(f"{path}: cannot be read as CIFTI ({_first(error)}).") from None
    parcels = [i for i, axis in enumerate(axes) if type(axis).__name__ == "ParcelsAxis"]
    if data.ndim != 2 or len(parcels) != 1:
        raise InputError(f"{path}: expected a CIFTI file of time × parcels, found {data.shape}.")
    seconds = _seconds(getattr(axes[1 - parcels[0]], "step", None), getattr(axes[1 - parcels[0]], "unit", ""))
    return Series(data if parcels[0] == 1 else data.T, tuple(map(str, axes[parcels[0]].name)), seconds)


def _image(path: Path, atlas: str | None) -> Series:
    """The mean of each region of the atlas in every volume, kept in the cache: it takes seconds to minutes."""
    if atlas is None:
        raise InputError(f"{path}: an image needs an atlas; name its label image with --atlas.")
    try:
        from nilearn.image import index_img, load_img, resample_to_img
        from nilearn.maskers import NiftiLabelsMasker
    except ImportError:
        raise InputError(NEED_EXTRA.format(path)) from None
    if not Path(atlas).exists():
        raise InputError(f"{atlas}: no such file (the atlas).")
    seen = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in (path, Path(atlas))]
    kept = cache() / "parcellated" / f"{hashlib.sha256(repr(seen).encode()).hexdigest()[:16]}.npy"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nilearn's advice about resampling and deprecations
            image, whole = load_img(str(path)), load_img(atlas)
            if image.ndim != 4:
                raise InputError(f"{path}: expected a 4D image (a volume a time point), found one volume.")
            if whole.ndim != 3:
                raise InputError(f"{atlas}: expected a 3D label image as the atlas, found {whole.ndim} axes.")
            seconds = _seconds(image.header.get_zooms()[3], image.header.get_xyzt_units()[1])
            if kept.exists():
                return Series(np.asarray(_numpy(kept), dtype=np.float64), seconds=seconds)
            here = resample_to_img(whole, index_img(image, 0), "nearest", force_resample=True, copy_header=True)
            _check_regions(path, np.asarray(image.dataobj), np.asarray(here.dataobj), np.asarray(whole.dataobj))
            series = NiftiLabelsMasker(labels_img=here, standardize=False).fit_transform(image)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a 4D image with the atlas {atlas} ({_first(error)}).") from None
    buffer = io.BytesIO()
    np.save(buffer, series, allow_pickle=False)
    files.make_folder(kept.parent)
    files.write_bytes(kept, buffer.getvalue())
    return Series(np.asarray(series, dtype=np.float64), seconds=seconds)


def _seconds(step: Any, unit: str) -> float | None:
    """The time of a volume by a header; None where it does not say it in seconds or thousandths."""
    factor = {"sec": 1.0, "second": 1.0, "msec": 1e-3}.get(str(unit).lower())
    found = None if factor is None or step is None else factor * float(step)
    return found if found is not None and 0 < found < np.inf else None


def _check_regions(path: Path, data: NDArray[Any], here: NDArray[Any], whole: NDArray[Any]) -> None:
    """Refuse an image that does not cover every region of the atlas, or has NaNs in one: nilearn would leave the region
    out, and the columns of two runs would no longer be the same regions, or take the NaNs for 0."""
    gone = np.setdiff1d(np.unique(whole.round()), np.unique(here.round()))
    if len(gone):
        raise InputError(f"{path}: does not cover {len(gone)} regions of the atlas, the first with label {gone[0]:g}.")
    spoilt = np.unique(here[~np.isfinite(data).all(axis=-1)].round())
    spoilt = spoilt[spoilt != 0]
    if len(spoilt):
        raise InputError(f"{path}: region {spoilt[0]:g} has voxels that are not finite (NaN or infinite).")


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip().rstrip(".")


def _same_run(one: str, two: str) -> bool:
    """Whether two names may be of one run: the same beginning (a person), and none of the parts that tell runs apart
    (ses-1, task-rest, run-2, as in BIDS) with another value."""
    parts = [name.split(".")[0].split("_") for name in (one, two)]
    told = [dict(part.split("-", 1) for part in some if "-" in part) for some in parts]
    return parts[0][0] == parts[1][0] and all(
        told[0][key] == told[1].get(key, told[0][key]) for key in RUN if key in told[0]
    )


def _common(one: str, two: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return one[:length]
