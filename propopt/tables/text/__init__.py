r"""Texts as tables: words, documents, and the schema of a vocabulary.

Any string is a text, and is never changed but by deleting words from it:

=====================  =============================================================
repeated words         one column, which counts them; all occurrences are deleted
no word, empty         a row of zeros: there is nothing to delete, and no effect
one word               one column; the text without it is what stands around it
words that a model     columns with an effect of 0, unless the model sees more of a
does not know          text than its words
punctuation, emoji     no words: they stay in all texts, and models see them
HTML                   not parsed: ``b`` and ``amp`` are words as others are
right-to-left          as any other text, in the order in which it is stored
control characters,    no words: they stay, models see them, and messages and pages
NUL, half characters   show them as escapes
accents                one written as a character of its own is in no word, and ends
                       it, unless a vectoriser strips accents: then it goes with it
``İ``, final sigma     lower case as Python has it; places are those in the text
no blanks              one word, as of Chinese; a rule of one's own may know better
=====================  =============================================================
"""

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
