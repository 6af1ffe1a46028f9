"""What a sweep found, for people: measurements, figures, text."""

from placecell.report.build import Written, analyse
from placecell.report.summary import RunSummary, Summary, summarise

__all__ = ["RunSummary", "Summary", "Written", "analyse", "summarise"]
