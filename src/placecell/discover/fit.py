"""From a table of numbers to everything a map needs: models, evidence, read-outs, choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from placecell.discover.candidates import (
    NET_READOUTS,
    Candidates,
    module_readouts,
    pairwise_readouts,
)
from placecell.discover.choice import (
    MOST_COLUMNS,
    NET_ROWS,
    Told,
    informativeness,
    score_readouts,
    told_by_network,
)
from placecell.discover.columns import IntArray
from placecell.discover.evidence import Evidence, Split, gain_test
from placecell.discover.layout import neighbour_agreement
from placecell.discover.modules import find_modules
from placecell.discover.network import Net, Rows, Trained, Training, gains, rate
from placecell.discover.prepared import Coded, Prepared
from placecell.discover.readout import ablation, mutual_information
from placecell.discover.several import Job, train_several
from placecell.seeds import numpy_stream

Array = NDArray[np.float64]
FEW_ROWS = 100  # below, no network is trained: it would only learn the rows by heart
LESS = 0.01  # nats a value that a network knows less, for it to count 1 / e beside the better one
FOLDS = 5  # of a table of few rows, for its test
ENOUGH_ROWS = 2000  # training rows from which networks are not trained again on all rows
WIDE = 160  # columns above which the network sees a part of them
PART = 96  # columns of that part


@dataclass(frozen=True, eq=False)
class Settings:
    """What the user chose, for every function here."""

    training: Training
    device: torch.device
    seed: int
    n_jobs: int = 1
    readout: str = "auto"
    alpha: float = 0.05
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
    table : array of shape (n, d), or None
        The learned positions of the network without linear base.
    told, agreement, score : dict
        Of each read-out: what nearest columns tell, on how many of them two maps agree, and the
        score by which the read-out is chosen.
    readout : str
        The read-out that was chosen.
    similarity : array of shape (n, n)
    stability : array of shape (n,)
        Share of each column's three nearest on which two maps agree.
    labels : int array of shape (n,)
        Module of each column.
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
    table: Array | None
    told: dict[str, float] = field(default_factory=dict)
    agreement: dict[str, float] = field(default_factory=dict)
    score: dict[str, float] = field(default_factory=dict)
    readout: str = ""
    similarity: Array = field(default_factory=lambda: np.zeros((0, 0)))
    stability: Array = field(default_factory=lambda: np.zeros(0))
    labels: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
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
    part = _part(coded, train_data)
    whole = len(part) == data.x.shape[1]
    seen = coded if whole else Coded.learn(train_data.columns(part))
    rows = {
        name: seen.rows(data.take(which).columns(part), settings.device)
        for name, which in vars(split).items()
    }
    nets, trained = _train_both(seen, rows, len(data.x), settings)
    best = max(nets, key=lambda name: trained[name].gain_by_step[trained[name].best_step])
    if len(data.x) < FEW_ROWS:
        evidence = _cross_test(data, settings)
    else:
        test_data = data.take(split.test)
        told = gains(nets[best], rows["test"], settings.seed).double().cpu().numpy()
        evidence = gain_test(told, test_data.groups, test_data.weight)
    table = nets["alone"].table.cpu().numpy().astype(float) if "alone" in nets else None
    fitted = Fitted(coded, nets[best], part, trained, evidence, table)
    fitted.partial = any(one.partial for one in trained.values())
    fitted.notes = _notes(data, len(part))
    settings.tell("comparing read-outs")
    useful = whole and trained[best].best_step > 0 and evidence.p_value <= settings.alpha
    net = nets[best] if useful else None  # where nothing is found, nothing is read from a network
    candidates = Candidates.read(data, train_data, coded, net, rows["train"], settings.seed)
    scores = [coded.encode(one.x)[1] for one in (train_data, valid_data)]
    by_network = {}
    for name, similarity in candidates.on_train.items():
        fitted.told[name] = informativeness(similarity, *scores)
        fitted.agreement[name] = float(candidates.agreement[name].mean())
        if net is not None:
            by_network[name] = told_by_network(similarity, net, rows["valid"])
    kinds = [Told(fitted.told, valid_data.x.size)]
    only = 0.0
    if by_network:  # it is asked as far as it knows more: from few columns it is a poor judge
        only = _only_network(trained, best)
        asked = min(len(rows["valid"]), NET_ROWS) * MOST_COLUMNS
        kinds.append(Told(by_network, asked, only))
    fitted.score = score_readouts(kinds, fitted.agreement, only)
    fitted.readout = max(fitted.score, key=lambda name: fitted.score[name])
    if settings.readout in fitted.score:
        fitted.readout = settings.readout
    elif settings.readout != "auto":
        fitted.notes.append(
            f"{settings.readout} needs a network that learned something: {fitted.readout} instead."
        )
    reader = best if net is not None else None
    _read_all_rows(fitted, data, len(train_data.x), reader, candidates, settings)
    return fitted


def _only_network(trained: Mapping[str, Trained], best: str) -> float:
    """Share of the better network's gain on validation rows that the linear model lacks."""
    gain = trained[best].gain_by_step[trained[best].best_step]
    linear = trained["based"].gain_by_step[0]  # before its first step the network is its base
    return float(np.clip((gain - linear) / max(gain, 1e-9), 0.0, 1.0))


def _cross_test(data: Prepared, settings: Settings) -> Evidence:
    """The test of a small table: each fifth of the rows by a linear model of the others.

    Nothing is chosen for the linear model, so every row can be tested.
    """
    names, group = np.unique(data.groups, return_inverse=True)
    fold = (np.random.default_rng(settings.seed).permutation(len(names)) % FOLDS)[group]
    told = np.zeros(len(data.x))
    for part in np.unique(fold):
        others, tested = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
        coded = Coded.learn(data.take(others))
        rows = coded.rows(data.take(tested), settings.device)
        net = coded.net(True, settings.seed, settings.device)
        told[tested] = gains(net, rows, settings.seed).double().cpu().numpy()
    return gain_test(told, data.groups, data.weight)


def _part(coded: Coded, data: Prepared) -> IntArray:
    """The columns that the network sees: of a wide table a part that hangs together.

    It grows from the closest pair: each next column is the one nearest to those already there, by
    mutual information.
    """
    n = data.x.shape[1]
    if n <= WIDE:
        return np.arange(n, dtype=np.int64)
    near = mutual_information(coded.encode(data.x)[0])
    chosen = [int(i) for i in np.unravel_index(near.argmax(), near.shape)]
    reach = near[chosen].max(0)
    while len(chosen) < PART:
        reach[chosen] = -1
        chosen.append(int(reach.argmax()))
        reach = np.maximum(reach, near[chosen[-1]])
    return np.sort(np.array(chosen, dtype=np.int64))


def _notes(data: Prepared, seen: int) -> list[str]:
    rows, n = data.x.shape
    notes = []
    if rows < FEW_ROWS:
        notes.append(
            f"{rows} rows are too few to train a network (from {FEW_ROWS} on): the linear model "
            "(Gaussian copula) was tested, each fifth of the rows in turn, and the map was read "
            "pair by pair."
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
    jobs: list[Job] = [
        (net, rows["train"], rows["valid"], settings.training, settings.seed)
        for net in nets.values()
    ]
    done = dict(zip(nets, train_several(jobs, settings.n_jobs), strict=True))
    return {k: net for k, (net, _) in done.items()}, {k: how for k, (_, how) in done.items()}


def _read_all_rows(
    fitted: Fitted,
    data: Prepared,
    n_train: int,
    best: str | None,
    candidates: Candidates,
    settings: Settings,
) -> None:
    """Read the similarities once more, by the chosen read-out, from all rows.

    The test is over, so its rows may be used. Two halves of the rows (of a network: two seeds)
    say how stable the map is.
    """
    name = fitted.readout
    everything = Coded.learn(data)
    pairwise = pairwise_readouts(data, everything)
    fitted.stability = candidates.agreement[name]
    of_net, again = candidates.of_net, []
    if best is None or name not in (*NET_READOUTS, "consensus"):
        fitted.similarity = candidates.read_again(name, pairwise, None)
    else:
        fitted.similarity = candidates.on_train[name]
        if not fitted.partial and n_train < ENOUGH_ROWS:
            again = _train_again(fitted, data, everything, n_train, best, settings)
    if again:
        weights = [weight for _, weight in again]
        one, two = (candidates.read_again(name, pairwise, each) for each, _ in again)
        fitted.similarity = np.average([one, two], axis=0, weights=weights)
        fitted.stability = neighbour_agreement(one, two)
        moved, signed = np.average([each for each, _ in again], axis=0, weights=weights)
        of_net = moved, signed
    # what a network says of two columns leaves out all that others say too, so that modules fall
    # apart: it is asked only where pairs of columns tell less
    asked = of_net if name in NET_READOUTS else None
    rng = numpy_stream(settings.seed, "modules")
    fitted.labels = find_modules(
        module_readouts(pairwise, everything, asked), rng, candidates.halves
    )


def _train_again(
    fitted: Fitted,
    data: Prepared,
    everything: Coded,
    n_train: int,
    best: str,
    settings: Settings,
) -> list[tuple[tuple[Array, Array], float]]:
    """What two networks of two seeds, trained on all rows, say; nothing if that was cut short.

    Each has a weight: of two networks of few rows one may not have learned what the other did.
    """
    rows = everything.rows(data, settings.device)
    wanted = settings.training.steps
    # as much learning (the sum of the rates) for each of these more rows as was best before
    learned = sum(rate(step, wanted) for step in range(fitted.trained[best].best_step))
    usual = sum(rate(step, wanted) for step in range(wanted)) / wanted
    steps = round(learned / usual * len(data.x) / n_train)
    training = replace(settings.training, steps=min(steps, wanted))
    settings.tell("training on all rows")
    jobs: list[Job] = [
        (everything.net(best == "based", seed, settings.device), rows, None, training, seed)
        for seed in (settings.seed + 1, settings.seed + 2)
    ]
    done = train_several(jobs, settings.n_jobs)
    fitted.partial = any(how.partial for _, how in done)
    if fitted.partial:
        return []
    gain = np.array([float(gains(net, rows, settings.seed, rounds=1).mean()) for net, _ in done])
    weights = np.exp((gain - gain.max()) / LESS)
    read = [ablation(net, rows, settings.seed) for net, _ in done]
    return [(each, float(weight)) for each, weight in zip(read, weights, strict=True)]
