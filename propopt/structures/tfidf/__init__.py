"""Fitted pipelines from texts to numbers, read as functions of sets of words."""

from propopt.structures.tfidf.structure import TextStructure


__all__ = ["TextStructure"]
