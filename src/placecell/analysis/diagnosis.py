"""Diagnose a run from its own numbers: failure signatures of learned positions and what to try."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from placecell.analysis.attention import agreement
from placecell.analysis.statistics import Array

# The thresholds. docs/report.md says where each comes from.

# Test is poor if the training score is this much higher (for a score, where more is better) ...
GAP = 0.10
# ... or if the training error is at most this fraction of the test error (for an error).
GAP_ERROR = 0.5
# A table that moved by less than this fraction of its initial norm has hardly moved.
MOVED = 0.25
# A training score from which the training set counts as learned, a few wrong samples aside.
NEARLY = 0.98
# A test score must beat chance by this fraction of it to count as better.
BETTER = 0.02
# A model that gains less over chance than this fraction of what the best simpler method gains is
# behind that method.
BEHIND = 0.9
# A run is too short to tell with fewer steps than this after the warm-up, ...
SHORT_STEPS = 200
# ... or with fewer passes over the training set than this.
SHORT_PASSES = 1.0
# A loss that fell by less than this fraction of its start in the second half of the run is flat.
FLAT = 0.05
# The gradient into the table is tiny if its ratio to the loss is below this.
TINY_GRADIENT = 0.15
# Attention maps are inconsistent if they correlate with those of other seeds by less than this.
CONSISTENT = 0.35


@dataclass(frozen=True)
class Numbers:
    """Measurements of one run that a diagnosis is based on.

    NaN stands for a value that was not measured or does not exist. The headline is the task's main
    metric.

    Parameters
    ----------
    status : str
        How the run ended: "done", "diverged", "failed", or a status of a run that has not ended.
    up : bool
        Whether a higher headline is better.
    train, test : float
        The headline on the training and the test set at the end.
    learned : bool or None
        Whether the whole training set was learned; None if that is impossible for the task.
    loss : sequence of float
        Training loss at every evaluation; the first is before training.
    moved : float
        ‖table at the end − table at the start‖ / ‖table at the start‖; NaN if no table is learned.
    gradient : sequence of float
        Norm of the gradient into the table at every evaluation except the first.
    consistency : float
        Mean correlation of the attention maps with those of the other seeds.
    seeds : int
        Number of seeds that `consistency` compares.
    steps : int
        Number of training steps.
    warmup : int
        Number of steps over which the learning rate was set to rise.
    chance : float
        The test headline of a guess that ignores the input: the mean, or the commonest class.
    simpler : mapping of str to float
        The test headline of simpler methods, by name.
    passes : float
        How often training went over the training set.
    decays : bool
        Whether the learning rate fell to 0 at the end. The loss then stops falling in any case.
    """

    status: str
    up: bool
    train: float
    test: float
    learned: bool | None
    loss: Sequence[float]
    moved: float = math.nan
    gradient: Sequence[float] = ()
    consistency: float = math.nan
    seeds: int = 1
    steps: int = 0
    warmup: int = 0
    chance: float = math.nan
    simpler: Mapping[str, float] = field(default_factory=dict)
    passes: float = math.nan
    decays: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """A failure signature that a run shows, or "learned" if it shows none.

    Attributes
    ----------
    name : str
        Name of the signature.
    seen : str
        The numbers by which it was recognised, as a sentence.
    advice : str
        What to try next; empty when nothing is wrong.
    """

    name: str
    seen: str
    advice: str

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with the run."""
        return not self.advice

    def __str__(self) -> str:
        return f"{self.name}: {self.seen}" + (f" Try: {self.advice}" if self.advice else "")


def diagnose(numbers: Numbers) -> Diagnosis:
    """Find the signature that a run shows.

    Signatures are tried from broken to healthy, and the first that fits is returned.

    Parameters
    ----------
    numbers : Numbers
        Measurements of the run.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> run = Numbers("done", up=True, train=1.0, test=0.6, learned=True, loss=(1.4, 0.1, 0.0),
    ...               moved=0.1)
    >>> print(diagnose(run).name, "- try", diagnose(run).advice)
    memorising - try a smaller --sigma.
    """
    n = numbers
    if n.status == "diverged":
        return Diagnosis(
            "diverged", "the loss stopped being finite.", "a lower --lr, a --warmup, or --clip 1."
        )
    if n.status == "failed":
        return Diagnosis(
            "failed",
            "the run ended with an error.",
            "the command again, once its message is dealt with.",
        )
    if n.status != "done":
        return Diagnosis(
            n.status,
            "the run has not ended.",
            "the same command again: it goes on from its checkpoint.",
        )
    if n.warmup and n.steps <= n.warmup:
        seen = (
            f"the warm-up takes {n.warmup} steps and the run had {n.steps}: "
            "the learning rate rose to the end."
        )
        return Diagnosis("warm-up not over", seen, "more --steps, or a shorter --warmup.")
    learned = n.learned or (n.up and n.train >= NEARLY)
    if not learned and (unfinished := _too_short(n) or _stalling(n) or _not_converged(n)):
        return unfinished
    poor = _gap(n)
    if not poor and (weak := _no_better(n) or _behind(n)):
        return weak
    if poor and n.moved < MOVED:
        return Diagnosis(
            "memorising",
            f"training {n.train:.3f}, test {n.test:.3f}, and the table moved by {n.moved:.0%} of "
            "its norm: the model fits around a table that stays random.",
            "a smaller --sigma.",
        )
    if n.moved >= MOVED and n.consistency < CONSISTENT:
        return Diagnosis(
            "attention does not follow positions",
            f"the table moved by {n.moved:.0%} of its norm, but attention maps agree over "
            f"{n.seeds} seeds by {n.consistency:.2f} only: each seed found its own way.",
            "more training data, a smaller --sigma, or fewer --heads.",
        )
    if poor:
        table = "no table is learned"
        if not math.isnan(n.moved):
            table = f"the table moved by {n.moved:.0%} of its norm"
        seen = f"training {n.train:.3f}, test {n.test:.3f}; {table}."
        advice = "more training data, or --weight-decay with --optimizer adamw."
        return Diagnosis("overfitting", seen, advice)
    seen = f"training {n.train:.3f}, test {n.test:.3f}: no sign of trouble{_unbeaten(n)}."
    return Diagnosis("learned", seen, "")


def map_consistency(maps: Sequence[ArrayLike]) -> Array:
    """Correlate each seed's attention maps with those of the other seeds.

    Parameters
    ----------
    maps : sequence of arrays of shape (layers, n, n)
        One entry per seed, averaged over samples and heads.

    Returns
    -------
    array of shape (seeds,)
        For each seed, the mean correlation with the other seeds; NaN for a single seed.
    """
    correlations = np.full((len(maps), len(maps)), np.nan)
    for i in range(len(maps)):
        for j in range(i):
            correlation = agreement(maps[i], maps[j]).correlation.mean()
            correlations[i, j] = correlations[j, i] = correlation
    total = np.where(np.isnan(correlations), 0.0, correlations).sum(axis=1)
    mean: Array = total / (len(maps) - 1) if len(maps) > 1 else np.full(len(maps), np.nan)
    return mean


def _fall(n: Numbers, part: int = 2) -> float:
    """Fall of the training loss since the given part of the run, relative to its first value.

    `part` is 2 for the second half, 3 for the last two thirds. NaN if there are too few evaluations
    to know.
    """
    if len(n.loss) < 3 or not n.loss[0] > 0:
        return math.nan
    return (n.loss[len(n.loss) // part] - n.loss[-1]) / n.loss[0]


def _too_short(n: Numbers) -> Diagnosis | None:
    """So few steps or samples that a poor result says nothing about the settings.

    A run that already does about as well as the best simpler method was long enough.
    """
    steps = n.steps - n.warmup
    few_steps = n.steps > 0 and steps < SHORT_STEPS
    if not (few_steps or n.passes < SHORT_PASSES) or _share(n) >= BEHIND:
        return None
    amount = f"{n.steps} steps"
    if n.warmup:
        amount += f", {n.warmup} of them warm-up,"
    if not math.isnan(n.passes):
        amount += f" went over the training set {n.passes:.2g} times"
    seen = f"{amount}; training {n.train:.3f}, test {n.test:.3f}{_compared(n)}."
    return Diagnosis("too short to tell", seen, "more --steps, before anything else.")


def _stalling(n: Numbers) -> Diagnosis | None:
    """The loss is flat and the table gets little gradient.

    A run that learned something before its loss became flat is not stalling. A learning rate that
    falls to 0 flattens any loss at the end, so then the last two thirds of the run are compared.
    """
    fall = _fall(n, 3 if n.decays else 2)
    if math.isnan(n.moved) or not fall < FLAT or not n.loss[-1] > (1 - 4 * FLAT) * n.loss[0]:
        return None
    ratio = math.nan  # of the gradient into the table to the loss
    if n.gradient:
        losses = np.asarray(n.loss[-len(n.gradient) :])
        ratio = float(np.median(np.asarray(n.gradient) / losses))
    if ratio >= TINY_GRADIENT:
        return None
    gradient = "its gradient into the table was not recorded"
    if not math.isnan(ratio):
        gradient = f"its gradient into the table is {ratio:.3f} of it"
    seen = f"the loss stayed at {n.loss[-1]:.3f} (it began at {n.loss[0]:.3f}) and {gradient}"
    if n.moved < MOVED:  # a small table would soon move relative to its norm; this one is too large
        seen = f"{seen}; the table moved by {n.moved:.0%} of its norm."
        advice = "more --steps; then a larger --lr; then a smaller --sigma."
        return Diagnosis("stalling", seen, advice)
    advice = "more --steps; then a larger --sigma, a larger --pe-lr, or another --optimizer."
    return Diagnosis("stalling", f"{seen}: nothing tells the tokens apart.", advice)


def _not_converged(n: Numbers) -> Diagnosis | None:
    """The training set was not learned.

    An error, and a task whose training set can never be learned completely, are judged by the loss
    alone.
    """
    fall = _fall(n)
    if fall >= FLAT:
        seen = (
            f"training {n.train:.3f} at the end, and the loss fell by {fall:.0%} of its start "
            "in the second half."
        )
        return Diagnosis("not converged", seen, "more --steps.")
    if not n.up or n.learned is None:
        return None
    if math.isnan(fall):
        seen = (
            f"training {n.train:.3f} at the end; too few evaluations ({len(n.loss)}) to know "
            "if the loss still falls."
        )
        return Diagnosis("not converged", seen, "more --steps, or a smaller --eval-every.")
    seen = f"training {n.train:.3f} at the end, and the loss no longer falls."
    advice = "another --lr, a wider model, or an encoding that can express the relation."
    if n.decays:
        seen = (
            f"training {n.train:.3f} at the end; the loss stopped falling as the learning rate "
            "went to 0."
        )
        advice = f"more --steps; then {advice}"
    return Diagnosis("not converged", seen, advice)


def _no_better(n: Numbers) -> Diagnosis | None:
    """Nothing useful was learned: the test headline is about that of guessing."""
    gain = n.test - n.chance if n.up else n.chance - n.test
    if not gain < BETTER * abs(n.chance):
        return None
    last = "another --sigma"
    if math.isnan(n.moved):
        last = "an encoding that tells the tokens apart"
    elif n.moved < MOVED:
        last = "a smaller --sigma"
    seen = f"training {n.train:.3f}, test {n.test:.3f}{_compared(n)}."
    return Diagnosis("no better than chance", seen, f"more --steps, another --lr, or {last}.")


def _behind(n: Numbers) -> Diagnosis | None:
    """A simpler method does clearly better on the same data."""
    if not _share(n) < BEHIND:
        return None
    seen = f"training {n.train:.3f}, test {n.test:.3f}{_compared(n)}."
    advice = "more --steps; then another --lr or --sigma."
    return Diagnosis("behind a simpler method", seen, advice)


def _best_simpler(n: Numbers) -> tuple[str, float]:
    """The best of the simpler methods and its headline; NaN without any."""
    if not n.simpler:
        return "", math.nan
    return (max if n.up else min)(n.simpler.items(), key=lambda item: item[1])


def _share(n: Numbers) -> float:
    """What the model gains over chance, as a fraction of what the best simpler method gains.

    Without chance, the ratio of the two headlines. NaN without simpler methods, or if they gain
    nothing.
    """
    _, best = _best_simpler(n)
    if math.isnan(n.chance):
        below, above = (n.test, best) if n.up else (best, n.test)
    else:
        below, above = n.test - n.chance, best - n.chance
        if (above <= 0) if n.up else (above >= 0):
            return math.nan
    return below / above if above else math.nan


def _compared(n: Numbers) -> str:
    """Chance and the best simpler method in words, as far as they are known."""
    name, best = _best_simpler(n)
    words = "" if math.isnan(n.chance) else f", and guessing has {n.chance:.3f}"
    return words + ("" if math.isnan(best) else f"; {name} has {best:.3f}")


def _unbeaten(n: Numbers) -> str:
    """Name the best of the simpler methods if it does better than the model."""
    name, score = _best_simpler(n)
    better = score > n.test if n.up else score < n.test
    return f", but {name} does better ({score:.3f})" if better else ""


def _gap(n: Numbers) -> bool:
    """Whether test is poor compared with training."""
    return n.train - n.test >= GAP if n.up else n.train <= GAP_ERROR * n.test
