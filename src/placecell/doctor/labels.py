"""What is known of the numbers in a storage while a model runs, and what was seen on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

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
# No logit passes through these on its way from a product with a table to the softmax.
BENDS = {"softplus", "exp", "sigmoid", "gelu", "silu", "relu", "tanh", "leaky_relu", "elu", "log"}
WAVES = {"sin", "cos", "polar", "sin_", "cos_"}
COMPARED = ADDS | MULTIPLIES | PRODUCTS | LOOKUPS | JOINS
SLOW_IN_HALF = PRODUCTS | {"convolution"}


def storage_key(tensor: Tensor) -> int:
    """Return what tells this tensor's storage from every other."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # a tensor without storage
        return -id(tensor)


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
    joined_first: bool = False  # that was before the softmax
    normed: bool = False  # a norm took the sum
    feature_axis: int = -1  # of what it is joined with, counted from the end
    features: int = 0  # its size
    scales: tuple[float, ...] = (1.0, 1.0)  # by which an addition multiplies its two sides
    by_head: bool = False  # varies along two of four axes, the last of them one
    into_product: bool = False  # the sum went into a product with another changed tensor
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


def written(before: Label, new: Label, name: str) -> Label:
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
