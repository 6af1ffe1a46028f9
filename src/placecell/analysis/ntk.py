"""The empirical neural tangent kernel (NTK) of a model, in total and per block of parameters.

K(x, x') = J(x) J(x')ᵀ, with J the derivative of the outputs with respect to the parameters (Jacot
et al., arXiv 1806.07572). There are three kinds:

- `full`: every output against every output;
- `trace`: the sum over outputs of each output against itself;
- `sum`: the kernel of the sum of the outputs (pseudo-kernel of Mohamadi et al., arXiv 2206.12543).

`ntk` contracts Jacobians module by module; the tests compare it with a second implementation that
shares only the model.

Shapes beside tensors use b samples, t tokens, k outputs, p parameters, i inputs and o outputs of a
module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional as F

from placecell.encodings import LearnablePE, Positions
from placecell.errors import InputError, unknown
from placecell.model import Inputs, Transformer

Kind = Literal["full", "trace", "sum"]
KINDS = ("full", "trace", "sum")
Sums = list[list[tuple[int, int]]]
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Kernel:
    """A tangent kernel, split by block of parameters.

    Attributes
    ----------
    kind : "full", "trace" or "sum"
        See `placecell.analysis.ntk`.
    blocks : dict of str to Tensor
        The kernel of each block, of shape (b, b), or (b, b, k, k) for `full`, with k the number of
        outputs per sample.
    """

    kind: Kind
    blocks: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        """The kernel of all parameters: the sum of the blocks."""
        return torch.stack(list(self.blocks.values())).sum(0)


def block_of(name: str) -> str:
    """Return the block that a parameter belongs to.

    Parameters
    ----------
    name : str
        Name of the parameter in the model.

    Returns
    -------
    str
        PE, tokens, QK, OV, MLP, norm or readout. The projection to queries, keys and values is one
        parameter, for which this returns QK although its last third (the values) belongs to OV.

    Examples
    --------
    >>> block_of("layers.0.mlp.0.weight")
    'MLP'
    """
    words = name.split(".")
    for word, block in BLOCKS.items():
        if word in words:
            return block
    return "norm"


BLOCKS = {
    "encoding": "PE",
    "embedding": "tokens",
    "readout": "readout",
    "mlp": "MLP",
    "qkv": "QK",
    "out": "OV",
}


def ntk(model: Transformer, inputs: Inputs, kind: Kind = "trace", budget: float = 2e9) -> Kernel:
    """Compute the tangent kernel of a model.

    Parameters
    ----------
    model : Transformer
    inputs : Inputs
        The samples between which the kernel is computed.
    kind : "full", "trace" or "sum"
        How outputs are combined; see the module's description.
    budget : float
        Approximate memory to use, in bytes. Samples are processed in chunks that fit.

    Returns
    -------
    Kernel
    """
    _check(kind)
    size = _chunk(model, inputs, kind, budget)
    chunks = [slice(start, start + size) for start in range(0, len(inputs), size)]
    blocks: dict[str, Tensor] = {}
    for i, rows in enumerate(chunks):
        row_parts = _parts(model, inputs.take(rows), kind)
        for columns in chunks[: i + 1]:
            same = columns is rows
            column_parts = row_parts if same else _parts(model, inputs.take(columns), kind)
            for a, b in zip(row_parts, column_parts, strict=True):
                piece = _contract(a, b, kind)
                if a.block not in blocks:
                    blocks[a.block] = piece.new_zeros((len(inputs),) * 2 + piece.shape[2:])
                blocks[a.block][rows, columns] += piece
                if not same:
                    mirrored = piece.transpose(0, 1).mT if kind == "full" else piece.mT
                    blocks[a.block][columns, rows] += mirrored
    return Kernel(kind, blocks)


@dataclass(frozen=True)
class _Part:
    """The contribution of one module: its Jacobian is Σ_t δ_t ⊗ h_t, or δ itself if h is None.

    `h` (b t i) is the input of the module. `delta` has one entry per output of the model: its
    derivative with respect to the module's output (b t o), or to its parameters (b p) if h is None.
    """

    block: str
    h: Tensor | None
    delta: list[Tensor]

    def pieces(self, size: int) -> Iterator[list[Tensor]]:
        """Yield the Jacobian of each output (b p), for `size` of the module's outputs at a time.

        All pieces reuse the same memory, which stays in the CPU cache; the whole Jacobian would be
        written to main memory and read again.
        """
        if self.h is None:
            yield self.delta
            return
        (b, _, i), o = self.h.shape, self.delta[0].shape[2]
        memory = self.h.new_empty(len(self.delta), b * min(size, o) * i)
        for start in range(0, o, size):
            rows = min(size, o - start)
            views = [m[: b * rows * i].view(b, rows, i) for m in memory]
            for delta, view in zip(self.delta, views, strict=True):
                torch.bmm(delta[..., start : start + rows].mT, self.h, out=view)
            yield [view.flatten(1) for view in views]


def _parts(model: Transformer, inputs: Inputs, kind: Kind) -> list[_Part]:
    """Inputs and output derivatives of every module with weights, from k backward passes."""
    calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []  # name, module, input, output
    in_encoding = set(model.encoding.modules())
    # The encoding needs derivatives with respect to the outputs of frozen modules too.
    hooks = [
        module.register_forward_hook(
            lambda module, args, y, name=name: calls.append(
                (name, module, args[0], y.requires_grad_())
            )
        )
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.LayerNorm | nn.Embedding) and module not in in_encoding
    ]
    try:
        with torch.enable_grad():
            outputs = model(inputs, maps=True).outputs.flatten(1)  # b k
    finally:
        for hook in hooks:
            hook.remove()
    if kind == "sum":
        outputs = outputs.sum(1, keepdim=True)
    k, after = outputs.shape[1], [y for *_, y in calls]
    per_output = [
        torch.autograd.grad(outputs[:, a].sum(), after, retain_graph=a < k - 1) for a in range(k)
    ]
    parts: list[_Part] = []
    for (name, module, h, _), *delta in zip(calls, *per_output, strict=True):
        if module is model.embedding:
            parts += _encoding_parts(model, inputs, kind, delta)
        if next(module.parameters()).requires_grad:
            parts += _module_parts(name, module, h.detach(), delta)
    return parts


def _module_parts(name: str, module: nn.Module, h: Tensor, delta: list[Tensor]) -> Iterator[_Part]:
    block = block_of(name)
    if isinstance(module, nn.Embedding):
        yield _Part(block, F.one_hot(h, module.num_embeddings).to(delta[0].dtype), delta)
    elif isinstance(module, nn.LayerNorm):
        normed = F.layer_norm(h, module.normalized_shape, eps=module.eps)
        yield _Part(block, None, [torch.cat([(d * normed).sum(1), d.sum(1)], 1) for d in delta])
    else:
        blocks = ["QK", "QK", "OV"] if name.endswith("qkv") else [block]
        chunks = (d.chunk(len(blocks), -1) for d in delta)
        for block, *chunk in zip(blocks, *chunks, strict=True):
            yield _Part(block, *_alive(h, chunk))
            # The bias is a part of its own: a column of ones in h would break its alignment.
            yield _Part(block, None, [d.sum(1) for d in chunk])


def _alive(h: Tensor, delta: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Keep only the tokens that some output depends on; in the last layer, those that are read."""

    def alive(samples: int) -> Tensor:
        return torch.stack([(d[:samples] != 0).any(-1) for d in delta]).any(0)  # b t

    if bool(alive(1).all()):  # samples are usually alike, and keeping more tokens is safe
        return h, delta
    used = alive(len(h))
    index = used.to(torch.int8).topk(max(1, int(used.sum(1).max())), 1).indices[..., None]  # b m 1
    h, *delta = (x.gather(1, index.expand(-1, -1, x.shape[2])) for x in (h, *delta))
    return h, delta


def _encoding_parts(
    model: Transformer, inputs: Inputs, kind: Kind, embedded: list[Tensor]
) -> Iterator[_Part]:
    """Contributions of the encoding's parameters.

    The table of a learnable encoding is added to the tokens, so its derivative is that of the
    tokens. Other encodings are differentiated with `jacrev`.
    """
    named = {name: p for name, p in model.encoding.named_parameters() if p.requires_grad}
    if not named:
        return
    if isinstance(model.encoding, LearnablePE):
        n = model.encoding.n
        yield _Part("PE", None, [_by_row(d, inputs.positions, n).flatten(1) for d in embedded])
        return
    names = {f"encoding.{name}": p.detach() for name, p in named.items()}
    jacobian = vmap(jacrev(_function(model, inputs, kind)), (None, 0))(names, _tensors(inputs))
    for rows in jacobian.values():
        yield _Part("PE", None, list(rows.detach().flatten(2).unbind(1)))


# Bytes of a Jacobian, or of products between tokens, to work on at a time: they fit in the cache.
PIECE = 1 << 23


def _contract(a: _Part, b: _Part, kind: Kind) -> Tensor:
    """The kernel of one part between two sets of samples, by the cheaper of two methods."""
    k, rows, columns = len(a.delta), len(a.delta[0]), len(b.delta[0])
    sums: Sums = [[(p, p) for p in range(k)]]  # for each kernel, the pairs of outputs to sum over
    if kind == "full":
        sums = [[(p, q)] for p in range(k) for q in range(k)]
    kernels = a.delta[0].new_zeros(len(sums), rows, columns)
    half = a is b and kind != "full"  # symmetric: compute little more than the lower half
    i, o, n = 1 if a.h is None else a.h.shape[2], a.delta[0].shape[-1], sum(map(len, sums))
    few_tokens = False
    if a.h is not None and b.h is not None:
        few_tokens = a.h.shape[1] * b.h.shape[1] * (i + n * o) < n * i * o
    if few_tokens:
        _by_tokens(a, b, sums, kernels, half)
    else:
        size = max(1, PIECE // (max(rows, columns) * i * kernels.element_size()))
        same = ((x, x) for x in a.pieces(size))
        for x, y in same if b is a else zip(a.pieces(size), b.pieces(size), strict=True):
            for strip, end in _strips(rows, columns, rows, half):
                for kernel, pairs in zip(kernels, sums, strict=True):
                    for p, q in pairs:
                        kernel[strip, :end].addmm_(x[p][strip], y[q][:end].mT)
    if half:
        kernels = kernels.tril() + kernels.tril(-1).mT
    return kernels.view(k, k, rows, columns).permute(2, 3, 0, 1) if kind == "full" else kernels[0]


def _by_tokens(a: _Part, b: _Part, sums: Sums, kernels: Tensor, half: bool) -> None:
    """Fill `kernels` by Σ ⟨h, h'⟩ ⟨δ, δ'⟩ over pairs of tokens.

    With few tokens this is cheaper than the Jacobian of the weights.
    """
    assert a.h is not None
    assert b.h is not None
    (_, rows, columns), t, t2 = kernels.shape, a.h.shape[1], b.h.shape[1]
    size = max(1, PIECE // (t * t2 * columns * a.h.element_size()))
    for strip, end in _strips(rows, columns, size, half):
        inputs = a.h[strip].flatten(0, 1) @ b.h[:end].flatten(0, 1).mT  # bt bt
        for kernel, pairs in zip(kernels, sums, strict=True):
            products = torch.zeros_like(inputs)
            for p, q in pairs:
                products.addmm_(a.delta[p][strip].flatten(0, 1), b.delta[q][:end].flatten(0, 1).mT)
            kernel[strip, :end] = products.mul_(inputs).view(-1, t, end, t2).sum((1, 3))


def _strips(rows: int, columns: int, size: int, half: bool) -> Iterator[tuple[slice, int]]:
    """Yield strips of at most `size` rows, each with the number of columns it needs.

    With `half` those are the columns up to the diagonal.
    """
    size = min(size, math.ceil(rows / 4)) if half else size
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        yield slice(start, stop), stop if half else columns


def _chunk(model: Transformer, inputs: Inputs, kind: Kind, budget: float) -> int:
    """How many samples to process at a time: all if they fit, else as many as fit twice.

    Twice, because a chunk of rows and a chunk of columns are in memory together.
    """
    parts = _parts(model, inputs.take(slice(0, 1)), kind)
    k, bytes_each = len(parts[0].delta), parts[0].delta[0].element_size()
    kept = sum(sum(d.numel() for d in p.delta) + (0 if p.h is None else p.h.numel()) for p in parts)
    largest = max(k * p.delta[0].shape[-1] * (1 if p.h is None else p.h.shape[2]) for p in parts)
    blocks = len({p.block for p in parts})
    kernels = len(inputs) ** 2 * (k * k if kind == "full" else 1) * (blocks + 2)
    room = budget - bytes_each * kernels
    # Small Jacobians are kept whole, large ones in pieces.
    whole, pieces = 2 * bytes_each * (kept + largest), 2 * k * PIECE
    fits = math.floor(max(room / whole, (room - pieces) / (2 * bytes_each * kept)))
    if fits < 2:
        raise InputError(
            f"a budget of {budget:.3g} bytes is too small for this kernel of {len(inputs)} inputs."
        )
    return len(inputs) if fits >= len(inputs) else fits // 2


def _by_row(delta: Tensor, positions: Positions, rows: int) -> Tensor:
    """Sum derivatives with respect to tokens (b n d) over the tokens that share a row of the table.

    Returns shape (b rows d).
    """
    empty = delta.new_zeros(len(delta), rows, delta.shape[2])
    if positions.placed is not None:
        delta = delta.masked_fill(~positions.placed[..., None], 0)
    if positions.index.ndim == 1:
        return empty.index_add(1, positions.index, delta)
    return empty.scatter_add(1, positions.index[..., None].expand_as(delta), delta)


def _tensors(inputs: Inputs) -> dict[str, Tensor]:
    """The tensors that differ between samples, by name: those that `vmap` maps over."""
    positions = inputs.positions
    tensors = {"tokens": inputs.tokens, "read": inputs.read, "present": inputs.present}
    if positions.index.ndim > 1:
        tensors |= {
            "index": positions.index,
            "coords": positions.coords,
            "placed": positions.placed,
        }
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _function(
    model: Transformer, inputs: Inputs, kind: Kind
) -> Callable[[Tensors, Tensors], Tensor]:
    """The outputs (k) of one sample, given as by `_tensors`, as a function of some parameters."""

    def function(values: Tensors, sample: Tensors) -> Tensor:
        batch = {name: tensor[None] for name, tensor in sample.items()}
        positions = inputs.positions
        if "index" in batch:
            positions = Positions(
                batch["index"], batch["coords"], batch.get("placed"), positions.graph
            )
        single = Inputs(batch["tokens"], positions, batch.get("read"), batch.get("present"))
        outputs = functional_call(model, values, (single,), {"maps": True}).outputs.flatten()
        return outputs.sum(0, keepdim=True) if kind == "sum" else outputs

    return function


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise unknown("kind of kernel", kind, KINDS)
