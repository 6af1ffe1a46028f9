"""Follow the numbers of a model through two forward passes.

The first pass notes a checksum of everything that an operation takes and gives. The second, on an
example with two tokens exchanged, sees by the checksums what changed, and keeps a label for every
storage: which stored tensors its numbers are, and what has been done to them. An operation that
joins an unchanged tensor with a changed one is where a position table acts.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

NONE: frozenset[Any] = frozenset()
ADDS = {"add", "add_", "sub", "sub_"}
MULTIPLIES = {"mul", "mul_"}
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "addmm_", "baddbmm_"}
LOOKUPS = {"embedding", "index", "index_select", "gather", "take"}
SOFTMAXES = {"_softmax", "_safe_softmax", "softmax", "_masked_softmax"}
NORMS = {"native_layer_norm", "_fused_rms_norm", "rms_norm", "native_group_norm"}
BATCH_NORMS = {"native_batch_norm", "_native_batch_norm_legit_no_training", "batch_norm"}
JOINS = {"cat", "stack"}
MERGES = ADDS | MULTIPLIES | JOINS | {"where", "div", "maximum", "minimum", "copy_", "complex"}
MERGES |= {"index_put_", "index_put", "slice_scatter", "select_scatter", "masked_fill", "addcmul"}
BREAKS = PRODUCTS | NORMS | BATCH_NORMS | SOFTMAXES | {"convolution", "embedding", "sum", "mean"}
WAVES = {"sin", "cos", "polar", "sin_", "cos_"}
COMPARED = ADDS | MULTIPLIES | PRODUCTS | LOOKUPS | JOINS
SLOW_IN_HALF = PRODUCTS | {"convolution"}


@dataclass(frozen=True)
class Label:
    """What is known of the numbers in one storage."""

    reads: bool = False  # computed from the example
    changed: bool = False  # other numbers after the exchange of tokens
    sources: frozenset[str] = NONE  # stored tensors whose numbers these are
    weights: frozenset[str] = NONE  # stored matrices that made them out of something computed
    steps: frozenset[str] = NONE  # "looked up", "projected", "wave"
    mixed: bool = False  # behind an attention
    attention: bool = False  # out of a softmax
    product: bool = False  # a product of two changed tensors
    pending: frozenset[int] = NONE  # joins that led here through nothing but element-wise steps
    convolved: frozenset[str] = NONE
    width: int | None = None  # numbers in one row of features, where known
    channels: tuple[int, int] | None = None  # features out of a convolution: number, stride


@dataclass
class Join:
    """An operation that joins an unchanged tensor with a changed one."""

    place: int  # number of the operation in the pass
    how: str  # "added", "concatenated", "multiplied", "product", "mask"
    sources: frozenset[str]
    steps: frozenset[str]
    side: int  # which of the operation's tensors is the unchanged one
    mixed: bool  # the other side was behind an attention
    on_attention: bool = False  # the other side came out of a softmax
    reached_softmax: bool = False
    joined: bool = False  # another changed tensor was added on the way
    normed: bool = False  # a norm took the sum
    feature_axis: int = -1  # of what it is joined with, counted from the end
    feature_stride: int | None = None  # of the stored tensor, where it is joined as it is stored


@dataclass
class Lookup:
    """How a stored tensor was looked up by an index that the exchange left alone."""

    from_input: bool
    distinct: float  # share of different values among an index row's values
    rows: Tensor  # the rows in use


@dataclass
class Trace:
    """What two passes showed."""

    joins: list[Join] = field(default_factory=list)
    lookups: dict[str, Lookup] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)  # kind -> what was seen
    token_tables: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    softmaxes: list[int] = field(default_factory=list)
    aligned: bool = True
    operations: int = 0


def storage_key(tensor: Tensor) -> int:
    """Return what tells this tensor's storage from every other."""
    return tensor.untyped_storage()._cdata


def checksum(tensor: Tensor) -> int:
    """Return a checksum of a tensor's numbers."""
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    plain = plain.cpu().contiguous().reshape(-1)
    return zlib.crc32(plain.view(torch.uint8).numpy().data) if plain.numel() else 0


def flat_tensors(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among an operation's arguments or results, lists opened."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += flat_tensors(value)
    return found


class Pass(TorchDispatchMode):
    """One forward pass, operation by operation.

    Stored tensors that the model writes to are put back by `restore`.
    """

    def __init__(self, stored: dict[int, str], inputs: list[Tensor]) -> None:
        super().__init__()
        self.stored = stored
        self.count = 0
        self._labels: dict[int, tuple[Any, Label]] = {}
        self._saved: dict[int, tuple[Tensor, Tensor]] = {}
        for tensor in inputs:
            self.put(tensor, Label(reads=True))

    def label(self, tensor: Tensor) -> Label:
        try:
            key = storage_key(tensor)
        except (RuntimeError, NotImplementedError):  # a tensor without storage
            return Label()
        known = self._labels.get(key)
        if known is not None:
            return known[1]
        name = self.stored.get(key)
        if name is not None and tensor.is_floating_point() | tensor.is_complex():
            return Label(sources=frozenset([name]))
        return Label()

    def put(self, tensor: Tensor, label: Label) -> None:
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            return
        # The weak reference keeps the address from being given to another storage.
        self._labels[storage._cdata] = (StorageWeakRef(storage), label)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        given = flat_tensors([*args, *kwargs.values()])
        self._save(func, given)
        return self.follow(name, func, args, kwargs, given)

    def follow(self, name: str, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        raise NotImplementedError

    def _save(self, func: Any, given: list[Tensor]) -> None:
        if not func._schema.is_mutable:
            return
        for tensor in given:
            key = storage_key(tensor)
            if key in self.stored and key not in self._saved:
                whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                whole.set_(tensor.untyped_storage())
                self._saved[key] = (whole, whole.clone())

    def restore(self) -> None:
        """Put back what the model wrote into its own tensors."""
        for whole, before in self._saved.values():
            whole.copy_(before)


def execute(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation; products in half precision on a CPU run in single precision.

    Some processors that advertise instructions for them do not have them.
    """
    tensors = flat_tensors(args)
    half = [t for t in tensors if t.dtype in (torch.bfloat16, torch.float16)]
    if name in SLOW_IN_HALF and half and half[0].device.type == "cpu" and not name.endswith("_"):
        wide = [a.float() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
        return func(*wide, **kwargs).to(half[0].dtype)
    return func(*args, **kwargs)


@dataclass(frozen=True)
class Note:
    """What the first pass noted of one operation."""

    name: str
    given: tuple[int | None, ...]
    made: tuple[int | None, ...]


class FirstPass(Pass):
    """Notes checksums of whatever is computed from the example."""

    def __init__(self, stored: dict[int, str], inputs: list[Tensor]) -> None:
        super().__init__(stored, inputs)
        self.notes: list[Note] = []

    def follow(self, name: str, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        reads = [self.label(t).reads for t in given]
        before = self.sums(name, given, reads)
        result = execute(name, func, args, kwargs)
        made = flat_tensors([result])
        if any(reads):
            for tensor in made:
                self.put(tensor, Label(reads=True))
        else:
            keys = {storage_key(t) for t in given}
            for tensor in made:
                if storage_key(tensor) not in keys:
                    self.put(tensor, Label())
        self.notes.append(Note(name, before, self.sums("", made, [any(reads)] * len(made))))
        self.count += 1
        return result

    def sums(self, name: str, tensors: list[Tensor], reads: list[bool]) -> tuple[int | None, ...]:
        if name and name not in COMPARED:
            return ()
        return tuple(checksum(t) if r else None for t, r in zip(tensors, reads, strict=True))


class SecondPass(Pass):
    """Compares with the first pass, and keeps labels."""

    def __init__(
        self,
        stored: dict[int, str],
        inputs: list[Tensor],
        notes: list[Note],
        fixed: set[str],
        shapes: dict[str, tuple[int, ...]],
        batch: int,
    ) -> None:
        super().__init__(stored, inputs)
        self.notes, self.fixed, self.shapes, self.batch = notes, fixed, shapes, batch
        self.trace = Trace()

    def follow(self, name: str, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        note = self.notes[self.count] if self.count < len(self.notes) else None
        if note is None or note.name != name:
            self.trace.aligned = False
        labels = [self.label(t) for t in given]
        for tensor in given:
            stored = self.stored.get(storage_key(tensor))
            if stored is not None and name not in ("detach", "alias"):
                self.trace.touched.add(stored)
        compared = name in COMPARED and any(label.reads for label in labels)
        changed = [False] * len(given)
        if compared:
            sums = note.given if note and self.trace.aligned else ()
            changed = self.differences(given, [label.reads for label in labels], sums)
            labels = [
                replace(label, changed=c) if c or not label.changed else label
                for label, c in zip(labels, changed, strict=True)
            ]
        step = Step(name, args, kwargs, given, labels, changed)
        join = self.join(step) if compared and any(changed) else None
        result = execute(name, func, args, kwargs)
        made = flat_tensors([result])
        reads = any(label.reads for label in labels)
        sums = note.made if note and self.trace.aligned else ()
        differs = self.differences(made, [reads] * len(made), sums)
        own = {storage_key(t) for t in given}
        for tensor, differ in zip(made, differs, strict=True):
            aliased = storage_key(tensor) in own
            if aliased and not func._schema.is_mutable:
                continue  # a view: the storage has its label
            label = self.after(step, tensor, differ, reads, join)
            if aliased:
                label = _written(self.label(tensor), label, name)
            self.put(tensor, label)
        if name in SOFTMAXES and labels and (labels[0].changed or any(differs)):
            self.trace.softmaxes.append(self.count)
            for join_number in labels[0].pending:
                self.trace.joins[join_number].reached_softmax = True
        if name in NORMS and labels:
            for join_number in labels[0].pending:
                self.trace.joins[join_number].normed = True
        self.count += 1
        self.trace.operations = self.count
        return result

    def differences(
        self, tensors: list[Tensor], reads: list[bool], sums: tuple[int | None, ...]
    ) -> list[bool]:
        if len(sums) != len(tensors):  # the passes went different ways: assume the worst
            return reads
        return [
            r and (s is None or checksum(t) != s)
            for t, r, s in zip(tensors, reads, sums, strict=True)
        ]

    # ------------------------------------------------------------- where a table acts

    def join(self, step: Step) -> int | None:
        """See whether an unchanged tensor meets a changed one here; note it and return its
        number."""
        name = step.name
        if name in LOOKUPS:
            if any(step.changed[1:]):
                self.trace.token_tables |= step.labels[0].sources
            return None
        if name in ADDS and len(step.given) == 2:
            self._residual(step)
            return self._two_sides(step, "added")
        if name in MULTIPLIES and len(step.given) == 2:
            return self._two_sides(step, "multiplied")
        if name == "cat":
            return self._concatenated(step)
        if name in PRODUCTS:
            return self._product(step)
        return None

    def _two_sides(self, step: Step, how: str) -> int | None:
        if step.changed[0] == step.changed[1]:
            return None
        side = 0 if step.changed[1] else 1
        table, other = step.given[side], step.given[1 - side]
        label, beside = step.labels[side], step.labels[1 - side]
        axes = self.varying(table, max(table.ndim, other.ndim), label.reads)
        if len(axes) < 2 or _inside_row(axes, other, beside.width):
            return None
        stored = self.two_axes(label.sources)
        if how == "multiplied":
            return self._multiplied(step, side, stored)
        if not self.trainable(stored) and _is_mask(table):
            return None
        if not stored or "wave" in label.steps or label.weights - label.sources:
            kind = "alibi" if _is_linear(table) else "computed"
            key = "" if kind == "computed" else kind
            names = ", ".join(sorted(label.sources | label.weights))
            self.trace.others.setdefault(key or kind, names)
            if not stored:
                return self.note(step, how, label.sources, label, side, beside)
        return self.note(step, how, stored, label, side, beside)

    def _multiplied(self, step: Step, side: int, stored: frozenset[str]) -> int | None:
        table, label, beside = step.given[side], step.labels[side], step.labels[1 - side]
        if table.is_complex() or "wave" in label.steps:
            if not self.raw_parameter(label):
                self.trace.others.setdefault("rotary", ", ".join(sorted(label.sources)))
            return None
        if not self.trainable(stored):
            if not _is_mask(table) and float(table.abs().max()) <= 1.01:
                self.trace.others.setdefault("rotary", ", ".join(sorted(label.sources)))
            return None
        if label.steps & {"looked up", "projected"}:
            return self.note(step, "multiplied", stored, label, side, beside)
        return None

    def raw_parameter(self, label: Label) -> bool:
        return self.trainable(label.sources) and not label.steps

    def _concatenated(self, step: Step) -> int | None:
        axis = step.args[1] if len(step.args) > 1 else step.kwargs.get("dim", 0)
        axis = int(axis) % max(step.given[0].ndim, 1)
        if all(step.changed):
            return None
        last = axis == step.given[0].ndim - 1
        if not last and not (step.given[0].ndim == 4 and axis == 1):
            return None  # more tokens, not more features
        beside = step.labels[step.changed.index(True)]
        for side, (table, changed) in enumerate(zip(step.given, step.changed, strict=True)):
            label = step.labels[side]
            axes = self.varying(table, table.ndim, label.reads)
            stored = self.two_axes(label.sources)
            if changed or len(axes) < 2 or not stored or axis not in axes:
                continue
            return self.note(step, "concatenated", stored, label, side, beside)
        return None

    def _product(self, step: Step) -> int | None:
        first = len(step.given) - 2  # of addmm and baddbmm: after what is added
        if first and not step.changed[0] and any(step.changed[1:]):
            added = self._added_to_product(step)
            if added is not None:
                return added
        left, right = step.changed[first:]
        if left == right:
            return None
        side = first + (0 if right else 1)
        label, beside = step.labels[side], step.labels[2 * first + 1 - side]
        stored = self.two_axes(label.sources)
        if _few_rows(step.given[side]):
            return None
        if label.weights and "wave" in label.steps:
            return self.note(step, "computed", NONE, label, side, beside)
        if not stored or label.weights - label.sources:
            return None
        return self.note(step, "product", stored, label, side, beside)

    def _added_to_product(self, step: Step) -> int | None:
        table, label = step.given[0], step.labels[0]
        if step.kwargs.get("beta", 1) == 0 or len(self.varying(table, 3, label.reads)) < 2:
            return None
        stored = self.two_axes(label.sources)
        if not self.trainable(stored) and _is_mask(table):
            return None
        if not stored:
            kind = "alibi" if _is_linear(table) else "computed"
            self.trace.others.setdefault(kind, ", ".join(sorted(label.sources)))
        return self.note(step, "added", stored, label, 0, step.labels[1])

    def note(
        self, step: Step, how: str, stored: frozenset[str], label: Label, side: int, beside: Label
    ) -> int:
        join = Join(self.count, how, stored, label.steps, side, beside.mixed, beside.attention)
        other = step.given[1 - side] if len(step.given) == 2 else step.given[0]
        join.feature_axis = _feature_axis(other, beside)
        table = step.given[side]
        if len(stored) == 1 and self.stored.get(storage_key(table)) in stored:
            axis = table.ndim + join.feature_axis
            join.feature_stride = table.stride(axis) if axis >= 0 else None
        self.trace.joins.append(join)
        return len(self.trace.joins) - 1

    def _residual(self, step: Step) -> None:
        """Note joins that are added to another changed tensor, and convolutions to their input."""
        if not all(step.changed):
            return
        for own, other in ((0, 1), (1, 0)):
            for number in step.labels[own].pending - step.labels[other].pending:
                self.trace.joins[number].joined = True
            for weight in step.labels[own].convolved - step.labels[other].convolved:
                self.trace.others.setdefault("convolution", weight)

    # ---------------------------------------------------------------- what numbers are

    def after(
        self, step: Step, made: Tensor, differs: bool, reads: bool, join: int | None
    ) -> Label:
        """Return the label of what an operation made."""
        labels, name = step.labels, step.name
        if not labels:
            return Label()
        label = Label(reads=reads, changed=differs, mixed=any(x.mixed for x in labels))
        if not differs:
            return replace(label, **self.flow(step))
        if name in PRODUCTS:
            first = len(step.given) - 2
            left, right = labels[first:]
            both = all(step.changed[first:])
            attention = left.attention or right.attention
            mixed = label.mixed or (both and attention) or left.product or right.product
            product = both and not attention and not label.mixed
            label = replace(label, mixed=mixed, product=product, width=made.shape[-1])
        elif name == "embedding" or name in NORMS:
            label = replace(label, width=made.shape[-1] if made.ndim else None)
        elif name == "convolution":
            weights = self._depthwise(step)
            label = replace(label, convolved=weights, channels=(made.shape[1], made.stride(1)))
        elif (name in BATCH_NORMS or "pool" in name) and labels[0].channels and made.ndim > 2:
            label = replace(label, channels=(made.shape[1], made.stride(1)))
        else:
            same = [
                x
                for x, t in zip(labels, step.given, strict=True)
                if (x.width or x.channels) and t.shape == made.shape and t.stride() == made.stride()
            ]
            if same:
                label = replace(label, width=same[0].width, channels=same[0].channels)
        if name in SOFTMAXES:
            return replace(label, attention=True)
        if name not in BREAKS:
            label = replace(
                label,
                attention=any(x.attention for x in labels),
                product=any(x.product for x in labels),
                pending=frozenset().union(*(x.pending for x in labels)),
                convolved=frozenset().union(*(x.convolved for x in labels)),
            )
        if name.startswith("_scaled_dot_product"):
            label = replace(label, mixed=True)
        if join is not None:
            label = replace(label, pending=label.pending | {join})
        return label

    def flow(self, step: Step) -> dict[str, Any]:
        """Return sources, weights and steps of something unchanged."""
        name, labels, given = step.name, step.labels, step.given
        if name in LOOKUPS:
            return self._looked_up(step)
        if name in PRODUCTS:
            return self._projected(step)
        if name == "convolution" and not labels[0].sources:
            steps, weights = labels[0].steps | {"projected"}, labels[0].weights | labels[1].sources
            return {"weights": weights, "steps": steps}
        if name in MERGES and len(labels) > 1:
            wide = [
                x
                for x, t in zip(labels, given, strict=True)
                if x.sources and len(self.varying(t, t.ndim, x.reads)) > 1
            ]
            chosen = wide or [x for x in labels if x.sources or x.weights]
        else:
            chosen = [x for x in labels if x.sources][:1] or [x for x in labels if x.weights][:1]
        steps = frozenset().union(*(x.steps for x in chosen)) if chosen else NONE
        if not chosen:
            steps = frozenset().union(*(x.steps for x in labels))
        if name in WAVES:
            steps |= {"wave"}
        return {
            "sources": frozenset().union(*(x.sources for x in chosen)),
            "weights": frozenset().union(*(x.weights for x in chosen)),
            "steps": steps,
        }

    def _looked_up(self, step: Step) -> dict[str, Any]:
        label = step.labels[0]
        for position, index in enumerate(step.given[1:], 1):
            if index.dtype in (torch.bool, torch.uint8) or not index.numel():
                continue
            values, rows = index.unique(), index.reshape(-1, index.shape[-1] if index.ndim else 1)
            if len(values) < 2:
                continue
            for source in label.sources:
                distinct = len(rows[0].unique()) / rows.shape[1]
                lookup = Lookup(step.labels[position].reads, distinct, values.cpu())
                self.trace.lookups.setdefault(source, lookup)
            steps = label.steps | {"looked up"}
            return {"sources": label.sources, "weights": label.weights, "steps": steps}
        return {"sources": label.sources, "weights": label.weights, "steps": label.steps}

    def _projected(self, step: Step) -> dict[str, Any]:
        left, right = step.labels[-2:]
        if (left.sources and right.sources) or not left.sources:
            pairs = ((left, right, step.given[-2]), (right, left, step.given[-1]))
            for choice, table, chosen_by in pairs:
                if table.sources and _is_choice(chosen_by) and not self.trainable(choice.sources):
                    return {"sources": table.sources, "steps": table.steps | {"looked up"}}
        if left.sources:
            steps = left.steps | right.steps | {"projected"}
            return {"sources": left.sources, "weights": left.weights, "steps": steps}
        steps = left.steps | right.steps | {"projected"}
        if left.weights or "wave" in left.steps or right.sources:
            return {"weights": left.weights | right.sources | right.weights, "steps": steps}
        return {"steps": steps}

    def _depthwise(self, step: Step) -> frozenset[str]:
        """Return the weight of a grouped convolution that keeps the grid, else nothing."""
        _, weight = step.given[:2]
        stride, groups = step.args[3], step.args[8]
        wide = any(size > 1 for size in weight.shape[2:])
        if groups > 1 and wide and all(s == 1 for s in stride) and step.changed_input:
            return step.labels[1].sources or frozenset(["a convolution"])
        return NONE

    # ---------------------------------------------------------------------- helpers

    def varying(self, tensor: Tensor, ndim: int, reads: bool) -> list[int]:
        """Return the axes, counted in `ndim`, along which the numbers vary.

        For what is computed from the example the batch does not count.
        """
        shift = ndim - tensor.ndim
        axes = [shift + axis for axis in varying_axes(tensor)]
        of_batch = tensor.shape[:1] == (self.batch,) and ndim >= 3
        by_sample = tensor.ndim == 2 and len(axes) == 2  # (b, d): a condition, not a position
        if reads and 0 in axes and (of_batch or by_sample):
            axes.remove(0)
        return axes

    def two_axes(self, names: frozenset[str]) -> frozenset[str]:
        """Return those stored tensors that have at least two axes."""
        return frozenset(n for n in names if sum(s > 1 for s in self.shapes[n]) > 1)

    def trainable(self, names: frozenset[str]) -> bool:
        return any(name not in self.fixed for name in names)


@dataclass
class Step:
    """One operation of the second pass, before it runs."""

    name: str
    args: Any
    kwargs: Any
    given: list[Tensor]
    labels: list[Label]
    changed: list[bool]

    @property
    def changed_input(self) -> bool:
        return bool(self.labels and self.labels[0].changed)


def _written(before: Label, new: Label, name: str) -> Label:
    """Return the label of a storage after an operation wrote to (a part of) it."""
    if name in ("fill_", "zero_", "masked_fill_"):
        return before
    return replace(
        new,
        reads=before.reads or new.reads,
        changed=before.changed or new.changed,
        sources=NONE if before.changed or new.changed else before.sources | new.sources,
        weights=before.weights | new.weights,
        steps=before.steps | new.steps,
        mixed=before.mixed or new.mixed,
        pending=before.pending | new.pending,
        width=before.width or new.width,
    )


def varying_axes(tensor: Tensor) -> list[int]:
    """Return the axes along which a tensor's numbers vary."""
    axes = []
    for axis in range(tensor.ndim):
        if tensor.shape[axis] > 1 and tensor.stride(axis) != 0:
            first = tensor.narrow(axis, 0, 1)
            if bool((tensor != first).any()):
                axes.append(axis)
    return axes


def _inside_row(axes: list[int], other: Tensor, width: int | None) -> bool:
    """Whether all axes lie inside one row of features: a bias by head, not by token."""
    if width is None or not axes or axes[-1] >= other.ndim or min(axes) < 0:
        return False
    if other.is_complex():
        width //= 2
    return all(other.stride(axis) < width for axis in axes)


def _feature_axis(other: Tensor, label: Label) -> int:
    """Return which axis of what a table is joined with holds the features, from the end."""
    if other.ndim < 3:
        return -1
    strides, sizes = other.stride(), other.shape
    if label.width is not None:
        inside = [axis for axis in range(other.ndim) if 0 < strides[axis] < label.width]
        return inside[-1] - other.ndim if inside else -1
    if label.channels is not None:
        for axis in range(other.ndim - 1, 0, -1):
            if (sizes[axis], strides[axis]) == label.channels:
                return axis - other.ndim
    return -1


def _is_mask(tensor: Tensor) -> bool:
    """Whether numbers only let through or hide: nothing but 0 or 1 and huge or tiny ones."""
    real = tensor.abs() if tensor.is_complex() else tensor
    if real.dtype is torch.bool or not real.is_floating_point():
        return True
    visible = real[real > -1e4]
    return len(visible.flatten()[: 2**20].unique()) <= 2


def _is_linear(tensor: Tensor) -> bool:
    """Whether the numbers grow linearly along the last axis (ALiBi), masked ones aside."""
    rows = tensor.detach().double().reshape(-1, tensor.shape[-1])[:256]
    if rows.shape[1] < 3:
        return False
    rows = torch.where(rows > -1e4, rows, torch.nan)
    bend = rows.diff(n=2, dim=1).abs()
    size = rows[rows.isfinite()].abs().max() if bool(rows.isfinite().any()) else torch.tensor(0.0)
    flat = (bend[bend.isfinite()] <= 1e-3 * size).double()
    return bool(size > 0) and flat.numel() > 0 and float(flat.mean()) > 0.8


def _is_choice(tensor: Tensor) -> bool:
    """Whether every row, or every column, picks one entry: a look-up written as a product."""
    if tensor.numel() > 2**24 or not bool(((tensor == 0) | (tensor == 1)).all()):
        return False
    sums = [(tensor.sum(dim=axis) <= 1).all() for axis in (-1, -2)]
    return bool(tensor.any()) and bool(sums[0] | sums[1])


def _few_rows(tensor: Tensor) -> bool:
    return tensor.ndim < 2 or min(tensor.shape[-2:]) < 2


class Watch(Pass):
    """Repeats a pass and shows the tensors of some operations to whoever asked for them."""

    def __init__(
        self, stored: dict[int, str], show: Mapping[int, Callable[[list[Tensor]], None]]
    ) -> None:
        super().__init__(stored, [])
        self.show = show

    def follow(self, name: str, func: Any, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        if self.count in self.show:
            self.show[self.count](given)
        self.count += 1
        return execute(name, func, args, kwargs)
