"""What the numbers are that an operation makes: a label out of the labels that went in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from placecell.doctor.known import Known
from placecell.doctor.labels import (
    BATCH_NORMS,
    BENDS,
    BREAKS,
    LOOKUPS,
    MERGES,
    NONE,
    NORMS,
    PRODUCTS,
    SOFTMAXES,
    WAVES,
    Label,
    Lookup,
    Step,
    Trace,
)
from placecell.doctor.shapes import is_choice


class Flow:
    """Labels what operations make."""

    def __init__(self, known: Known, trace: Trace) -> None:
        self.known, self.trace = known, trace

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
        if name.rstrip("_") in BENDS:
            joins = self.trace.joins
            kept = frozenset(n for n in label.pending if joins[n].how != "product")
            label = replace(label, pending=kept)
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
                if x.sources and len(self.known.varying(t, t.ndim, x.reads)) > 1
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
            values = index.unique()
            if len(values) < 2:
                continue
            length = max(index.numel() // self.known.batch, 1)  # of one sample's index
            for source in label.sources:
                distinct = len(index.reshape(-1)[:length].unique()) / length
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
                if (
                    table.sources
                    and is_choice(chosen_by)
                    and not self.known.trainable(choice.sources)
                ):
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
