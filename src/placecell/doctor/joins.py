"""Where a position table acts: an unchanged tensor meets a changed one."""

from __future__ import annotations

from placecell.doctor.known import Known
from placecell.doctor.labels import (
    ADDS,
    LOOKUPS,
    MULTIPLIES,
    NONE,
    PRODUCTS,
    Join,
    Label,
    Step,
    Trace,
    storage_key,
)
from placecell.doctor.shapes import feature_axis, few_rows, inside_row, is_linear, is_mask

_BY_HEAD = ([1, 3], [2, 3])  # heads and their features, in (b, h, n, e) or (b, n, h, e)


class Joins:
    """Notes the joins of a pass in its trace."""

    def __init__(self, known: Known, trace: Trace) -> None:
        self.known, self.trace = known, trace
        self.place = 0  # number of the operation

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
        axes = self.known.varying(table, max(table.ndim, other.ndim), label.reads)
        if len(axes) < 2 or inside_row(axes, other, beside.width):
            return None
        stored = self.known.two_axes(label.sources)
        if how == "multiplied":
            return self._multiplied(step, side, stored)
        if not self.known.trainable(stored) and is_mask(table):
            return None
        if not stored or "wave" in label.steps or label.weights - label.sources:
            kind = "alibi" if is_linear(table) and not label.weights else "computed"
            self.trace.others.setdefault(kind, ", ".join(sorted(label.sources | label.weights)))
            if not stored:
                return self.note(step, how, label.sources, label, side, beside)
        number = self.note(step, how, stored, label, side, beside)
        self.trace.joins[number].by_head = max(table.ndim, other.ndim) == 4 and axes in _BY_HEAD
        return number

    def _multiplied(self, step: Step, side: int, stored: frozenset[str]) -> int | None:
        table, label, beside = step.given[side], step.labels[side], step.labels[1 - side]
        if table.is_complex() or "wave" in label.steps:
            if label.steps or not self.known.trainable(label.sources):
                self.trace.others.setdefault("rotary", ", ".join(sorted(label.sources)))
            return None
        if not self.known.trainable(stored):
            if not is_mask(table) and float(table.abs().max()) <= 1.01:
                self.trace.others.setdefault("rotary", ", ".join(sorted(label.sources)))
            return None
        if label.steps & {"looked up", "projected"}:
            return self.note(step, "multiplied", stored, label, side, beside)
        return None

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
            axes = self.known.varying(table, table.ndim, label.reads)
            stored = self.known.two_axes(label.sources)
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
        stored = self.known.two_axes(label.sources)
        if few_rows(step.given[side]):
            return None
        if label.weights and "wave" in label.steps:
            return self.note(step, "computed", NONE, label, side, beside)
        if not stored or label.weights - label.sources:
            return None
        return self.note(step, "product", stored, label, side, beside)

    def _added_to_product(self, step: Step) -> int | None:
        table, label = step.given[0], step.labels[0]
        if step.kwargs.get("beta", 1) == 0 or len(self.known.varying(table, 3, label.reads)) < 2:
            return None
        stored = self.known.two_axes(label.sources)
        if not self.known.trainable(stored) and is_mask(table):
            return None
        if not stored:
            kind = "alibi" if is_linear(table) else "computed"
            self.trace.others.setdefault(kind, ", ".join(sorted(label.sources)))
        return self.note(step, "added", stored, label, 0, step.labels[1])

    def note(
        self, step: Step, how: str, stored: frozenset[str], label: Label, side: int, beside: Label
    ) -> int:
        join = Join(self.place, how, stored, label.steps, side, beside.mixed, beside.attention)
        other = step.given[1 - side] if len(step.given) == 2 else step.given[0]
        join.feature_axis = feature_axis(other, beside)
        join.scales = (step.kwargs.get("beta", 1.0), step.kwargs.get("alpha", 1.0))
        join.features = other.shape[join.feature_axis] if other.ndim else 0
        table = step.given[side]
        if len(stored) == 1 and self.known.stored.get(storage_key(table)) in stored:
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
