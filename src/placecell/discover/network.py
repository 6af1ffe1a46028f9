"""The small network of a map: columns are tokens, hidden ones are predicted, bin by bin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from placecell.discover.columns import N_BINS
from placecell.discover.copula import Copula
from placecell.encodings.learnable import LearnablePE
from placecell.encodings.positions import Positions
from placecell.model.build import initialise
from placecell.model.encoder import Encoder, Tokens, Transformer
from placecell.model.inputs import Inputs
from placecell.seeds import numpy_stream, torch_stream
from placecell.train.muon import Muon

WIDTH, DEPTH, HEADS = 32, 2, 4
SIGMA = 0.1  # of the table of positions, the paper's choice for readable tables
MOST_TOKENS = 9600  # of a step: a table of many columns has fewer rows a step
MOST_VALID = 1000  # rows that are looked at while training
FEATURES = N_BINS + 2  # of a token: its bin, its normal score, whether it is hidden


@dataclass(frozen=True, eq=False)
class Rows:
    """Coded rows of a table, as tensors.

    Attributes
    ----------
    bins : Tensor
        Bin of each value (b n), −1 where missing.
    scores : Tensor
        Normal scores (b n), 0 where missing.
    weight : Tensor
        Weight of each row (b).
    """

    bins: Tensor
    scores: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.bins)

    def take(self, rows: Tensor) -> Rows:
        return Rows(self.bins[rows], self.scores[rows], self.weight[rows])

    def columns(self, which: Tensor) -> Rows:
        return Rows(self.bins[:, which], self.scores[:, which], self.weight)


@dataclass(frozen=True, eq=False)
class Hidden:
    """Which columns are hidden in each row: indices (b m), and which of these count (b m)."""

    index: Tensor
    real: Tensor  # False where a place of `index` only fills the row up
    scored: Tensor  # False where the value is not known


def draw_hidden(bins: Tensor, count: int, generator: torch.Generator) -> Hidden:
    """Hide `count` columns of each row at random, and all that are missing.

    Parameters
    ----------
    bins : Tensor
        Bins (b n), −1 where missing.
    count : int
        How many columns to hide besides those that are missing.
    generator : torch.Generator

    Returns
    -------
    Hidden
    """
    known = bins >= 0
    most = int((~known).sum(1).max()) if not bool(known.all()) else 0
    # missing columns come first, then the others in random order
    key = torch.rand(bins.shape, generator=generator).to(bins.device) - (~known).to(torch.float32)
    index = key.argsort(1)[:, : min(count + most, bins.shape[1])]
    place = torch.arange(index.shape[1], device=bins.device)
    real = place < (~known).sum(1, keepdim=True) + count
    return Hidden(index, real, real & known.gather(1, index))


class Net(nn.Module):
    """A transformer over columns whose logits are added to those of a linear base.

    Parameters
    ----------
    n : int
        Number of columns.
    log_share : Tensor
        Log of the share of each bin (n bins): the output without any information.
    copula : Copula, optional
        The linear base. None: `log_share` is the base.
    """

    def __init__(self, n: int, log_share: Tensor, copula: Copula | None) -> None:
        super().__init__()
        encoder = Encoder(WIDTH, DEPTH, HEADS, 4.0, "pre", "gelu")
        encoding = LearnablePE(n, WIDTH, SIGMA)
        self.transformer = Transformer(Tokens("value", FEATURES), encoding, encoder, WIDTH, N_BINS)
        self.log_share = log_share
        self.copula = copula

    def reset_parameters(self, seed: int) -> Net:
        """Draw all weights; the output starts at the base."""
        initialise(self.transformer, torch_stream(seed, "weights"), torch_stream(seed, "pe"), 0.25)
        with torch.no_grad():
            self.transformer.readout.weight.zero_()
            self.transformer.readout.bias.zero_()
        return self

    def features(self, rows: Rows, hidden: Hidden) -> Tensor:
        """What a token is told (b n f): its bin, its score; of a hidden one, that it is hidden."""
        seen = torch.ones(rows.bins.shape, device=rows.bins.device)
        seen.scatter_(1, torch.where(hidden.real, hidden.index, hidden.index[:, :1]), 0.0)
        one_hot = nn.functional.one_hot(rows.bins.clamp(min=0), N_BINS).float()
        parts = [one_hot, rows.scores[..., None], torch.zeros_like(seen)[..., None]]
        tokens = torch.cat(parts, -1) * seen[..., None]
        tokens[..., -1] = 1 - seen
        return tokens

    def base(self, rows: Rows, hidden: Hidden) -> Tensor:
        """Log-probabilities of the base (b m bins)."""
        if self.copula is None:
            return self.log_share[hidden.index]
        return self.copula.logits(rows.scores, hidden.index, hidden.real)

    def forward(
        self, rows: Rows, hidden: Hidden, positions: Positions, base: Tensor | None = None
    ) -> Tensor:
        """Log-probabilities of the bins of hidden columns (b m bins)."""
        base = self.base(rows, hidden) if base is None else base
        inputs = Inputs(self.features(rows, hidden), positions, read=hidden.index)
        added = self.transformer(inputs).outputs
        return (base + added).log_softmax(-1)

    @property
    def table(self) -> Tensor:
        """The learned positions (n d)."""
        weight: Tensor = self.get_parameter("transformer.encoding.weight")
        return weight.detach()


def score_rows(log_p: Tensor, rows: Rows, hidden: Hidden) -> Tensor:
    """Log-probability of what was hidden (b m), 0 where it is not known."""
    truth = rows.bins.gather(1, hidden.index).clamp(min=0)
    said = log_p.gather(-1, truth[..., None])[..., 0]
    return torch.where(hidden.scored, said, 0.0)


@dataclass
class Training:
    """How a network is trained.

    Parameters
    ----------
    steps : int
        Number of steps.
    batch_size : int
        Rows a step, at most: the columns of a step's rows are at most 9600.
    lr : float
        Learning rate of Muon and of AdamW.
    least, most : float
        Smallest and largest share of hidden columns.
    weight_decay : float
        Of the matrices of the layers.
    every : int
        Steps from one look at the validation rows to the next.
    on_step : callable
        Told the number of steps done.
    """

    steps: int = 500
    batch_size: int = 128
    lr: float = 1.5e-2
    least: float = 0.1
    most: float = 0.5
    weight_decay: float = 0.1
    every: int = 50
    on_step: Callable[[int], None] = field(default=lambda step: None)


def optimizer_of(net: Net, training: Training) -> torch.optim.Optimizer:
    """Muon for the layers' matrices, AdamW for the rest; the table without weight decay."""
    matrices, rest = [], []
    for name, p in net.transformer.named_parameters():
        if name.startswith("encoder") and p.ndim == 2:
            matrices.append(p)
        else:
            rest.append(p)
    groups: list[dict[str, Any]] = [
        {"params": matrices, "orthogonal": True, "weight_decay": training.weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return Muon(groups, lr=training.lr, betas=(0.9, 0.98))


def rate(step: int, steps: int) -> float:
    """Share of the learning rate: a short warm-up, then down along a cosine to a twentieth."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def batches(total: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Rows of each step without end: every row once before any comes again."""
    left = torch.empty(0, dtype=torch.long)
    while True:
        while len(left) < size:
            left = torch.cat([left, torch.randperm(total, generator=generator)])
        yield left[:size]
        left = left[size:]


@dataclass
class Trained:
    """What training gave: the loss at each step, and the gain on validation rows at some.

    Attributes
    ----------
    losses : list of float
        Mean loss of hidden values at each step.
    gain_by_step : dict
        Gain on validation rows, in nats a hidden value, after some numbers of steps.
    best_step : int
        The number of steps after which this gain was largest; the weights are those.
    partial : bool
        Whether Ctrl-C ended training early.
    """

    losses: list[float] = field(default_factory=list)
    gain_by_step: dict[int, float] = field(default_factory=dict)
    best_step: int = 0
    partial: bool = False


def train(net: Net, rows: Rows, valid: Rows | None, training: Training, seed: int) -> Trained:
    """Train a network in place; it ends with the weights that were best on validation rows.

    Parameters
    ----------
    net : Net
    rows : Rows
        Training rows.
    valid : Rows, optional
        Validation rows. None: the weights after the last step are kept.
    training : Training
    seed : int
        Of the order of rows and of what is hidden.

    Returns
    -------
    Trained
    """
    optimizer = optimizer_of(net, training)
    order, masks = torch_stream(seed, "order"), torch_stream(seed, "masks")
    shares = numpy_stream(seed, "shares")
    result = Trained()
    best: dict[str, Tensor] = {}
    worse = 0
    size = min(training.batch_size, len(rows), max(1, MOST_TOKENS // rows.bins.shape[1]))
    source = batches(len(rows), size, order)
    if valid is not None and len(valid) > MOST_VALID:
        valid = valid.take(torch.linspace(0, len(valid) - 1, MOST_VALID).long())
    try:
        for step in range(training.steps + 1):
            if valid is not None and (step % training.every == 0 or step == training.steps):
                gain = float(gains(net, valid, seed, rounds=1).mean())
                result.gain_by_step[step] = gain
                if not best or gain > result.gain_by_step[result.best_step]:
                    result.best_step = step
                    best = {k: v.clone() for k, v in net.transformer.state_dict().items()}
                # a gain that only falls has no way back; one that stands still may yet rise
                top = result.gain_by_step[result.best_step]
                worse = worse + 1 if gain < top - max(0.03, 0.1 * abs(top)) else 0
                if worse > 1:
                    break
            if step == training.steps:
                break
            for group in optimizer.param_groups:
                group["lr"] = training.lr * rate(step, training.steps)
            share = shares.uniform(training.least, training.most)
            result.losses.append(_step(net, rows.take(next(source)), share, masks, optimizer))
            training.on_step(step + 1)
    except KeyboardInterrupt:
        result.partial = True
    if best:
        net.transformer.load_state_dict(best)
    return result


def _step(
    net: Net, batch: Rows, share: float, masks: torch.Generator, optimizer: torch.optim.Optimizer
) -> float:
    n = batch.bins.shape[1]
    hidden = draw_hidden(batch.bins, max(1, round(share * n)), masks)
    said = score_rows(net(batch, hidden, Positions.sequence(n)), batch, hidden)
    weight = batch.weight[:, None] * hidden.scored
    loss = -(said * weight).sum() / weight.sum().clamp(min=1e-12)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.transformer.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


@torch.no_grad()
def gains(net: Net, rows: Rows, seed: int, share: float = 0.3, rounds: int = 4) -> Tensor:
    """What the columns say about each other: gain (b) of each row, in nats a hidden value.

    The mean of log p(value | visible columns) − log p(value), with p(value) the share of its bin in
    the training rows.

    Parameters
    ----------
    net : Net
    rows : Rows
    seed : int
        Of what is hidden.
    share : float
        Share of columns hidden.
    rounds : int
        How many times other columns are hidden.
    """
    n = rows.bins.shape[1]
    positions = Positions.sequence(n)
    generator = torch_stream(seed, "gain")
    total, count = torch.zeros(len(rows)), torch.zeros(len(rows))
    for _ in range(rounds):
        for part in torch.arange(len(rows)).split(256):
            batch = rows.take(part)
            hidden = draw_hidden(batch.bins, max(1, round(share * n)), generator)
            said = score_rows(net(batch, hidden, positions), batch, hidden)
            without = score_rows(net.log_share[hidden.index], batch, hidden)
            total[part] += (said - without).sum(1)
            count[part] += hidden.scored.sum(1)
    return total / count.clamp(min=1)
