"""Values on the nodes of one graph; masked nodes are predicted from the others.

The graph, with its shortest paths, is what a readable table should show. Nothing here imports
torch."""

from placecell.tasks.graph.network import Network
from placecell.tasks.graph.simulate import simulate
from placecell.tasks.graph.sources import make_network

__all__ = ["Network", "make_network", "simulate"]
