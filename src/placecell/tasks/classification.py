"""Tasks that predict a class at some of the tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from placecell.tasks.base import Examples, Task


class Classification(Task):
    """Predict one of `n_outputs` classes at every token that is read.

    A subclass adds the data (`splits`). Targets are class numbers (b q). Metrics are the accuracy
    of all samples, and that of each group if there are several.
    """

    headline = "accuracy"

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the cross-entropy of `outputs` (b q o), averaged over the scored tokens."""
        flat, targets = outputs.flatten(0, 1), examples.targets.flatten()
        if examples.scored is None:
            return F.cross_entropy(flat, targets)
        return weighted_mean(
            F.cross_entropy(flat, targets, reduction="none"), examples.scored.flatten()
        )

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """Return the share of right answers, of all samples and of each group."""
        right = (outputs.argmax(-1) == examples.targets).double()  # b q
        return by_group("accuracy", sample_mean(right, examples.scored), examples, self.groups)

    def learned(self, headline: float) -> bool:
        """Say whether every training sample is answered right."""
        return headline == 1.0


def weighted_mean(values: Tensor, scored: Tensor) -> Tensor:
    """Average the scored ones of some values.

    Parameters
    ----------
    values : Tensor
        One number for each token that is read (k).
    scored : Tensor
        False where a token does not count (k).

    Returns
    -------
    Tensor
        A scalar.
    """
    return (values * scored).sum() / scored.sum()


def sample_mean(values: Tensor, scored: Tensor | None) -> Tensor:
    """Average over the tokens that are read in each sample.

    Parameters
    ----------
    values : Tensor
        One number for each token that is read (b q).
    scored : Tensor, optional
        False where a token does not count (b q). None: all count.

    Returns
    -------
    Tensor
        One number for each sample (b); NaN for a sample without a scored token.
    """
    if scored is None:
        return values.mean(-1)
    return (values * scored).sum(-1) / scored.sum(-1)


def by_group(
    name: str, values: Tensor, examples: Examples, groups: tuple[str, ...]
) -> dict[str, float]:
    """Average a score over all samples, and over the samples of each group.

    Parameters
    ----------
    name : str
        Name of the score.
    values : Tensor
        The score of each sample (b).
    examples : Examples
        The samples.
    groups : tuple of str
        Names of the groups; with one group only the average over all samples is returned.

    Returns
    -------
    dict of str to float
        `name`, and `name/group` for every group that has samples.
    """
    if examples.scored is not None:
        counts = torch.isfinite(values)  # a sample may have nothing to score
        values, group = values[counts], examples.group[counts]
    else:
        group = examples.group
    scores = {name: float(values.mean())}
    if len(groups) > 1:
        for index, label in enumerate(groups):
            members = group == index
            if members.any():
                scores[f"{name}/{label}"] = float(values[members].mean())
    return scores
