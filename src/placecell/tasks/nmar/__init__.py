"""The nonlinear multivariate autoregressive network: hidden modules, found again from what the
nodes do.

    x(t+1) = tanh(W x(t)) + ε(t)

W has dense positive blocks on its diagonal, the modules, and a little sparse coupling between them;
the order of the nodes is shuffled, so that a node's number says nothing. Nothing here imports
torch."""

from placecell.tasks.nmar.simulate import Network, network, simulate

__all__ = ["Network", "network", "simulate"]
