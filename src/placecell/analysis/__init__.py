"""Measure what a model has learned: pure functions from arrays to small dataclasses.

Nothing here reads files or draws plots, and only `placecell.analysis.ntk` needs torch.
"""

from placecell.analysis.attention import Agreement, agreement, relation_agreement
from placecell.analysis.baselines import (
    linear_gaussian,
    mean_of_training,
    principal_components,
    ridge,
)
from placecell.analysis.diagnosis import Diagnosis, Numbers, diagnose, map_consistency
from placecell.analysis.modularity import (
    Match,
    Modules,
    block_means,
    kmeans,
    label_test,
    louvain,
    match_labels,
    matrix_correlation,
    modularity,
    modules,
    row_similarity,
    signed_modularity,
    spin_orders,
)
from placecell.analysis.picture import Picture, picture
from placecell.analysis.procrustes import Procrustes, procrustes
from placecell.analysis.readout import (
    Correlation,
    Probe,
    distance_correlation,
    linear_probe,
    relation_correlation,
)
from placecell.analysis.seriation import order_correlation, recover_order
from placecell.analysis.statistics import (
    Interval,
    PairedDifference,
    bootstrap_interval,
    paired_difference,
    spearman_interval,
)
from placecell.analysis.symmetry import (
    Alignment,
    Symmetries,
    grid_symmetries,
    rectangle_symmetries,
    renumbered,
)

__all__ = [
    "Agreement",
    "Alignment",
    "Correlation",
    "Diagnosis",
    "Interval",
    "Match",
    "Modules",
    "Numbers",
    "PairedDifference",
    "Picture",
    "Probe",
    "Procrustes",
    "Symmetries",
    "agreement",
    "block_means",
    "bootstrap_interval",
    "diagnose",
    "distance_correlation",
    "grid_symmetries",
    "kmeans",
    "label_test",
    "linear_gaussian",
    "linear_probe",
    "louvain",
    "map_consistency",
    "match_labels",
    "matrix_correlation",
    "mean_of_training",
    "modularity",
    "modules",
    "order_correlation",
    "paired_difference",
    "picture",
    "principal_components",
    "procrustes",
    "recover_order",
    "rectangle_symmetries",
    "relation_agreement",
    "relation_correlation",
    "renumbered",
    "ridge",
    "row_similarity",
    "signed_modularity",
    "spearman_interval",
    "spin_orders",
]
