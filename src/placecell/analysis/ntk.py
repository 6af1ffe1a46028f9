"""The empirical neural tangent kernel of a model, in whole and by block of parameters.

K(x, x') = J(x) J(x')ᵀ, with J the derivative of the outputs with respect to the parameters (Jacot et al., arXiv
1806.07572). Three kinds: `full`, all outputs against all; `trace`, the sum over outputs of each against itself; `sum`,
the kernel of the sum of the outputs (the pseudo-kernel of Mohamadi et al., arXiv 2206.12543).

Two implementations that share nothing but the model: `ntk` contracts Jacobians module by module, `ntk_by_products`
multiplies the kernel by unit vectors (a vector-Jacobian product, then a Jacobian-vector product).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, jvp, vmap
from torch.nn import functional as F

from placecell.encodings import LearnablePE, Positions
from placecell.errors import InputError, unknown
from placecell.model import Transformer

Kind = Literal["full", "trace", "sum"]
KINDS = ("full", "trace", "sum")
Sums = list[list[tuple[int, int]]]


@dataclass(frozen=True)
class Inputs:
    """Probe inputs of a kernel: tokens (b n, or b n f), where they are, and the tokens read (b q)."""

    tokens: Tensor
    positions: Positions
    read: Tensor

    def take(self, rows: slice) -> Inputs:
        return Inputs(self.tokens[rows], self.positions, self.read[rows])

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Kernel:
    """The kernel by block of parameters: b b, or b b o o for `full` with o the outputs of a sample."""

    kind: Kind
    blocks: dict[str, Tensor]

    @property
    def total(self) -> Tensor:
        return torch.stack(list(self.blocks.values())).sum(0)


def block_of(name: str) -> str:
    """The block of a parameter by its name in the model: PE, tokens, QK, OV, MLP, norm or readout. What maps to
    queries, keys and values is one parameter; its last third belongs to OV and the rest to QK."""
    words = name.split(".")
    for word, block in BLOCKS.items():
        if word in words:
            return block
    return "norm"


BLOCKS = {"encoding": "PE", "embedding": "tokens", "readout": "readout", "mlp": "MLP", "qkv": "QK", "out": "OV"}


def ntk(model: Transformer, inputs: Inputs, kind: Kind = "trace", budget: float = 2e9) -> Kernel:
    """The kernel on `inputs`, by contraction of Jacobians module by module within about `budget` bytes."""
    _check(kind)
    size = _chunk(model, inputs, kind, budget)
    chunks = [slice(start, start + size) for start in range(0, len(inputs), size)]
    found: dict[str, Tensor] = {}
    for i, rows in enumerate(chunks):
        mine = _parts(model, inputs.take(rows), kind)
        for columns in chunks[: i + 1]:
            yours = mine if columns is rows else _parts(model, inputs.take(columns), kind)
            for a, b in zip(mine, yours, strict=True):
                piece = _contract(a, b, kind)
                if a.block not in found:
                    found[a.block] = piece.new_zeros((len(inputs),) * 2 + piece.shape[2:])
                found[a.block][rows, columns] += piece
                if columns is not rows:
                    found[a.block][columns, rows] += piece.transpose(0, 1).mT if kind == "full" else piece.mT
    return Kernel(kind, found)


@dataclass(frozen=True)
class _Part:
    """What a module adds: its Jacobian is Σ_t δ_t ⊗ h_t, or δ itself where h is None.

    h: b t i, what goes in; δ: of each output, b t o, its derivatives by what comes out, or
    b p where h is None.
    """

    block: str
    h: Tensor | None
    delta: list[Tensor]

    def pieces(self, size: int) -> Iterator[list[Tensor]]:
        """The Jacobian of each output (b p), for `size` of the o at a time. All pieces are made in the same memory,
        which then stays in the cache; the whole would be written out and read again."""
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
    """Every module with weights, with what went in and the derivatives by what came out, from k backward passes."""
    seen: list[tuple[str, nn.Module, Tensor, Tensor]] = []
    inside = set(model.encoding.modules())
    hooks = [
        module.register_forward_hook(  # what a frozen module gives is differentiated too, for the encoding
            lambda module, args, y, name=name: seen.append((name, module, args[0], y.requires_grad_()))
        )
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.LayerNorm | nn.Embedding) and module not in inside
    ]
    try:
        with torch.enable_grad():
            outputs = model(inputs.tokens, inputs.positions, inputs.read, maps=True).outputs.flatten(1)  # b k
    finally:
        for hook in hooks:
            hook.remove()
    if kind == "sum":
        outputs = outputs.sum(1, keepdim=True)
    k, after = outputs.shape[1], [y for *_, y in seen]
    per_output = [torch.autograd.grad(outputs[:, a].sum(), after, retain_graph=a < k - 1) for a in range(k)]
    parts: list[_Part] = []
    for (name, module, h, _), *delta in zip(seen, *per_output, strict=True):
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
        for block, *mine in zip(blocks, *(d.chunk(len(blocks), -1) for d in delta), strict=True):
            yield _Part(block, *_alive(h, mine))
            yield _Part(block, None, [d.sum(1) for d in mine])  # the bias; a one in h would break its alignment


def _alive(h: Tensor, delta: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Only the tokens that some output depends on: in the last layer, those that are read."""

    def alive(samples: int) -> Tensor:
        return torch.stack([(d[:samples] != 0).any(-1) for d in delta]).any(0)  # b t

    if bool(alive(1).all()):  # samples are alike as a rule, and to keep more tokens is never wrong
        return h, delta
    used = alive(len(h))
    index = used.to(torch.int8).topk(max(1, int(used.sum(1).max())), 1).indices[..., None]  # b m 1
    h, *delta = (x.gather(1, index.expand(-1, -1, x.shape[2])) for x in (h, *delta))
    return h, delta


def _encoding_parts(model: Transformer, inputs: Inputs, kind: Kind, embedded: list[Tensor]) -> Iterator[_Part]:
    """The table of a learnable encoding is added to the tokens, so its derivative is theirs; others are asked."""
    named = {name: p for name, p in model.encoding.named_parameters() if p.requires_grad}
    if not named:
        return
    if isinstance(model.encoding, LearnablePE):
        empty = embedded[0].new_zeros(len(inputs), model.encoding.n, embedded[0].shape[2])
        yield _Part("PE", None, [empty.index_add(1, inputs.positions.index, d).flatten(1) for d in embedded])
        return
    names = {f"encoding.{name}": p.detach() for name, p in named.items()}
    jacobian = vmap(jacrev(_function(model, inputs, kind)), (None, 0, 0))(names, inputs.tokens, inputs.read)
    for rows in jacobian.values():
        yield _Part("PE", None, list(rows.detach().flatten(2).unbind(1)))


PIECE = 1 << 23  # bytes of a Jacobian, or of products between tokens, that are worked on at a time: a cache's share


def _contract(a: _Part, b: _Part, kind: Kind) -> Tensor:
    """The kernel of one part between two sets of samples, by the cheaper of two ways."""
    k, rows, columns = len(a.delta), len(a.delta[0]), len(b.delta[0])
    sums: Sums = [[(p, p) for p in range(k)]]  # of each kernel, the pairs of outputs that it adds up
    if kind == "full":
        sums = [[(p, q)] for p in range(k) for q in range(k)]
    found = a.delta[0].new_zeros(len(sums), rows, columns)
    half = a is b and kind != "full"  # symmetric: little more than the lower half is multiplied out
    i, o, n = 1 if a.h is None else a.h.shape[2], a.delta[0].shape[-1], sum(map(len, sums))
    if a.h is not None and b.h is not None and a.h.shape[1] * b.h.shape[1] * (i + n * o) < n * i * o:
        _by_tokens(a.h, b.h, a.delta, b.delta, sums, found, half)
    else:
        size = max(1, PIECE // (max(rows, columns) * i * found.element_size()))
        for x, y in ((x, x) for x in a.pieces(size)) if b is a else zip(a.pieces(size), b.pieces(size), strict=True):
            for strip, end in _strips(rows, columns, rows, half):
                for into, pairs in zip(found, sums, strict=True):
                    for p, q in pairs:
                        into[strip, :end].addmm_(x[p][strip], y[q][:end].mT)
    if half:
        found = found.tril() + found.tril(-1).mT
    return found.view(k, k, rows, columns).permute(2, 3, 0, 1) if kind == "full" else found[0]


def _by_tokens(
    h: Tensor, h2: Tensor, delta: list[Tensor], delta2: list[Tensor], sums: Sums, found: Tensor, half: bool
) -> None:
    """For few tokens: Σ ⟨h, h'⟩ ⟨δ, δ'⟩ over pairs of tokens, rather than the Jacobian of the weights."""
    (_, rows, columns), t, t2 = found.shape, h.shape[1], h2.shape[1]
    size = max(1, PIECE // (t * t2 * columns * h.element_size()))
    for strip, end in _strips(rows, columns, size, half):
        same = h[strip].flatten(0, 1) @ h2[:end].flatten(0, 1).mT  # bt bt
        for into, pairs in zip(found, sums, strict=True):
            products = torch.zeros_like(same)
            for p, q in pairs:
                products.addmm_(delta[p][strip].flatten(0, 1), delta2[q][:end].flatten(0, 1).mT)
            into[strip, :end] = products.mul_(same).view(-1, t, end, t2).sum((1, 3))


def _strips(rows: int, columns: int, size: int, half: bool) -> Iterator[tuple[slice, int]]:
    """The rows by strips of at most `size`, each with how many columns it needs: with half, up to the diagonal."""
    size = min(size, math.ceil(rows / 4)) if half else size
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        yield slice(start, stop), stop if half else columns


def _chunk(model: Transformer, inputs: Inputs, kind: Kind, budget: float) -> int:
    """How many samples fit: all of them once, or else as many as fit twice (rows and columns)."""
    parts = _parts(model, inputs.take(slice(0, 1)), kind)
    k, bytes_each = len(parts[0].delta), parts[0].delta[0].element_size()
    kept = sum(sum(d.numel() for d in p.delta) + (0 if p.h is None else p.h.numel()) for p in parts)
    largest = max(k * p.delta[0].shape[-1] * (1 if p.h is None else p.h.shape[2]) for p in parts)
    kernels = len(inputs) ** 2 * (k * k if kind == "full" else 1) * (len({p.block for p in parts}) + 2)
    room = budget - bytes_each * kernels
    whole, pieces = 2 * bytes_each * (kept + largest), 2 * k * PIECE  # Jacobians are held whole if small
    fits = math.floor(max(room / whole, (room - pieces) / (2 * bytes_each * kept)))
    if fits < 2:
        raise InputError(f"a budget of {budget:.3g} bytes is too small for this kernel of {len(inputs)} inputs.")
    return len(inputs) if fits >= len(inputs) else fits // 2


def ntk_by_products(model: Transformer, inputs: Inputs, kind: Kind = "trace") -> Kernel:
    """The same kernel column by column, with automatic differentiation only. Slow: for checking `ntk`."""
    _check(kind)
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    function = _function(model, inputs, kind)

    def outputs(values: dict[str, Tensor]) -> Tensor:
        return vmap(function, (None, 0, 0))(values, inputs.tokens, inputs.read)  # b k

    columns: dict[str, list[Tensor]] = {}
    for sample in range(len(inputs)):
        rows = jacrev(function)(parameters, inputs.tokens[sample], inputs.read[sample])  # name -> k ...
        for output in range(len(next(iter(rows.values())))):
            pieces: dict[str, dict[str, Tensor]] = {}
            for name, row in rows.items():
                for block, piece in _split(name, row[output]):
                    pieces.setdefault(block, {})[name] = piece
            for block, tangents in pieces.items():
                tangent = {name: tangents.get(name, torch.zeros_like(p)) for name, p in parameters.items()}
                columns.setdefault(block, []).append(jvp(outputs, (parameters,), (tangent,))[1])  # b k
    b, found = len(inputs), {}
    for block, products in columns.items():
        full = torch.stack(products).view(b, -1, b, products[0].shape[1]).permute(2, 0, 3, 1)  # b b k k
        found[block] = full if kind == "full" else full.diagonal(dim1=2, dim2=3).sum(-1)
    return Kernel(kind, found)


def _split(name: str, row: Tensor) -> Iterator[tuple[str, Tensor]]:
    """A parameter's derivative by block: that of queries, keys and values is cut in two."""
    if "qkv" not in name.split("."):
        yield block_of(name), row
        return
    values = len(row) // 3
    queries = torch.arange(len(row)) < len(row) - values
    yield "QK", row * queries.view(-1, *(1,) * (row.ndim - 1))
    yield "OV", row * ~queries.view(-1, *(1,) * (row.ndim - 1))


def _function(model: Transformer, inputs: Inputs, kind: Kind) -> Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]:
    """The outputs (k) of one sample as a function of some of the parameters."""

    def function(values: dict[str, Tensor], tokens: Tensor, read: Tensor) -> Tensor:
        args = (tokens[None], inputs.positions, read[None])
        found = functional_call(model, values, args, {"maps": True}).outputs.flatten()
        return found.sum(0, keepdim=True) if kind == "sum" else found

    return function


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise unknown("kind of kernel", kind, KINDS)
