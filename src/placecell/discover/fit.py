"""From a table of numbers to everything a map needs: models, evidence, read-outs, choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray

from placecell.discover.choice import informativeness
from placecell.discover.columns import Coding, IntArray, learn_coding
from placecell.discover.copula import Copula
from placecell.discover.evidence import Evidence, Split, gain_test
from placecell.discover.layout import neighbour_agreement
from placecell.discover.network import Net, Rows, Trained, Training, gains, train
from placecell.discover.readout import (
    ablation,
    correlation,
    mutual_information,
    partial_correlation,
    table_similarity,
)

Array = NDArray[np.float64]
FEW_ROWS = 100  # below, no network is trained: it would only learn the rows by heart
WIDE = 160  # columns above which the network sees a part of them
PART = 96  # columns of that part
NET_READOUTS = ("ablation", "signed ablation", "learned table")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Values of a table and how rows are used.

    Attributes
    ----------
    x : array of shape (rows, n)
        Values; NaN is missing.
    weight : array of shape (rows,)
    groups : int array of shape (rows,)
    """

    x: Array
    weight: Array
    groups: IntArray

    def take(self, rows: IntArray) -> Prepared:
        return Prepared(self.x[rows], self.weight[rows], self.groups[rows])


@dataclass(frozen=True, eq=False)
class Coded:
    """A coding and a copula, learned from the same rows."""

    coding: Coding
    copula: Copula

    @classmethod
    def learn(cls, data: Prepared) -> Coded:
        coding = learn_coding(data.x, data.weight)
        _, scores = coding.encode(data.x)
        return cls(coding, Copula.fit(coding, scores, np.isfinite(data.x), data.weight))

    def rows(self, data: Prepared, device: torch.device) -> Rows:
        bins, scores = self.coding.encode(data.x)
        return Rows(
            torch.from_numpy(bins).to(device),
            torch.from_numpy(scores).float().to(device),
            torch.from_numpy(data.weight / data.weight.mean()).float().to(device),
        )

    def net(self, based: bool, seed: int, device: torch.device) -> Net:
        log_share = torch.from_numpy(self.coding.log_share).float().clamp(min=-16).to(device)
        copula = self.copula.to(device) if based else None
        net = Net(self.coding.n_columns, log_share, copula).reset_parameters(seed)
        return net.to(device)


@dataclass(frozen=True, eq=False)
class Settings:
    """What the user chose, for every function here."""

    training: Training
    device: torch.device
    seed: int
    n_jobs: int = 1
    readout: str = "auto"
    tell: Callable[[str], None] = field(default=lambda text: None)


@dataclass(eq=False)
class Fitted:
    """Everything that was found, in the order in which it was found.

    Attributes
    ----------
    coded : Coded
        Coding and copula of the training rows.
    net : Net
        The model whose gain was tested.
    part : int array
        The columns that the network sees; all, unless the table is wide.
    trained : dict
        How each network was trained, by its name.
    evidence : Evidence
        The answer to: is there anything?
    informativeness : dict
        What nearest columns tell, by read-out: the criterion of the choice.
    readout : str
        The read-out that was chosen.
    similarity : array of shape (n, n)
    stability : array of shape (n,)
        Share of each column's three nearest on which two maps agree.
    table : array of shape (n, d), or None
        The learned positions.
    partial : bool
        Whether Ctrl-C cut something short.
    notes : list of str
        What was done otherwise than usual.
    """

    coded: Coded
    net: Net
    part: IntArray
    trained: dict[str, Trained]
    evidence: Evidence
    informativeness: dict[str, float] = field(default_factory=dict)
    readout: str = ""
    similarity: Array = field(default_factory=lambda: np.zeros((0, 0)))
    stability: Array = field(default_factory=lambda: np.zeros(0))
    table: Array | None = None
    partial: bool = False
    notes: list[str] = field(default_factory=list)


def fit_map(data: Prepared, split: Split, settings: Settings) -> Fitted:
    """Train, test, choose a read-out, and read the similarities.

    Parameters
    ----------
    data : Prepared
        The table.
    split : Split
        Rows to train on, to choose by and to test on.
    settings : Settings

    Returns
    -------
    Fitted
    """
    train_data, valid_data = data.take(split.train), data.take(split.valid)
    coded = Coded.learn(train_data)
    part = _part(coded, train_data, data.x.shape[1])
    seen = coded if len(part) == data.x.shape[1] else Coded.learn(_columns(train_data, part))
    rows = {
        name: seen.rows(_columns(data.take(which), part), settings.device)
        for name, which in vars(split).items()
    }
    nets, trained = _train_both(seen, rows, len(data.x), settings)
    best = max(nets, key=lambda name: trained[name].gain_by_step[trained[name].best_step])
    test_data = data.take(split.test)
    told = gains(nets[best], rows["test"], settings.seed).double().cpu().numpy()
    evidence = gain_test(told, test_data.groups, test_data.weight)
    table = nets["alone"].table.cpu().numpy().astype(float) if "alone" in nets else None
    fitted = Fitted(coded, nets[best], part, trained, evidence, table=table)
    fitted.partial = any(one.partial for one in trained.values())
    fitted.notes += _notes(data, len(part))
    settings.tell("comparing read-outs")
    candidates = pairwise_readouts(train_data, coded)
    whole = len(part) == data.x.shape[1]
    if whole and trained[best].best_step > 0:
        moved, signed = ablation(nets[best], rows["train"], settings.seed)
        candidates |= {"ablation": moved, "signed ablation": signed}
    if whole and table is not None and trained["alone"].best_step > 0:
        candidates["learned table"] = table_similarity(table)
    scores = [coded.coding.encode(one.x)[1] for one in (train_data, valid_data)]
    fitted.informativeness = {
        name: informativeness(s, *scores) for name, s in candidates.items()
    }
    fitted.readout = max(fitted.informativeness, key=lambda name: fitted.informativeness[name])
    if settings.readout != "auto" and settings.readout in candidates:
        fitted.readout = settings.readout
    _read_all_rows(fitted, data, best, candidates, settings)
    return fitted


def _notes(data: Prepared, seen: int) -> list[str]:
    rows, n = data.x.shape
    notes = []
    if rows < FEW_ROWS:
        notes.append(
            f"{rows} rows are too few to train a network (from {FEW_ROWS} on): the linear model "
            "(Gaussian copula) was tested, and the map was read pair by pair."
        )
    if seen < n:
        notes.append(
            f"{n} columns are many: the test used the {seen} that hang together most, and the map "
            "was read pair by pair, without a network."
        )
    return notes


def _train_both(
    seen: Coded, rows: Mapping[str, Rows], total: int, settings: Settings
) -> tuple[dict[str, Net], dict[str, Trained]]:
    """A network on the linear base and one alone; of few rows, the base with no training."""
    nets = {"based": seen.net(True, settings.seed, settings.device)}
    if total < FEW_ROWS:
        gain = float(gains(nets["based"], rows["valid"], settings.seed, rounds=1).mean())
        return nets, {"based": Trained(gain_by_step={0: gain})}
    nets["alone"] = seen.net(False, settings.seed, settings.device)
    done = train_several(
        [(net, rows["train"], rows["valid"], settings.training, settings.seed)
         for net in nets.values()],
        settings.n_jobs,
    )
    names = list(nets)
    return (
        {name: net for name, (net, _) in zip(names, done, strict=True)},
        {name: one for name, (_, one) in zip(names, done, strict=True)},
    )


def train_several(
    jobs: list[tuple[Net, Rows, Rows | None, Training, int]], n_jobs: int
) -> list[tuple[Net, Trained]]:
    """Train networks, each in a process of its own if there may be several."""
    if n_jobs == 1 or len(jobs) == 1:
        return [_train_one(*job) for job in jobs]
    quiet = [(n, r, v, replace(t, on_step=_ignore), s) for n, r, v, t, s in jobs]
    try:
        result: list[tuple[Net, Trained]] = Parallel(n_jobs=n_jobs)(
            delayed(_train_one)(*job) for job in quiet
        )
    except KeyboardInterrupt:  # the processes are gone; what is left are untrained networks
        return [(net, _untrained(net, valid, seed)) for net, _, valid, _, seed in jobs]
    return result


def _ignore(step: int) -> None:
    """Nobody listens in another process."""


def _untrained(net: Net, valid: Rows | None, seed: int) -> Trained:
    gain = 0.0 if valid is None else float(gains(net, valid, seed, rounds=1).mean())
    return Trained(gain_by_step={0: gain}, partial=True)


def _train_one(
    net: Net, rows: Rows, valid: Rows | None, training: Training, seed: int
) -> tuple[Net, Trained]:
    return net, train(net, rows, valid, training, seed)


def pairwise_readouts(data: Prepared, coded: Coded) -> dict[str, Array]:
    """Similarities that need no network, by name."""
    bins, scores = coded.coding.encode(data.x)
    here = np.isfinite(data.x)
    partial = partial_correlation(coded.copula)
    return {
        "partial correlation": partial,
        "absolute partial correlation": np.abs(partial),
        "correlation": correlation(data.x),
        "rank correlation": correlation(np.where(here, scores, np.nan)),
        "mutual information": mutual_information(bins),
    }


def _read_all_rows(
    fitted: Fitted, data: Prepared, best: str, candidates: Mapping[str, Array], settings: Settings
) -> None:
    """Read the similarities once more, by the chosen read-out, from all rows.

    The test is over, so its rows may be used. Two halves of the rows (of a network: two seeds)
    say how stable the map is.
    """
    name = fitted.readout
    everything = Coded.learn(data)
    if name not in NET_READOUTS:
        fitted.similarity = pairwise_readouts(data, everything)[name]
        halves = _halves(data, settings.seed)
        one, two = (pairwise_readouts(half, Coded.learn(half))[name] for half in halves)
        fitted.stability = neighbour_agreement(one, two)
        return
    kind = "alone" if name == "learned table" else best
    rows = everything.rows(data, settings.device)
    steps = fitted.trained[kind].best_step
    training = replace(settings.training, steps=steps)
    settings.tell("training on all rows")
    seeds = [settings.seed + 1, settings.seed + 2]
    jobs = [
        (everything.net(kind == "based", seed, settings.device), rows, None, training, seed)
        for seed in seeds
    ]
    maps = []
    for net, one in train_several(jobs, settings.n_jobs):
        fitted.partial |= one.partial
        if one.partial:
            continue
        maps.append(_read_net(net, rows, name, settings.seed))
        fitted.table = net.table.cpu().numpy().astype(float)
    if len(maps) < 2:
        fitted.similarity = candidates[name]
        fitted.stability = np.full(len(candidates[name]), np.nan)
        return
    fitted.similarity = (maps[0] + maps[1]) / 2
    fitted.stability = neighbour_agreement(maps[0], maps[1])


def _read_net(net: Net, rows: Rows, name: str, seed: int) -> Array:
    if name == "learned table":
        return table_similarity(net.table.cpu().numpy().astype(float))
    moved, signed = ablation(net, rows, seed)
    return moved if name == "ablation" else signed


def _halves(data: Prepared, seed: int) -> tuple[Prepared, Prepared]:
    """Two parts of the rows, with the rows of a group together."""
    names, group = np.unique(data.groups, return_inverse=True)
    first = np.random.default_rng(seed).permutation(len(names)) < len(names) / 2
    return data.take(np.flatnonzero(first[group])), data.take(np.flatnonzero(~first[group]))


def _columns(data: Prepared, which: IntArray) -> Prepared:
    return Prepared(data.x[:, which], data.weight, data.groups)


def _part(coded: Coded, data: Prepared, n: int) -> IntArray:
    """The columns that the network sees: of a wide table a part that hangs together.

    It grows from the closest pair: each next column is the one nearest to those already there, by
    mutual information.
    """
    if n <= WIDE:
        return np.arange(n, dtype=np.int64)
    near = mutual_information(coded.coding.encode(data.x)[0])
    chosen = list(np.unravel_index(near.argmax(), near.shape))
    reach = near[chosen].max(0)
    while len(chosen) < PART:
        reach[chosen] = -1
        chosen.append(int(reach.argmax()))
        reach = np.maximum(reach, near[chosen[-1]])
    return np.sort(np.array(chosen, dtype=np.int64))
