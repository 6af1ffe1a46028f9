"""Several networks trained side by side, each in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from joblib import Parallel, delayed

from placecell.discover.network import Net, Rows, Trained, Training, gains, train

Job = tuple[Net, Rows, Rows | None, Training, int]


def train_several(jobs: Sequence[Job], n_jobs: int) -> list[tuple[Net, Trained]]:
    """Train networks, each in a process of its own if there may be several.

    Parameters
    ----------
    jobs : sequence
        Network, training rows, validation rows or None, training and seed of each.
    n_jobs : int
        How many at a time.

    Returns
    -------
    list
        The networks and how they were trained.
    """
    none = all(training.steps == 0 for _, _, _, training, _ in jobs)
    if n_jobs == 1 or len(jobs) == 1 or none:  # starting processes would take longest
        return [_train_one(*job) for job in jobs]
    quiet = [(n, r, v, replace(t, on_step=_ignore), s) for n, r, v, t, s in jobs]
    try:
        done: list[tuple[Net, Trained]] = Parallel(n_jobs=min(n_jobs, len(jobs)))(
            delayed(_train_one)(*job) for job in quiet
        )
    except KeyboardInterrupt:  # the processes are gone; what is left are untrained networks
        return [(net, _untrained(net, valid, seed)) for net, _, valid, _, seed in jobs]
    return done


def _ignore(step: int) -> None:
    """Nobody listens in another process."""


def _untrained(net: Net, valid: Rows | None, seed: int) -> Trained:
    gain = 0.0 if valid is None else float(gains(net, valid, seed, rounds=1).mean())
    return Trained(gain_by_step={0: gain}, partial=True)


def _train_one(
    net: Net, rows: Rows, valid: Rows | None, training: Training, seed: int
) -> tuple[Net, Trained]:
    if torch.get_num_threads() > 1 and rows.bins.device.type == "cpu":
        torch.set_num_threads(1)  # more threads only get in each other's way in so small a model
    return net, train(net, rows, valid, training, seed)
