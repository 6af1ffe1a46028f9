"""Images cut into patches that stand in one fixed unknown order: a vision transformer.

The grid of the patches is what a readable table should show. Nothing here imports torch."""

from placecell.tasks.images.patches import cut, join

__all__ = ["cut", "join"]
