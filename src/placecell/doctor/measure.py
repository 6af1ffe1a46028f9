"""What a position table is worth where it acts: its scale, and the share that positions have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from placecell.doctor.examples import batch_size, call_model, variant, with_names
from placecell.doctor.find import Table, Tables, find_tables, stored_tensors
from placecell.doctor.guard import left_alone, unwrap
from placecell.doctor.shapes import varying_axes
from placecell.doctor.trace import Watch
from placecell.errors import InputError
from placecell.seeds import torch_stream

ENOUGH = 4  # examples in a batch; with fewer, others are made
MADE = 8
HIDDEN = -60.0  # logits below are masked


@dataclass(frozen=True)
class AsBuilt:
    """A table where it acts.

    Attributes
    ----------
    sigma : float
        Standard deviation of the numbers that are joined: after look-up, scaling and slicing.
    beside : float
        Root mean square of what they are joined with.
    rho : float
        Share of positions: the table's variance over positions, divided by that plus the mean
        square of what it is joined with. NaN for a product.
    logits : float
        Share of the variance of the first attention's logits after it that is the same whatever
        the tokens are. NaN if no attention follows.
    norm : str
        Where the norms stand: "on the sum" (nothing but the normed sum goes on), "in the branch"
        (the sum itself goes on too), or "none".
    """

    sigma: float
    beside: float
    rho: float
    logits: float
    norm: str

    @property
    def ratio(self) -> float:
        """sigma / beside."""
        return self.sigma / self.beside if self.beside > 0 else math.inf


@dataclass
class _Seen:
    """What a pass showed of one table: the two sides of its join, and the logits after it."""

    sides: list[tuple[Tensor, Tensor]]
    logits: list[Tensor]


def as_built(model: nn.Module, example: Any, tables: Tables) -> dict[str, AsBuilt]:
    """Measure tables where they act.

    A batch of four examples or more is used as it is. With fewer, others are made: tokens in
    another order, floating inputs drawn with the example's mean and standard deviation.

    Parameters
    ----------
    model : torch.nn.Module
    example
        As `find_tables` takes it.
    tables : Tables
        What `find_tables` found with this example.

    Returns
    -------
    dict of str to AsBuilt
        By the table's name; tables that the example does not reach are left out.
    """
    model = unwrap(model)
    example = with_names(model, example)
    batch = batch_size(example)
    examples = [example]
    generator = torch_stream(0, "doctor/variants")
    if batch < ENOUGH:
        examples += [variant(example, generator) for _ in range(math.ceil(MADE / batch) - 1)]
    reached = [table for table in tables if table.join is not None]
    seen = {table.name: _Seen([], []) for table in reached}
    softmax_of = {table.name: _softmax_after(table, tables) for table in reached}
    for one in examples:
        _watch(model, one, reached, softmax_of, seen, tables.trace.operations)
    return {
        table.name: _measure(table, seen[table.name], batch)
        for table in reached
        if seen[table.name].sides
    }


def share_of_position(model: nn.Module, example: Any) -> dict[str, float]:
    """Measure the share ρ of positions where each table is joined with the tokens.

    ρ is the table's variance over positions, divided by that plus the mean square of what it is
    joined with: 0 if the table is constant, one half if both are as strong.

    Parameters
    ----------
    model : torch.nn.Module
    example
        What the model takes: a tensor, a tuple of arguments or a dict of keywords.

    Returns
    -------
    dict of str to float
        ρ by the table's name.

    Raises
    ------
    InputError
        If the model joins no table of positions with the tokens of this example.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=0.1))
    >>> rho = placecell.share_of_position(model, torch.randn(64, 16, 3))
    >>> 0.005 < rho["1.weight"] < 0.05
    True
    """
    tables = find_tables(model, example)
    shares = {name: built.rho for name, built in as_built(model, example, tables).items()}
    if not shares:
        raise InputError(
            f"{type(model).__name__} has no table of positions that is joined with the tokens of "
            "this example, so positions have no share to measure."
        )
    return shares


def _softmax_after(table: Table, tables: Tables) -> int | None:
    assert table.join is not None
    later = [place for place in tables.trace.softmaxes if place > table.join.place]
    return later[0] if later else None


def _watch(
    model: nn.Module,
    example: Any,
    reached: list[Table],
    softmax_of: dict[str, int | None],
    seen: dict[str, _Seen],
    operations: int,
) -> None:
    sides: dict[int, list[Tensor]] = {}
    places = {t.join.place for t in reached if t.join} | {s for s in softmax_of.values() if s}

    def keep(place: int, given: list[Tensor]) -> None:
        sides[place] = [t.detach().clone() for t in given]

    show = {place: partial(keep, place) for place in places}
    stored = {t.untyped_storage()._cdata: name for name, t in stored_tensors(model).items()}
    watch = Watch(stored, show)
    state = torch.random.get_rng_state()
    with left_alone(model):
        torch.random.set_rng_state(state)
        try:
            with watch:
                call_model(model, example)
        finally:
            watch.restore()
    if watch.count != operations:  # another way through the model: its places are others
        return
    for table in reached:
        assert table.join is not None
        given = sides[table.join.place]
        side = table.join.side
        others = [i for i in range(len(given)) if i != side]
        other = len(given) - 1 if table.join.how == "concatenated" and side == 0 else others[0]
        own, beside = given[side].float(), given[other].float()
        if table.join.how == "added":
            first, second = table.join.scales
            if len(given) == 3:  # added to a product
                own, beside = own * first, second * (given[1].float() @ given[2].float())
            else:
                own, beside = (own * second, beside) if side else (own, beside * second)
        seen[table.name].sides.append((own, beside))
        place = softmax_of[table.name]
        if place is not None and place in sides:
            seen[table.name].logits.append(sides[place][0].float())


def _measure(table: Table, seen: _Seen, batch: int) -> AsBuilt:
    join = table.join
    assert join is not None
    own, _ = seen.sides[0]
    # Only among logits is a number far below 0 a mask; tokens are as large as they are.
    hidden = HIDDEN if join.how == "added" and join.reached_softmax else -math.inf
    squares = [other[other > hidden].square().mean() for _, other in seen.sides]
    square = float(torch.stack(squares).mean())
    rho = math.nan
    if join.how in ("added", "concatenated"):
        content = square
        axis = join.feature_axis
        position = _over_positions(own, seen.sides[0][1], axis, batch, hidden)
        if join.how == "concatenated":
            content = content * seen.sides[0][1].shape[axis] / own.shape[axis]
        rho = position / (position + content) if position + content > 0 else 0.0
    norm = "none" if not join.normed else "in the branch" if join.joined else "on the sum"
    visible = own[own > hidden]
    sigma = float(visible.std()) if visible.numel() > 1 else 0.0
    return AsBuilt(sigma, math.sqrt(square), rho, share_of_logits(seen.logits, batch), norm)


def _rows_of_examples(tensors: list[Tensor], batch: int) -> Tensor:
    """Return tensors as (examples, ...): the batch is the first axis, a part of it, or the
    second."""
    if tensors[0].ndim and tensors[0].shape[0] % batch == 0:
        return torch.cat([t.reshape(batch, -1, *t.shape[1:]) for t in tensors])
    if tensors[0].ndim > 1 and tensors[0].shape[1] == batch:
        return torch.cat([t.transpose(0, 1) for t in tensors])
    return torch.stack(tensors)


def _over_positions(
    own: Tensor, other: Tensor, feature_axis: int, batch: int, hidden: float
) -> float:
    """Mean over features of the table's variance over everything else, as `position_share` has."""
    if own.ndim == other.ndim and own.ndim > 2 and own.shape[0] == batch:
        varying = varying_axes(own)
        if 0 not in varying or len(varying) > 2:  # the same for every sample, or nearly so
            own = own[:1]
    if bool((own <= hidden).any()):  # a bias together with a mask
        return float(own[own > hidden].var())
    axis = max(own.ndim + feature_axis, 0)
    rows = own.movedim(axis, -1).reshape(-1, own.shape[axis])
    return float(rows.var(dim=0).mean())


def share_of_logits(logits: list[Tensor], batch: int) -> float:
    """Return the share of logits' variance that is the same for every example.

    Parameters
    ----------
    logits : list of tensors of shape (b, ..., q, k) or (b·h, q, k)
        Of several examples; masked ones (below −60) are left out.
    batch : int
        Examples in each tensor.

    Returns
    -------
    float
        Between 0 and 1: the variance over (q, k) of the mean over examples, freed of what chance
        adds to it, over that plus the variance over examples. NaN with fewer than two examples.
    """
    if not logits or logits[0].ndim < 3:
        return math.nan
    if any(t.shape != logits[0].shape for t in logits):
        return math.nan
    rows = _rows_of_examples(logits, batch)
    examples = len(rows)
    if examples < 2:
        return math.nan
    rows = rows.reshape(examples, -1, rows.shape[-2] * rows.shape[-1])  # (e, heads, pairs)
    seen = (rows > HIDDEN).all(dim=0)  # (heads, pairs)
    mean, within = rows.mean(dim=0), rows.var(dim=0)
    same = total = 0.0
    for head_mean, head_within, visible in zip(mean, within, seen, strict=True):
        if int(visible.sum()) < 3:
            continue
        noise = float(head_within[visible].mean())
        between = max(float(head_mean[visible].var(correction=0)) - noise / examples, 0.0)
        same, total = same + between, total + between + noise
    return same / total if total > 0 else math.nan
