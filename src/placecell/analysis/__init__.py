"""What a model has learned: pure functions from arrays to small results. No files, no plots, no torch."""

from placecell.analysis.attention import Agreement, agreement, relation_agreement
from placecell.analysis.diagnosis import Diagnosis, Numbers, diagnose, map_consistency
from placecell.analysis.picture import Picture, picture
from placecell.analysis.procrustes import Procrustes, procrustes
from placecell.analysis.readout import (
    Correlation,
    Probe,
    distance_correlation,
    linear_probe,
    relation_correlation,
)
from placecell.analysis.statistics import (
    Interval,
    PairedDifference,
    bootstrap_interval,
    paired_difference,
    spearman_interval,
)
from placecell.analysis.symmetry import Alignment, Symmetries, grid_symmetries

__all__ = [
    "Agreement",
    "Alignment",
    "Correlation",
    "Diagnosis",
    "Interval",
    "Numbers",
    "PairedDifference",
    "Picture",
    "Probe",
    "Procrustes",
    "Symmetries",
    "agreement",
    "bootstrap_interval",
    "diagnose",
    "distance_correlation",
    "grid_symmetries",
    "linear_probe",
    "map_consistency",
    "paired_difference",
    "picture",
    "procrustes",
    "relation_agreement",
    "relation_correlation",
    "spearman_interval",
]
