"""One's own data: every format gives the same series, and what cannot be used is refused in one
sentence."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from placecell.errors import InputError
from placecell.sweep import grid
from placecell.tasks.fmri import datasets
from placecell.tasks.fmri.config import Config
from placecell.tasks.fmri.datasets import load_runs
from placecell.tasks.fmri.loaders import load_confounds, load_series
from placecell.train import load_model, make_task, run

TIME, REGIONS = 120, 9


@pytest.fixture
def series() -> np.ndarray:
    return np.random.default_rng(0).normal(100, 5, (TIME, REGIONS))


def table(path: Path, series: np.ndarray, separator: str, names: bool = True) -> None:
    lines = [separator.join(f"region{i}" for i in range(series.shape[1]))] if names else []
    lines += [separator.join(repr(float(v)) for v in row) for row in series]
    path.write_text("\n".join(lines) + "\n")


def cifti(path: Path, series: np.ndarray) -> None:
    nibabel = pytest.importorskip("nibabel")
    names = [f"p{i}" for i in range(series.shape[1])]
    voxels = [np.array([[i, 0, 0]]) for i in range(series.shape[1])]
    parcels = nibabel.cifti2.ParcelsAxis(
        names,
        voxels,
        [{} for _ in names],
        affine=np.eye(4),
        volume_shape=(series.shape[1], 1, 1),
        nvertices={},
    )
    axes = (nibabel.cifti2.SeriesAxis(0, 0.72, len(series)), parcels)
    nibabel.save(nibabel.Cifti2Image(series, header=axes), path)


def image(path: Path, atlas: Path, series: np.ndarray) -> None:
    """A 4D image in which region r is four voxels whose mean is its series, and the atlas of the
    regions."""
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    t, n = series.shape
    data, labels = np.zeros((n, 2, 2, t)), np.zeros((n, 2, 2), dtype=np.int32)
    for region in range(n):
        labels[region] = region + 1
        data[region] = series[:, region] + np.array([[-1, 1], [2, -2]])[..., None]
    nibabel.save(nibabel.Nifti1Image(data, np.eye(4)), path)
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), atlas)


@pytest.mark.parametrize(
    "kind", ["npy", "npy-turned", "npz", "csv", "csv-plain", "tsv", "mat", "mat-turned"]
)
def test_every_format_gives_the_same_series(kind: str, tmp_path: Path, series: np.ndarray) -> None:
    end, _, variant = kind.partition("-")
    name = "sub-01_task-rest_timeseries.tsv" if end == "tsv" else f"run.{end}"
    path, given = tmp_path / name, series.T if variant == "turned" else series
    if end == "npy":
        np.save(path, given)
    elif end == "npz":
        np.savez(path, data=given, tr=0.72)
    elif end == "mat":
        savemat(path, {"tc": given, "tr": 0.72, "id": "s1"})
    else:
        table(path, given, "\t" if end == "tsv" else ",", variant != "plain")
    assert load_series(path).values == pytest.approx(series)


def test_cifti_knows_its_own_orientation(tmp_path: Path, series: np.ndarray) -> None:
    cifti(tmp_path / "run.ptseries.nii", series)
    assert load_series(tmp_path / "run.ptseries.nii").values == pytest.approx(series, rel=1e-5)


def test_a_4d_image_through_an_atlas_is_kept_in_the_cache(
    tmp_path: Path, series: np.ndarray, monkeypatch
) -> None:
    monkeypatch.setenv("PLACECELL_CACHE", str(tmp_path / "cache"))
    path, atlas = tmp_path / "bold.nii.gz", tmp_path / "atlas.nii.gz"
    image(path, atlas, series)
    assert load_series(path, atlas=str(atlas)).values == pytest.approx(series, rel=1e-5)
    assert len(list((tmp_path / "cache" / "parcellated").iterdir())) == 1
    assert load_series(path, atlas=str(atlas)).values == pytest.approx(series, rel=1e-5)
    with pytest.raises(InputError, match="atlas"):
        load_series(path)


def test_the_orientation_is_asked_for_when_it_is_not_plain(tmp_path: Path) -> None:
    square = np.random.default_rng(1).normal(size=(100, 90))
    np.save(tmp_path / "run.npy", square)
    with pytest.raises(InputError, match=r"100 × 90 .* orientation"):
        load_series(tmp_path / "run.npy")
    assert load_series(tmp_path / "run.npy", "time-first").values.shape == (100, 90)
    assert load_series(tmp_path / "run.npy", "regions-first").values.shape == (90, 100)
    assert load_series(tmp_path / "run.npy", regions=100).values.shape == (90, 100), (
        "the number of labels tells"
    )
    np.save(tmp_path / "short.npy", np.zeros((150, 400)))
    with pytest.raises(
        InputError, match=r"150 × 400 .* orientation"
    ):  # a short scan of a fine parcellation?
        load_series(tmp_path / "short.npy")
    for shape in (
        (300, 1056),
        (40, 100),
    ):  # a parcellation of 1056 regions; 40 regions, or too short a scan
        np.save(tmp_path / "short.npy", np.zeros(shape))
        with pytest.raises(InputError, match="set orientation"):
            load_series(tmp_path / "short.npy")
    np.save(tmp_path / "long.npy", np.zeros((100, 1200)))
    assert load_series(tmp_path / "long.npy").values.shape == (1200, 100)
    table(tmp_path / "run.csv", square, ",")
    assert load_series(tmp_path / "run.csv").values.shape == (100, 90), (
        "names say that columns are regions"
    )
    turned = load_series(tmp_path / "run.csv", "regions-first")
    assert (turned.values.shape, turned.names) == ((90, 100), ()), (
        "unless they are said to be volumes"
    )
    with pytest.raises(InputError, match="a folder; name its files"):
        load_series(tmp_path)


def test_names_are_read_and_tables_are_as_programs_save_them(
    tmp_path: Path, series: np.ndarray
) -> None:
    names = tuple(f"region{i}" for i in range(REGIONS))
    table(tmp_path / "run.tsv", series, "\t")
    assert load_series(tmp_path / "run.tsv").names == names
    cifti(tmp_path / "run.ptseries.nii", series)
    assert load_series(tmp_path / "run.ptseries.nii").names == tuple(
        f"p{i}" for i in range(REGIONS)
    )
    table(tmp_path / "plain.csv", series, ",", names=False)
    plain = (tmp_path / "plain.csv").read_text()
    (tmp_path / "mark.csv").write_text("\ufeff" + plain, encoding="utf-8")
    assert load_series(tmp_path / "mark.csv").values.shape == series.shape, (
        "a byte order mark is no name"
    )
    (tmp_path / "counted.csv").write_text(",".join(map(str, range(REGIONS))) + "\n" + plain)
    assert load_series(tmp_path / "counted.csv").values.shape == series.shape, (
        "numbers of columns are no volume"
    )
    for heads in (
        names,
        tuple(map(str, range(REGIONS))),
    ):  # as pandas saves a frame, its index in front
        rows = [f"{i},{row}" for i, row in enumerate(plain.splitlines())]
        (tmp_path / "frame.csv").write_text("\n".join([",".join(["", *heads]), *rows]))
        loaded = load_series(tmp_path / "frame.csv")
        assert loaded.names == heads
        assert loaded.values == pytest.approx(series)
    (tmp_path / "frame.csv").write_text(
        "\n".join([",".join(["", *names]), *(f"7,{row}" for row in plain.splitlines())])
    )
    with pytest.raises(InputError, match=r"frame\.csv: the first column has no name"):
        load_series(tmp_path / "frame.csv")
    np.save(tmp_path / "x.npy", series)
    (tmp_path / "x.npy").rename(tmp_path / "renamed.npz")
    assert load_series(tmp_path / "renamed.npz").values == pytest.approx(series)


def test_seconds_a_volume_are_read_where_files_say_them(
    tmp_path: Path, series: np.ndarray, monkeypatch
) -> None:
    nibabel = pytest.importorskip("nibabel")
    monkeypatch.setenv("PLACECELL_CACHE", str(tmp_path / "cache"))
    cifti(tmp_path / "run.ptseries.nii", series)
    assert load_series(tmp_path / "run.ptseries.nii").seconds == pytest.approx(0.72)
    image(tmp_path / "bold.nii", tmp_path / "atlas.nii", series)
    for unit, step, seconds in (("sec", 2.5, 2.5), ("msec", 800.0, 0.8), ("unknown", 2.5, None)):
        one = nibabel.load(tmp_path / "bold.nii")
        one.header.set_zooms((1.0, 1.0, 1.0, step))
        one.header.set_xyzt_units("mm", unit)
        nibabel.save(one, tmp_path / f"{unit}.nii")
        for _ in range(2):  # the second time from the cache
            seconds_read = load_series(
                tmp_path / f"{unit}.nii", atlas=str(tmp_path / "atlas.nii")
            ).seconds
            assert seconds_read == (None if seconds is None else pytest.approx(seconds))
    files = {
        "train_files": str(tmp_path / "run.ptseries.nii"),
        "test_files": str(tmp_path / "run.ptseries.nii"),
    }
    with pytest.raises(InputError, match=r"0\.72 s per volume by its header, not 2"):
        load_runs(own(tmp_path, repetition_time=2.0, **files))


def test_images_that_do_not_cover_the_atlas_or_have_holes(
    tmp_path: Path, series: np.ndarray, monkeypatch
) -> None:
    nibabel = pytest.importorskip("nibabel")
    monkeypatch.setenv("PLACECELL_CACHE", str(tmp_path / "cache"))
    path, atlas = tmp_path / "bold.nii.gz", tmp_path / "atlas.nii.gz"
    image(path, atlas, series)
    whole = np.asarray(nibabel.load(path).dataobj)
    nibabel.save(nibabel.Nifti1Image(whole[:-2], np.eye(4)), tmp_path / "part.nii.gz")
    with pytest.raises(
        InputError,
        match=r"part\.nii\.gz: does not cover 2 regions of the atlas, the first with label 8",
    ):
        load_series(tmp_path / "part.nii.gz", atlas=str(atlas))
    whole[3, 0, 0, 5] = np.nan
    nibabel.save(nibabel.Nifti1Image(whole, np.eye(4)), tmp_path / "hole.nii.gz")
    with pytest.raises(InputError, match=r"hole\.nii\.gz: region 4 has voxels that are not finite"):
        load_series(tmp_path / "hole.nii.gz", atlas=str(atlas))
    nibabel.save(nibabel.Nifti1Image(whole[..., 0], np.eye(4)), tmp_path / "one.nii.gz")
    with pytest.raises(InputError, match="4D"):
        load_series(tmp_path / "one.nii.gz", atlas=str(atlas))
    with pytest.raises(InputError, match=r"bold\.nii\.gz: expected a 3D label image as the atlas"):
        load_series(path, atlas=str(path))


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("x.npy", b"not numpy", "NumPy"),
        ("x.npz", b"PK\x03\x04cut", "NumPy"),
        ("x.mat", b"not matlab", "MATLAB"),
        ("x.csv", b"", "empty"),
        ("x.csv", b"a,b\n1,2\n3\n", "line 3"),
        ("x.csv", b"1,2\n3,four\n", "'four'"),
        ("x.tsv", b"a\tb\n", "no numbers"),
        ("x.ptseries.nii", b"not nifti", "CIFTI"),
        ("x.xlsx", b"", "expected .npy"),
        ("x.csv", b"\xff\xfe\x00", "text"),
    ],
)
def test_unreadable_files(name: str, content: bytes, word: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=word) as refusal:
        load_series(tmp_path / name)
    assert name in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unreadable_image(tmp_path: Path, series: np.ndarray, monkeypatch) -> None:
    monkeypatch.setenv("PLACECELL_CACHE", str(tmp_path / "cache"))
    image(tmp_path / "bold.nii", tmp_path / "atlas.nii", series)
    (tmp_path / "bold.nii").write_bytes(b"not an image")
    with pytest.raises(InputError, match=r"bold\.nii: cannot be read"):
        load_series(tmp_path / "bold.nii", atlas=str(tmp_path / "atlas.nii"))


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "y.npy").write_bytes(pickle.dumps([1, 2]))
    for name in ("x.npy", "y.npy"):
        with pytest.raises(InputError, match="a pickle"):
            load_series(tmp_path / name)


def test_a_mat_file_without_a_matrix(tmp_path: Path) -> None:
    savemat(tmp_path / "x.mat", {"name": "subject", "tr": 0.72})
    with pytest.raises(InputError, match="no matrix"):
        load_series(tmp_path / "x.mat")
    savemat(tmp_path / "y.mat", {"a": np.ones((9, 100)), "b": np.ones((9, 100))})
    with pytest.raises(InputError, match="several matrices"):
        load_series(tmp_path / "y.mat")


def own(tmp_path: Path, **more: object) -> Config:
    given = {
        "train_files": str(tmp_path / "train*.npy"),
        "test_files": str(tmp_path / "test.npy"),
    } | more
    return Config(dataset="files", **given)  # type: ignore[arg-type]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    for name in ("train1", "train2", "test"):
        np.save(tmp_path / f"{name}.npy", rng.normal(1000, 10, (TIME, REGIONS)))
    return tmp_path


def test_own_files_make_a_task(runs: Path) -> None:
    (runs / "nets.txt").write_text("\n".join(["a"] * 4 + ["b"] * 5))
    (runs / "xyz.txt").write_text("\n".join(f"{i} {i * i} {-i}" for i in range(REGIONS)))
    config = own(runs, networks=str(runs / "nets.txt"), centroids=str(runs / "xyz.txt"))
    task = make_task(_run_config(config))
    assert {split: len(e) for split, e in task.splits().items()} == {
        "train": 2 * (120 - 12 - 20),
        "valid": 24,
        "test": 120,
    }
    assert task.truth().labels["network"].tolist() == [0] * 4 + [1] * 5
    assert task.positions.axes == 3
    blind = make_task(_run_config(own(runs)))
    assert blind.positions.axes == 1
    assert len(set(blind.truth().labels["community"].tolist())) > 1, (
        "communities of the training data"
    )


def _run_config(data: Config):
    from placecell.config import RunConfig

    return RunConfig("fmri", data)


def broken(series: np.ndarray, how: str) -> np.ndarray:
    bad = series.copy()
    if how == "nan":
        bad[3, 4] = np.nan
    elif how == "constant":
        bad[:, 2] = 7.0
    elif how == "duplicate":
        bad[:, 6] = 3 * bad[:, 1] + 2
    elif how == "mirrored":
        bad[:, 6] = -bad[:, 1]
    elif how == "short":
        bad = bad[:30]
    elif how == "regions":
        bad = bad[:, :-1]
    return bad


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "nan",
            r"train2\.npy: "
            r"region 5 .* not finite",
        ),
        ("constant", r"train2\.npy: region 3 is constant"),
        ("duplicate", r"train2\.npy: region 2 and region 7 are duplicates"),
        ("mirrored", r"train2\.npy: region 2 and region 7 are duplicates"),
        (
            "short",
            r"train2\.npy: 30 "
            r"volumes; at least 50",
        ),
        (
            "regions",
            r"train2\.npy: 8 regions; .*train1\.npy "
            r"has 9",
        ),
    ],
)
def test_series_that_cannot_be_used_are_refused_before_training(
    how: str, words: str, runs: Path
) -> None:
    np.save(runs / "train2.npy", broken(np.load(runs / "train2.npy"), how))
    with pytest.raises(InputError, match=words) as refusal:
        load_runs(own(runs))
    assert "\n" not in str(refusal.value)


def test_labels_and_files_that_do_not_fit(runs: Path) -> None:
    (runs / "nets.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="2 labels for 9 regions"):
        make_task(_run_config(own(runs, networks=str(runs / "nets.txt"))))
    (runs / "nets.txt").write_text("a\n" * 9)
    with pytest.raises(InputError, match="every region"):
        make_task(_run_config(own(runs, networks=str(runs / "nets.txt"))))
    (runs / "xyz.txt").write_text("1 2\n" * 9)
    with pytest.raises(InputError, match="x, y, z"):
        make_task(_run_config(own(runs, centroids=str(runs / "xyz.txt"))))
    with pytest.raises(InputError, match="no such file"):
        load_runs(own(runs, test_files=str(runs / "missing*.npy")))
    with pytest.raises(InputError, match="tested on as well"):
        load_runs(own(runs, test_files=str(runs / "train1.npy")))
    with pytest.raises(InputError, match="tested on as well"):
        load_runs(own(runs, test_files=str(runs / ".." / runs.name / "train1.npy")))
    np.save(runs / "copy.npy", np.load(runs / "train1.npy"))
    with pytest.raises(
        InputError, match=r"copy\.npy: the same time series as .*train1\.npy; .* tested on as well"
    ):
        load_runs(own(runs, test_files=str(runs / "copy.npy")))
    twice = f"{runs / 'train1.npy'};{runs / 'train*.npy'}"
    with pytest.raises(InputError, match=r"train1\.npy: .* each is needed once"):
        load_runs(own(runs, train_files=twice))
    (runs / "nets.txt").write_text("a\n\n" + "b\n" * 7)
    with pytest.raises(InputError, match=r"nets\.txt: line 2 is empty"):
        make_task(_run_config(own(runs, networks=str(runs / "nets.txt"))))
    for wrong in ("1 2 3\n" * 9, "1 2 nan\n" + "".join(f"{i} 0 0\n" for i in range(8))):
        (runs / "xyz.txt").write_text(wrong)
        with pytest.raises(InputError, match="a place of its own"):
            make_task(_run_config(own(runs, centroids=str(runs / "xyz.txt"))))
    with pytest.raises(InputError, match="not a pattern"):
        load_runs(own(runs, test_files=str(runs / "**test.npy")))


def test_centroids_are_spun_where_there_are_enough(runs: Path) -> None:
    (runs / "nets.txt").write_text("a\n" * 4 + "b\n" * 5)
    (runs / "xyz.txt").write_text(
        "\n".join(f"{(-1) ** i * (i + 1)} {i * i} {-i}" for i in range(REGIONS))
    )
    about = {"networks": str(runs / "nets.txt"), "centroids": str(runs / "xyz.txt")}
    orders = make_task(_run_config(own(runs, **about))).spatial_orders()
    left = np.arange(REGIONS) % 2 == 1
    assert (left[orders] == left).all(), "a region takes a place of its own hemisphere"
    assert len(np.unique(orders, axis=0)) > 10
    for name in ("train1", "train2", "test"):  # one region on either side: nothing can be spun
        np.save(runs / f"{name}.npy", np.load(runs / f"{name}.npy")[:, :2])
    (runs / "nets.txt").write_text("a\nb\n")
    (runs / "xyz.txt").write_text("-1 0 0\n1 0 0\n")
    assert make_task(_run_config(own(runs, **about))).spatial_orders() is None


def test_data_of_one_community_ask_for_networks(runs: Path) -> None:
    rng = np.random.default_rng(4)
    for name in ("train1", "train2", "test"):
        np.save(runs / f"{name}.npy", rng.normal(size=(TIME, 1)) + 0.1 * rng.normal(size=(TIME, 3)))
    with pytest.raises(InputError, match=r"one community only.*networks"):
        make_task(_run_config(own(runs))).splits()


def test_other_contents_under_the_same_names_are_another_run(runs: Path, tmp_path: Path) -> None:
    small = {"steps": 2, "width": 8, "depth": 1, "batch_size": 4, "eval_every": 2}
    config = _run_config(own(runs)).override(small)
    first = run(config, tmp_path / "out")
    assert run(config, tmp_path / "out").reused
    before = np.load(runs / "test.npy")
    np.save(runs / "test.npy", before + np.random.default_rng(9).normal(size=before.shape))
    again = run(config, tmp_path / "out")
    assert not again.reused
    assert again.folder != first.folder
    with pytest.raises(InputError, match="have changed since the run was made"):
        load_model(first.folder)
    np.save(runs / "test.npy", before)
    load_model(first.folder)
    (runs / "nets.txt").write_text("a\n" * 4 + "b\n" * 5)
    named = [
        make_task(_run_config(own(runs, **more))).config.contents
        for more in ({}, {"networks": str(runs / "nets.txt")})
    ]
    assert len({first.config.data.contents, *named}) == 2, (
        "what describes the regions counts as well"
    )


def test_a_sweep_reads_files_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        datasets, "load_series", lambda path, *more: seen.append(path) or load_series(path, *more)
    )
    configs = grid(_run_config(own(runs)), [], {"sigma": [0.1, 1.0, 2.0]}, seeds=2)
    assert len(configs) == 6
    assert sorted(path.name for path in seen) == ["test.npy", "train1.npy", "train2.npy"]


def test_regions_must_be_the_same_in_every_file(runs: Path, series: np.ndarray) -> None:
    table(runs / "one.tsv", series, "\t")
    names, *rows = (runs / "one.tsv").read_text().splitlines()
    turned = "\t".join(reversed(names.split("\t")))
    (runs / "two.tsv").write_text("\n".join([turned, *(row + "1" for row in rows)]))
    config = own(runs, train_files=str(runs / "one.tsv"), test_files=str(runs / "two.tsv"))
    with pytest.raises(
        InputError, match=r"two\.tsv: region 1 \(region8\) is region 1 \(region0\) in .*one\.tsv"
    ):
        load_runs(config)
    table(runs / "alone.csv", series[:, :1], ",")
    with pytest.raises(InputError, match="at least two"):
        load_runs(
            own(runs, train_files=str(runs / "alone.csv"), test_files=str(runs / "alone.csv"))
        )


def test_confounds_beside_a_run(tmp_path: Path) -> None:
    run = tmp_path / "sub-02_task-rest_timeseries.tsv"
    run.touch()
    for subject in ("01", "02"):
        rows = "\n".join(f"{i if i else 'n/a'}\t{subject}" for i in range(4))
        (tmp_path / f"sub-{subject}_task-rest_confounds.tsv").write_text(f"dx\twho\n{rows}\n")
    loaded = load_confounds(run, "*_confounds.tsv", 4)
    assert loaded.tolist() == [[0, 2], [1, 2], [2, 2], [3, 2]]
    with pytest.raises(InputError, match="4 rows for the 5 volumes"):
        load_confounds(run, "*_confounds.tsv", 5)
    with pytest.raises(InputError, match="expected one file"):
        load_confounds(run, "*_motion.tsv", 4)
    for other in ("sub-03_task-rest_bold.npy", "sub-0_bold.npy", "sub-02_task-faces_bold.npy"):
        with pytest.raises(
            InputError, match=f"{other}: expected one file of its confounds .* found none"
        ):
            load_confounds(tmp_path / other, "*_confounds.tsv", 4)
    (tmp_path / "motion.tsv").write_text("1\n2\n3\n4\n")
    assert load_confounds(run, "motion.tsv", 4).tolist() == [[1], [2], [3], [4]], "named, so meant"
    for pattern in ("", str(tmp_path / "x.tsv")):
        with pytest.raises(InputError, match="no pattern"):
            load_confounds(run, pattern, 4)
    (tmp_path / "sub-02_task-rest_confounds.tsv").write_text("dx\twho\n\t2\n1\t2\n")
    assert load_confounds(run, "*_confounds.tsv", 2).tolist() == [[0, 2], [1, 2]], (
        "an empty first cell counts as 0"
    )


OWN = {"dataset": "files", "train_files": "a.npy", "test_files": "b.npy"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"mask": 0.0}, "mask"),
        ({"valid_share": 0.9}, "valid_share"),
        ({"low_pass": -0.1}, "low_pass"),
        ({"high_pass": 0.1, "low_pass": 0.05}, "below low_pass"),
        ({"dataset": "files"}, "train_files"),
        ({"atlas": "x.nii"}, "set dataset to files"),
        ({"repetition_time": 0.0}, "repetition_time"),
        ({"repetition_time": float("inf")}, "repetition_time"),
        ({**OWN, "split": "subject"}, "test_files says"),
        ({"repetition_time": 2.0}, "0.72 for hcp-schaefer100"),
    ],
)
def test_bad_settings(change: dict[str, object], word: str) -> None:
    with pytest.raises(InputError, match=word):
        Config(**change)  # type: ignore[arg-type]
