"""A model of texts as a function under explanation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.functions.base import EXACT, Function
from propopt.functions.models.readout import Readout
from propopt.functions.text.asked import AskedModel, as_texts
from propopt.functions.text.bags import bag_refusal
from propopt.functions.text.of_document import DocumentFunction, without_each
from propopt.functions.text.torch_texts import TorchTexts
from propopt.quantity import Quantity
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.structures.tfidf import TextStructure
from propopt.structures.tfidf.entries import CountsWords
from propopt.tables.names import Labels, listed
from propopt.tables.text import Document, TextSchema, read_texts


@dataclass(frozen=True, eq=False, repr=False)
class TextFunction(Function):
    """A function of documents; encoded, they are counts of words (N, D).

    The gradient of a word is its effect, f(x) less f of the document in which all its
    occurrences are deleted, and 0 for words that are not in the document: exact, of as
    many values as the document has words. A document without any word is a row of
    zeros, and its effects are 0.

    The model is given texts as they were written, in lists. A row of counts is turned
    into one by :meth:`document`: into the document of the schema that has these counts,
    else into a bag of words, for models that are known to count words and nothing else.

    Parameters
    ----------
    quantity : Quantity
        What f is.
    values_of : callable
        From texts, a list of n strings, to n numbers, such as a ``Readout`` of a model.
    text_schema : TextSchema
        The words.
    structure : TextStructure or NoSetFunction
        What the model was read as, or why it was not.
    vectorisers : tuple of CountVectorizer or HashingVectorizer
        All that the model sees of texts; none if it sees more, or that is not known.
    batch_rows : int
        The most texts of one call.

    Examples
    --------
    >>> import propopt as po
    >>> notes = ["good food", "no food", "no good, no"]
    >>> f = po.wrap(lambda texts: [text.count("no") for text in texts], data=notes)
    >>> f.value(notes)
    array([0., 1., 2.])
    >>> f.text_schema.vocabulary, f.gradient(notes[2:])
    (('good', 'food', 'no'), array([[0., 0., 2.]]))
    """

    quantity: Quantity = field()
    values_of: Callable[[list[str]], Any] | Readout | TorchTexts
    text_schema: TextSchema
    structure: TextStructure | NoSetFunction
    vectorisers: tuple[CountsWords, ...] = ()
    batch_rows: int = field(default=sys.maxsize, kw_only=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity})"

    @property
    def encoding(self) -> TextSchema:
        """The words."""
        return self.text_schema

    @property
    def gradient_method(self) -> str:
        """Effects are differences of values."""
        return EXACT

    def effects_at(self, points: Points) -> NDArray[np.bool_]:
        """All gradients are effects."""
        return np.ones(points.shape, bool)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        """In units of the output, as effects are."""
        found = super().estimate_at(points, labels)
        return replace(found, units="output", effects=None)

    @cached_property
    def asked(self) -> AskedModel:
        """The model behind it, which counts what it is asked."""
        own = self.values_of
        if not isinstance(own, Readout | TorchTexts):
            own = Readout(own, as_texts, "value", None)
        return AskedModel(repr(self), own, self.calls, self.batch_rows)

    def value(self, X: Any) -> Values:
        """Values f(x_n), shape (N,), of any texts: their words need not be known.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.

        Raises
        ------
        InvalidInput
            If X are no texts, or a value of f is not finite.
        """
        texts, _ = read_texts(X, "X")
        return self.texts_value(texts)

    def texts_value(self, texts: Iterable[str]) -> Values:
        """Values of texts, known or not, (n,): calls are counted.

        Parameters
        ----------
        texts : iterable of str
            They may be made one after the other: so many are taken as one call holds.

        Raises
        ------
        InvalidInput
            If a value is not finite; the first such text is named.
        """
        return self.asked.finite_values(texts)

    @property
    def is_read(self) -> bool:
        """Whether the model was read: what it is made of is known."""
        return not isinstance(self.structure, NoSetFunction)

    def subsets(self, document: Document) -> SetFunction | NoSetFunction:
        """The function of the words of a document that are kept, where it was read."""
        if isinstance(self.structure, NoSetFunction):
            return self.structure
        return self.structure.at(document)

    def of_document(self, document: Document | str) -> DocumentFunction:
        """The function of which words of one document are kept: D = d columns.

        Parameters
        ----------
        document : Document or str
            Any, of the schema or not.
        """
        own = document if isinstance(document, Document) else self._parted(document)
        return DocumentFunction(self, own)

    def documents_of(self, X: Any, what: str = "X") -> list[Document]:
        """The documents of texts; all their words must be in the vocabulary.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            What errors call them.
        """
        texts, _ = read_texts(X, what)
        found = [self._parted(text) for text in texts]
        self.text_schema.check_words(found, what)
        return found

    def document(self, point: Points) -> Document:
        """The document of one row of counts (D,); see :meth:`documents_at`."""
        return self.documents_at(point[None])[0]

    def documents_at(
        self, points: Points, labels: Labels | None = None
    ) -> list[Document]:
        """The documents of rows of counts.

        Parameters
        ----------
        points : array (n, D)
            How often each word comes.
        labels : Labels, optional
            Those that :meth:`read` gave: they tell documents apart that have the same
            counts of words.

        Raises
        ------
        InvalidInput
            If the order of words may matter to the model, and no document or several
            have these counts.
        """
        rows = zip(self.text_schema.known(points, labels), points, strict=True)
        return [self._chosen(found, point) for found, point in rows]

    @cached_property
    def bag_refusal(self) -> str | None:
        """Why counts of words do not tell the value; None if they do."""
        return bag_refusal(self.vectorisers, self.text_schema)

    def _parted(self, text: str) -> Document:
        return self.text_schema.document_of(text)

    def _chosen(self, found: list[Document], point: Points) -> Document:
        """One of the documents with such counts, or their bag of words."""
        if len({document.text for document in found}) == 1:
            return found[0]
        if self.bag_refusal is not None:
            raise InvalidInput(f"{self!r}: {self.bag_refusal}, {self._unknown(point)}")
        return found[0] if found else self._parted(self.text_schema.bag(point))

    def _unknown(self, point: Points) -> str:
        alike = self.text_schema.lookup.alike(point)
        if alike:
            return (
                f"and documents {listed(alike)} of `data` have the same words, each as "
                "often; explain the texts themselves, or one at a time by "
                "of_document(text)"
            )
        return (
            "and no document of `data` has such counts of words; give wrap all "
            "documents that are to be explained, as data"
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        documents = self.documents_at(points, labels)
        return self.asked.values(document.text for document in documents)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        documents = self.documents_at(points, labels)
        return self.text_schema.placed(documents, self.effects_in(documents))

    def effects_in(self, documents: Sequence[Document]) -> list[Values]:
        """F of each document less f of it without each of its words, (d,) each.

        Parameters
        ----------
        documents : sequence of Document
            Known or not.

        Raises
        ------
        InvalidInput
            If a value of f is not finite.
        """
        values = self.texts_value(document.text for document in documents)
        without = self.texts_value(
            text for document in documents for text in without_each(document)
        )
        ends = np.cumsum([document.n_words for document in documents], dtype=np.intp)
        parts = np.split(without, ends)[: len(documents)]
        return [value - part for value, part in zip(values, parts, strict=True)]
