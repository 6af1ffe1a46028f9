"""From the share of variance that positions are to make, ρ, to the σ of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from placecell.config import RunConfig
from placecell.encodings.base import Encoding, lookup, settings
from placecell.encodings.share import position_share, sigma_for_share
from placecell.errors import InputError
from placecell.tasks.base import Examples, Task


def token_mean_square(task: Task, token_sigma: float, train: Examples | None = None) -> float:
    """Return the mean square of embedded tokens that is expected before training.

    The embedding is drawn from N(0, token_sigma²), so no seed is needed: symbols have
    token_sigma², vectors of values v have token_sigma² (1 + |v|²), the 1 being the bias.

    Parameters
    ----------
    task : Task
        The task; of one with values the training samples are read.
    token_sigma : float
        Standard deviation of what embeds the tokens.
    train : Examples, optional
        The training samples, if they are at hand; None makes them.

    Returns
    -------
    float
        The mean square over tokens that are present.
    """
    if task.tokens.kind == "symbol":
        return token_sigma**2
    train = train or task.splits()["train"]
    squares = train.tokens.double().square().sum(-1)  # b n
    if train.present is not None:
        squares = squares[train.present]
    return token_sigma**2 * (1 + float(squares.mean()))


def takes_sigma(encoding: str) -> bool:
    """Say whether an encoding begins with a table of a σ that can be chosen.

    Parameters
    ----------
    encoding : str
        Its name.

    Returns
    -------
    bool
    """
    has_table = lookup(encoding).table is not Encoding.table  # relative has a σ and no table
    return has_table and "sigma" in settings(encoding)


def no_sigma(encodings: Sequence[str]) -> InputError:
    """Make the error that refuses a share ρ where no σ could give it.

    Parameters
    ----------
    encodings : sequence of str
        Names of the encodings.

    Returns
    -------
    InputError
    """
    return InputError(
        f"rho sets the σ of a table that is drawn and added to tokens; {' and '.join(encodings)} "
        f"{'has' if len(encodings) == 1 else 'have'} no such table; leave rho out, or take the "
        "encoding learnable."
    )


def with_sigma(config: RunConfig, task: Task) -> RunConfig:
    """Return a configuration with σ in place of ρ; unchanged if it has no ρ.

    Parameters
    ----------
    config : RunConfig
        The configuration.
    task : Task
        Its task.

    Returns
    -------
    RunConfig
        The same with σ to three digits, the same for all seeds, so that a sweep stays paired. With
        a gain, it is gain · σ that has the share.
    """
    rho = config.encoding.rho
    if rho is None:
        return config
    if not takes_sigma(config.encoding.name):
        raise no_sigma([config.encoding.name])
    sigma = sigma_for_share(rho, token_mean_square(task, config.model.token_sigma))
    if config.encoding.gain is not None and "gain" in settings(config.encoding.name):
        sigma /= config.encoding.gain
    encoding = replace(config.encoding, rho=None, sigma=float(f"{sigma:.3g}"))
    return replace(config, encoding=encoding)


def initial_share(config: RunConfig, table: torch.Tensor | None, unit_square: float) -> float:
    """Return ρ of a run before training.

    Parameters
    ----------
    config : RunConfig
        The run.
    table : Tensor or None
        The table at step 0 (n d); None if the encoding has none.
    unit_square : float
        `token_mean_square` of its task at a `token_sigma` of 1.

    Returns
    -------
    float
        The share of the input's variance that positions make; NaN without a table.
    """
    if table is None or len(table) < 2:
        return math.nan
    return position_share(table, config.model.token_sigma**2 * unit_square)
