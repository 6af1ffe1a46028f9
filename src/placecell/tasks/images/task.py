"""Images on the library's interface: patches are tokens, in one fixed unknown order."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from placecell import analysis
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.model import Tokens
from placecell.seeds import numpy_stream
from placecell.tasks.base import Examples, Task, Truth, counted
from placecell.tasks.images.config import Config
from placecell.tasks.images.files import Images, load_digits, load_files
from placecell.tasks.images.patches import cut, join, shifted
from placecell.tasks.masked import n_masked, random_masks

Array = NDArray[np.float64]
SPLITS = ("train", "valid", "test")
PENALTIES = (0.001, 0.01, 0.1, 1.0)  # C of the logistic regression
HIDDEN = (32, 128)  # widths of the small MLP
NOISE = 0.02  # on pixels of standard deviation 1, so that none is constant in a covariance


class ImagePatches(Task):
    """Say what an image shows, or the pixels of its masked patches, from patches in unknown order.

    Objective `classify` reads the mean over the patches or a class token; `masked` predicts the
    pixels of masked patches. The order of the patches is shuffled once, for all images.
    """

    headline = "accuracy"

    def __init__(self, config: Config) -> None:
        loaded = self._load(config)
        if config.dataset == "files":
            digest = _digest(loaded)
            if config.contents not in (None, digest):
                raise InputError(
                    f"{config.images}: these images have changed since the run was made (contents "
                    f"{digest}, expected {config.contents})."
                )
            config = replace(config, contents=digest)  # so that other images are another run
        self.config, self._images = config, loaded
        self.headline = self.headline_for(config)
        self.headline_lower_is_better = masked = config.objective == "masked"
        self.shown = (
            *("table/distance", "table/relation", "table/procrustes", "table/probe_row"),
            "attention/relation",
        )
        _, height, width, channels = loaded.pixels.shape
        self.grid = (height // config.patch, width // config.patch)
        self.flagged = masked or config.pooling == "class-token"
        values = config.patch**2 * channels
        self.tokens = Tokens("value", values + self.flagged)
        self.n_outputs = values if masked else len(loaded.classes)
        rows, columns = self.grid
        self.cells = numpy_stream(config.split_seed, "order").permutation(rows * columns)
        coords = np.stack(np.divmod(self.cells, columns), axis=1)
        self.places = Positions(
            torch.arange(len(self.cells)),
            torch.from_numpy(coords).float(),
            graph=torch.from_numpy(self._edges()).float(),
        )

    @classmethod
    def headline_for(cls, config: Config) -> str:
        """Return `mse` for masked patches, `accuracy` for classes."""
        return "mse" if config.objective == "masked" else "accuracy"

    @property
    def positions(self) -> Positions:
        """Every patch at its place, after a class token if there is one."""
        return self.places.with_class_token() if self._class_token else self.places

    @property
    def _class_token(self) -> bool:
        return self.config.objective == "classify" and self.config.pooling == "class-token"

    def _load(self, config: Config) -> Images:
        loaded = load_digits()
        if config.dataset == "files":
            own = None if config.labels is None else Path(config.labels)
            loaded = load_files(Path(str(config.images)), own)
        count, height, width, _ = loaded.pixels.shape
        side, wanted = config.patch, config.n_train + config.n_valid + config.n_test
        if height % side or width % side or height * width < 2 * side**2:
            raise InputError(
                f"{loaded.name}: images of {height} × {width} pixels cannot be cut into several "
                f"patches of {side} × {side}; choose another `patch`."
            )
        if wanted > count:
            raise InputError(
                f"{loaded.name}: {count} images, but n_train + n_valid + n_test are {wanted}; "
                "make them smaller."
            )
        if config.objective == "classify" and len(loaded.classes) < 2:
            found = "no labels" if loaded.labels is None else f"one class ({loaded.classes[0]})"
            raise InputError(
                f"{loaded.name}: {found}; classification needs two classes or more (or set "
                "`objective` to masked)."
            )
        return loaded

    @cached_property
    def _parts(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """The patches (N n f) in shuffled order, standardised, and the classes, of each split."""
        c, pixels = self.config, self._images.pixels
        first = np.unique(pixels.reshape(len(pixels), -1), axis=0, return_index=True)[1]
        wanted = c.n_train + c.n_valid + c.n_test
        if len(first) < wanted:
            raise InputError(
                f"{self._images.name}: different images: {len(first)}, but n_train + n_valid + "
                f"n_test are {wanted}; make them smaller."
            )
        order = numpy_stream(c.split_seed, "split").permutation(np.sort(first))
        labels = self._images.labels
        numbers = np.zeros(len(pixels), np.int64) if labels is None else labels
        ends = np.cumsum([0, c.n_train, c.n_valid, c.n_test])
        rows = {split: order[ends[i] : ends[i + 1]] for i, split in enumerate(SPLITS)}
        mean, spread = pixels[rows["train"]].mean(), pixels[rows["train"]].std()
        if spread == 0:
            raise InputError(f"{self._images.name}: all pixels of the training images are equal.")
        patches = cut((pixels - mean) / spread, c.patch)[:, self.cells]
        self._empty = float((pixels.min() - mean) / spread)
        return {split: (patches[chosen], numbers[chosen]) for split, chosen in rows.items()}

    def splits(self) -> dict[str, Examples]:
        """Images of each split; masks of held-out images are fixed."""
        made = {}
        for split, (patches, classes) in self._parts.items():
            values = torch.from_numpy(patches.astype(np.float32))
            if self.config.objective == "masked":
                n = len(self.cells)
                rng = numpy_stream(self.config.split_seed, f"masks/{split}")
                masked = random_masks(rng, len(values), n, n_masked(n, self.config.mask))
                made[split] = _hide(values, torch.from_numpy(masked))
            else:
                made[split] = self._ask(values, torch.from_numpy(classes))
        return made

    def _ask(self, values: Tensor, classes: Tensor) -> Examples:
        """Samples whose class is asked for, from patches (b n f)."""
        b, n, _ = values.shape
        group = torch.zeros(b, dtype=torch.int64, device=values.device)
        if not self._class_token:
            read = torch.arange(n, device=values.device).expand(b, n)
            return Examples(values, read, classes[:, None].expand(b, n), group)
        tokens = F.pad(values, (0, 1, 1, 0))  # a flag, and a token before the patches
        tokens[:, 0, -1] = 1.0
        return Examples(tokens, group[:, None], classes[:, None], group)

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """Return the images of these rows, moved if `shift` is on, under masks drawn afresh."""
        chosen = examples.take(rows)
        masked = self.config.objective == "masked"
        if not masked and not self.config.shift:
            return chosen
        values = _whole(chosen) if masked else chosen.tokens
        if self._class_token:
            values = values[:, 1:, :-1]
        if self.config.shift:
            values = self._moved(values, generator)
        if not masked:
            return self._ask(values, chosen.targets[:, 0])
        order = torch.rand(values.shape[:2], generator=generator).argsort(-1)
        return _hide(values, order[:, : chosen.read.shape[1]].to(values.device))

    def _moved(self, values: Tensor, generator: torch.Generator) -> Tensor:
        seed = int(torch.randint(2**31, (), generator=generator))
        patches = np.empty_like(values.cpu().numpy())
        patches[:, self.cells] = values.cpu().numpy()
        side, most = self.config.patch, self.config.shift
        rng = np.random.default_rng(seed)
        images = shifted(join(patches, side, *self.grid), most, self._empty, rng)
        moved = cut(images, side)[:, self.cells].astype(np.float32)
        return torch.from_numpy(moved).to(values.device)

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the cross-entropy of the pooled outputs, or the squared error of the pixels."""
        if self.config.objective == "masked":
            return F.mse_loss(outputs, examples.targets)
        return F.cross_entropy(outputs.mean(1), examples.targets[:, 0])

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Return the share of right classes, or the mean squared error of masked pixels."""
        if self.config.objective == "masked":
            return {"mse": float((outputs - examples.targets).double().square().mean())}
        right = outputs.mean(1).argmax(-1) == examples.targets[:, 0]
        return {"accuracy": float(right.double().mean())}

    def learned(self, headline: float) -> bool | None:
        """Return whether every training image is right; None for masked patches."""
        return None if self.config.objective == "masked" else headline == 1.0

    def _edges(self) -> Array:
        """1 where two patches share an edge (n n)."""
        row, column = np.divmod(self.cells, self.grid[1])
        apart = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
        edges: Array = (apart == 1).astype(np.float64)
        return edges

    def truth(self) -> Truth:
        """Two patches belong together when they share an edge; the image may be turned or flipped.

        Labels with one value only, as in a grid of one row, are left out.
        """
        row, column = np.divmod(self.cells, self.grid[1])
        labels = {"row": row, "column": column}
        labels = {name: values for name, values in labels.items() if np.ptp(values)}
        group = analysis.rectangle_symmetries(*self.grid)
        group = analysis.renumbered(group, self.cells)
        names = {name: counted(values) for name, values in labels.items()}
        return Truth(self._edges(), labels, group, together="share an edge", value_names=names)

    def names(self) -> list[str]:
        """Return row and column of each patch, counted from 1."""
        rows, columns = np.divmod(self.cells, self.grid[1])
        return [f"row {r + 1}, column {c + 1}" for r, c in zip(rows, columns, strict=True)]

    def baselines(self) -> dict[str, dict[str, float]]:
        """Score methods that see the pixels in their places; settings are chosen on validation."""
        return self._pixel_models() if self.config.objective == "masked" else self._classifiers()

    def _classifiers(self) -> dict[str, dict[str, float]]:
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier

        flat = {s: (x.reshape(len(x), -1), y) for s, (x, y) in self._parts.items()}
        models: dict[str, list[Any]] = {
            "logistic regression on pixels": [
                LogisticRegression(C=c, max_iter=500) for c in PENALTIES
            ],
            "small MLP on pixels": [
                MLPClassifier((width,), max_iter=300, random_state=0) for width in HIDDEN
            ],
        }
        scores: dict[str, dict[str, float]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that are not enough: validation decides
            for name, candidates in models.items():
                fitted = [model.fit(*flat["train"]) for model in candidates]
                best = max(fitted, key=lambda model: model.score(*flat["valid"]))
                scores[name] = {"test/accuracy": float(best.score(*flat["test"]))}
        return scores

    def _pixel_models(self) -> dict[str, dict[str, float]]:
        splits = self.splits()
        f = self.n_outputs

        def pixels(split: str) -> tuple[Array, NDArray[np.int64]]:
            values = _whole(splits[split]).double().numpy().reshape(len(splits[split]), -1)
            read = splits[split].read.numpy()
            return values, (read[..., None] * f + np.arange(f)).reshape(len(read), -1)

        train = pixels("train")[0]
        noise = numpy_stream(self.config.split_seed, "noise").normal(0, NOISE, train.shape)
        predicted = {
            "mean": analysis.mean_of_training(train, pixels("test")),
            "linear Gaussian": analysis.linear_gaussian(
                train + noise, pixels("valid"), pixels("test")
            )[0],
        }
        test = splits["test"]
        return {
            name: {
                f"test/{key}": value
                for key, value in self.metrics(
                    torch.from_numpy(values).view(test.targets.shape), test
                ).items()
            }
            for name, values in predicted.items()
        }


TASK = ImagePatches


def _hide(values: Tensor, masked: Tensor) -> Examples:
    """Samples (b n f) with the patches `masked` (b q) hidden: a flag is set there, pixels are 0."""
    index = masked[..., None].expand(-1, -1, values.shape[-1])
    flag = torch.zeros_like(values[..., :1]).scatter_(1, masked[..., None], 1.0)
    group = torch.zeros(len(values), dtype=torch.int64, device=values.device)
    tokens = torch.cat((values * (1 - flag), flag), -1)
    return Examples(tokens, masked, values.gather(1, index), group)


def _whole(examples: Examples) -> Tensor:
    """The patches (b n f) of samples of masked patches, nothing hidden."""
    index = examples.read[..., None].expand_as(examples.targets)
    return examples.tokens[..., :-1].scatter(1, index, examples.targets)


def _digest(images: Images) -> str:
    seen = hashlib.sha256(repr((images.pixels.shape, images.classes)).encode())
    seen.update(images.pixels.astype("<f4").tobytes())
    if images.labels is not None:
        seen.update(images.labels.astype("<i8").tobytes())
    return seen.hexdigest()[:12]
