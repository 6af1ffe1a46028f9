"""Masked prediction over a field of values: the task that the simulated and the measured networks
share.

A sample is one value for each of n tokens. A share of the tokens is masked (its value hidden, its
flag set) and the masked values are to be predicted from the others. Nothing in a token says which
one it is: that is for the positional encoding to learn."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from placecell import analysis
from placecell.errors import InputError
from placecell.model import Tokens
from placecell.seeds import numpy_stream
from placecell.tasks.base import Examples, Task
from placecell.tasks.classification import by_group, sample_mean, weighted_mean
from placecell.tasks.optional import Learned

Array = NDArray[np.float64]
MASKS, MOST_MASKED = (
    8,
    20_000,
)  # masks a sample that baselines are fitted and chosen under; samples of it in all
NULLS = 1999  # reordered labels that a modularity is compared with: the least p is 1/2000


class MaskedValues(Task):
    """Predict the masked values of a sample from the visible ones, at the masked tokens only."""

    headline = "mse"
    headline_lower_is_better = True
    shown = (
        "table/modularity",
        "table/modularity_signed",
        "table/segregation",
        "table/modularity_p",
        "table/spatial_p",
        "table/louvain_ari",
        "table/kmeans_ari",
        "table/fc",
        "attention/within",
    )
    tokens = Tokens("value", 2)  # the value (0 where masked), and 1 where masked
    n_outputs = 1

    @property
    def n_masked(self) -> int:
        """Masked tokens a sample, the same for all: q."""
        return n_masked(self.n_tokens, self.config.mask)

    @abstractmethod
    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """The samples of each split (N n), standardised, and the group of each (N)."""

    @property
    def mask_seed(self) -> int:
        """Seed of the masks of everything that is scored; those of training batches are drawn
        afresh."""
        seed: int = self.config.split_seed
        return seed

    @property
    def flip(self) -> bool:
        """Whether training turns the sign of samples at random: fluctuations about a mean know no
        up or down."""
        return False

    @cached_property
    def _fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        return self.fields()

    def splits(self) -> dict[str, Examples]:
        found = {}
        self._check()
        for split, (values, group) in self._fields.items():
            masked = random_masks(
                numpy_stream(self.mask_seed, f"masks/{split}"),
                len(values),
                self.n_tokens,
                self.n_masked,
            )
            whole = torch.from_numpy(values.astype(np.float32))
            found[split] = hide(whole, torch.from_numpy(masked), torch.from_numpy(group))
        return found

    def _check(self) -> None:
        """Refuse, before anything is trained, what could not be analysed afterwards."""
        for split, (values, _) in self._fields.items():
            if not np.isfinite(values).all():
                raise InputError(
                    f"the {split} samples have values that are not finite; check the settings of "
                    f"the data."
                )
        train = self._fields["train"][0]
        still = np.flatnonzero(np.ptp(train, axis=0) == 0)
        if len(still):
            raise InputError(
                f"token {still[0] + 1} is constant in the {len(train)} training samples."
            )
        if len(train) <= 2:
            raise InputError(f"{len(train)} training samples; at least 3 are needed.")
        truth = self.truth()
        if (
            truth is not None
            and truth.partition is not None
            and len(np.unique(truth.labels[truth.partition])) < 2
        ):
            raise InputError(
                f"one {truth.partition} only: there is nothing to compare a table with. Where it "
                f"was found in the data "
                "(no --networks given), name the known ones."
            )

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """The samples of these rows under masks drawn afresh, each with its sign turned or not if
        `flip` is on."""
        chosen = examples.take(rows)
        order = torch.rand(chosen.tokens.shape[:2], generator=generator).argsort(-1)
        values = field(chosen)
        if self.flip:
            sign = 1.0 - 2.0 * torch.randint(2, (len(rows), 1), generator=generator)
            values = values * sign.to(values.device)
        return hide(values, order[:, : chosen.read.shape[1]].to(values.device), chosen.group)

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """The squared error, averaged over what is scored."""
        if examples.scored is None:
            return F.mse_loss(outputs[..., 0], examples.targets)
        error = F.mse_loss(outputs[..., 0], examples.targets, reduction="none")
        return weighted_mean(error.flatten(), examples.scored.flatten())

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """The mean squared error, of all samples and by group."""
        error = (outputs[..., 0] - examples.targets).double().square()  # b q
        return by_group("mse", sample_mean(error, examples.scored), examples, self.groups)

    def fc(self, split: str) -> Array:
        """The correlation (n n) of the tokens over the samples of a split: functional connectivity,
        for a brain."""
        found: Array = np.asarray(np.corrcoef(self._fields[split][0].T))
        return found

    def other_fc(self) -> dict[str, Array]:
        """Correlations of the tokens from elsewhere, for a table to be compared with: name -> n
        n."""
        return {}

    def spatial_orders(self) -> NDArray[np.intp] | None:
        """Reorderings of the tokens (m n) that keep neighbours together, for the null of a
        partition that is smooth in space; None where places are not known, or mean nothing."""
        return None

    @property
    def _modules(self) -> NDArray[np.int64] | None:
        """The known module of each token; None where none are known."""
        truth = self.truth()
        return None if truth is None or truth.partition is None else truth.labels[truth.partition]

    @cached_property
    def _orders(self) -> dict[str, NDArray[np.intp]]:
        """The nulls of the modularity: labels in any order, and labels moved over space."""
        rng = numpy_stream(0, "label orders")
        found = {"modularity": np.stack([rng.permutation(self.n_tokens) for _ in range(NULLS)])}
        spatial = self.spatial_orders()
        return found if spatial is None else found | {"spatial": spatial}

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """Modules of the learned table by the known ones, blind clusters, agreement with the
        tokens' correlations, and the share of attention that stays inside a module; the untrained
        table beside it."""
        labels = self._modules
        found: dict[str, float] = {}
        for of, table in (("table", learned.table), ("untrained", learned.untrained)):
            if table is not None and np.ptp(table) > 0:
                found |= self._measured(of, analysis.row_similarity(table), table, rng)
        if labels is None:
            return found
        same = labels[:, None] == labels
        inside = np.array(
            [
                layer[same & ~np.eye(len(same), dtype=bool)].sum() / len(same)
                for layer in learned.maps
            ]
        )
        chance = (same.sum() - len(same)) / len(same) ** 2  # a token attends to itself as well
        found["attention/within"] = float(inside.mean())
        found["attention/within_uniform"] = float(chance)
        return found | {f"attention/within_layer{i + 1}": float(v) for i, v in enumerate(inside)}

    def baselines(self) -> dict[str, dict[str, float]]:
        """Simpler methods on the same masked samples, and the same measures of the correlations
        themselves."""
        given = {
            split: (field(e).double().numpy(), e.read.numpy()) for split, e in self.splits().items()
        }
        train, valid = (self._often_masked(split, given[split][0]) for split in ("train", "valid"))
        predicted = {"mean": analysis.mean_of_training(given["train"][0], given["test"])}
        predicted["ridge"], penalty = analysis.ridge(train, valid, given["test"])
        predicted["linear Gaussian"], shrinkage = analysis.linear_gaussian(
            given["train"][0], valid, given["test"]
        )
        test = self.splits()["test"]
        found = {}
        for name, values in predicted.items():
            scores = self.metrics(torch.from_numpy(values)[..., None], test)
            found[name] = {f"test/{key}": value for key, value in scores.items()}
        found["ridge"]["penalty"], found["linear Gaussian"]["shrinkage"] = penalty, shrinkage
        for whose, fc in {"training data": self.fc("train"), **self.other_fc()}.items():
            name = f"correlations of the {whose}"
            found[name] = self._measured("table", fc, fc, numpy_stream(0, name))
            # centred as tables are, without which they are not alike
            rows = f"{name}, rows as a table"
            found[rows] = self._measured(
                "table", analysis.row_similarity(fc), fc, numpy_stream(0, rows)
            )
        name = "principal components of the training data"
        table = analysis.principal_components(given["train"][0], given["valid"][0])
        found[name] = self._measured(
            "table", analysis.row_similarity(table), table, numpy_stream(0, name)
        )
        return found

    def _often_masked(self, split: str, values: Array) -> tuple[Array, NDArray[np.int64]]:
        """The samples several times, each time under another mask: what is fitted and chosen then
        hangs less on one."""
        times = max(1, min(MASKS, MOST_MASKED // len(values)))
        masks = random_masks(
            numpy_stream(self.mask_seed, f"often/{split}"),
            times * len(values),
            self.n_tokens,
            self.n_masked,
        )
        return np.tile(values, (times, 1)), masks

    def _measured(
        self, of: str, similarity: Array, table: Array, rng: np.random.Generator
    ) -> dict[str, float]:
        """All measures of a table and the similarity of its rows: by the known modules, by blind
        clusters of the similarity (Louvain) and of the rows (k-means), and beside the tokens'
        correlations."""
        labels, found = self._modules, {}
        if labels is not None:
            m = analysis.modules(similarity, labels)
            found = {
                "modularity": m.modularity,
                "modularity_signed": m.signed,
                "segregation": m.segregation,
            }
            found |= {"within": m.within, "between": m.between}
            for name, orders in self._orders.items():
                found[f"{name}_p"] = analysis.label_test(similarity, labels, orders)[0]
        for name, clusters in (
            ("louvain", analysis.louvain(similarity, rng)),
            ("kmeans", analysis.kmeans(table, rng)),
        ):
            if labels is None:
                found[f"{name}_clusters"] = float(len(np.unique(clusters)))
                continue
            match = analysis.match_labels(clusters, labels)
            found |= {
                f"{name}_ari": match.ari,
                f"{name}_nmi": match.nmi,
                f"{name}_clusters": float(match.clusters),
            }
        for name, fc in {"fc": self.fc("train"), "fc_test": self.fc("test")}.items():
            found[name] = analysis.matrix_correlation(similarity, fc)
        for name, fc in self.other_fc().items():
            found[f"fc_{name}"] = analysis.matrix_correlation(similarity, fc)
        return {f"{of}/{name}": value for name, value in found.items()}


def n_masked(n: int, share: float) -> int:
    """The masked tokens of a sample of n: at least one, and never all."""
    return min(n - 1, max(1, round(share * n)))


def random_masks(rng: np.random.Generator, samples: int, n: int, q: int) -> NDArray[np.int64]:
    """q different tokens for each sample (samples q), each set as likely as any other."""
    return rng.random((samples, n)).argsort(axis=1)[:, :q].astype(np.int64)


def hide(values: Tensor, masked: Tensor, group: Tensor) -> Examples:
    """Samples (b n) with the tokens `masked` (b q) hidden: tokens (b n 2) are the value and the
    mask's flag."""
    flag = torch.zeros_like(values).scatter_(1, masked, 1.0)
    return Examples(
        torch.stack((values * (1 - flag), flag), dim=-1), masked, values.gather(1, masked), group
    )


def field(examples: Examples) -> Tensor:
    """The samples (b n) with nothing hidden."""
    return examples.tokens[..., 0].scatter(1, examples.read, examples.targets)
