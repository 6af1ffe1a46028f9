"""Text on the library's interface: characters are tokens, at places whose order is shuffled."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path

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
from placecell.tasks.masked import n_masked, random_masks
from placecell.tasks.optional import Learned
from placecell.tasks.text.config import Config
from placecell.tasks.text.generate import generate_text
from placecell.tasks.text.ngram import NGram

Symbols = NDArray[np.int64]
SPLITS = ("train", "valid", "test")
HELD_OUT = 0.1  # share of a text to validate on, and as much again to test on, at its end
LONGEST = (2, 3, 4, 5)  # n of the n-gram models tried


class Text(Task):
    """Predict masked characters of a text; the order of its places is unknown to the model.

    A window is `window` characters that follow each other. Character k stands at a place that one
    shuffled order gives, the same in all windows; the coordinate of a place is its true position.
    """

    headline = "cross_entropy"
    headline_lower_is_better = True
    shown: tuple[str, ...] = (
        "table/order",
        "table/distance",
        "table/relation",
        "attention/relation",
    )

    def __init__(self, config: Config) -> None:
        if config.text is not None:
            digest = hashlib.sha256(_read(Path(config.text)).encode()).hexdigest()[:12]
            if config.contents not in (None, digest):
                raise InputError(
                    f"{config.text}: the text has changed since the run was made (contents "
                    f"{digest}, expected {config.contents})."
                )
            config = replace(config, contents=digest)  # so that another text is another run
        elif config.contents is not None:
            raise InputError("contents is for a text of one's own; give it as `text`.")
        self.config = config
        self.symbols = _symbols(self._texts, config.window, config.text or "the generated text")
        self.tokens = Tokens("symbol", len(self.symbols) + 1)  # the last one is the mask
        self.n_outputs = len(self.symbols)
        n = config.window
        self.order: Symbols = numpy_stream(config.split_seed, "order").permutation(n)
        path = torch.from_numpy(np.abs(self.order[:, None] - self.order) == 1).float()
        coords = torch.from_numpy(self.order)[:, None].float()
        self.places = Positions(torch.arange(n), coords, graph=path)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The text of each split: parts of one's own text, or texts generated apart."""
        c = self.config
        if c.text is None:
            sizes = dict.fromkeys(SPLITS, max(10 * c.window, c.characters // 10))
            sizes["train"] = c.characters
            return {
                split: generate_text(size, numpy_stream(c.split_seed, f"text/{split}"))
                for split, size in sizes.items()
            }
        text = _read(Path(c.text))
        held = round(HELD_OUT * len(text))
        cuts = (0, len(text) - 2 * held, len(text) - held, len(text))
        return {split: text[cuts[i] : cuts[i + 1]] for i, split in enumerate(SPLITS)}

    @cached_property
    def _coded(self) -> dict[str, Symbols]:
        """The symbols of each split's text, in order."""
        number = {symbol: i for i, symbol in enumerate(self.symbols)}
        return {
            split: np.array([number[c] for c in text], dtype=np.int64)
            for split, text in self._texts.items()
        }

    @cached_property
    def _windows(self) -> dict[str, Symbols]:
        """Different windows of each split (N n) in true order; held-out ones occur in no other."""
        c, seen = self.config, np.empty((0, self.config.window), dtype=np.int64)
        windows: dict[str, Symbols] = {}
        for split in SPLITS:
            every = np.lib.stride_tricks.sliding_window_view(self._coded[split], c.window)
            order = numpy_stream(c.split_seed, f"windows/{split}").permutation(len(every))
            # four times as many as are needed: some occur twice, or in an earlier split
            drawn = every[order[: 4 * getattr(c, f"n_{split}")]]
            both = np.concatenate((seen, drawn))
            first = np.unique(both, axis=0, return_index=True)[1]
            new = np.sort(first[first >= len(seen)])[: getattr(c, f"n_{split}")]
            if not len(new):
                raise InputError(
                    f"the {split} part of the text has no window of its own; give a longer text."
                )
            windows[split] = both[new]
            seen = both
        return windows

    def splits(self) -> dict[str, Examples]:
        """Windows under fixed masks; those of training batches are drawn afresh."""
        c, splits = self.config, {}
        for split, windows in self._windows.items():
            rng = numpy_stream(c.split_seed, f"masks/{split}")
            masked = random_masks(rng, len(windows), c.window, n_masked(c.window, c.mask))
            whole = torch.from_numpy(windows[:, self.order])
            splits[split] = self._hide(whole, torch.from_numpy(masked))
        return splits

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """Return the windows of these rows under masks drawn afresh."""
        chosen = examples.take(rows)
        whole = chosen.tokens.scatter(1, chosen.read, chosen.targets)
        order = torch.rand(whole.shape, generator=generator).argsort(-1)
        return self._hide(whole, order[:, : chosen.read.shape[1]].to(whole.device))

    def _hide(self, whole: Tensor, masked: Tensor) -> Examples:
        """Samples (b n) with the places `masked` (b q) hidden."""
        group = torch.zeros(len(whole), dtype=torch.int64, device=whole.device)
        tokens = whole.scatter(1, masked, len(self.symbols))
        return Examples(tokens, masked, whole.gather(1, masked), group)

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the cross-entropy of outputs (b q o), in nats a character."""
        return F.cross_entropy(outputs.flatten(0, 1), examples.targets.flatten())

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Return the cross-entropy, and the share of characters that are right."""
        right = (outputs.argmax(-1) == examples.targets).double().mean()
        return {
            "cross_entropy": float(self.loss(outputs.double(), examples)),
            "accuracy": float(right),
        }

    def truth(self) -> Truth:
        """Two places belong together when they follow each other; the order may be reversed."""
        path = (np.abs(self.order[:, None] - self.order) == 1).astype(np.float64)
        n, at = len(self.order), np.argsort(self.order)  # position -> place
        orders = np.stack([np.arange(n), at[n - 1 - self.order]]).astype(np.intp)
        group = analysis.Symmetries(orders, ("identity", "reversed"))
        return Truth(
            path,
            {"position": self.order},
            group,
            together="follow each other",
            value_names={"position": counted(self.order)},
        )

    def names(self) -> list[str]:
        """Return the true position of each place, counted from 1, as its name."""
        return [f"position {position + 1}" for position in self.order]

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """Measure the order that the table shows, and that of the untrained table."""
        return {
            f"{of}/order": analysis.order_correlation(table, self.order)
            for of, table in (("table", learned.table), ("untrained", learned.untrained))
            if table is not None and np.ptp(table) > 0
        }

    def baselines(self) -> dict[str, dict[str, float]]:
        """Score n-gram models that know the true order; n is chosen on validation windows."""
        text, splits = self._coded["train"], self.splits()

        def probabilities(model: NGram, split: str) -> Tensor:
            masked = self.order[splits[split].read.numpy()]  # places -> true positions
            return torch.from_numpy(model.predict(self._windows[split], masked))

        models = [NGram(text, self.n_outputs, n) for n in LONGEST]
        losses = [
            float(self.loss(probabilities(model, "valid").log(), splits["valid"]))
            for model in models
        ]
        best = models[int(np.argmin(losses))]
        single = torch.from_numpy(best.unigram).expand(*splits["test"].read.shape, -1)
        predicted = {
            "frequencies": single,
            f"{best.n}-gram of both sides": probabilities(best, "test"),
        }
        return {
            name: {f"test/{k}": v for k, v in self.metrics(p.log(), splits["test"]).items()}
            for name, p in predicted.items()
        }


TASK = Text


def _read(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected the name of a file in it.")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text in UTF-8 (byte {error.start + 1}).") from None


def _symbols(texts: dict[str, str], window: int, name: str) -> list[str]:
    """The different characters of the training text, if all parts can be used."""
    for split, text in texts.items():
        if len(text) < window:
            raise InputError(
                f"{name}: its {split} part has {len(text)} characters, shorter than a window of "
                f"{window}; give a longer text or a smaller `window`."
            )
    known = sorted(set(texts["train"]))
    for split in SPLITS[1:]:
        new = sorted(set(texts[split]) - set(known))
        if new:
            raise InputError(
                f"{name}: its {split} part has the character {new[0]!r}, which its training part "
                "does not have; take it out, or give a longer text."
            )
    if len(known) < 2:
        raise InputError(f"{name}: one character only; there is nothing to predict.")
    return known
