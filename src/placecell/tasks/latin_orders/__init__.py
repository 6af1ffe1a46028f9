"""Latin squares of several orders in one batch: grids that change size.

A puzzle of order k takes k × k cells of the largest grid; the other cells are absent. Nothing here
imports torch."""
