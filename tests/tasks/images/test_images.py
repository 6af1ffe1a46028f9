"""Images: patches against an explicit loop, objectives, files, and input that cannot be used."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from placecell.errors import InputError
from placecell.tasks.images import cut, join
from placecell.tasks.images.config import Config
from placecell.tasks.images.files import load_files
from placecell.tasks.images.patches import shifted
from placecell.tasks.images.task import ImagePatches

SMALL = {"n_train": 60, "n_valid": 20, "n_test": 30}


def test_patches_are_those_of_a_loop() -> None:
    images = np.random.default_rng(0).random((3, 6, 4, 2))
    patches = cut(images, 2)
    assert patches.shape == (3, 6, 8)
    for b in range(3):
        for place in range(6):
            row, column = divmod(place, 2)
            values = []
            for y in range(2):
                for x in range(2):
                    for channel in range(2):
                        values.append(images[b, 2 * row + y, 2 * column + x, channel])
            assert patches[b, place].tolist() == values
    assert np.array_equal(join(patches, 2, 3, 2), images)


def test_shifted_images_are_moved_and_filled_up() -> None:
    images = np.arange(1.0, 10.0).reshape(1, 3, 3, 1)
    seen = {tuple(shifted(images, 1, -1.0, np.random.default_rng(s)).flatten()) for s in range(60)}
    assert len(seen) == 9
    left = (2, 3, -1, 5, 6, -1, 8, 9, -1)
    assert left in seen


@pytest.mark.parametrize("objective", ["classify", "masked"])
@pytest.mark.parametrize("pooling", ["mean", "class-token"])
def test_tokens_are_the_patches_in_one_order(objective: str, pooling: str) -> None:
    task = ImagePatches(Config(objective=objective, pooling=pooling, **SMALL))
    examples = task.splits()["train"]
    n = 16 + (objective == "classify" and pooling == "class-token")
    assert examples.tokens.shape[:2] == (60, n)
    patches, classes = task._parts["train"]
    if objective == "masked":
        for b, q in np.ndindex(*examples.read.shape):
            place = int(examples.read[b, q])
            assert not examples.tokens[b, place, :-1].any()
            assert examples.tokens[b, place, -1] == 1
            want = torch.from_numpy(patches[b, place]).float()
            assert torch.equal(examples.targets[b, q], want)
        assert int(examples.tokens[..., -1].sum()) == examples.read.numel()
        return
    assert examples.targets[:, 0].tolist() == classes.tolist()
    own = examples.tokens[:, 1:, :-1] if n == 17 else examples.tokens
    assert torch.equal(own, torch.from_numpy(patches).float())
    if n == 17:
        assert examples.read.unique().tolist() == [0]
        assert examples.tokens[:, 0, -1].unique().tolist() == [1]
        assert task.positions.placed.tolist() == [False, *[True] * 16]


def test_coordinates_are_where_the_pixels_came_from() -> None:
    task = ImagePatches(Config(**SMALL))
    pixels = task._images.pixels
    patches = cut(pixels, 2)
    first = int(np.argmin(np.abs(patches - patches[0]).sum((1, 2))))
    for place, (row, column) in enumerate(task.places.coords.int().tolist()):
        block = pixels[first, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, 0]
        assert patches[first][task.cells[place]].tolist() == block.flatten().tolist()
        assert task.names()[place] == f"row {row + 1}, column {column + 1}"


def test_the_truth_has_edges_and_the_eight_symmetries_of_a_square() -> None:
    truth = ImagePatches(Config(**SMALL)).truth()
    assert int(truth.relation.sum()) == 2 * 24
    orders = truth.symmetries.permutations
    assert len({tuple(order) for order in orders.tolist()}) == 8
    for order in orders:
        assert np.array_equal(truth.relation[np.ix_(order, order)], truth.relation)


def test_mean_pooling_is_the_mean_of_the_outputs() -> None:
    task = ImagePatches(Config(**SMALL))
    examples = task.splits()["test"]
    outputs = torch.randn(30, 16, 10, generator=torch.Generator().manual_seed(0))
    pooled = outputs.mean(1)
    loss = torch.nn.functional.cross_entropy(pooled, examples.targets[:, 0])
    assert float(task.loss(outputs, examples)) == pytest.approx(float(loss))
    right = (pooled.argmax(-1) == examples.targets[:, 0]).float().mean()
    assert task.metrics(outputs, examples)["accuracy"] == pytest.approx(float(right))


def test_headlines_follow_the_objective() -> None:
    assert ImagePatches.headline_for(Config()) == "accuracy"
    masked = ImagePatches(Config(objective="masked", **SMALL))
    assert (masked.headline, masked.headline_lower_is_better) == ("mse", True)
    plain = ImagePatches(Config(**SMALL))
    assert (plain.headline, plain.headline_lower_is_better) == ("accuracy", False)


@pytest.mark.parametrize("objective", ["classify", "masked"])
def test_shift_moves_training_images_only(objective: str) -> None:
    still, moving = (ImagePatches(Config(objective=objective, shift=s, **SMALL)) for s in (0, 1))
    rows = torch.arange(20)
    for split in ("train", "valid", "test"):
        assert torch.equal(still.splits()[split].tokens, moving.splits()[split].tokens)
    one, two = (
        task.batch(task.splits()["train"], rows, torch.Generator().manual_seed(0))
        for task in (still, moving)
    )
    assert one.tokens.shape == two.tokens.shape
    assert not torch.equal(one.tokens, two.tokens)


def test_baselines_of_both_objectives() -> None:
    scores = ImagePatches(Config(n_train=300, n_valid=100, n_test=200)).baselines()
    assert set(scores) == {"logistic regression on pixels", "small MLP on pixels"}
    assert all(values["test/accuracy"] > 0.8 for values in scores.values())
    scores = ImagePatches(
        Config(objective="masked", n_train=300, n_valid=100, n_test=100)
    ).baselines()
    assert scores["linear Gaussian"]["test/mse"] < scores["mean"]["test/mse"]


# ------------------------------------------------------------------ files


def save(path: Path, pixels: np.ndarray) -> None:
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


def test_npz_folders_and_idx_give_the_same_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (6, 4, 4)), np.array([0, 1, 0, 1, 0, 1])
    np.savez(tmp_path / "mine.npz", images=pixels, labels=labels)
    for i, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
        folder = tmp_path / "folder" / f"kind {label}"
        folder.mkdir(parents=True, exist_ok=True)
        save(folder / f"{i}.png", picture)
    (tmp_path / "images.idx").write_bytes(idx(pixels))
    (tmp_path / "labels.idx.gz").write_bytes(gzip.compress(idx(labels)))
    npz = load_files(tmp_path / "mine.npz", None)
    folder = load_files(tmp_path / "folder", None)
    ubyte = load_files(tmp_path / "images.idx", tmp_path / "labels.idx.gz")
    assert np.array_equal(npz.pixels, ubyte.pixels)
    assert np.array_equal(npz.labels, ubyte.labels)
    assert folder.classes == ("kind 0", "kind 1")
    assert np.array_equal(folder.pixels, npz.pixels[np.argsort(labels, kind="stable")])
    sizes = {"n_train": 3, "n_valid": 1, "n_test": 2}
    task = ImagePatches(Config(dataset="files", images=str(tmp_path / "mine.npz"), **sizes))
    assert task.n_outputs == 2
    assert task.grid == (2, 2)
    np.savez(tmp_path / "mine.npz", images=pixels + 1, labels=labels)
    with pytest.raises(InputError, match="have changed"):
        ImagePatches(task.config)


def test_images_that_cannot_be_used(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folder = tmp_path / "pictures"
    folder.mkdir()
    save(folder / "a.png", rng.integers(0, 256, (4, 4)))
    with pytest.raises(InputError, match="one image; at least two"):
        load_files(folder, None)
    save(folder / "b.png", rng.integers(0, 256, (4, 6)))
    with pytest.raises(InputError, match=r"b\.png: 4 × 6 pixels of 1 channel, but .*a\.png has 4"):
        load_files(folder, None)
    (folder / "b.png").write_text("not a picture")
    with pytest.raises(InputError, match=r"b\.png: cannot be read as an image"):
        load_files(folder, None)
    with pytest.raises(InputError, match="no image here"):
        load_files(make(tmp_path / "empty"), None)
    with pytest.raises(InputError, match="no such file"):
        load_files(tmp_path / "nowhere.npz", None)


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"images": np.zeros((5, 4, 4)), "labels": np.zeros(4)}, "5 images and labels of shape"),
        ({"pixels": np.zeros((5, 4, 4))}, "expected an array `images`, found pixels"),
        ({"images": np.zeros((5, 4))}, "expected images × height × width"),
        ({"images": np.full((5, 4, 4), np.nan)}, "finite numbers"),
        ({"images": np.full((5, 4, 4), 1e300)}, r"finite numbers, at most 1e\+15"),
        ({"images": np.zeros((1, 4, 4)), "labels": np.zeros(1)}, "one image"),
        ({"images": np.zeros((3, 4, 4)), "labels": [0, 1, np.nan]}, "whole numbers or words"),
        ({"images": np.zeros((3, 4, 4)), "labels": [0, 1, 0.5]}, "whole numbers or words"),
        ({"images": np.zeros((3, 4, 4)) + 1j, "labels": [0, 1, 2]}, "finite numbers"),
    ],
)
def test_arrays_that_cannot_be_used(arrays: dict, said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError, match=said):
        load_files(tmp_path / "bad.npz", None)


def test_files_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_text("no archive")
    with pytest.raises(InputError, match=r"not an \.npz of plain arrays"):
        load_files(tmp_path / "bad.npz", None)
    np.savez(tmp_path / "objects.npz", images=np.array([{}, {}], dtype=object))
    with pytest.raises(InputError, match=r"not an \.npz of plain arrays"):
        load_files(tmp_path / "objects.npz", None)
    (tmp_path / "bad.idx").write_bytes(idx(np.zeros((3, 2, 2)))[:-1])
    with pytest.raises(InputError, match="12 bytes after its header, found 11"):
        load_files(tmp_path / "bad.idx", None)
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00garbage garbage")
    with pytest.raises(InputError, match="cannot be read"):
        load_files(tmp_path / "bad.gz", None)
    (tmp_path / "else.bin").write_bytes(b"hello")
    with pytest.raises(InputError, match=r"expected an \.npz, a folder of images, or an idx file"):
        load_files(tmp_path / "else.bin", None)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"patch": 3}, "8 × 8 pixels cannot be cut into several patches of 3 × 3"),
        ({"patch": 8}, "cannot be cut into several"),
        ({"n_train": 1700}, "1797 images, but n_train"),
        ({"images": "mine.npz"}, "set `dataset` to files"),
        ({"dataset": "files"}, "needs `images`"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ImagePatches(Config(**settings))


def test_equal_images_are_counted_once(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((9, 4, 4))
    np.savez(tmp_path / "x.npz", images=images[[0, 1, 2, 3, 4, 5, 6, 7, 7]], labels=np.arange(9))
    own = {"dataset": "files", "images": str(tmp_path / "x.npz")}
    task = ImagePatches(Config(**own, n_train=5, n_valid=2, n_test=2))
    with pytest.raises(InputError, match="different images: 8, but n_train"):
        task.splits()


def test_images_without_classes_can_be_masked(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.random.default_rng(0).random((9, 4, 4, 3)))
    own = {"dataset": "files", "images": str(tmp_path / "x.npz")}
    own |= {"n_train": 5, "n_valid": 2, "n_test": 2}
    with pytest.raises(InputError, match="no labels; classification needs two classes"):
        ImagePatches(Config(**own))
    assert ImagePatches(Config(objective="masked", **own)).n_outputs == 12
