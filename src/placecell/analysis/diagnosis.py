"""What went wrong in a run, by its own numbers: the failure signatures of learned positions, each with what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from placecell.analysis.attention import agreement
from placecell.analysis.statistics import Array

# The thresholds. docs/report.md says where each comes from.
GAP = 0.10  # of a score (more is better): training this far above test means that test is poor
GAP_ERROR = 0.5  # of an error (less is better): training error at most this share of the test error
MOVED = 0.25  # a table that moved less than this share of its initial norm has hardly moved
NEARLY = 0.98  # a score in training that counts as learned, if a few samples are still wrong
BETTER = 0.02  # a test score that betters that of the mean by less than this share of it is no better
FLAT = 0.05  # a loss that fell less than this share of its start, over the second half of a run, is flat
TINY_GRADIENT = 0.15  # gradient into the table, as a share of the loss: below this it is tiny
CONSISTENT = 0.35  # correlation of a run's attention maps with those of other seeds; below they are inconsistent


@dataclass(frozen=True)
class Numbers:
    """What a diagnosis looks at. NaN stands for what was not measured or does not exist."""

    status: str
    up: bool  # whether more of the headline is better
    train: float  # the headline at the end
    test: float
    learned: bool | None  # whether the training set was learned whole; None if it never can be
    loss: Sequence[float]  # training loss at every evaluation, the first before training
    moved: float = math.nan  # ‖table at the end − at the start‖ / ‖at the start‖; NaN if no table is learned
    gradient: Sequence[float] = ()  # norm of the gradient into the table at every evaluation but the first
    consistency: float = math.nan  # mean correlation of the attention maps with those of the other seeds
    seeds: int = 1
    steps: int = 0  # how long it trained
    warmup: int = 0  # steps over which its learning rate was to rise
    mean: float = math.nan  # the headline on the test set of guessing the mean
    simpler: Mapping[str, float] = field(default_factory=dict)  # the same of simpler methods, by name


@dataclass(frozen=True)
class Diagnosis:
    """A signature's name, the numbers it was recognised by, and what to try next (empty when all is well)."""

    name: str
    seen: str
    advice: str

    @property
    def healthy(self) -> bool:
        return not self.advice

    def __str__(self) -> str:
        return f"{self.name}: {self.seen}" + (f" Try: {self.advice}" if self.advice else "")


def diagnose(numbers: Numbers) -> Diagnosis:
    """The signature that fits; the first that does, from broken to healthy."""
    n = numbers
    if n.status == "diverged":
        return Diagnosis("diverged", "the loss stopped being finite.", "a lower --lr, a --warmup, or --clip 1.")
    if n.status == "failed":
        return Diagnosis("failed", "the run ended with an error.", "the command again, once its message is dealt with.")
    if n.status != "done":
        return Diagnosis(n.status, "the run has not ended.", "the same command again: it goes on from its checkpoint.")
    if n.warmup and n.steps <= n.warmup:
        seen = f"the warm-up takes {n.warmup} steps and the run had {n.steps}: the learning rate rose to the end."
        return Diagnosis("warm-up not over", seen, "more --steps, or a shorter --warmup.")
    if not (n.learned or (n.up and n.train >= NEARLY)) and (unfinished := _stalling(n) or _not_converged(n)):
        return unfinished
    poor = _gap(n)
    if not poor and (nothing := _no_better(n)):
        return nothing
    if poor and n.moved < MOVED:
        return Diagnosis(
            "memorising",
            f"training {n.train:.3f}, test {n.test:.3f}, and the table moved by {n.moved:.0%} of its norm: the model "
            "fits around a table that stays random.",
            "a smaller --sigma.",
        )
    if n.moved >= MOVED and n.consistency < CONSISTENT:
        return Diagnosis(
            "attention does not follow positions",
            f"the table moved by {n.moved:.0%} of its norm, but attention maps agree over {n.seeds} seeds by "
            f"{n.consistency:.2f} only: each seed found its own way.",
            "more training data, a smaller --sigma, or fewer --heads.",
        )
    if poor:
        kind = "no table is learned" if math.isnan(n.moved) else f"the table moved by {n.moved:.0%} of its norm"
        advice = "more training data, or --weight-decay with --optimizer adamw."
        return Diagnosis("overfitting", f"training {n.train:.3f}, test {n.test:.3f}; {kind}.", advice)
    return Diagnosis("learned", f"training {n.train:.3f}, test {n.test:.3f}: no sign of trouble{_unbeaten(n)}.", "")


def map_consistency(maps: Sequence[ArrayLike]) -> Array:
    """For each seed's attention maps (layers, n, n), averaged over samples and heads, the mean correlation with the
    other seeds' maps; NaN for a single seed."""
    found = np.full((len(maps), len(maps)), np.nan)
    for i in range(len(maps)):
        for j in range(i):
            found[i, j] = found[j, i] = agreement(maps[i], maps[j]).correlation.mean()
    known = np.where(np.isnan(found), 0.0, found).sum(axis=1)
    mean: Array = known / (len(maps) - 1) if len(maps) > 1 else np.full(len(maps), np.nan)
    return mean


def _fall(n: Numbers) -> float:
    """How far the training loss fell over the second half of the run, as a share of its start; NaN if unknown."""
    if len(n.loss) < 3 or not n.loss[0] > 0:
        return math.nan
    return (n.loss[len(n.loss) // 2] - n.loss[-1]) / n.loss[0]


def _stalling(n: Numbers) -> Diagnosis | None:
    """Flat from the middle on and little pull on the table; a run that learned something first is not stalling."""
    if math.isnan(n.moved) or not _fall(n) < FLAT or not n.loss[-1] > (1 - 4 * FLAT) * n.loss[0]:
        return None
    pull = float(np.median(np.asarray(n.gradient) / np.asarray(n.loss[-len(n.gradient) :]))) if n.gradient else math.nan
    if pull >= TINY_GRADIENT:
        return None
    known = "its gradient into the table was not recorded"
    if not math.isnan(pull):
        known = f"its gradient into the table is {pull:.3f} of it"
    seen = f"the loss stayed at {n.loss[-1]:.3f} (it began at {n.loss[0]:.3f}) and {known}"
    if n.moved < MOVED:  # a table too small is soon left behind; this one dwarfs what moves it
        advice = "a larger --lr; then a smaller --sigma."
        return Diagnosis("stalling", f"{seen}; the table moved by {n.moved:.0%} of its norm.", advice)
    advice = "a larger --sigma, a larger --pe-lr, or another --optimizer."
    return Diagnosis("stalling", f"{seen}: nothing tells the tokens apart.", advice)


def _not_converged(n: Numbers) -> Diagnosis | None:
    """The training set was not learned. What can never be learned whole, and an error, are judged by the loss alone."""
    fall = _fall(n)
    if fall >= FLAT:
        seen = f"training {n.train:.3f} at the end, and the loss fell by {fall:.0%} of its start in the second half."
        return Diagnosis("not converged", seen, "more --steps.")
    if not n.up or n.learned is None:
        return None
    if math.isnan(fall):
        seen = (
            f"training {n.train:.3f} at the end; too few evaluations ({len(n.loss)}) to know if the loss still falls."
        )
        return Diagnosis("not converged", seen, "more --steps, or a smaller --eval-every.")
    seen = f"training {n.train:.3f} at the end, and the loss no longer falls."
    advice = "another --lr, a wider model, or an encoding that can express the relation."
    return Diagnosis("not converged", seen, advice)


def _no_better(n: Numbers) -> Diagnosis | None:
    """Nothing was learned that helps: the test is scored as if the mean were guessed."""
    gain = n.test - n.mean if n.up else n.mean - n.test
    if not gain < BETTER * abs(n.mean):
        return None
    last = "another --sigma"
    if math.isnan(n.moved):
        last = "an encoding that tells the tokens apart"
    elif n.moved < MOVED:
        last = "a smaller --sigma"
    seen = f"training {n.train:.3f}, test {n.test:.3f}, and guessing the mean has {n.mean:.3f}."
    return Diagnosis("no better than the mean", seen, f"another --lr, more --steps, or {last}.")


def _unbeaten(n: Numbers) -> str:
    """The best of the simpler methods, if it does better."""
    if not n.simpler:
        return ""
    name, score = (max if n.up else min)(n.simpler.items(), key=lambda one: one[1])
    return f", but {name} does better ({score:.3f})" if (score > n.test if n.up else score < n.test) else ""


def _gap(n: Numbers) -> bool:
    """Whether test is poor beside training."""
    return n.train - n.test >= GAP if n.up else n.train <= GAP_ERROR * n.test
