"""A model of texts at one document: a function of which of its words are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pandas as pd

from propopt._typing import Attributions, Points, Truths, Values
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT, Function
from propopt.functions.calls import Calls
from propopt.quantity import Quantity
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.tables.columns import Categorical
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema
from propopt.tables.text import Document


if TYPE_CHECKING:
    from propopt.functions.text.function import TextFunction


ABSENT: Final = "absent"
PRESENT: Final = "present"


@final
@dataclass(frozen=True, eq=False, repr=False)
class DocumentFunction(Function):
    """f of the words of one document that are kept: d columns, each absent or present.

    Each column is a category of two levels with codes 0 and 1, of which the first has
    the frequency 1: the document without any word is the reference. So the gradient of
    a word is f(x) less f of x without it, and whatever takes a function of categories
    takes this one. Texts that the model is given are counted by the text function.

    Parameters
    ----------
    function : TextFunction
        f.
    document : Document
        x, with d words.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> f = po.wrap(lambda texts: [len(t) for t in texts], data=["no good, no"])
    >>> at = f.of_document("no good, no")
    >>> at.value_at(np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]))
    array([11., 7., 3.])
    >>> at.gradient_at(np.ones((1, 2)))
    array([[4., 4.]])
    """

    function: TextFunction
    document: Document

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity}, {self.n_words} words)"

    @cached_property
    def quantity(self) -> Quantity:
        """That of the text function."""
        return self.function.quantity

    @property
    def n_words(self) -> int:
        """The number of its distinct words, d."""
        return self.document.n_words

    @cached_property
    def schema(self) -> TableSchema:
        """Each word as a category, absent or present."""
        return TableSchema(
            pd.Index(self.document.words, dtype=object),
            tuple(_column(word) for word in self.document.words),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """The words."""
        return self.document.words

    @property
    def subsets(self) -> SetFunction | NoSetFunction:
        """What it is as a function of sets of words, where the model was read."""
        return self.function.subsets(self.document)

    @property
    def gradient_method(self) -> str:
        """Effects are differences of values."""
        return EXACT

    @cached_property
    def calls(self) -> Calls:
        """Those of the text function."""
        return self.function.calls

    def _value(self, points: Points, labels: Labels, /) -> Values:
        del labels
        return self.function.asked.values(self.document.each(self._bits(points)))

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        del labels
        bits = self._bits(points)
        values = self.function.texts_value(self.document.each(bits))
        without = self.function.texts_value(
            text for row in bits for text in without_each(self.document, row)
        )
        effects = np.zeros(points.shape)
        effects[bits] = np.repeat(values, bits.sum(axis=1)) - without
        return effects

    def _bits(self, points: Points) -> Truths:
        """Codes as bits, refused where they are neither 0 nor 1."""
        coded = bool(((points == 0.0) | (points == 1.0)).all())
        if points.shape[1:] != (self.n_words,) or not coded:
            raise InvalidInput(
                f"{self!r}: expected codes (n, {self.n_words}) of words, 0 where one "
                f"is absent and 1 where it is present, got an array of shape "
                f"{points.shape}"
            )
        return np.asarray(points == 1.0)


def without_each(document: Document, kept: Truths | None = None) -> Iterator[str]:
    """The text with one word less, for each word that is there, in their order."""
    bits = np.ones(document.n_words, bool) if kept is None else kept.copy()
    for j in np.flatnonzero(bits):
        bits[j] = False
        yield document.without(bits)
        bits[j] = True


def _column(word: str) -> Categorical:
    return Categorical(word, np.dtype(object), _LEVELS, None, _REFERENCE)


_LEVELS: Final = pd.Index([ABSENT, PRESENT], dtype=object)
_REFERENCE: Final = np.array([1.0, 0.0, 0.0])
"""Absent, present, and missing, which no word is."""
_REFERENCE.setflags(write=False)
