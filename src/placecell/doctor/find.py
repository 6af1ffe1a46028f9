"""Find the position tables of any torch model, by what happens to their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, overload

import torch
from torch import Tensor, nn

from placecell.doctor.examples import (
    batch_size,
    call_model,
    check_devices,
    check_variation,
    exchanged,
    map_tensors,
    tensors_of,
    with_names,
)
from placecell.doctor.guard import left_alone, unwrap, zeros_filled
from placecell.doctor.known import Known
from placecell.doctor.labels import Join, Trace, storage_key
from placecell.doctor.trace import FirstPass, SecondPass
from placecell.errors import InputError
from placecell.seeds import torch_stream

NAMED = re.compile(
    r"(^|[._])(wpe|pe|pos|positions?|pos_?emb(ed)?(ding)?s?|position(al)?_?(emb(ed)?(ding)?s?|"
    r"enc(oding)?s?|table)|embed_positions|rel_pos\w*|relative_(attention_bias|position_bias\w*))"
    r"(_?\d+)?(\.weight|\.weights|\.pe|_table)?$"
)
NOT_TABLES = re.compile(r"(proj|norm|conv|mlp|linear|dense|_ids|index|mask|dropout)")


@dataclass(frozen=True)
class Table:
    """A position table of a model.

    Attributes
    ----------
    name : str
        As `model.named_parameters()` or `named_buffers()` has it.
    kind : str
        "absolute" (joined with the tokens before attention), "relative" (acts on attention's
        logits or values), "late" (joined behind an attention: positions of a later stage, or
        slots such as object queries), "queries" (asks the tokens by itself: latents), or
        "unknown" if the example did not reach it.
    how : str
        "added", "concatenated", "multiplied", or "product"; "" if the example did not reach it.
    shape : tuple of int
        As stored.
    trainable : bool
        A parameter with `requires_grad`.
    exercised : bool
        False for a tensor that has a table's name and that the example did not reach.
    layout : str
        "rows" (tokens × features), "channels first" (features × tokens).
    """

    name: str
    kind: str
    how: str
    shape: tuple[int, ...]
    trainable: bool
    exercised: bool = True
    layout: str = "rows"
    join: Join | None = field(default=None, repr=False, compare=False)
    rows: Tensor | None = field(default=None, repr=False, compare=False)

    @property
    def fixed(self) -> bool:
        """Not trainable."""
        return not self.trainable

    def __str__(self) -> str:
        shape = " × ".join(map(str, self.shape))
        state = "trainable" if self.trainable else "fixed"
        if self.exercised and not self.how:  # a tensor without a model
            return f"{self.name} ({shape})"
        if not self.exercised:
            return f"{self.name} ({shape}, {state}): not exercised by the example"
        return f"{self.name} ({shape}, {state}): {self.kind}, {self.how}"


class Tables(tuple[Table, ...]):
    """The tables of a model, and what else there is of positions.

    Attributes
    ----------
    others : dict of str to str
        Kinds of position that are no stored table ("rotary", "alibi", "convolution",
        "computed"), each with the tensors it is made of.
    """

    others: dict[str, str]
    trace: Trace

    def __new__(cls, tables: Any, others: dict[str, str], trace: Trace) -> Tables:
        self = super().__new__(cls, tables)
        self.others, self.trace = others, trace
        return self

    @overload  # type: ignore[override]
    def __getitem__(self, key: str) -> Table: ...
    @overload
    def __getitem__(self, key: int) -> Table: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            for table in self:
                if table.name == key:
                    return table
            raise KeyError(key)
        return super().__getitem__(key)

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they act."""
        return [table.name for table in self]

    def __str__(self) -> str:
        lines = [str(table) for table in self]
        lines += [say_other(kind, what) for kind, what in self.others.items()]
        return "\n".join(lines) if lines else "no position table found"


def say_other(kind: str, what: str) -> str:
    """Return a sentence for a kind of position that is no stored table."""
    words = {
        "rotary": "rotary positions: queries and keys are rotated",
        "alibi": "ALiBi: a slope by distance is added to attention's logits",
        "convolution": "convolutional positions: a grouped convolution is added to its own input",
        "computed": "positions computed in the forward pass, not stored",
    }[kind]
    return f"{words} ({what})" if what else words


def stored_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter, buffer and plain tensor attribute of a model by name."""
    found: dict[str, Tensor] = dict(model.named_parameters())
    found.update(model.named_buffers())
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found.setdefault(f"{prefix}.{name}".lstrip("."), value)
    return found


def find_tables(model: nn.Module, example: Any) -> Tables:
    """Find the position tables of a model.

    The model runs twice, the second time with two tokens exchanged (or noise on floating inputs).
    A table is a stored tensor whose numbers stay the same and are added to, concatenated with or,
    after a look-up or projection, multiplied with numbers that change. Model, mode, random state
    and buffers are left as they were.

    Parameters
    ----------
    model : torch.nn.Module
        Trained or not, on any device that holds numbers.
    example
        What the model takes: a tensor, a tuple of arguments or a dict of keywords.

    Returns
    -------
    Tables
        A tuple of `Table`, in the order in which they act; `others` has rotary, ALiBi,
        convolutional and computed positions. What has a table's name and was not reached by the
        example is at the end, with `exercised=False`.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 8), placecell.LearnablePE(16, 8, sigma=0.1))
    >>> print(placecell.find_tables(model, torch.randn(2, 16, 3)))
    1.weight (16 × 8, trainable): absolute, added
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch.nn.Module, found {type(model).__name__}.")
    model = unwrap(model)
    check_devices(model, example)
    example = with_names(model, example)
    check_variation(example)
    tensors = stored_tensors(model)
    trainable = {name for name, p in model.named_parameters() if p.requires_grad}
    with zeros_filled(model, torch_stream(0, "doctor/zeros")):
        trace = two_passes(model, example, tensors, trainable)
        if not trace.aligned:  # something was cached by the first pass; now it is in both
            trace = two_passes(model, example, tensors, trainable)
    if not trace.softmaxes:
        trace.others.pop("convolution", None)  # a convolutional network, not positions
    if any(j.how == "computed" and j.joined_first for j in trace.joins):
        trace.others.setdefault("computed", "")
    tables = [*_reached(trace, tensors, trainable), *_by_name(trace, tensors, trainable)]
    return Tables(tables, trace.others, trace)


def two_passes(
    model: nn.Module, example: Any, tensors: dict[str, Tensor], trainable: set[str]
) -> Trace:
    """Run the model twice and return what that showed."""
    stored: dict[int, str] = {}
    for name, tensor in tensors.items():
        stored.setdefault(storage_key(tensor), name)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    own = map_tensors(example, lambda _, t: t.clone())
    other = exchanged(own, torch_stream(0, "doctor/noise"))
    state = torch.random.get_rng_state()
    first = FirstPass(stored, [t for _, t in tensors_of(own)])
    _run(model, own, first, state)
    known = Known(stored, shapes, set(tensors) - trainable, batch_size(own))
    second = SecondPass(known, [t for _, t in tensors_of(other)], first.notes)
    _run(model, other, second, state)
    return second.trace


def _run(model: nn.Module, example: Any, mode: Any, state: Tensor) -> None:
    with left_alone(model):
        torch.random.set_rng_state(state)
        try:
            with mode:
                call_model(model, example)
        finally:
            mode.restore()


def _reached(trace: Trace, tensors: dict[str, Tensor], trainable: set[str]) -> Iterator[Table]:
    seen: set[str] = set()
    for join in trace.joins:
        kind = kind_of(join)
        if kind is None:
            continue
        for name in sorted(join.sources - trace.token_tables - seen):
            shape = tuple(tensors[name].shape)
            lookup = trace.lookups.get(name)
            if kind == "relative" and name not in trainable and "projected" in join.steps:
                trace.others.setdefault("computed", name)  # a network makes them of coordinates
                continue
            if sum(size > 1 for size in shape) < 2:
                continue
            if lookup and lookup.from_input and lookup.distinct <= 0.5 and kind != "relative":
                continue  # few values repeated along the sentence: segments, not positions
            seen.add(name)
            yield Table(
                name,
                kind,
                join.how,
                shape,
                name in trainable,
                layout="channels first" if _channels_first(join, tensors[name]) else "rows",
                join=join,
                rows=lookup.rows if lookup else None,
            )


def _channels_first(join: Join, tensor: Tensor) -> bool:
    long = [axis for axis, size in enumerate(tensor.shape) if size > 1]
    if (
        join.feature_stride is not None and not join.reached_softmax
    ):  # as it is stored, perhaps transposed
        same = [axis for axis in long if tensor.stride(axis) == join.feature_stride]
        return bool(same) and same[0] == long[0]
    if join.how == "product" or join.reached_softmax or "looked up" in join.steps:
        return False
    first, last = tensor.shape[long[0]], tensor.shape[long[-1]]
    if join.features in (first, last) and first != last:
        return join.features == first
    return join.feature_axis != -1


def kind_of(join: Join) -> str | None:
    """Return the kind of the tables that act at a join; None if it is no position's."""
    if join.how == "computed":
        return None
    if join.how == "product":
        if join.joined_first:
            return "relative"
        if "looked up" in join.steps:
            return "relative"
        if join.reached_softmax and "projected" in join.steps:
            return "queries"
        return None
    if join.reached_softmax:
        return "relative"
    if join.by_head and join.into_product:
        return None  # a bias of queries or keys, the same for every token
    return "late" if join.mixed else "absolute"


def _by_name(trace: Trace, tensors: dict[str, Tensor], trainable: set[str]) -> Iterator[Table]:
    for name, tensor in tensors.items():
        wide = sum(size > 1 for size in tensor.shape) > 1 and tensor.is_floating_point()
        if name in trace.touched or not wide:
            continue
        if NAMED.search(name.lower()) and not NOT_TABLES.search(name.lower()):
            shape = tuple(tensor.shape)
            yield Table(name, "unknown", "", shape, name in trainable, exercised=False)
