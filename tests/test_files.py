"""Writes are whole or not at all; what is read is never executed; a folder belongs to one process
at a time."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from placecell.errors import InputError
from placecell.store import files, locks


class Trap:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


def test_write_and_read_back(tmp_path: Path) -> None:
    files.write_json(tmp_path / "a.json", {"σ": [1, None, 0.1]})
    assert files.read_json(tmp_path / "a.json") == {"σ": [1, None, 0.1]}
    tensors = {
        "x": torch.arange(6.0).reshape(2, 3).T,
        "n": torch.tensor(3),
        "empty": torch.zeros(0, 4),
    }
    files.write_tensors(tmp_path / "a.safetensors", tensors, {"note": "σ = 0.1"})
    tensors_read, note = files.read_tensors(tmp_path / "a.safetensors")
    assert note == {"note": "σ = 0.1"}
    assert tensors_read.keys() == tensors.keys()
    assert all(torch.equal(tensors_read[key], tensors[key]) for key in tensors)
    assert names(tmp_path) == ["a.json", "a.safetensors"]


@pytest.mark.parametrize("where", ["fsync", "replace", "write"])
@pytest.mark.parametrize("fault", [no_space, interrupted])
def test_a_write_that_fails_leaves_the_old_content(
    tmp_path: Path, monkeypatch, where: str, fault
) -> None:
    path = tmp_path / "status.json"
    files.write_text(path, "old")

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", fault)
    elif where == "replace":
        for owner, name in ((Path, "replace"), (Path, "rename"), (os, "replace"), (os, "rename")):
            monkeypatch.setattr(owner, name, fault)
    else:
        real = Path.open

        def open_full_disk(self, mode="r", *args, **kwargs):
            file = real(self, mode, *args, **kwargs)
            if "w" not in mode:
                return file

            class Full:
                write, flush, fileno = fault, file.flush, file.fileno

                def __enter__(self):
                    return self

                def __exit__(self, *args):
                    file.close()

            return Full()

        monkeypatch.setattr(Path, "open", open_full_disk)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        files.write_bytes(path, b"new" * 1000)
    monkeypatch.undo()
    if caught.type is InputError:
        assert "status.json: cannot be written (No space left on device)" in str(caught.value)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["status.json"], "a staged file was left behind"


def test_a_first_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(InputError):
        files.write_text(tmp_path / "new", "x")
    assert names(tmp_path) == []


def test_write_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        files.write_text(tmp_path / "file" / "below", "x")
    with pytest.raises(InputError, match="output folder cannot be written"):
        files.make_folder(tmp_path / "file" / "below")
    with pytest.raises(InputError, match="output folder cannot be written"):
        files.make_folder(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_make_folder_leaves_no_trace_of_its_probe(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "a" / "b")
    files.make_folder(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == []


@pytest.mark.parametrize("legacy", [False, True])
def test_a_torch_save_is_refused_and_not_run(tmp_path: Path, legacy: bool) -> None:
    path, sprung = tmp_path / "weights.safetensors", tmp_path / "sprung"
    torch.save(
        {"w": torch.ones(3), "trap": Trap(sprung)}, path, _use_new_zipfile_serialization=not legacy
    )
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"weights\.safetensors.*a pickle"):
        files.read_tensors(path)
    assert not sprung.exists()
    assert path.read_bytes() == before


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_and_not_run(tmp_path: Path, protocol: int) -> None:
    path, sprung = tmp_path / "weights.safetensors", tmp_path / "sprung"
    path.write_bytes(pickle.dumps(Trap(sprung), protocol=protocol))
    with pytest.raises(InputError, match="a pickle" if protocol >= 2 else "safetensors"):
        files.read_tensors(path)
    assert not sprung.exists()


@pytest.mark.parametrize("length", [640, 896, 1152, 1408, 19280, 65536 + 640])
def test_a_header_whose_length_looks_like_a_pickle_is_read(tmp_path: Path, length: int) -> None:
    """The first bytes of a safetensors file are its header's length: 640 begins as a pickle does,
    19280 as a zip."""
    path = tmp_path / "weights.safetensors"
    header = (
        json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})
        .encode()
        .ljust(length)
    )
    path.write_bytes(
        struct.pack("<Q", length) + header + torch.tensor([1.0, 2.0]).numpy().tobytes()
    )
    assert torch.equal(files.read_tensors(path)[0]["w"], torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 50, -1])
def test_truncated_files_are_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "weights.safetensors"
    files.write_tensors(path, {"w": torch.ones(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"weights\.safetensors") as caught:
        files.read_tensors(path)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        for read in (files.read_json, files.read_tensors):
            with pytest.raises(InputError, match="cannot be read"):
                read(path)
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\xfd")
    (tmp_path / "deep.json").write_text(200_000 * "[" + 200_000 * "]")
    for name in ("bad.json", "binary.json", "deep.json"):
        with pytest.raises(InputError, match=name):
            files.read_json(tmp_path / name)


def test_weights_of_another_shape_are_refused_before_anything_changes(tmp_path: Path) -> None:
    from placecell.train.checkpoint import load_weights

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    before = {key: part.clone() for key, part in model.state_dict().items()}
    for change in (
        {"1.weight": torch.ones(1, 4)},
        {"1.weight": None},
        {"2.weight": torch.ones(1)},
    ):
        tensors = {key: torch.zeros_like(part) for key, part in before.items()} | change
        path = tmp_path / "w.safetensors"
        files.write_tensors(path, {key: part for key, part in tensors.items() if part is not None})
        with pytest.raises(InputError, match=next(iter(change))):
            load_weights(model, files.read_tensors(path)[0], path)
        assert all(torch.equal(part, before[key]) for key, part in model.state_dict().items())


HOLD = """
import sys, time
from pathlib import Path
from placecell.store import locks
with locks.lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_lock_is_exclusive_and_released_by_a_kill(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process"), locks.lock(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=20)
        with locks.lock(tmp_path):
            pass
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_lock_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locks.lock(tmp_path):
        raise ZeroDivisionError
    with locks.lock(tmp_path), pytest.raises(InputError), locks.lock(tmp_path):
        pass
