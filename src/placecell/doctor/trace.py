"""Follow the numbers of a model through two forward passes.

The first pass notes a checksum of everything that an operation takes and gives. The second, on an
example with two tokens exchanged, sees by the checksums what changed, and keeps a label for every
storage: which stored tensors its numbers are, and what has been done to them (`flow.py`). An
operation that joins an unchanged tensor with a changed one is where a position table acts
(`joins.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from placecell.doctor.flow import Flow
from placecell.doctor.joins import Joins
from placecell.doctor.known import Known
from placecell.doctor.labels import (
    COMPARED,
    NONE,
    NORMS,
    PRODUCTS,
    SLOW_IN_HALF,
    SOFTMAXES,
    Label,
    Step,
    Trace,
    storage_key,
    written,
)


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

    def __init__(self, known: Known, inputs: list[Tensor], notes: list[Note]) -> None:
        super().__init__(known.stored, inputs)
        self.notes, self.trace = notes, Trace()
        self.joins, self.flow = Joins(known, self.trace), Flow(known, self.trace)

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
        self.joins.place = self.count
        join = self.joins.join(step) if compared and any(changed) else None
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
            label = self.flow.after(step, tensor, differ, reads, join)
            if aliased:
                label = written(self.label(tensor), label, name)
            self.put(tensor, label)
        if name in SOFTMAXES and labels and (labels[0].changed or any(differs)):
            self.trace.softmaxes.append(self.count)
            for join_number in labels[0].pending:
                joined = self.trace.joins[join_number]
                joined.reached_softmax = True
                joined.joined_first |= joined.joined
        if name in PRODUCTS:
            for one, other in ((labels[-1], labels[-2]), (labels[-2], labels[-1])):
                for join_number in one.pending if other.changed or other.steps else NONE:
                    self.trace.joins[join_number].into_product = True
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
