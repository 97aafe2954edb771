"""What a fitted model of texts is made of."""

from __future__ import annotations

from typing import Protocol

from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.tables.text import Document


class TextStructure(Protocol):
    """A model of texts that was read: a function of the words of any document."""

    def at(self, document: Document, /) -> SetFunction | NoSetFunction:
        """The function of which words of a document are kept."""
