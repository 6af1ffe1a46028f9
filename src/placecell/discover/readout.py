"""Similarities of columns: read from the model, or measured pair by pair."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from torch import Tensor

from placecell.discover.columns import N_BINS, IntArray
from placecell.discover.copula import Copula
from placecell.discover.network import Hidden, Net, Rows, draw_hidden
from placecell.encodings.positions import Positions
from placecell.seeds import torch_stream

Array = NDArray[np.float64]
TOKENS = 2.5e6  # that one read-out by ablation may cost
AT_ONCE = 32768  # of these
DIFFERENCES = 1e9  # that are measured: rows times pairs of columns
THRESHOLDS = np.linspace(-4, 4, 161)  # on normal scores


@torch.no_grad()
def ablation(
    net: Net, rows: Rows, seed: int, share: float = 0.2, samples: int | None = None
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
    samples = int(np.clip(TOKENS / n**2, 128, 1500)) if samples is None else samples
    generator = torch_stream(seed, "ablation")
    positions = Positions.sequence(n)
    middle = torch.linspace(-1.4, 1.4, N_BINS)  # about the normal score of each of eight bins
    total = {name: torch.zeros(n, n) for name in ("count", "moved", "cross", "value", "shift")}
    chosen = torch.randperm(len(rows), generator=generator)
    chosen = chosen.repeat(-(-samples // len(rows)))[:samples]
    for part in chosen.split(max(1, AT_ONCE // n**2)):
        batch = rows.take(part)
        batch = batch.take((batch.bins >= 0).sum(1) >= 3)
        if not len(batch):
            continue
        first = draw_hidden(batch.bins, count, generator)
        before = net(batch, first, positions)[:, None]  # b 1 m bins
        after, visible = _hide_each(net, batch, first, positions)  # b n m bins, b n
        moved = (before.exp() * (before - after)).sum(-1)
        shift = ((before.exp() - after.exp()) * middle).sum(-1)
        value = batch.scores[:, :, None].expand_as(shift)
        used = (visible[:, :, None] & first.scored[:, None]).float()
        pair = torch.arange(n)[:, None] * n + first.index[:, None]  # b n m
        for name, each in (
            ("count", torch.ones_like(moved)),
            ("moved", moved),
            ("cross", value * shift),
            ("value", value**2),
            ("shift", shift**2),
        ):
            total[name].view(-1).index_add_(0, pair.reshape(-1), (used * each).reshape(-1))
    moved = (total["moved"] / total["count"].clamp(min=1)).clamp(min=0)
    along = total["cross"] / (total["value"] * total["shift"]).sqrt().clamp(min=1e-12)
    return _symmetric(moved), _symmetric(moved * along)


def _hide_each(net: Net, rows: Rows, first: Hidden, positions: Positions) -> tuple[Tensor, Tensor]:
    """Predictions (b n m bins) with each column hidden as well, and which were visible (b n)."""
    b, n = rows.bins.shape
    visible = torch.ones(b, n, dtype=torch.bool, device=rows.bins.device)
    visible.scatter_(1, torch.where(first.real, first.index, first.index[:, :1]), False)
    which = torch.arange(n, device=rows.bins.device).expand(b, n)

    def each(values: Tensor, last: Tensor) -> Tensor:
        wide = values[:, None].expand(b, n, values.shape[1])
        return torch.cat([wide, last[:, :, None]], 2).flatten(0, 1)

    real = each(first.real, visible)
    hidden = Hidden(each(first.index, which), real, real)
    repeated = rows.take(torch.arange(b, device=rows.bins.device).repeat_interleave(n))
    said = net(repeated, hidden, positions)[:, : first.index.shape[1]]
    return said.unflatten(0, (b, n)), visible


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


def usual_difference(scores: Array, here: NDArray[np.bool_]) -> Array:
    """How much less two columns usually differ than two that know nothing of each other.

    A few rows in which two columns differ much hardly count, while a correlation, which squares,
    may be made by them alone: the two sides of an edge in an image, say.

    Parameters
    ----------
    scores : array of shape (rows, n)
        Normal scores.
    here : bool array of shape (rows, n)
        False where a value is missing.

    Returns
    -------
    array of shape (n, n)
        1 − the mean absolute difference as a share of what chance would give, of the two columns
        or of one and the other's opposite, whichever is larger; at least 0.
    """
    n = scores.shape[1]
    some = np.linspace(0, len(scores) - 1, min(len(scores), int(DIFFERENCES / n**2) + 1))
    z, here = np.where(here, scores, 0.0)[some.astype(int)], here[some.astype(int)]
    count = (here.T.astype(float) @ here).clip(1)
    lone = np.abs(z).T @ ~here  # differences to a missing value, which z has as 0
    found = np.zeros((n, n))
    for other in (z, -z):
        differ = (cdist(z.T, other.T, "cityblock") - lone - lone.T) / count
        # of independent columns the mean difference is ∫ F(1 − G) + G(1 − F), F and G their shares
        # of values below each threshold
        one, two = (_share_below(each, here) for each in (z, other))
        chance = (one.T @ (1 - two) + (1 - one).T @ two) * (THRESHOLDS[1] - THRESHOLDS[0])
        found = np.maximum(found, 1 - differ / chance.clip(1e-9))
    np.fill_diagonal(found, 0.0)
    return found.clip(0, 1)


def _share_below(z: Array, here: NDArray[np.bool_]) -> Array:
    """Share of each column's values at or below each threshold (thresholds, n)."""
    below = [((z <= t) & here).sum(0) for t in THRESHOLDS]
    return np.array(below) / here.sum(0).clip(1)


def partial_correlation(copula: Copula, shrinkage: float = 0.0) -> Array:
    """Partial correlations of normal scores, with their signs.

    Parameters
    ----------
    copula : Copula
    shrinkage : float
        How far the correlations are shrunk towards none first, from 0 to 1. The more they are, the
        less is taken out of a correlation: little is left of what all columns share, but columns
        that say nearly the same still hang together.

    Returns
    -------
    array of shape (n, n)
    """
    p = copula.precision.cpu().numpy()
    if shrinkage:
        p = np.linalg.inv((1 - shrinkage) * np.linalg.inv(p) + shrinkage * np.eye(len(p)))
    scale = np.sqrt(np.diag(p))
    partial: Array = -p / np.outer(scale, scale)
    np.fill_diagonal(partial, 0.0)
    return partial


def mutual_information(bins: IntArray) -> Array:
    """Mutual information (n, n) of binned columns (rows, n) in nats, less its bias by chance."""
    rows, n = bins.shape
    one_hot = (bins[:, :, None] == np.arange(N_BINS)).reshape(rows, -1).astype(np.float32)
    information = np.empty((n, n))
    for some in np.split(np.arange(n), range(16, n, 16)):  # all at once would take n² · 64 numbers
        own = one_hot[:, some[0] * N_BINS : (some[-1] + 1) * N_BINS]
        together = (own.T @ one_hot).astype(float).reshape(len(some), N_BINS, n, N_BINS)
        for i, joint in zip(some, together, strict=True):
            total = joint.sum((0, 2)).clip(1)
            p = joint / total[None, :, None]  # bins n bins
            product = p.sum(2, keepdims=True) * p.sum(0, keepdims=True)
            terms = p * np.log(np.where(p > 0, p, 1.0) / np.where(p > 0, product, 1.0))
            used = ((p.sum(2) > 0).sum(0) - 1) * ((p.sum(0) > 0).sum(1) - 1)
            information[i] = terms.sum((0, 2)) - used / (2 * total)
    np.fill_diagonal(information, 0.0)
    return ((information + information.T) / 2).clip(0)
