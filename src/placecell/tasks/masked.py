"""Masked prediction of values: the base of the simulated and the measured networks.

A sample is one value for each of n tokens. Some tokens are masked (value set to 0, flag set to 1),
and the model predicts the masked values from the others. Nothing in a token says which token it
is: the positional encoding has to learn that.
"""

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
from placecell.tasks.optional import Learned, place_names

Array = NDArray[np.float64]
MASKS = 8  # how many masks of every sample the baselines are fitted and chosen with
MOST_MASKED = 20_000  # the largest number of masked samples that baselines are fitted with
NULLS = 1999  # reordered labels that a modularity is compared with: the smallest p is 1/2000


class MaskedValues(Task):
    """Predict the masked values of a sample from the visible ones.

    A subclass adds the data (`fields`). The model is scored at the masked tokens only.
    """

    headline = "mse"
    headline_lower_is_better = True
    shown: tuple[str, ...] = (
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
        """Number of masked tokens of every sample: q."""
        return n_masked(self.n_tokens, self.config.mask)

    @abstractmethod
    def fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        """Return the standardised samples of each split.

        Returns
        -------
        dict of str to (ndarray, ndarray)
            For `train`, `valid` and `test`: the values (N n), and the group of each sample (N).
        """

    @property
    def mask_seed(self) -> int:
        """Seed of the masks of all scored samples; training batches get new masks each time."""
        seed: int = self.config.split_seed
        return seed

    @property
    def flip(self) -> bool:
        """Whether training flips the sign of samples at random.

        Right for fluctuations about a mean, which are as likely to be positive as negative.
        """
        return False

    @cached_property
    def _fields(self) -> dict[str, tuple[Array, NDArray[np.int64]]]:
        return self.fields()

    def splits(self) -> dict[str, Examples]:
        """Return the samples of each split under fixed masks."""
        splits = {}
        self._check()
        for split, (values, group) in self._fields.items():
            masked = random_masks(
                numpy_stream(self.mask_seed, f"masks/{split}"),
                len(values),
                self.n_tokens,
                self.n_masked,
            )
            whole = torch.from_numpy(values.astype(np.float32))
            splits[split] = hide(whole, torch.from_numpy(masked), torch.from_numpy(group))
        return splits

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
            name = place_names(self)[still[0]]
            raise InputError(f"{name} is constant in the {len(train)} training samples.")
        if len(train) <= 2:
            raise InputError(f"{len(train)} training samples; at least 3 are needed.")
        truth = self.truth()
        if (
            truth is not None
            and truth.partition is not None
            and len(np.unique(truth.labels[truth.partition])) < 2
        ):
            raise InputError(
                "the training data's correlations have one community only: there is nothing to "
                "compare a table with; set `networks` to the known ones."
                if truth.from_data
                else f"one {truth.partition} only: there is nothing to compare a table with."
            )

    def batch(self, examples: Examples, rows: Tensor, generator: torch.Generator) -> Examples:
        """Return the samples of these rows under new masks; with `flip` their signs are random."""
        chosen = examples.take(rows)
        order = torch.rand(chosen.tokens.shape[:2], generator=generator).argsort(-1)
        values = field(chosen)
        if self.flip:
            sign = 1.0 - 2.0 * torch.randint(2, (len(rows), 1), generator=generator)
            values = values * sign.to(values.device)
        return hide(values, order[:, : chosen.read.shape[1]].to(values.device), chosen.group)

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the squared error of `outputs` (b q 1), averaged over the scored tokens."""
        if examples.scored is None:
            return F.mse_loss(outputs[..., 0], examples.targets)
        error = F.mse_loss(outputs[..., 0], examples.targets, reduction="none")
        return weighted_mean(error.flatten(), examples.scored.flatten())

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Return the mean squared error of all samples and of each group."""
        error = (outputs[..., 0] - examples.targets).double().square()  # b q
        return by_group("mse", sample_mean(error, examples.scored), examples, self.groups)

    def fc(self, split: str) -> Array:
        """Correlate the tokens over the samples of a split (in a brain: functional connectivity).

        Parameters
        ----------
        split : str
            `train`, `valid` or `test`.

        Returns
        -------
        ndarray
            Correlations (n n).
        """
        correlations: Array = np.asarray(np.corrcoef(self._fields[split][0].T))
        return correlations

    def other_fc(self) -> dict[str, Array]:
        """Return correlations (n n) of the tokens in other data, by name, to compare with."""
        return {}

    def spatial_orders(self) -> NDArray[np.intp] | None:
        """Return reorderings of the tokens (m n) that keep neighbours together.

        They are the null for modules that are smooth in space. None if the tokens have no
        meaningful coordinates.
        """
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
        orders = {"modularity": np.stack([rng.permutation(self.n_tokens) for _ in range(NULLS)])}
        spatial = self.spatial_orders()
        return orders if spatial is None else orders | {"spatial": spatial}

    def measure(self, learned: Learned, rng: np.random.Generator) -> dict[str, float]:
        """Compare the learned table and attention with the modules and the tokens' correlations.

        Parameters
        ----------
        learned : Learned
            Tables and attention maps of a trained model.
        rng : numpy.random.Generator
            For clustering.

        Returns
        -------
        dict of str to float
            `table/...` and `untrained/...`: modularity by the known modules, blind clusters,
            agreement with correlations. `attention/within`: share of attention inside a module.
        """
        labels = self._modules
        measures: dict[str, float] = {}
        for of, table in (("table", learned.table), ("untrained", learned.untrained)):
            if table is not None and np.ptp(table) > 0:
                measures |= self._measured(of, analysis.row_similarity(table), table, rng)
        if labels is None:
            return measures
        same = labels[:, None] == labels
        inside = np.array(
            [
                layer[same & ~np.eye(len(same), dtype=bool)].sum() / len(same)
                for layer in learned.maps
            ]
        )
        chance = (same.sum() - len(same)) / len(same) ** 2  # a token attends to itself as well
        measures["attention/within"] = float(inside.mean())
        measures["attention/within_uniform"] = float(chance)
        return measures | {f"attention/within_layer{i + 1}": float(v) for i, v in enumerate(inside)}

    def baselines(self) -> dict[str, dict[str, float]]:
        """Score simpler methods on the same samples, and measure the data's own correlations.

        Returns
        -------
        dict of str to dict of str to float
            For each baseline its scores (`test/...`) or its measures (`table/...`). Those that
            agree with the reference by construction have `by_construction`.
        """
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
        baselines = {}
        for name, values in predicted.items():
            scores = self.metrics(torch.from_numpy(values)[..., None], test)
            baselines[name] = {f"test/{key}": value for key, value in scores.items()}
        baselines["ridge"]["penalty"] = penalty
        baselines["linear Gaussian"]["shrinkage"] = shrinkage
        for whose, fc in {"training data": self.fc("train"), **self.other_fc()}.items():
            name = f"correlations of the {whose}"
            baselines[name] = self._measured("table", fc, fc, numpy_stream(0, name))
            # centred as tables are: without that the two cannot be compared
            rows = f"{name}, rows as a table"
            baselines[rows] = self._measured(
                "table", analysis.row_similarity(fc), fc, numpy_stream(0, rows)
            )
        name = "principal components of the training data"
        table = analysis.principal_components(given["train"][0], given["valid"][0])
        baselines[name] = self._measured(
            "table", analysis.row_similarity(table), table, numpy_stream(0, name)
        )
        truth = self.truth()
        if truth is not None and truth.from_data:  # the communities are of the same correlations
            for name, measures in baselines.items():
                if "of the training data" in name:
                    measures["by_construction"] = 1.0
        return baselines

    def baseline_scores(self) -> dict[str, float]:
        """Return the test errors of the mean and of the linear Gaussian model, which take seconds.

        Returns
        -------
        dict of str to float
            Name of the method to its test headline.
        """
        splits = self.splits()
        given = {split: (field(e).double().numpy(), e.read.numpy()) for split, e in splits.items()}
        train, test = given["train"][0], given["test"]
        predicted = {"mean": analysis.mean_of_training(train, test)}
        valid = self._often_masked("valid", given["valid"][0])
        predicted["linear Gaussian"] = analysis.linear_gaussian(train, valid, test)[0]
        return {
            name: self.metrics(torch.from_numpy(values)[..., None], splits["test"])[self.headline]
            for name, values in predicted.items()
        }

    def _often_masked(self, split: str, values: Array) -> tuple[Array, NDArray[np.int64]]:
        """Repeat the samples under different masks, so that a fit depends less on one mask."""
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
        labels, measures = self._modules, {}
        if labels is not None:
            m = analysis.modules(similarity, labels)
            measures = {
                "modularity": m.modularity,
                "modularity_signed": m.signed,
                "segregation": m.segregation,
                "within": m.within,
                "between": m.between,
            }
            for name, orders in self._orders.items():
                measures[f"{name}_p"] = analysis.label_test(similarity, labels, orders)[0]
        for name, clusters in (
            ("louvain", analysis.louvain(similarity, rng)),
            ("kmeans", analysis.kmeans(table, rng)),
        ):
            if labels is None:
                measures[f"{name}_clusters"] = float(len(np.unique(clusters)))
                continue
            match = analysis.match_labels(clusters, labels)
            measures |= {
                f"{name}_ari": match.ari,
                f"{name}_nmi": match.nmi,
                f"{name}_clusters": float(match.clusters),
            }
        for name, fc in {"fc": self.fc("train"), "fc_test": self.fc("test")}.items():
            measures[name] = analysis.matrix_correlation(similarity, fc)
        for name, fc in self.other_fc().items():
            measures[f"fc_{name}"] = analysis.matrix_correlation(similarity, fc)
        return {f"{of}/{name}": value for name, value in measures.items()}


def n_masked(n: int, share: float) -> int:
    """Return how many tokens are masked: at least one, and never all.

    Parameters
    ----------
    n : int
        Tokens of a sample.
    share : float
        The share to be masked.

    Returns
    -------
    int
        Number of masked tokens.
    """
    return min(n - 1, max(1, round(share * n)))


def random_masks(rng: np.random.Generator, samples: int, n: int, q: int) -> NDArray[np.int64]:
    """Choose q different tokens of every sample at random.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    samples : int
        Number of samples.
    n : int
        Tokens of a sample.
    q : int
        Masked tokens of a sample.

    Returns
    -------
    ndarray
        Indices of the masked tokens (samples q).
    """
    return rng.random((samples, n)).argsort(axis=1)[:, :q].astype(np.int64)


def hide(values: Tensor, masked: Tensor, group: Tensor) -> Examples:
    """Mask some of the values of every sample.

    Parameters
    ----------
    values : Tensor
        Samples (b n).
    masked : Tensor
        Indices of the tokens to mask (b q).
    group : Tensor
        Group of every sample (b).

    Returns
    -------
    Examples
        Tokens (b n 2) are the value, 0 if masked, and the flag, 1 if masked.
    """
    flag = torch.zeros_like(values).scatter_(1, masked, 1.0)
    return Examples(
        torch.stack((values * (1 - flag), flag), dim=-1), masked, values.gather(1, masked), group
    )


def field(examples: Examples) -> Tensor:
    """Return the values of samples as they were before masking.

    Parameters
    ----------
    examples : Examples
        Masked samples.

    Returns
    -------
    Tensor
        Values (b n).
    """
    return examples.tokens[..., 0].scatter(1, examples.read, examples.targets)
