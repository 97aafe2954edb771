"""Linear models behind a vectoriser, as sums over the words of a document."""

from propopt.structures.tfidf.linear.reading import TextLinear, read_text_linear


__all__ = ["TextLinear", "read_text_linear"]
