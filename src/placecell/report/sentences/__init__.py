"""What to see in each figure, in a sentence that follows from the data and changes when they do."""

from placecell.report.sentences.scores import agreement, conditions, headline, training
from placecell.report.sentences.tables import attention, claim, compared, reading, tables
from placecell.report.sentences.words import metric, plural

__all__ = [
    "agreement",
    "attention",
    "claim",
    "compared",
    "conditions",
    "headline",
    "metric",
    "plural",
    "reading",
    "tables",
    "training",
]
