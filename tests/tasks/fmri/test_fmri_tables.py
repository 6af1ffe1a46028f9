"""Tables as people have them: dates, decimal commas, far too long, in one file only."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from placecell.errors import InputError
from placecell.tasks.fmri.config import Config
from placecell.tasks.fmri.datasets import GAP, load_runs
from placecell.tasks.fmri.loaders import load_series
from placecell.tasks.fmri.task import Fmri
from placecell.tasks.tables import MOST_ROWS

TIME, REGIONS = 200, 5


@pytest.fixture
def series() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(TIME, REGIONS)).round(4)


def rows(series: np.ndarray, separator: str) -> list[str]:
    return [separator.join(map(str, row)) for row in series]


@pytest.mark.parametrize(
    "dates",
    [
        [f"2024-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(TIME)],
        [f"2024-01-01 {i // 60:02}:{i % 60:02}:00" for i in range(TIME)],
        [f"{1 + i % 28}.{1 + i // 28}.2024" for i in range(TIME)],
    ],
    ids=["days", "times", "german"],
)
def test_a_column_of_dates_is_left_out(
    tmp_path: Path, series: np.ndarray, dates: list[str]
) -> None:
    lines = [f"{date},{row}" for date, row in zip(dates, rows(series, ","), strict=True)]
    heads = ["when", *(f"r{i}" for i in range(REGIONS))]
    (tmp_path / "named.csv").write_text("\n".join([",".join(heads), *lines]))
    loaded = load_series(tmp_path / "named.csv")
    assert loaded.names == tuple(heads[1:])
    assert loaded.values == pytest.approx(series)
    (tmp_path / "plain.csv").write_text("\n".join(lines))
    assert load_series(tmp_path / "plain.csv").values == pytest.approx(series)


def test_words_that_are_no_dates_are_still_refused(tmp_path: Path, series: np.ndarray) -> None:
    lines = [f"monday,{row}" for row in rows(series, ",")]
    (tmp_path / "x.csv").write_text("\n".join(["when,a,b,c,d,e", *lines]))
    with pytest.raises(InputError, match="line 2 has 'monday' where a number was expected"):
        load_series(tmp_path / "x.csv")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(tmp_path: Path, series: np.ndarray, separator: str) -> None:
    text = "\n".join(rows(series, separator)).replace(".", ",")
    names = separator.join(f"r{i}" for i in range(REGIONS))
    (tmp_path / "x.csv").write_text(f"{names}\n{text}\n")
    assert load_series(tmp_path / "x.csv").values == pytest.approx(series)
    (tmp_path / "dots.csv").write_text("\n".join([names, *rows(series, separator)]))
    assert load_series(tmp_path / "dots.csv").values == pytest.approx(series)


def test_a_table_that_is_far_too_long_is_refused_early(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        block = "1.5,2.5,3.5,4.5,5.5,6.5\n" * 10_000
        for _ in range(100):
            file.write(block)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(InputError, match=f"more than {MOST_ROWS} rows"):
        load_series(path)
    seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5  # it was 33
    assert peak < 50e6  # it was 1.4 GB


def test_the_last_part_of_every_run_can_be_the_test(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    whole = {name: rng.normal(size=(400, REGIONS)) for name in ("one", "two")}
    for name, values in whole.items():
        np.save(tmp_path / f"{name}.npy", values)
    files = [str(tmp_path / "*.npy")]
    runs = load_runs(Config(dataset="files", train_files=files, test_share=0.25))
    for train, test, values in zip(runs["train"], runs["test"], whole.values(), strict=True):
        assert np.array_equal(train.series, values[: 300 - GAP])
        assert np.array_equal(test.series, values[300:])
        assert train.subject == test.subject


def test_one_of_test_files_and_test_share_is_needed() -> None:
    for more in ({}, {"test_files": ["b.npy"], "test_share": 0.2}):
        with pytest.raises(InputError, match=r"test_files, or test_share = 0\.2"):
            Config(dataset="files", train_files=["a.npy"], **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="test_share is for one's own data"):
        Config(test_share=0.2)


def test_the_same_file_twice_says_what_to_do(tmp_path: Path, series: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", series)
    same = [str(tmp_path / "a.npy")]
    with pytest.raises(InputError, match=r"cannot be tested on as well.*test_share"):
        load_runs(
            Config(dataset="files", train_files=same, test_files=same, orientation="time-first")
        )
    for more in ({"test_share": 0.3}, {"test_files": ["b.npy"]}):
        np.save(tmp_path / "b.npy", series + 1)
        given = {
            key: [str(tmp_path / "b.npy")] if key == "test_files" else v for key, v in more.items()
        }
        with pytest.raises(InputError, match="each is needed once: leave one out"):
            load_runs(
                Config(dataset="files", train_files=2 * same, orientation="time-first", **given)  # type: ignore[arg-type]
            )


def test_matlab_7_3_is_read_where_h5py_is(tmp_path: Path, series: np.ndarray) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "new.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["tc"] = series.T  # MATLAB counts columns first
        file["name"] = np.frombuffer("x".encode("utf-16le"), np.uint16)
        file["elsewhere"] = h5py.ExternalLink("other.mat", "/tc")
    with path.open("r+b") as file:
        header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8)
        file.write(header + b"\x00\x02IM")
    assert load_series(path).values == pytest.approx(series)
    cut = tmp_path / "cut.mat"
    cut.write_bytes(path.read_bytes()[:900])
    with pytest.raises(InputError, match="cannot be read as a MATLAB file"):
        load_series(cut)


def test_matlab_7_3_without_h5py_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "h5py", None)
    path = tmp_path / "new.mat"
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8)
    path.write_bytes(header + b"\x00\x02IM" + bytes(400) + b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(InputError, match=r"MATLAB 7\.3 file; install h5py.*save it again"):
        load_series(path)


def test_columns_of_a_file_name_the_regions(tmp_path: Path, series: np.ndarray) -> None:
    heads = ["V1", "V2", "M1", "S1", "A1"]
    (tmp_path / "named.csv").write_text("\n".join([",".join(heads), *rows(series, ",")]))
    (tmp_path / "plain.csv").write_text("\n".join(rows(series, ",")))
    made = {
        name: Fmri(Config(dataset="files", train_files=[str(tmp_path / name)], test_share=0.4))
        for name in ("named.csv", "plain.csv")
    }
    assert made["named.csv"].names() == heads
    assert made["plain.csv"].names()[0] == "region 1"
