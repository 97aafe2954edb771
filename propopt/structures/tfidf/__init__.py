"""Fitted pipelines from texts to numbers, read as functions of sets of words."""

from propopt.structures.tfidf.reading import read_text_model
from propopt.structures.tfidf.structure import TextStructure


__all__ = ["TextStructure", "read_text_model"]
