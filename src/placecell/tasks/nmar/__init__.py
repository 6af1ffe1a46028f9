"""The nonlinear multivariate autoregressive network: can its modules be learned from its activity?

    x(t+1) = tanh(W x(t)) + ε(t)

W has dense positive blocks on its diagonal, the modules, and sparse weights between them. The nodes
are in random order, so that the number of a node says nothing. Nothing here imports torch.
"""

from placecell.tasks.nmar.simulate import Network, network, simulate

__all__ = ["Network", "network", "simulate"]
