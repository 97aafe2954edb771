"""A model of texts as a function under explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT, Function
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.structures.tfidf import TextStructure
from propopt.tables.names import Labels
from propopt.tables.text import Document, TextSchema


@dataclass(frozen=True, eq=False, repr=False)
class TextFunction(Function):
    """A function of documents; encoded, they are counts of words (N, D).

    The gradient of a word is its effect, f(x) less f of the document without it, and 0
    for words that are not in the document.

    Parameters
    ----------
    name : str
        For messages.
    values_of : callable
        From texts, a list of n strings, to n numbers: the output of the model.
    text_schema : TextSchema
        The words.
    structure : TextStructure or NoSetFunction
        What the model was read as, or why it was not.
    """

    name: str
    values_of: Callable[[list[str]], Any]
    text_schema: TextSchema
    structure: TextStructure | NoSetFunction

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def gradient_method(self) -> str:
        """Effects are differences of values."""
        return EXACT

    def texts_value(self, texts: list[str]) -> Values:
        """Values of texts, known or not, (n,): calls are counted."""
        self.calls.add(len(texts))
        return np.asarray(self.values_of(texts), float)

    def subsets(self, document: Document) -> SetFunction | NoSetFunction:
        """The function of the words of a document that are kept, where it was read."""
        if isinstance(self.structure, NoSetFunction):
            return self.structure
        return self.structure.at(document)

    def read(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Counts of words, and the names of documents and words."""
        return self.text_schema.encode(X, what)

    def _value(self, points: Points, labels: Labels, /) -> Values:
        del labels
        raise InvalidInput(f"{self!r}: {len(points)} rows cannot be decoded")

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        del labels
        raise InvalidInput(f"{self!r}: {len(points)} rows cannot be decoded")
