"""Positions of tokens."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from placecell.errors import InputError


@dataclass(frozen=True, eq=False)  # comparing tensors gives no single truth value
class Positions:
    """Positions of tokens: an index (row of a learnable table) and coordinates (2 axes: a grid).

    Parameters
    ----------
    index : Tensor
        Index of each token, (n), or (b n) if every sample has positions of its own.
    coords : Tensor
        Coordinates of each token, (... n c).
    placed : Tensor, optional
        Boolean (... n): False for a token without a place, such as a class token. Encodings leave
        such a token alone, and its index and coordinates have no meaning. None: every token has a
        place.
    graph : Tensor, optional
        Weights (p p) of the edges between all p places, by index, 0 where there is none; symmetric.
        Shared by all samples and not reduced when tokens are selected. None: no graph is known.
    """

    index: Tensor
    coords: Tensor
    placed: Tensor | None = None
    graph: Tensor | None = None

    def __post_init__(self) -> None:
        if self.coords.shape[:-1] != self.index.shape:
            raise InputError(
                "each token has one index and one row of coordinates: found indices "
                f"{tuple(self.index.shape)} "
                f"and coordinates {tuple(self.coords.shape)}."
            )
        if self.placed is not None and self.placed.shape != self.index.shape:
            raise InputError(
                "`placed` says of each token whether it has a place: found "
                f"{tuple(self.placed.shape)} for tokens "
                f"{tuple(self.index.shape)}."
            )
        if self.graph is not None and (
            self.graph.ndim != 2 or self.graph.shape[0] != self.graph.shape[1]
        ):
            raise InputError(
                f"a graph has a row and a column for each place, found {tuple(self.graph.shape)}."
            )

    @classmethod
    def of(cls, positions: Positions | Tensor) -> Positions:
        """Return positions that may be given as a tensor of indices.

        Parameters
        ----------
        positions : Positions or Tensor
            Positions, or the index of each token along one axis: whole numbers, (n) or (b n).

        Returns
        -------
        Positions
            The positions.

        Examples
        --------
        >>> Positions.of(torch.tensor([0, 1, 2, 0, 1])).coords.flatten().tolist()
        [0.0, 1.0, 2.0, 0.0, 1.0]
        """
        if isinstance(positions, Positions):
            return positions
        if not isinstance(positions, Tensor):
            kind = type(positions).__name__
            raise InputError(f"positions must be Positions or a tensor of indices, found {kind}.")
        if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
            raise InputError(
                f"indices of positions must be whole numbers, found {positions.dtype}; for "
                "coordinates use Positions(index, coords)."
            )
        if positions.ndim not in (1, 2):
            raise InputError(
                "indices of positions must be (n), or (b n) for positions of each sample, found "
                f"{tuple(positions.shape)}."
            )
        return cls(positions, positions[..., None].float())

    @classmethod
    def sequence(
        cls, n: int, device: torch.device | str | None = None, *, start: int = 0
    ) -> Positions:
        """Return the positions of a sequence: tokens start … start + n − 1 along one axis.

        Parameters
        ----------
        n : int
            Number of tokens.
        device : torch.device or str, optional
            Device of the tensors.
        start : int
            Position of the first token: when decoding with a cache, the number of cached tokens.

        Returns
        -------
        Positions
            Index (n) and coordinates (n 1).

        Examples
        --------
        >>> Positions.sequence(2, start=5).index.tolist()
        [5, 6]
        """
        index = torch.arange(start, start + n, device=device)
        return cls(index, index[:, None].float())

    @classmethod
    def grid(
        cls, *shape: int, class_token: bool = False, device: torch.device | str | None = None
    ) -> Positions:
        """Return the positions of the cells of a grid, in row-major order.

        Parameters
        ----------
        *shape : int
            Size of the grid along each of its c dimensions. Each dimension is one coordinate axis.
        class_token : bool
            Whether a token without a place comes before the cells, as in vision transformers.
        device : torch.device or str, optional
            Device of the tensors.

        Returns
        -------
        Positions
            Index (n) and coordinates (n c), n the number of cells.

        Examples
        --------
        >>> Positions.grid(2, 2).coords.tolist()
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        """
        axes = torch.meshgrid(*(torch.arange(size, device=device) for size in shape), indexing="ij")
        coords = torch.stack([axis.flatten() for axis in axes], dim=-1).float()  # n c
        cells = cls(torch.arange(len(coords), device=device), coords)
        return cells.with_class_token() if class_token else cells

    def with_class_token(self) -> Positions:
        """Return these positions with a token that has no place put before them.

        Returns
        -------
        Positions
            Positions of n + 1 tokens.

        Examples
        --------
        >>> Positions.grid(2, 2).with_class_token().placed
        tensor([False,  True,  True,  True,  True])
        """
        first = self.index[..., :1]
        placed = (
            torch.ones_like(self.index, dtype=torch.bool) if self.placed is None else self.placed
        )
        return Positions(
            torch.cat((torch.zeros_like(first), self.index), -1),
            torch.cat((torch.zeros_like(self.coords[..., :1, :]), self.coords), -2),
            torch.cat((torch.zeros_like(first, dtype=torch.bool), placed), -1),
            self.graph,
        )

    @property
    def axes(self) -> int:
        """Number of coordinate axes, c."""
        return self.coords.shape[-1]

    @property
    def sizes(self) -> tuple[int | None, int]:
        """Number of samples b (None if all samples share the positions) and number of tokens n."""
        return (None if self.index.ndim == 1 else self.index.shape[0]), self.index.shape[-1]

    def check_index(self, n: int) -> None:
        """Raise `InputError` if a token has an index that is not a row of a table.

        Parameters
        ----------
        n : int
            Number of rows.
        """
        outside = (self.index < 0) | (self.index >= n)
        if self.placed is not None:
            outside = outside & self.placed
        if outside.any():
            raise InputError(
                f"the table has rows 0 to {n - 1}, but a token has index "
                f"{int(self.index[outside][0])}."
            )

    def take(self, read: Tensor) -> Positions:
        """Return the positions of some tokens of each sample.

        Parameters
        ----------
        read : Tensor
            Which tokens of each sample (b q), numbered from 0 to n−1.

        Returns
        -------
        Positions
            Positions of q tokens per sample, index (b q).
        """
        placed = self.placed
        if self.index.ndim == 1:
            return Positions(
                self.index[read],
                self.coords[read],
                None if placed is None else placed[read],
                self.graph,
            )
        return Positions(
            self.index.gather(1, read),
            self.coords.gather(1, read[..., None].expand(-1, -1, self.axes)),
            None if placed is None else placed.gather(1, read),
            self.graph,
        )

    def samples(self, rows: Tensor | slice) -> Positions:
        """Return the positions of some samples.

        Parameters
        ----------
        rows : Tensor or slice
            Which samples.

        Returns
        -------
        Positions
            Positions of these samples, or this object itself if all samples share the positions.
        """
        if self.index.ndim == 1:
            return self
        placed = None if self.placed is None else self.placed[rows]
        return Positions(self.index[rows], self.coords[rows], placed, self.graph)

    def join(self, other: Positions) -> Positions:
        """Concatenate the positions of these samples with those of other samples.

        Parameters
        ----------
        other : Positions
            Positions (b n) with the same number of tokens.

        Returns
        -------
        Positions
            Positions of all samples, these first.
        """
        placed = None
        if self.placed is not None and other.placed is not None:
            placed = torch.cat((self.placed, other.placed))
        return Positions(
            torch.cat((self.index, other.index)),
            torch.cat((self.coords, other.coords)),
            placed,
            self.graph,
        )

    def to(self, device: torch.device | str) -> Positions:
        """Return a copy on another device.

        Parameters
        ----------
        device : torch.device or str
            Target device.

        Returns
        -------
        Positions
            The same positions.
        """
        placed = None if self.placed is None else self.placed.to(device)
        graph = None if self.graph is None else self.graph.to(device)
        return Positions(self.index.to(device), self.coords.to(device), placed, graph)

    def along(self, axes: int) -> Tensor:
        """Return coordinates over a given number of axes.

        Parameters
        ----------
        axes : int
            Number of axes: as many as `coords` has, or 1. With 1, tokens that have more axes are
            described by their index.

        Returns
        -------
        Tensor
            Coordinates (... n axes), 0 for a token without a place.
        """
        if axes == self.axes:
            coords = self.coords
        elif axes == 1:
            coords = self.index[..., None].to(self.coords.dtype)
        else:
            raise InputError(
                f"the encoding wants {axes} coordinate axes; the tokens have {self.axes} (or 1: "
                "their index). "
                "Ask for as many (axes), or for an encoding without, such as learnable."
            )
        return coords if self.placed is None else coords.masked_fill(~self.placed[..., None], 0)


# so that torch.export takes them as an argument
with warnings.catch_warnings():  # torch 2.6 warns of a function that it calls itself
    warnings.simplefilter("ignore", FutureWarning)
    torch.export.register_dataclass(Positions, serialized_type_name="placecell.Positions")


def rows_at(table: Tensor, pos: Positions) -> Tensor:
    """Return the row of a table for each token; an index above the last row is an `InputError`.

    Parameters
    ----------
    table : Tensor
        Table (p d).
    pos : Positions
        Positions of the n tokens.

    Returns
    -------
    Tensor
        Rows (... n d).
    """
    if torch.compiler.is_compiling():
        return table[pos.index]
    try:
        return table[pos.index]
    except IndexError:
        pos.check_index(len(table))
        raise


def both_placed(queries: Positions, keys: Positions) -> Tensor | None:
    """Return for each query and key whether both have a place.

    Parameters
    ----------
    queries, keys : Positions
        Positions of q query tokens and of k key tokens.

    Returns
    -------
    Tensor or None
        Boolean (... 1 q k); None if every token has a place.
    """
    if queries.placed is None and keys.placed is None:
        return None
    q, k = (
        torch.ones_like(pos.index, dtype=torch.bool) if pos.placed is None else pos.placed
        for pos in (queries, keys)
    )
    return (q.unsqueeze(-1) & k.unsqueeze(-2)).unsqueeze(-3)


def neighbours(queries: Positions, keys: Positions) -> Tensor | None:
    """Return for each query and key whether they are at the same place or at joined places.

    A token without a place, such as a class token, is a neighbour of every token.

    Parameters
    ----------
    queries, keys : Positions
        Positions of q query tokens and of k key tokens, with the graph of the places.

    Returns
    -------
    Tensor or None
        Boolean (... 1 q k); None if there is no graph.
    """
    if keys.graph is None:
        return None
    q, k = queries.index.unsqueeze(-1), keys.index.unsqueeze(-2)
    near = ((keys.graph[q, k] != 0) | (q == k)).unsqueeze(-3)
    placed = both_placed(queries, keys)
    return near if placed is None else near | ~placed
