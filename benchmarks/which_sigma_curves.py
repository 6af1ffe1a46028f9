"""Which σ? The runs of `which_sigma.py` as curves over σ, and rules that choose one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.config import RunConfig
from placecell.doctor.measure import share_of_logits
from placecell.encodings.share import position_share, sigma_for_share
from placecell.seeds import torch_stream
from placecell.store.runs import finished, load_result
from placecell.tasks.base import Task
from placecell.train import make_model, make_task
from placecell.train.share import token_mean_square
from which_sigma import COMMON, Setting
from which_sigma_scores import Score, kept, measured

Array = NDArray[np.float64]
FINE = np.linspace(-14, 14, 561)  # targets that are tried, as logarithms or log odds
TRIED = [0.2, 0.4, 0.8]  # instead of a rule
EXAMPLES = 128  # samples on which an untrained model is measured


@dataclass
class Curve:
    """The runs of a setting: scores by σ, one for each seed."""

    setting: Setting
    task: Task
    configs: list[RunConfig]
    runs: dict[float | str, list[Score]]  # σ, or the name of another encoding

    def __post_init__(self) -> None:
        token_sigma = self.setting.settings["token_sigma"]
        self.train = self.task.splits()["train"]
        self.square = token_mean_square(self.task, token_sigma, self.train)
        self.sign = 1 if self.setting.headline == "accuracy" else -1

    def sigma(self, rho: float) -> float:
        """Return σ of a share, as runs have it."""
        return float(f"{sigma_for_share(rho, self.square):.3g}")

    def rho(self, sigma: float) -> float:
        """Return the share of a σ."""
        return sigma**2 / (sigma**2 + self.square)

    def scores(self, key: float | str) -> Array:
        """Return the test headline of each seed."""
        return np.array([score.test for score in self.runs.get(key, [])])

    def mean(self, key: float | str) -> float:
        """Return the mean over seeds; NaN if there are none."""
        values = self.scores(key)
        return float(values.mean()) if len(values) else math.nan

    @property
    def whole(self) -> bool:
        """Whether all seeds of all shares that settings have in common are there."""
        return all(len(self.runs.get(self.sigma(r), [])) == self.setting.seeds for r in COMMON)

    def common(self) -> Array:
        """Return the means at the common shares, larger is better."""
        return self.sign * np.array([self.mean(self.sigma(rho)) for rho in COMMON])

    def regret(self, mean: float) -> float:
        """Return points of accuracy, or per cent of error, below the best common share."""
        best = self.common().max()
        gap = best - self.sign * mean
        return float(100 * gap if self.sign > 0 else 100 * gap / -best)

    def relative(self, mean: float) -> float:
        """Return the regret as a share of the difference of best and worst common share."""
        common = self.common()
        return float((common.max() - self.sign * mean) / np.ptp(common))

    def by_seed(self, rhos: Sequence[float], value: Callable[[Score], float]) -> Array:
        """Return something of the runs of some shares (shares, seeds); larger is better."""
        runs = [{score.seed: score for score in self.runs[self.sigma(rho)]} for rho in rhos]
        seeds = sorted(set.intersection(*(set(one) for one in runs)))
        return self.sign * np.array([[value(one[seed]) for seed in seeds] for one in runs])

    def in_points(self, gap: float) -> float:
        """Return a gap in points of accuracy, or per cent of the best error."""
        return 100 * gap if self.sign > 0 else 100 * gap / float(-self.common().max())

    def regret_by_others(self, rho: float) -> float:
        """Return the mean regret of a share against the one that the other seeds call best."""
        test = self.by_seed(COMMON, lambda score: score.test)
        own = test[COMMON.index(rho)]
        gaps = [
            test[np.delete(test, seed, axis=1).mean(1).argmax(), seed] - own[seed]
            for seed in range(test.shape[1])
        ]
        return self.in_points(float(np.mean(gaps)))

    def tried(self, by: str = "valid") -> float:
        """Return the mean test headline of what is best by validation (or `early`: by that after a
        third of the steps) in one run of each of `TRIED`, on the other seeds; the mean over the
        seeds that are tried."""
        valid, test = (
            self.by_seed(TRIED, lambda score, split=split: getattr(score, split))
            for split in (by, "test")
        )
        found = [
            np.delete(test[valid[:, seed].argmax()], seed).mean()
            for seed in np.flatnonzero(np.isfinite(valid).all(0))
        ]
        return self.sign * float(np.mean(found)) if found else math.nan

    @property
    def allowance(self) -> float:
        """What a rule may cost: 1 point of accuracy, 2 % of error."""
        return 1.0 if self.sign > 0 else 2.0

    def within(self, regret: float) -> bool:
        """Whether a regret is within the allowance, or just as large but for rounding."""
        return regret <= self.allowance + 1e-6

    def converged(self, key: float | str) -> float:
        """Return the share of runs with every training sample right, or a flat training error."""
        runs = self.runs.get(key, [])
        return float(np.mean([score.converged for score in runs])) if runs else math.nan


def load(setting: Setting) -> Curve:
    """Return the runs of a setting that are done, here or in the file of scores."""
    configs = setting.configs()
    curve = Curve(setting, make_task(configs[0]), configs, {})
    truth, known = curve.task.truth(), kept()
    for config in configs:
        folder = setting.folder / config.name
        if finished(folder):
            score = measured(
                load_result(folder),
                setting.world,
                setting.change,
                setting.headline,
                curve.square,
                None if truth is None else truth.relation,
            )
        elif config.name in known:
            score = known[config.name]
        else:
            continue
        curve.runs.setdefault(score.key, []).append(score)
    return curve


@torch.no_grad()
def untrained(curve: Curve, sigma: float) -> dict[str, float]:
    """Return what can be measured of an untrained model of a setting, as numbers to aim at."""
    config = next(c for c in curve.configs if c.encoding.sigma == sigma)
    model, task = make_model(config, curve.task), curve.task
    examples = curve.train.take(slice(0, EXAMPLES))
    table = model.table(task.places)
    assert table is not None
    inputs = examples.inputs(task.positions)
    first = model(inputs, maps=True).maps[0].clamp_min(1e-12).log()  # logits, but for rows
    varying = float(model.embedding(examples.tokens).double().var(0).mean())
    with torch.enable_grad():
        task.loss(model(inputs).outputs, examples).backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    total = sum(float(g.square().sum()) for g in gradients.values())
    own = float(gradients["encoding.weight"].square().sum())
    outputs = model(inputs).outputs
    order = torch.randperm(len(table), generator=torch_stream(0, "which_sigma/order"))
    model.encoding.weight.copy_(model.encoding.weight[order])
    change = float((model(inputs).outputs - outputs).square().mean())
    return {
        "ρ": log_odds(curve.rho(sigma)),
        "σ": math.log(sigma),
        "ρ, times the weights' scale": log_odds(curve.rho(sigma))
        + 2 * math.log(config.model.weight_scale or 1),
        "ρ beside what varies over examples": log_odds(position_share(table, varying)),
        "share of the first logits": log_odds(
            share_of_logits([first - first.mean(-1, keepdim=True)], len(examples))
        ),
        "share of the first gradient": log_odds(own / total),
        "order sensitivity": log_odds(change / (change + float(outputs.var(0).mean()))),
    }


def log_odds(share: float) -> float:
    """Return log(share / (1 − share)), within reason."""
    share = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))


def left_out(curves: list[Curve], regrets: Callable[[Curve], Array]) -> dict[str, int]:
    """Return, for each world, the target with the least mean regret over the other worlds."""
    by_curve = {id(c): regrets(c) for c in curves}
    return {
        world: int(
            np.mean([by_curve[id(c)] for c in curves if c.setting.world != world], axis=0).argmin()
        )
        for world in dict.fromkeys(c.setting.world for c in curves)
    }


def rule(curves: list[Curve]) -> dict[str, float]:
    """Return the share that the other worlds choose for each world."""
    chosen = left_out(curves, lambda c: np.array([c.relative(c.mean(c.sigma(r))) for r in COMMON]))
    return {world: COMMON[place] for world, place in chosen.items()}


def predictors(curves: list[Curve]) -> dict[str, tuple[float, float]]:
    """Return, of each quantity to aim at, the mean relative regret and the share of settings within
    the allowance, on worlds that its target was not chosen on; scores between shares are
    interpolated."""
    measured = {id(c): [untrained(c, c.sigma(rho)) for rho in COMMON] for c in curves}
    found = {}
    for name in measured[id(curves[0])][0]:

        def scores(c: Curve, name: str = name) -> Array:
            at = np.array([one[name] for one in measured[id(c)]])
            order = at.argsort()
            return np.interp(FINE, at[order], (c.sign * c.common())[order])

        def relative(c: Curve, scores: Callable[[Curve], Array] = scores) -> Array:
            return np.array([c.relative(value) for value in scores(c)])

        chosen = left_out(curves, relative)
        found[name] = judged(curves, [scores(c)[chosen[c.setting.world]] for c in curves])
    at = [log_odds(rho) for rho in COMMON]
    halves = [float(np.interp(0, at, c.sign * c.common())) for c in curves]
    found["largest ρ(1 − ρ), no target"] = judged(curves, halves)
    return found


def judged(curves: list[Curve], means: list[float]) -> tuple[float, float]:
    """Return the mean relative regret of one score in each setting, and the share of settings
    within the allowance."""
    pairs = list(zip(curves, means, strict=True))
    return (
        float(np.mean([c.relative(mean) for c, mean in pairs])),
        float(np.mean([c.within(c.regret(mean)) for c, mean in pairs])),
    )
