"""Models as people write them by hand, each with the names of its position tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

D = 32
IDS = torch.randint(0, 50, (3, 16), generator=torch.Generator().manual_seed(0))
IMAGE = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@dataclass(frozen=True)
class Handmade:
    model: Callable[[], nn.Module]
    example: Any
    tables: set[str]
    other: str = ""  # a kind of position that is no table


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(D, 4, 64, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(D, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x).mean(1))


class Words(nn.Module):
    """Token embeddings and a body; `place` puts positions on them."""

    def __init__(self, width: int = D) -> None:
        super().__init__()
        self.tokens, self.body = nn.Embedding(50, width), Body()

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x

    def forward(self, ids: Tensor) -> Tensor:
        return self.body(self.place(self.tokens(ids), ids))


class Buffer(Words):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pos", torch.randn(1, 40, D) * 0.1)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.pos[:, : x.shape[1]]


class Attribute(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = torch.randn(40, D)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.pos[: x.shape[1]]


class Embedded(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Embedding(40, D)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.pos(torch.arange(x.shape[1]))


class Counted(Embedded):
    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x * math.sqrt(D) + self.pos(torch.ones_like(ids).cumsum(-1) - 1)


class Transposed(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(D, 40) * 0.1)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.pos.T[: x.shape[1]].unsqueeze(0)


class SequenceFirst(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(40, 1, D) * 0.1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.pos[: len(ids)]
        return self.body(x.transpose(0, 1))


class Concatenated(Words):
    def __init__(self) -> None:
        super().__init__(D - 8)
        self.pos = nn.Parameter(torch.randn(40, 8))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return torch.cat([x, self.pos[: x.shape[1]].expand(len(x), -1, -1)], -1)


class Projected(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos, self.up, self.norm = nn.Embedding(40, 8), nn.Linear(8, D), nn.LayerNorm(D)

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.norm(self.up(self.pos.weight[: x.shape[1]]))


class InPlace(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(40, D))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        x[:, 0].fill_(0.0)
        x += self.pos[: x.shape[1]]
        return x


class OneHot(Words):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(40, D))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + F.one_hot(torch.arange(x.shape[1]), 40).float() @ self.pos


class ClosedGate(InPlace):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(1))

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + self.gate * self.pos[: x.shape[1]]


class Sine(Words):
    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return x + sine(x.shape[1])


def sine(n: int) -> Tensor:
    rates = torch.exp(torch.arange(0, D, 2) * (-math.log(10000.0) / D))
    table = torch.zeros(n, D)
    table[:, 0::2] = torch.sin(torch.arange(n)[:, None] * rates)
    table[:, 1::2] = torch.cos(torch.arange(n)[:, None] * rates)
    return table


class StoredSine(Words):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pe", sine(100)[None])

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        return F.dropout(x * math.sqrt(D) + self.pe[:, : x.shape[1]], 0.1, self.training)


class Decoder(nn.Module):
    """A small GPT: causal mask in a buffer, output tied to the token embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe, self.norm = nn.Embedding(50, D), nn.Embedding(64, D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.head = nn.Linear(D, 50, bias=False)
        self.head.weight = self.wte.weight
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        b, n = ids.shape
        x = self.wte(ids) + self.wpe(torch.arange(n, device=ids.device))
        for _ in range(2):
            q, k, v = heads(self.qkv(self.norm(x)))
            logits = q @ k.transpose(-2, -1) / math.sqrt(D // 4)
            logits = logits.masked_fill(self.bias[:, :, :n, :n] == 0, float("-inf"))
            x = x + self.out((logits.softmax(-1) @ v).transpose(1, 2).contiguous().view(b, n, D))
        return self.head(x)


def heads(qkv: Tensor) -> tuple[Tensor, ...]:
    b, n, _ = qkv.shape
    return tuple(part.view(b, n, 4, D // 4).transpose(1, 2) for part in qkv.chunk(3, -1))


class Attends(Words):
    """One attention written out, for positions that act inside it."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)
        if shape:
            self.rel = nn.Parameter(torch.randn(*shape))

    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = heads(self.qkv(self.tokens(ids)))
        logits = q @ k.transpose(-1, -2)
        return ((logits + self.term(q)) / math.sqrt(8)).softmax(-1) @ v

    def term(self, q: Tensor) -> Tensor:
        raise NotImplementedError


def distances(n: int) -> Tensor:
    return torch.arange(n)[None] - torch.arange(n)[:, None]


class Shaw(Attends):
    def __init__(self) -> None:
        super().__init__(9, 8)

    def term(self, q: Tensor) -> Tensor:
        rows = self.rel[distances(q.shape[2]).clamp(-4, 4) + 4]
        return torch.einsum("bhid,ijd->bhij", q, rows)


class Skewed(Attends):
    def __init__(self) -> None:
        super().__init__(16, 8)

    def term(self, q: Tensor) -> Tensor:
        b, h, n, _ = q.shape
        return F.pad(q @ self.rel.T, (1, 0)).view(b, h, n + 1, n)[:, :, 1:]


class Bias(Attends):
    def __init__(self) -> None:
        super().__init__(4, 31)
        nn.init.zeros_(self.rel)

    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = heads(self.qkv(self.tokens(ids)))
        bias = self.rel[:, distances(q.shape[2]) + 15]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class Alibi(Attends):
    def term(self, q: Tensor) -> Tensor:
        slopes = 2.0 ** -torch.arange(1, 5)
        return -slopes[:, None, None] * distances(q.shape[2]).abs()


class Rotary(Attends):
    def __init__(self) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(64).float(), 1 / 10000 ** (torch.arange(0, 8, 2) / 8))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, ids: Tensor) -> Tensor:
        q, k, v = heads(self.qkv(self.tokens(ids)))
        return F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)

    def turn(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 4, 2))
        return torch.view_as_real(pairs * self.turns[: x.shape[2]]).flatten(-2)


class BothSides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, D)
        self.source, self.target = nn.Embedding(40, D), nn.Embedding(40, D)
        self.body = nn.Transformer(D, 4, 1, 1, 64, batch_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        where = torch.arange(src.shape[1]).expand(len(src), -1)
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        src, tgt = self.tokens(src) + self.source(where), self.tokens(tgt) + self.target(where)
        return self.body(src, tgt, tgt_mask=mask)


class Patches(nn.Module):
    """Patches of an image; `place` puts positions on the map (b, d, 4, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.body = nn.Conv2d(3, D, 8, 8), Body()

    def place(self, x: Tensor) -> Tensor:
        return x

    def forward(self, image: Tensor) -> Tensor:
        return self.body(self.place(self.patches(image)).flatten(2).transpose(1, 2))


class FeaturesFirst(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(1, D, 4, 4))

    def place(self, x: Tensor) -> Tensor:
        return x + self.pos


class RowsAndColumns(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.randn(4, 1, D) * 0.02)
        self.column = nn.Parameter(torch.randn(1, 4, D) * 0.02)

    def place(self, x: Tensor) -> Tensor:
        return (x.permute(0, 2, 3, 1) + (self.row + self.column)).permute(0, 3, 1, 2)


class RowsBesideColumns(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.row, self.column = nn.Embedding(4, D // 2), nn.Embedding(4, D // 2)

    def place(self, x: Tensor) -> Tensor:
        row, column = self.row(torch.arange(4)), self.column(torch.arange(4))
        both = [row[:, None].expand(4, 4, -1), column[None].expand(4, 4, -1)]
        return x + torch.cat(both, -1).permute(2, 0, 1)


class WithClass(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, D))
        self.registers = nn.Parameter(torch.randn(1, 4, D))
        self.pos = nn.Parameter(torch.randn(1, 17, D) * 0.02)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.body(torch.cat([self.registers.expand(len(x), -1, -1), x], 1))


class Interpolated(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 49, D) * 0.02)

    def place(self, x: Tensor) -> Tensor:
        grid = self.pos.reshape(1, 7, 7, D).permute(0, 3, 1, 2)
        return x + F.interpolate(grid, (4, 4), mode="bicubic")


class Convolved(Patches):
    def __init__(self) -> None:
        super().__init__()
        self.peg = nn.Conv2d(D, D, 3, padding=1, groups=D)

    def place(self, x: Tensor) -> Tensor:
        return x + self.peg(x)


class Video(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.body = nn.Conv2d(3, D, 8, 8), Body()
        self.time = nn.Parameter(torch.zeros(1, 8, 1, D))
        self.space = nn.Parameter(torch.randn(1, 1, 4, D))

    def forward(self, film: Tensor) -> Tensor:
        b, t = film.shape[:2]
        x = self.patches(film.flatten(0, 1)).flatten(2).transpose(1, 2).reshape(b, t, 4, D)
        return self.body((x + self.space + self.time).flatten(1, 2))


class Latents(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos, self.latents = nn.Parameter(torch.randn(40, D)), nn.Parameter(torch.randn(6, D))
        self.up, self.ask = nn.Linear(12, D), nn.MultiheadAttention(D, 4, batch_first=True)
        self.body = Body()

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x) + self.pos
        return self.body(self.ask(self.latents.expand(len(x), -1, -1), x, x)[0])


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(50, D), nn.Linear(2 * D, 3)
        self.layers = nn.LSTM(D, D, 2, batch_first=True, bidirectional=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layers(self.tokens(ids))[0][:, -1])


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(16), nn.Linear(16, 3)
        nn.init.zeros_(self.norm.weight)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(image)))
        return self.head((x + self.norm(self.second(x))).mean((2, 3)))


class Conditioned(Words):
    """A label of the whole sample moves every token alike: no position."""

    def __init__(self) -> None:
        super().__init__()
        self.label = nn.Embedding(5, D)

    def forward(self, ids: Tensor, label: Tensor) -> Tensor:
        return self.body(self.tokens(ids) + self.label(label)[:, None])


def perceptron() -> nn.Module:
    layers = [nn.Linear(20, D), nn.BatchNorm1d(D), nn.ReLU(), nn.Linear(D, D), nn.LayerNorm(D)]
    return nn.Sequential(*layers, nn.Linear(D, 3), nn.Softmax(-1))


_WAVE = torch.randn(3, 8, 3, 16, 16, generator=torch.Generator().manual_seed(2))
_SERIES = torch.randn(3, 40, 12, generator=torch.Generator().manual_seed(3))
HANDMADE = {
    "buffer": Handmade(Buffer, IDS, {"pos"}),
    "attribute": Handmade(Attribute, IDS, {"pos"}),
    "embedding": Handmade(Embedded, IDS, {"pos.weight"}),
    "embedding, counted": Handmade(Counted, IDS, {"pos.weight"}),
    "embedding, one sample": Handmade(Embedded, IDS[:1], {"pos.weight"}),
    "transposed": Handmade(Transposed, IDS, {"pos"}),
    "sequence first": Handmade(SequenceFirst, IDS.T.contiguous(), {"pos"}),
    "concatenated": Handmade(Concatenated, IDS, {"pos"}),
    "projected": Handmade(Projected, IDS, {"pos.weight"}),
    "in place": Handmade(InPlace, IDS, {"pos"}),
    "one-hot": Handmade(OneHot, IDS, {"pos"}),
    "closed gate": Handmade(ClosedGate, IDS, {"pos"}),
    "sine": Handmade(Sine, IDS, set(), "computed"),
    "stored sine": Handmade(StoredSine, IDS, {"pe"}),
    "decoder": Handmade(Decoder, IDS, {"wpe.weight"}),
    "shaw": Handmade(Shaw, IDS, {"rel"}),
    "skewed": Handmade(Skewed, IDS, {"rel"}),
    "bias": Handmade(Bias, IDS, {"rel"}),
    "alibi": Handmade(Alibi, IDS, set(), "alibi"),
    "rotary": Handmade(Rotary, IDS, set(), "rotary"),
    "both sides": Handmade(BothSides, (IDS, IDS.flip(1)), {"source.weight", "target.weight"}),
    "features first": Handmade(FeaturesFirst, IMAGE, {"pos"}),
    "rows and columns": Handmade(RowsAndColumns, IMAGE, {"row", "column"}),
    "rows beside columns": Handmade(RowsBesideColumns, IMAGE, {"row.weight", "column.weight"}),
    "class token, registers": Handmade(WithClass, IMAGE, {"pos"}),
    "interpolated": Handmade(Interpolated, IMAGE, {"pos"}),
    "convolved": Handmade(Convolved, IMAGE, set(), "convolution"),
    "video": Handmade(Video, _WAVE, {"time", "space"}),
    "latents": Handmade(Latents, _SERIES, {"pos", "latents"}),
    "no positions": Handmade(Words, IDS, set()),
    "conditioned": Handmade(Conditioned, (IDS, torch.tensor([0, 3, 4])), set()),
    "lstm": Handmade(Recurrent, IDS, set()),
    "resnet": Handmade(Residual, IMAGE, set()),
    "perceptron": Handmade(perceptron, torch.randn(4, 20), set()),
}
