"""Similarities of columns: read from the model, or measured pair by pair."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from placecell.discover.columns import N_BINS, IntArray
from placecell.discover.copula import Copula
from placecell.discover.network import Hidden, Net, Rows
from placecell.encodings.positions import Positions
from placecell.seeds import torch_stream

Array = NDArray[np.float64]
TOKENS = 1.25e6  # that one read-out by ablation may cost


@torch.no_grad()
def ablation(
    net: Net, rows: Rows, seed: int, share: float = 0.1, samples: int | None = None
) -> tuple[Array, Array]:
    """Hide one more column and see how far the prediction of the others moves.

    Some columns of a row are hidden. Then each visible column j is hidden as well, and the
    Kullback-Leibler divergence of the new prediction of column i from the old one is taken.

    Parameters
    ----------
    net : Net
    rows : Rows
        Rows to measure on.
    seed : int
        Of what is hidden.
    share : float
        Share of columns that are hidden to begin with.
    samples : int
        How many rows are used. None: more for few columns, since each costs n² tokens.

    Returns
    -------
    moved : array of shape (n, n)
        Mean divergence, symmetric.
    signed : array of shape (n, n)
        The same times the correlation of what was hidden with the move that it had caused: large
        if columns go up and down together, negative if one goes up when the other goes down.
    """
    n = rows.bins.shape[1]
    count = max(1, round(share * n))
    samples = int(np.clip(TOKENS / n**2, 128, 500)) if samples is None else samples
    generator = torch_stream(seed, "ablation")
    positions = Positions.sequence(n)
    middle = torch.linspace(-1.4, 1.4, N_BINS)  # about the normal score of each of eight bins
    total = {name: torch.zeros(n, n) for name in ("count", "moved", "cross", "value", "shift")}
    chosen = torch.randperm(len(rows), generator=generator)
    chosen = chosen.repeat(-(-samples // len(rows)))[:samples]
    for row in chosen.tolist():
        known = torch.nonzero(rows.bins[row] >= 0)[:, 0]
        missing = torch.nonzero(rows.bins[row] < 0)[:, 0]
        if len(known) < 3:
            continue
        order = known[torch.randperm(len(known), generator=generator)]
        asked, seen = order[:count], order[count:]
        first = torch.cat([asked, missing])
        before = _predict(net, rows, row, first[None], positions)[0, : len(asked)]
        hidden = torch.cat([first.expand(len(seen), -1), seen[:, None]], 1)
        after = torch.cat(
            [
                _predict(net, rows, row, part, positions)[:, : len(asked)]
                for part in hidden.split(max(1, 32768 // n))
            ]
        )  # s m bins
        moved = (before.exp() * (before - after)).sum(-1)
        shift = ((before.exp() - after.exp()) * middle).sum(-1)
        value = rows.scores[row, seen][:, None].expand_as(shift)
        at = (seen[:, None], asked[None])
        total["count"][at] += 1
        total["moved"][at] += moved
        total["cross"][at] += value * shift
        total["value"][at] += value**2
        total["shift"][at] += shift**2
    moved = (total["moved"] / total["count"].clamp(min=1)).clamp(min=0)
    along = total["cross"] / (total["value"] * total["shift"]).sqrt().clamp(min=1e-12)
    return _symmetric(moved), _symmetric(moved * along)


def _predict(net: Net, rows: Rows, row: int, hidden: Tensor, positions: Positions) -> Tensor:
    """Predictions (k m bins) of one row under k sets of hidden columns (k m)."""
    k = len(hidden)
    same = Rows(
        rows.bins[row].expand(k, -1), rows.scores[row].expand(k, -1), rows.weight[row].expand(k)
    )
    every = torch.ones_like(hidden, dtype=torch.bool)
    return net(same, Hidden(hidden, every, every), positions)


def _symmetric(matrix: Tensor) -> Array:
    array: Array = ((matrix + matrix.T) / 2).double().numpy()
    np.fill_diagonal(array, 0.0)
    return array


def correlation(values: Array) -> Array:
    """Absolute Pearson correlations of columns (rows, n); missing values pairwise left out."""
    here = np.isfinite(values)
    largest = np.abs(np.where(here, values, 0)).max(0)
    values = values / np.where(largest > 0, largest, 1.0)  # squares of huge values are infinite
    mean = np.where(here, values, 0).sum(0) / here.sum(0).clip(1)
    centred = np.where(here, values - mean, 0.0)
    cross = centred.T @ centred
    squares = (centred**2).T @ here
    r: Array = np.abs(cross) / np.sqrt(squares * squares.T).clip(1e-300)
    np.fill_diagonal(r, 0.0)
    return r.clip(0, 1)


def partial_correlation(copula: Copula) -> Array:
    """Partial correlations (n, n) of normal scores, with their signs."""
    p = copula.precision.cpu().numpy()
    scale = np.sqrt(np.diag(p))
    partial: Array = -p / np.outer(scale, scale)
    np.fill_diagonal(partial, 0.0)
    return partial


def mutual_information(bins: IntArray) -> Array:
    """Mutual information (n, n) of binned columns (rows, n) in nats, less its bias by chance."""
    rows, n = bins.shape
    one_hot = (bins[:, :, None] == np.arange(N_BINS)).reshape(rows, -1).astype(np.float32)
    joint = (one_hot.T @ one_hot).astype(float).reshape(n, N_BINS, n, N_BINS)
    total = joint.sum((1, 3)).clip(1)
    information = np.empty((n, n))
    for i in range(n):  # a column at a time: all at once would not fit for a thousand columns
        p = joint[i] / total[i][None, :, None]  # bins n bins
        product = p.sum(2, keepdims=True) * p.sum(0, keepdims=True)
        terms = p * np.log(np.where(p > 0, p, 1.0) / np.where(p > 0, product, 1.0))
        used = ((p.sum(2) > 0).sum(0) - 1) * ((p.sum(0) > 0).sum(1) - 1)
        information[i] = terms.sum((0, 2)) - used / (2 * total[i])
    np.fill_diagonal(information, 0.0)
    return ((information + information.T) / 2).clip(0)
