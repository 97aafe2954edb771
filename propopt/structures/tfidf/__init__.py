"""Fitted pipelines from texts to numbers, read as functions of sets of words."""

from propopt.structures.tfidf.features import DocumentFeatures, document_features
from propopt.structures.tfidf.reading import read_text_model
from propopt.structures.tfidf.structure import TextStructure
from propopt.structures.tfidf.vectorisers import Vectoriser


__all__ = [
    "DocumentFeatures",
    "TextStructure",
    "Vectoriser",
    "document_features",
    "read_text_model",
]
