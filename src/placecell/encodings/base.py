"""The interface of a positional encoding (PE) and the registry of encodings by name.

Tensor shapes use one alphabet throughout the library: b samples in a batch, h heads, n tokens,
d width, e head width (d / h), c coordinate axes. Queries may be fewer than keys; then q is the
number of query tokens and k the number of key tokens.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from placecell.config.values import check_value
from placecell.encodings.positions import Positions
from placecell.errors import InputError
from placecell.registry import ENCODINGS, Entry

IN_ATTENTION = ("rotate", "bias", "add_values", "visible")  # hooks that act there


class Encoding(nn.Module):
    """Base class of positional encodings.

    There is one hook (a method) for each place of a transformer where an encoding can act. A hook
    changes nothing unless a subclass overrides it. `placecell.model.Attention` and
    `placecell.model.Transformer` are the only callers of the hooks.

    Calling an encoding as a module applies `embed`, so an additive encoding works in any model.
    An encoding that acts inside attention returns x unchanged when it is called; the attention
    has to call its hooks (docs/encodings.md shows how).

    Attributes
    ----------
    name : str
        The name under which the class is registered.
    adds_table : bool
        Whether `embed` adds to a token what depends on its position only, the same at every call,
        or nothing. A model then computes once what tokens of one symbol at one position share. Not
        inherited: a subclass may add something else, and has to say so itself.
    """

    name: ClassVar[str]
    adds_table: ClassVar[bool] = False
    _warned = False

    def embed(self, x: Tensor, pos: Positions) -> Tensor:
        """Add the encoding to the token embeddings; called once, at the input of the model.

        Parameters
        ----------
        x : Tensor
            Token embeddings (b n d).
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor
            Embeddings with positions (b n d).
        """
        return x

    def rotate(self, x: Tensor, pos: Positions) -> Tensor:
        """Rotate queries or keys according to their positions; called in every layer.

        Parameters
        ----------
        x : Tensor
            Queries or keys (b h n e).
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor
            Rotated queries or keys (b h n e).
        """
        return x

    def bias(self, q: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """Return the term that is added to the scaled attention logits.

        Parameters
        ----------
        q : Tensor
            Queries (b h q e).
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor or None
            Bias, broadcastable to (b h q k); None if there is none.
        """
        return None

    def add_values(self, weights: Tensor, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """Return the term that is added to the attention output.

        It is computed from the attention weights, as the value term Σ_j a_ij V_ij of Shaw et al.

        Parameters
        ----------
        weights : Tensor
            Attention weights (b h q k).
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor or None
            Term for the attention output (b h q e); None if there is none.
        """
        return None

    def visible(self, q_pos: Positions, k_pos: Positions) -> Tensor | None:
        """Return which keys each query may attend to.

        Parameters
        ----------
        q_pos, k_pos : Positions
            Positions of the query tokens and of the key tokens.

        Returns
        -------
        Tensor or None
            Boolean mask (... 1 q k), True where the query may attend; None if it may attend to all.
        """
        return None

    def table(self, pos: Positions) -> Tensor | None:
        """Return the table that analyses read, one row for each token.

        Parameters
        ----------
        pos : Positions
            Positions of the n tokens.

        Returns
        -------
        Tensor or None
            Table (... n d); None if the encoding has no table.
        """
        return None

    def forward(self, x: Tensor, pos: Positions | Tensor | None = None) -> Tensor:
        """Apply `embed`.

        Parameters
        ----------
        x : Tensor
            Token embeddings (b n d), or (n d) of one sample.
        pos : Positions or Tensor, optional
            Positions of the n tokens, or their indices. Default: a sequence, 0 … n−1.

        Returns
        -------
        Tensor
            Embeddings with positions, in the shape of x.
        """
        if x.ndim == 2:
            return self.forward(x[None], pos)[0]
        check_shape("token embeddings (b n d) or (n d)", x, None, None, None)
        axes = getattr(self, "axes", 1)
        if pos is None and axes > 1:
            sizes = ", ".join(["4"] * axes)
            raise InputError(
                f"{type(self).__name__} has {axes} axes: pass positions as the second argument, "
                f"such as Positions.grid({sizes})."
            )
        positions = Positions.sequence(x.shape[1], x.device) if pos is None else Positions.of(pos)
        if not torch.compiler.is_compiling():
            self.check_positions(positions)
            self._warn_if_unchanged()
        return self.embed(x, positions)

    def check_positions(self, pos: Positions) -> None:
        """Raise `InputError` if the encoding has no values for some positions.

        It is called by `forward`, not by the hooks, because it takes time.

        Parameters
        ----------
        pos : Positions
            Positions of the n tokens.
        """

    def _warn_if_unchanged(self) -> None:
        """Warn once if this encoding acts inside attention only, where `forward` is not called."""
        hooks = [hook for hook in IN_ATTENTION if self._overrides(hook)]
        if hooks and not self._overrides("embed") and not self._warned:
            self._warned = True
            name = type(self).__name__
            warnings.warn(
                f"{name} acts inside attention: called on embeddings it returns them unchanged. "
                f"Call its {' and '.join(hooks)} in the attention (docs/encodings.md shows how).",
                stacklevel=5,  # the line that calls the module
            )

    def _overrides(self, hook: str) -> bool:
        return getattr(type(self), hook) is not getattr(Encoding, hook)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all random values of the encoding again. Nothing else re-initialises an encoding.

        Parameters
        ----------
        generator : torch.Generator, optional
            Source of the random numbers. Default: torch's global generator.
        """

    def begin_step(self, samples: int, generator: torch.Generator) -> None:
        """Draw what changes from one training step to the next, such as random signs.

        The training loop calls it before every step, and `end_step` after it; nothing is drawn
        outside training.

        Parameters
        ----------
        samples : int
            Number of samples b of the step.
        generator : torch.Generator
            Source of the random numbers, a function of the run's seed and the step.
        """

    def end_step(self) -> None:
        """Take back what `begin_step` drew."""

    @property
    def adds_values(self) -> bool:
        """Whether `add_values` is overridden.

        If it is, the attention must compute its weights explicitly, even if no caller asks for
        attention maps.
        """
        return self._overrides("add_values")

    @property
    def same_at_a_position(self) -> bool:
        """Whether this very class says `adds_table`."""
        return bool(vars(type(self)).get("adds_table", False))

    @property
    def acts_in_attention(self) -> bool:
        """Whether `rotate`, `bias` or `add_values` is overridden.

        If one of them is, the attention must compute the queries, keys and logits they act on.
        """
        return any(self._overrides(hook) for hook in ("rotate", "bias", "add_values"))


E_co = TypeVar("E_co", bound=type[Encoding])


def register(name: str) -> Callable[[E_co], E_co]:
    """Register an encoding class under a name (class decorator).

    Configurations, the command line and the contract tests then know the encoding by this name.

    Parameters
    ----------
    name : str
        Name used in configurations and commands: `--encoding NAME`.

    Returns
    -------
    callable
        Decorator that registers a subclass of `Encoding` and returns it.
    """

    def add(cls: E_co) -> E_co:
        if not (isinstance(cls, type) and issubclass(cls, Encoding)):
            raise InputError(
                f"the encoding {name!r} must be a subclass of placecell.encodings.Encoding, not "
                f"{cls!r}."
            )
        ENCODINGS.register(name, cls)
        cls.name = name
        return cls

    return add


register_encoding = register  # as `placecell.register_encoding`, where the name must say of what


def available() -> dict[str, type[Encoding]]:
    """Return all known encodings.

    Returns
    -------
    dict
        Name -> class.
    """
    return {name: lookup(name) for name in ENCODINGS.names()}


def describe() -> list[Entry]:
    """Return every encoding with where it comes from and one line about it.

    Returns
    -------
    list of Entry
        In the order of the names.
    """
    return ENCODINGS.describe()


def lookup(name: str) -> type[Encoding]:
    """Return the encoding class registered under `name`.

    Parameters
    ----------
    name : str
        Name of the encoding. An unknown name is an error that suggests the nearest known one.

    Returns
    -------
    type
        Subclass of `Encoding`.
    """
    cls: Any = ENCODINGS.load(name)
    if not (isinstance(cls, type) and issubclass(cls, Encoding)):
        raise InputError(
            f"the encoding {name!r} of {ENCODINGS.source(name)} is no Encoding: {cls!r}."
        )
    cls.name = name  # an entry point names a class that no decorator has named
    return cls


def settings(name: str) -> set[str]:
    """Return the names of the constructor arguments of an encoding.

    The encoding does not depend on any setting that is not among them.

    Parameters
    ----------
    name : str
        Name of the encoding.

    Returns
    -------
    set of str
        Argument names.

    Examples
    --------
    >>> "max_distance" in settings("relative"), "max_distance" in settings("learnable")
    (True, False)
    """
    return set(inspect.signature(lookup(name)).parameters)


def build(name: str, **offered: Any) -> Encoding:
    """Construct an encoding by name, ignoring arguments that it does not take.

    Parameters
    ----------
    name : str
        Name of the encoding.
    **offered
        Constructor arguments. Those that the encoding does not take, or that are None, are left
        out.

    Returns
    -------
    Encoding
        The encoding.

    Examples
    --------
    >>> build("learnable", n=16, d=64, heads=4, sigma=None)
    LearnablePE(16, 64, sigma=0.1)
    """
    taken = settings(name)
    return lookup(name)(
        **{key: value for key, value in offered.items() if key in taken and value is not None}
    )


def check_sigma(sigma: float) -> float:
    """Return σ as a float; raise `InputError` unless it is finite and at least 0.

    Parameters
    ----------
    sigma : float
        Standard deviation.

    Returns
    -------
    float
        The same value.
    """
    checked: float = check_value(sigma, float, "sigma", at_least=0)
    return checked


def check_size(what: str, size: int) -> int:
    """Return a size; raise `InputError` unless it is an integer of at least 1.

    Parameters
    ----------
    what : str
        Name of the size in the error message.
    size : int
        Value to check.

    Returns
    -------
    int
        The same value.
    """
    checked: int = check_value(size, int, what, at_least=1)
    return checked


def check_shape(what: str, x: Tensor, *sizes: int | None) -> None:
    """Raise `InputError` if a tensor does not have the expected shape.

    Without this check a wrong size could broadcast silently.

    Parameters
    ----------
    what : str
        Name of the tensor in the error message.
    x : Tensor
        Tensor to check.
    *sizes : int or None
        Expected size of each dimension; None accepts any size.
    """
    if x.ndim != len(sizes) or any(
        size not in (None, own) for size, own in zip(sizes, x.shape, strict=True)
    ):
        expected = ", ".join("any" if size is None else str(size) for size in sizes)
        raise InputError(f"{what} should be ({expected}), found {tuple(x.shape)}.")


def head_width(d: int, heads: int) -> int:
    """Return the width of one head, e = d / heads; raise `InputError` unless it is an integer.

    Parameters
    ----------
    d : int
        Width of the model.
    heads : int
        Number of heads.

    Returns
    -------
    int
        Head width e.
    """
    d, heads = check_size("the width d", d), check_size("heads", heads)
    if d % heads:
        raise InputError(f"the width must be divisible by the heads: width {d}, heads {heads}.")
    return d // heads


def fill_normal(target: Tensor, sigma: float, generator: torch.Generator | None) -> None:
    """Set a tensor to sigma · z in place, with z drawn from N(0, 1).

    z is drawn on the CPU in single precision, so one generator gives the same z for every σ,
    device and dtype. This makes sweeps over σ paired.

    Parameters
    ----------
    target : Tensor
        Tensor to fill, of any shape. A meta tensor is left alone.
    sigma : float
        Standard deviation.
    generator : torch.Generator, optional
        Source of the random numbers. None: torch's global generator.
    """
    if not target.is_meta:
        with torch.no_grad():
            z = torch.randn(target.shape, generator=generator, dtype=torch.float32, device="cpu")
            target.copy_(sigma * z)
