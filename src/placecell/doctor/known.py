"""What is known of a model before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from placecell.doctor.shapes import varying_axes


@dataclass(frozen=True)
class Known:
    """What is known of a model before it runs.

    Attributes
    ----------
    stored : dict of int to str
        Storage -> name of the parameter, buffer or attribute that it belongs to.
    shapes : dict of str to tuple of int
    fixed : set of str
        Those that are not trained.
    batch : int
        Samples in the example.
    """

    stored: dict[int, str]
    shapes: dict[str, tuple[int, ...]]
    fixed: set[str]
    batch: int

    def varying(self, tensor: Tensor, ndim: int, reads: bool) -> list[int]:
        """Return the axes, counted in `ndim`, along which the numbers vary.

        For what is computed from the example the batch does not count.
        """
        shift = ndim - tensor.ndim
        axes = [shift + axis for axis in varying_axes(tensor)]
        of_batch = tensor.shape[:1] == (self.batch,) and ndim >= 3
        by_sample = tensor.ndim == 2 and len(axes) == 2  # (b, d): a condition, not a position
        if reads and 0 in axes and (of_batch or by_sample):
            axes.remove(0)
        return axes

    def two_axes(self, names: frozenset[str]) -> frozenset[str]:
        """Return those stored tensors that have at least two axes."""
        return frozenset(n for n in names if sum(s > 1 for s in self.shapes[n]) > 1)

    def trainable(self, names: frozenset[str]) -> bool:
        """Return whether any of these stored tensors is trained."""
        return any(name not in self.fixed for name in names)
