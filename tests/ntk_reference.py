"""A second implementation of the tangent kernel, to compare `placecell.analysis.ntk.ntk` with: the
kernel is multiplied by unit vectors (a vector-Jacobian product, then a Jacobian-vector product),
with automatic differentiation only."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, jvp, vmap

from placecell.analysis.ntk import Kernel, Kind, block_of
from placecell.encodings import Positions
from placecell.model import Inputs, Transformer


def ntk_by_products(model: Transformer, inputs: Inputs, kind: Kind = "trace") -> Kernel:
    """The same kernel column by column, with automatic differentiation only. Slow: for checking
    `ntk`."""
    parameters = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    batched = {"tokens": inputs.tokens, "read": inputs.read, "present": inputs.present}
    positions = inputs.positions
    if positions.index.ndim > 1:
        batched |= {
            "index": positions.index,
            "coords": positions.coords,
            "placed": positions.placed,
        }
    samples = {name: tensor for name, tensor in batched.items() if tensor is not None}

    def function(values: dict[str, Tensor], sample: dict[str, Tensor]) -> Tensor:
        one = {name: tensor[None] for name, tensor in sample.items()}
        where = positions
        if "index" in one:
            where = Positions(one["index"], one["coords"], one.get("placed"))
        given = Inputs(one["tokens"], where, one.get("read"), one.get("present"))
        outputs = functional_call(model, values, (given,), {"maps": True}).outputs.flatten()
        return outputs.sum(0, keepdim=True) if kind == "sum" else outputs

    def outputs(values: dict[str, Tensor]) -> Tensor:
        return vmap(function, (None, 0))(values, samples)  # b k

    columns: dict[str, list[Tensor]] = {}
    for sample in range(len(inputs)):
        one = {name: tensor[sample] for name, tensor in samples.items()}
        rows = jacrev(function)(parameters, one)  # name -> k ...
        for output in range(len(next(iter(rows.values())))):
            pieces: dict[str, dict[str, Tensor]] = {}
            for name, row in rows.items():
                for block, piece in _split(name, row[output]):
                    pieces.setdefault(block, {})[name] = piece
            for block, tangents in pieces.items():
                tangent = {
                    name: tangents.get(name, torch.zeros_like(p)) for name, p in parameters.items()
                }
                columns.setdefault(block, []).append(
                    jvp(outputs, (parameters,), (tangent,))[1]
                )  # b k
    b, blocks = len(inputs), {}
    for block, products in columns.items():
        full = (
            torch.stack(products).view(b, -1, b, products[0].shape[1]).permute(2, 0, 3, 1)
        )  # b b k k
        blocks[block] = full if kind == "full" else full.diagonal(dim1=2, dim2=3).sum(-1)
    return Kernel(kind, blocks)


def _split(name: str, row: Tensor) -> Iterator[tuple[str, Tensor]]:
    """A parameter's derivative by block: that of queries, keys and values is cut in two."""
    if "qkv" not in name.split("."):
        yield block_of(name), row
        return
    values = len(row) // 3
    queries = torch.arange(len(row)) < len(row) - values
    yield "QK", row * queries.view(-1, *(1,) * (row.ndim - 1))
    yield "OV", row * ~queries.view(-1, *(1,) * (row.ndim - 1))
