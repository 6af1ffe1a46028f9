"""Characters of a text in windows whose places are shuffled once; masked characters are predicted.

The true order of the places is what a readable table should show. Nothing here imports torch."""

from placecell.tasks.text.generate import generate_text
from placecell.tasks.text.ngram import NGram

__all__ = ["NGram", "generate_text"]
