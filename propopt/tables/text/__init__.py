"""Texts as tables: words, documents, and the schema of a vocabulary."""

from propopt.tables.text.document import Document
from propopt.tables.text.reading import is_documents, read_texts
from propopt.tables.text.saved import pack_texts, unpack_texts
from propopt.tables.text.schema import TextSchema
from propopt.tables.text.vectoriser_words import VectoriserWords
from propopt.tables.text.words import (
    PACKAGE_FILLER,
    EachOccurrence,
    Occurrence,
    PatternWords,
    WordRule,
)


__all__ = [
    "PACKAGE_FILLER",
    "Document",
    "EachOccurrence",
    "Occurrence",
    "PatternWords",
    "TextSchema",
    "VectoriserWords",
    "WordRule",
    "is_documents",
    "pack_texts",
    "read_texts",
    "unpack_texts",
]
