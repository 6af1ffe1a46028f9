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
from itertools import pairwise
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
    """What a module adds: its Jacobian is Σ_t δ_t ⊗ h_t, or Σ_t δ_t itself where h is None.

    h: b t i, what goes in (with a one for the bias); δ: b k t o, the derivatives of k outputs by what comes out.
    """

    block: str
    h: Tensor | None
    delta: Tensor

    def jacobian(self) -> Tensor:
        """b k p"""
        b, k, t, o = self.delta.shape
        if self.h is None:
            return self.delta.sum(2)
        rows = self.delta.transpose(2, 3).reshape(b, k * o, t)
        return (rows @ self.h).view(b, k, -1)


def _parts(model: Transformer, inputs: Inputs, kind: Kind) -> list[_Part]:
    """Every module with weights, with what went in and the derivatives by what came out, from k backward passes."""
    seen: list[tuple[str, nn.Module, Tensor, Tensor]] = []
    inside = set(model.encoding.modules())
    hooks = [
        module.register_forward_hook(lambda module, args, y, name=name: seen.append((name, module, args[0], y)))
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
    for number, (name, module, h, _) in enumerate(seen):
        delta = torch.stack([grads[number] for grads in per_output], 1)  # b k t o
        parts += _module_parts(name, module, h.detach(), delta)
    parts += _encoding_parts(model, inputs, kind, next(p.delta for p in parts if p.block == "tokens"))
    return [part for part in parts if part.delta.numel()]


def _module_parts(name: str, module: nn.Module, h: Tensor, delta: Tensor) -> Iterator[_Part]:
    block = block_of(name)
    if not next(module.parameters()).requires_grad:
        return
    if isinstance(module, nn.Embedding):
        yield _Part(block, F.one_hot(h, module.num_embeddings).to(delta.dtype), delta)
    elif isinstance(module, nn.LayerNorm):
        normed = F.layer_norm(h, module.normalized_shape, eps=module.eps)
        yield _Part(block, None, (delta * normed[:, None]).sum(2, keepdim=True))
        yield _Part(block, None, delta.sum(2, keepdim=True))
    else:
        h, delta = _alive(torch.cat([h, torch.ones_like(h[..., :1])], -1), delta)
        if name.endswith("qkv"):
            values = delta.shape[-1] // 3
            yield _Part("QK", h, delta[..., :-values])
            yield _Part("OV", h, delta[..., -values:])
        else:
            yield _Part(block, h, delta)


def _alive(h: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Only the tokens that some output depends on: in the last layer, those that are read."""
    alive = (delta != 0).any(-1).any(1)  # b t
    most = int(alive.sum(1).max())
    if most == h.shape[1]:
        return h, delta
    index = alive.to(torch.int8).topk(max(1, most), 1).indices  # b m
    kept = delta.gather(2, index[:, None, :, None].expand(-1, delta.shape[1], -1, delta.shape[3]))
    return h.gather(1, index[..., None].expand(-1, -1, h.shape[2])), kept


def _encoding_parts(model: Transformer, inputs: Inputs, kind: Kind, embedded: Tensor) -> Iterator[_Part]:
    """The table of a learnable encoding is added to the tokens, so its derivative is theirs; others are asked."""
    named = {name: p for name, p in model.encoding.named_parameters() if p.requires_grad}
    if not named:
        return
    if isinstance(model.encoding, LearnablePE):
        table = embedded.new_zeros(*embedded.shape[:2], model.encoding.n, embedded.shape[-1])
        table.index_add_(2, inputs.positions.index, embedded)
        yield _Part("PE", None, table.flatten(2)[:, :, None])
        return
    names = {f"encoding.{name}": p.detach() for name, p in named.items()}
    jacobian = vmap(jacrev(_function(model, inputs, kind)), (None, 0, 0))(names, inputs.tokens, inputs.read)
    for rows in jacobian.values():
        yield _Part("PE", None, rows.detach().flatten(2)[:, :, None])


def _contract(a: _Part, b: _Part, kind: Kind) -> Tensor:
    """The kernel of one part between two sets of samples, by the cheaper of two ways."""
    (rows, k, t, o), columns = a.delta.shape, len(b.delta)
    pairs = k * k if kind == "full" else k
    if a.h is not None and b.h is not None:
        i, t2 = a.h.shape[2], t * b.delta.shape[2]
        if t2 * (i + pairs * o) < pairs * i * o:  # few tokens: ⟨h, h'⟩ ⟨δ, δ'⟩ rather than the weights' Jacobian
            return _by_tokens(a.h, b.h, a.delta, b.delta, kind)
    x = a.jacobian()
    y = x if b is a else b.jacobian()
    if kind == "full":
        return (x.flatten(0, 1) @ y.flatten(0, 1).mT).view(rows, k, columns, k).transpose(1, 2)
    return _symmetric(x.flatten(1)) if b is a else x.flatten(1) @ y.flatten(1).mT


def _by_tokens(h: Tensor, h2: Tensor, delta: Tensor, delta2: Tensor, kind: Kind) -> Tensor:
    (b, k, t, _), (b2, _, t2, _) = delta.shape, delta2.shape
    same = h.flatten(0, 1) @ h2.flatten(0, 1).mT  # bt bt

    def between(x: Tensor, y: Tensor) -> Tensor:
        return (same * (x.flatten(0, 1) @ y.flatten(0, 1).mT)).view(b, t, b2, t2).sum((1, 3))

    if kind == "full":
        rows = [torch.stack([between(delta[:, p], delta2[:, q]) for q in range(k)], -1) for p in range(k)]
        return torch.stack(rows, -2)
    return torch.stack([between(delta[:, p], delta2[:, p]) for p in range(k)]).sum(0)


def _symmetric(x: Tensor, parts: int = 4) -> Tensor:
    """x xᵀ, of which only the lower half is multiplied out."""
    found = x.new_empty(len(x), len(x))
    edges = [len(x) * p // parts for p in range(parts + 1)]
    for low, high in pairwise(edges):
        torch.mm(x[low:high], x[:high].mT, out=(strip := x.new_empty(high - low, high)))
        found[low:high, :high] = strip
        found[:low, low:high] = strip[:, :low].mT
    return found


def _chunk(model: Transformer, inputs: Inputs, kind: Kind, budget: float) -> int:
    """How many samples fit: all of them once, or else as many as fit twice (rows and columns)."""
    parts = _parts(model, inputs.take(slice(0, 1)), kind)
    kept = sum(part.delta.numel() + (0 if part.h is None else part.h.numel()) for part in parts)
    k = parts[0].delta.shape[1]
    largest = max(k * p.delta.shape[3] * (1 if p.h is None else p.h.shape[2]) for p in parts)
    each = parts[0].delta.element_size() * (2 * kept + 2 * largest)
    kernels = parts[0].delta.element_size() * len(inputs) ** 2 * (k * k if kind == "full" else 1)
    fits = math.floor((budget - kernels * (len({p.block for p in parts}) + 2)) / each)
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
