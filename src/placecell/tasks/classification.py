"""Classification at the tokens read: a task that says which class goes there."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from placecell.tasks.base import Examples, Task


class Classification(Task):
    """Which of `n_outputs` classes goes at each token read? A subclass brings the data: `splits`.

    Targets are class numbers (b q). Metrics are the accuracy, and that of each group where there
    are several."""

    headline = "accuracy"

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """The cross-entropy, averaged over what is scored."""
        flat, targets = outputs.flatten(0, 1), examples.targets.flatten()
        if examples.scored is None:
            return F.cross_entropy(flat, targets)
        return weighted_mean(
            F.cross_entropy(flat, targets, reduction="none"), examples.scored.flatten()
        )

    def metrics(self, outputs: Tensor, examples: Examples) -> dict[str, float]:
        """The share of right answers, of all samples and by group."""
        right = (outputs.argmax(-1) == examples.targets).double()  # b q
        return by_group("accuracy", sample_mean(right, examples.scored), examples, self.groups)

    def learned(self, headline: float) -> bool:
        return headline == 1.0


def weighted_mean(values: Tensor, scored: Tensor) -> Tensor:
    """The mean of the values (k) that are scored (k)."""
    return (values * scored).sum() / scored.sum()


def sample_mean(values: Tensor, scored: Tensor | None) -> Tensor:
    """The mean over the tokens read (b q) of each sample (b); over those scored, where not all
    are."""
    if scored is None:
        return values.mean(-1)
    return (values * scored).sum(-1) / scored.sum(-1)


def by_group(
    name: str, values: Tensor, examples: Examples, groups: tuple[str, ...]
) -> dict[str, float]:
    """The mean of a score (b) over all samples that count, and over those of each group where there
    are several."""
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
