"""Texts as tables: words, documents, and the schema of a vocabulary."""

from propopt.tables.text.document import Document
from propopt.tables.text.schema import TextSchema, is_documents, read_texts
from propopt.tables.text.words import Occurrence, PatternWords, WordRule


__all__ = [
    "Document",
    "Occurrence",
    "PatternWords",
    "TextSchema",
    "WordRule",
    "is_documents",
    "read_texts",
]
