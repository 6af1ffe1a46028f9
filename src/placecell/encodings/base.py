"""The interface of a positional encoding (PE), where tokens are, and the registry of encodings by name.

Shapes use one alphabet throughout the library: b batch, h heads, n tokens, d width, e head width (d / h),
c coordinate axes. Query tokens may be fewer than key tokens: q and k mark which n is meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from placecell.errors import InputError, unknown
from placecell.values import held


@dataclass(frozen=True, eq=False)  # tensors have no one answer to whether they are equal
class Positions:
    """Where tokens are: an index (the row of a learnable table) and coordinates (2 axes for a grid)."""

    index: Tensor  # n, or b n when each sample reads tokens of its own
    coords: Tensor  # ... n c

    def __post_init__(self) -> None:
        if self.coords.shape[:-1] != self.index.shape:
            raise InputError(
                f"each token has one index and one row of coordinates: found indices {tuple(self.index.shape)} "
                f"and coordinates {tuple(self.coords.shape)}."
            )

    @classmethod
    def sequence(cls, n: int, device: torch.device | str | None = None) -> Positions:
        """Tokens 0 … n−1 along one axis."""
        index = torch.arange(n, device=device)
        return cls(index, index[:, None].float())

    @classmethod
    def grid(cls, *shape: int, device: torch.device | str | None = None) -> Positions:
        """The cells of a grid in row-major order, one coordinate axis a dimension."""
        axes = torch.meshgrid(*(torch.arange(size, device=device) for size in shape), indexing="ij")
        coords = torch.stack([axis.flatten() for axis in axes], dim=-1).float()  # n c
        return cls(torch.arange(len(coords), device=device), coords)

    @property
    def axes(self) -> int:
        """The number of coordinate axes, c."""
        return self.coords.shape[-1]

    @property
    def sizes(self) -> tuple[int | None, int]:
        """Samples b, or None if the positions are those of every sample; and tokens n."""
        return (None if self.index.ndim == 1 else self.index.shape[0]), self.index.shape[-1]

    def take(self, read: Tensor) -> Positions:
        """The positions of the tokens `read` (b q) of each sample."""
        if self.index.ndim == 1:
            return Positions(self.index[read], self.coords[read])
        return Positions(self.index.gather(1, read), self.coords.gather(1, read[..., None].expand(-1, -1, self.axes)))

    def to(self, device: torch.device | str) -> Positions:
        return Positions(self.index.to(device), self.coords.to(device))

    def along(self, axes: int) -> Tensor:
        """Coordinates over `axes` axes (... n axes): the task's own, or the index where one axis is asked of many."""
        if axes == self.axes:
            return self.coords
        if axes == 1:
            return self.index[..., None].to(self.coords.dtype)
        raise InputError(
            f"the encoding wants {axes} coordinate axes; the tokens have {self.axes} (or 1: their index). "
            "Ask for as many (axes), or for an encoding without, such as learnable."
        )


class Encoding(nn.Module):
    """A positional encoding: one hook for each place where it can act, each neutral unless overridden.

    `placecell.model.Attention` and `placecell.model.Transformer` are the only callers of the hooks. Called
    as a module, an encoding applies `embed`, so that an additive one drops into any model; one that acts
    inside attention leaves x as it is there, and its hooks are for the attention to call (docs/encodings.md).
    """

    name: ClassVar[str]

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        """Token embeddings x (b n d) with the encoding added; once, at the input."""
        return x

    def rotate(self, x: Tensor, pos: Positions) -> Tensor:
        """Queries or keys x (b h n e), turned by position; in each layer."""
        return x

    def bias(self, q: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """What is added to the scaled logits (b h q k) of queries q (b h q e)."""
        return None

    def mix(self, weights: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """What is added to the attention output (b h q e), from the attention weights (b h q k)."""
        return None

    def visible(self, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """Which keys a query may see: bool (... 1 q k); None for all."""
        return None

    def table(self, pos: Positions) -> Tensor | None:
        """The n × d array that analyses read; None for an encoding that has none."""
        return None

    def forward(self, x: Tensor, pos: Positions | None = None) -> Tensor:
        """x (b n d) with its positions embedded; the tokens are a sequence unless `pos` says otherwise."""
        check_shape("token embeddings (b n d)", x, None, None, None)
        return self.embed(x, Positions.sequence(x.shape[1], x.device) if pos is None else pos)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw again whatever is random, from `generator`. Nothing else ever re-initialises an encoding."""

    @property
    def mixes(self) -> bool:
        """Whether `mix` acts, so that attention weights are needed even when nobody asks to see them."""
        return type(self).mix is not Encoding.mix

    @property
    def acts_in_attention(self) -> bool:
        """Whether `rotate`, `bias` or `mix` acts, so that queries, keys and logits must be there to act on."""
        return any(getattr(type(self), hook) is not getattr(Encoding, hook) for hook in ("rotate", "bias", "mix"))


_REGISTRY: dict[str, type[Encoding]] = {}
E_co = TypeVar("E_co", bound=type[Encoding])


def register(name: str) -> Callable[[E_co], E_co]:
    """Class decorator: make an encoding known by `name` to configurations, the command line and the contract tests."""

    def add(cls: E_co) -> E_co:
        if name in _REGISTRY:
            raise ValueError(f"two encodings are called {name!r}")
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def available() -> dict[str, type[Encoding]]:
    """Every registered encoding by name."""
    return dict(sorted(_REGISTRY.items()))


def lookup(name: str) -> type[Encoding]:
    """The encoding called `name`."""
    if name not in _REGISTRY:
        raise unknown("encoding", name, _REGISTRY)
    return _REGISTRY[name]


def settings(name: str) -> set[str]:
    """The constructor arguments that the encoding `name` takes; what it does not name, it does not depend on."""
    return set(inspect.signature(lookup(name)).parameters)


def build(name: str, **offered: Any) -> Encoding:
    """The encoding `name`, constructed from those of the `offered` arguments that it takes and that are not None."""
    taken = settings(name)
    return lookup(name)(**{key: value for key, value in offered.items() if key in taken and value is not None})


def check_sigma(sigma: float) -> float:
    """σ as a float, refused unless it is a finite standard deviation."""
    found: float = held(sigma, float, "sigma", at_least=0)
    return found


def check_size(what: str, size: int) -> int:
    found: int = held(size, int, what, at_least=1)
    return found


def check_shape(what: str, x: Tensor, *sizes: int | None) -> None:
    """Refuse a tensor of other sizes (None: any), which might broadcast without a word."""
    if x.ndim != len(sizes) or any(size not in (None, own) for size, own in zip(sizes, x.shape, strict=True)):
        told = ", ".join("any" if size is None else str(size) for size in sizes)
        raise InputError(f"{what} should be ({told}), found {tuple(x.shape)}.")


def head_width(d: int, heads: int) -> int:
    """e = d / heads, refused unless it is whole."""
    d, heads = check_size("the width d", d), check_size("heads", heads)
    if d % heads:
        raise InputError(f"the width must be divisible by the heads: width {d}, heads {heads}.")
    return d // heads


def fill_normal(target: Tensor, sigma: float, generator: torch.Generator | None) -> None:
    """Set `target` to sigma · z in place. z is drawn on the CPU in single precision, so that the same generator
    gives the same z for every σ, device and dtype: sweeps over σ are paired."""
    if not target.is_meta:
        with torch.no_grad():
            z = torch.randn(target.shape, generator=generator, dtype=torch.float32, device="cpu")
            target.copy_(sigma * z)
