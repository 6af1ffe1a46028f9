"""Load time series of regions: NumPy, text, MATLAB, CIFTI, or a 4D image with an atlas."""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.store import files
from placecell.tasks.fmri.fetch import cache
from placecell.tasks.tables import read_cells, read_table, split_left, to_numbers

Array = NDArray[np.float64]
KNOWN = ".npy, .npz, .csv, .tsv, .mat, .ptseries.nii, or .nii/.nii.gz with an atlas"
LEAST_VOLUMES = 50  # per run: fewer say almost nothing about how regions are related
MOST_REGIONS = 1100  # of common parcellations; a longer axis is time
RUN = ("ses", "task", "acq", "dir", "run", "echo")  # parts of a BIDS name that tell runs apart
NO_TIME = 20  # a shorter axis is not time: no scan is so short
NEED_EXTRA = (
    "{}: reading NIfTI needs nibabel and nilearn; install them with: pip install 'placecell[fmri]'"
)


class Series(NamedTuple):
    """The time series of one run.

    Attributes
    ----------
    values : array of shape (time, n)
    names : tuple of str
        Names of the n regions; empty if the file has none.
    seconds : float, optional
        Seconds per volume; None if the file does not say.
    """

    values: Array  # time n
    names: tuple[str, ...] = ()
    seconds: float | None = None


def load_series(
    path: Path, orientation: str = "auto", atlas: str | None = None, regions: int | None = None
) -> Series:
    """Load the time series of one run.

    Parameters
    ----------
    path : Path
        The file; its suffix says the format.
    orientation : "auto", "time-first" or "regions-first"
        The order of a matrix's axes. `auto` infers it from the number of regions if known, from
        column names (columns are regions), or from the sizes if only one axis can be time; it
        raises an error if both are possible. CIFTI files and 4D images need no orientation.
    atlas : str, optional
        Path of the label image that defines the regions of a 4D image.
    regions : int, optional
        The number of regions, if known.

    Returns
    -------
    Series
    """
    if path.is_dir():
        raise InputError(
            f"{path}: a folder; name its files, "
            f"with a pattern such as {path.name}/*_timeseries.tsv."
        )
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    name = path.name.lower()
    if name.endswith(".ptseries.nii"):
        return _cifti(path)
    if name.endswith((".nii", ".nii.gz")):
        return _image(path, atlas)
    if name.endswith((".csv", ".tsv")):
        # Many programs number the columns of a table that has no names.
        if orientation == "regions-first":
            left, cells = split_left(read_cells(path))
            matrix, times = to_numbers(path, cells, counted=True)
            return Series(matrix.T, tuple(left[1:] if times else left))
        matrix, names = read_table(path, counted=True)
        if names:
            return Series(matrix, names)
    elif name.endswith((".npy", ".npz")):
        content = _numpy(path)
        matrix = _one_matrix(path, {"": content} if isinstance(content, np.ndarray) else content)
    elif name.endswith(".mat"):
        matrix = _one_matrix(path, _matlab(path))
    else:
        raise InputError(f"{path}: not a file of time series that is known here; expected {KNOWN}.")
    return Series(_oriented(path, matrix, orientation, regions))


def load_confounds(path: Path, pattern: str, volumes: int) -> Array:
    """Load the confounds of a run from the file in its folder that matches a pattern.

    A file of another person, session or run is not used. If several match, the one that shares the
    longest beginning of its name with the run is used. Empty cells, such as those in the first row
    of derivatives, count as 0.

    Parameters
    ----------
    path : Path
        The file of the run.
    pattern : str
        Pattern of the confounds' file name, such as ``*_confounds.tsv``.
    volumes : int
        Number of volumes of the run.

    Returns
    -------
    array of shape (volumes, c)
    """
    try:
        matches = [p for p in path.parent.glob(pattern) if p != path]
    except (ValueError, NotImplementedError):
        raise InputError(
            f"confounds: {pattern!r} is no pattern of names beside a run, such as *_confounds.tsv."
        ) from None
    matches = [p for p in matches if p.name == pattern or _same_run(p.name, path.name)]
    shared = {p: len(_common(p.name, path.name)) for p in matches}
    best = [p for p in matches if shared[p] == max(shared.values())]
    if len(best) != 1:
        names = ", ".join(sorted(p.name for p in best)) or "none"
        raise InputError(
            f"{path}: expected one file of its confounds beside it ({pattern}), found {names}."
        )
    matrix, _ = read_table(best[0], blank=0.0)
    if len(matrix) != volumes:
        raise InputError(f"{best[0]}: {len(matrix)} rows for the {volumes} volumes of {path.name}.")
    if not np.isfinite(matrix).all():
        column = int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])
        raise InputError(f"{best[0]}: column {column + 1} has values that are not finite.")
    return matrix


def _numpy(path: Path) -> Any:
    """The content of a .npy or .npz file; a file with Python objects (a pickle) is not read."""
    with path.open("rb") as file:
        first = file.read(6)
        file.seek(0)
        if first[:4] != b"PK\x03\x04" and first != b"\x93NUMPY":
            what = "a pickle, which could run code" if first[:1] == b"\x80" else "not a NumPy file"
            raise InputError(f"{path}: {what}; save plain numbers with numpy.save.")
        try:
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return content
            return {name: content[name] for name in content.files}
        except Exception as error:  # a truncated or foreign zip fails in many ways
            if "pickle" in str(error):
                raise InputError(
                    f"{path}: holds a pickle, which could run code; "
                    "save plain numbers with numpy.save."
                ) from None
            raise InputError(f"{path}: cannot be read as a NumPy file ({_first(error)}).") from None


def _matlab(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat  # here, so that `placecell list` and `status` are quick

    try:
        return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    except NotImplementedError:  # a MATLAB 7.3 file is HDF5
        return _hdf5(path)
    except Exception as error:
        raise InputError(f"{path}: cannot be read as a MATLAB file ({error}).") from None


def _hdf5(path: Path) -> dict[str, Any]:
    """The arrays of numbers of a MATLAB 7.3 file, which stores them transposed."""
    try:
        import h5py
    except ImportError:
        raise InputError(
            f"{path}: a MATLAB 7.3 file; install h5py (pip install 'placecell[fmri]'), or save it "
            "again with save(…, '-v7')."
        ) from None
    try:
        with h5py.File(path, "r") as file:
            links = {name: file.get(name, getlink=True) for name in file}
            return {
                name: np.asarray(file[name]).T
                for name, link in links.items()
                # a link could lead to another file
                if isinstance(link, h5py.HardLink)
                and isinstance(file[name], h5py.Dataset)
                and not file[name].external
                and not file[name].is_virtual
                and file[name].dtype.kind in "fiu"
            }
    except Exception as error:  # a truncated or foreign file fails in many ways
        raise InputError(f"{path}: cannot be read as a MATLAB file ({_first(error)}).") from None


def _one_matrix(path: Path, content: dict[str, Any]) -> Array:
    """The only matrix of numbers in a file that has more than one row and column."""
    matrices = {
        name: value
        for name, value in content.items()
        if isinstance(value, np.ndarray)
        and value.ndim == 2
        and min(value.shape) > 1
        and value.dtype.kind in "fiu"
    }
    if len(matrices) == 1:
        return np.asarray(next(iter(matrices.values())), dtype=np.float64)
    if matrices:
        raise InputError(
            f"{path}: several matrices ({', '.join(matrices)}); keep the one of time series."
        )
    shapes = [f"{name} {getattr(v, 'shape', '')}".strip() for name, v in content.items()]
    listed = ", ".join(shapes) or "nothing"
    raise InputError(f"{path}: no matrix of time series (time × regions) in it, found {listed}.")


def _oriented(path: Path, matrix: Array, orientation: str, regions: int | None) -> Array:
    """Transpose a matrix to (time, regions) if needed."""
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
            "set orientation to time-first or regions-first."
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
    time = axes[1 - parcels[0]]
    seconds = _seconds(getattr(time, "step", None), getattr(time, "unit", ""))
    names = tuple(map(str, axes[parcels[0]].name))
    return Series(data if parcels[0] == 1 else data.T, names, seconds)


def _image(path: Path, atlas: str | None) -> Series:
    """The mean of each region of the atlas in every volume.

    The result is cached because it takes seconds to minutes.
    """
    if atlas is None:
        raise InputError(f"{path}: an image needs an atlas; set atlas to its label image.")
    try:
        from nilearn.image import index_img, load_img, resample_to_img
        from nilearn.maskers import NiftiLabelsMasker
    except ImportError:
        raise InputError(NEED_EXTRA.format(path)) from None
    if not Path(atlas).exists():
        raise InputError(f"{atlas}: no such file (the atlas).")
    paths = (path, Path(atlas))
    versions = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    key = hashlib.sha256(repr(versions).encode()).hexdigest()[:16]
    cached = cache() / "parcellated" / f"{key}.npy"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nilearn's advice about resampling and deprecations
            image, whole = load_img(str(path)), load_img(atlas)
            if image.ndim != 4:
                raise InputError(
                    f"{path}: expected a 4D image (one volume per time point), found one volume."
                )
            if whole.ndim != 3:
                raise InputError(
                    f"{atlas}: expected a 3D label image as the atlas, found {whole.ndim} axes."
                )
            seconds = _seconds(image.header.get_zooms()[3], image.header.get_xyzt_units()[1])
            if cached.exists():
                return Series(np.asarray(_numpy(cached), dtype=np.float64), seconds=seconds)
            resampled = resample_to_img(
                whole, index_img(image, 0), "nearest", force_resample=True, copy_header=True
            )
            _check_regions(path, *(np.asarray(i.dataobj) for i in (image, resampled, whole)))
            series = NiftiLabelsMasker(labels_img=resampled, standardize=False).fit_transform(image)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path}: cannot be read as a 4D image with the atlas {atlas} ({_first(error)})."
        ) from None
    buffer = io.BytesIO()
    np.save(buffer, series, allow_pickle=False)
    files.make_folder(cached.parent)
    files.write_bytes(cached, buffer.getvalue())
    return Series(np.asarray(series, dtype=np.float64), seconds=seconds)


def _seconds(step: Any, unit: str) -> float | None:
    """Seconds per volume by a header; None unless it is given in seconds or milliseconds."""
    factor = {"sec": 1.0, "second": 1.0, "msec": 1e-3}.get(str(unit).lower())
    if factor is None or step is None:
        return None
    seconds = factor * float(step)
    return seconds if 0 < seconds < np.inf else None


def _check_regions(
    path: Path, data: NDArray[Any], resampled: NDArray[Any], whole: NDArray[Any]
) -> None:
    """Raise an error for an image that misses a region of the atlas or has NaNs in one.

    nilearn would leave out a missing region, so that the columns of two runs would be different
    regions, and would treat NaNs as 0. `whole` is the atlas, and `resampled` is the atlas on the
    image's grid.
    """
    missing = np.setdiff1d(np.unique(whole.round()), np.unique(resampled.round()))
    if len(missing):
        raise InputError(
            f"{path}: does not cover {len(missing)} regions of the atlas, "
            f"the first with label {missing[0]:g}."
        )
    not_finite = np.unique(resampled[~np.isfinite(data).all(axis=-1)].round())
    not_finite = not_finite[not_finite != 0]
    if len(not_finite):
        raise InputError(
            f"{path}: region {not_finite[0]:g} has voxels that are not finite (NaN or infinite)."
        )


def _first(error: Exception) -> str:
    """The first line of an error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip().rstrip(".")


def _same_run(first: str, second: str) -> bool:
    """Whether two file names may belong to the same run.

    They start with the same person and agree in all parts that identify a run (ses-1, task-rest,
    run-2, as in BIDS) and occur in both.
    """
    parts = [name.split(".")[0].split("_") for name in (first, second)]
    if parts[0][0] != parts[1][0]:
        return False
    a, b = (dict(part.split("-", 1) for part in some if "-" in part) for some in parts)
    return all(a[key] == b.get(key, a[key]) for key in RUN if key in a)


def _common(first: str, second: str) -> str:
    """The common beginning of two names."""
    pairs = enumerate(zip(first, second, strict=False))
    length = next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
    return first[:length]
