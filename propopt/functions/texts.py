"""A model of texts as a function: words, calls, one document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Attributions, Mask, Points, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import MODEL_CALLS, EvaluationCounter
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Quantity, Reason, printable
from propopt.functions.function import (
    EXACT,
    NO_SUM,
    DerivedFunction,
    WeightedFunctions,
    WrappedModel,
)
from propopt.functions.jumps import TRIAL_ROWS, Trial
from propopt.functions.outputs import Readout
from propopt.functions.torch_modules import TorchModel
from propopt.losses.faithfulness import Estimate
from propopt.structures.subsets.sets import SetFunction
from propopt.structures.tfidf.text_sums import AddedTexts, TextStructure
from propopt.tables.columns import Categorical
from propopt.tables.documents import TextDocument, TextSchema, read_texts
from propopt.tables.frames import Labels, listed
from propopt.tables.schema import TableSchema


_Said = TypeVar("_Said")


ABSENT: Final = "absent"
PRESENT: Final = "present"


@final
@dataclass(frozen=True, eq=False, repr=False)
class DocumentFunction(DerivedFunction):
    """f of the words of one document that are kept: d categories, absent or present.

    The first has the frequency 1: the gradient is f(x) less f of x without the word.
    """

    function: TextFunction  # f
    document: TextDocument  # x, with d words

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity}, {self.n_words} words)"

    @property
    def n_words(self) -> int:
        return self.document.n_words

    @cached_property
    def schema(self) -> TableSchema:
        """Each word as a category, absent or present."""
        words, kind = self.document.words, np.dtype(object)
        return TableSchema(
            pd.Index(words, dtype=object),
            tuple(Categorical(own, kind, _LEVELS, None, _REFERENCE) for own in words),
        )

    @property
    def features(self) -> tuple[str, ...]:
        return self.document.words

    @property
    def gradient_method(self) -> str:
        """Effects are differences of values."""
        return EXACT

    def _value(self, points: Points, labels: Labels, /) -> Values:
        del labels
        texts = self.document.each(self._bits(points))
        return self.function.texts_value(texts, finite=False)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        del labels
        bits = self._bits(points)
        effects = np.zeros(points.shape)
        if len(points):
            own = self.function.effects_in([self.document] * len(bits), list(bits))
            effects[bits] = np.concatenate(own)
        return effects

    def _bits(self, points: Points) -> Mask:
        """Codes as bits, refused where they are neither 0 nor 1."""
        coded = bool(((points == 0.0) | (points == 1.0)).all())
        if points.shape[1:] != (self.n_words,) or not coded:
            raise InvalidInput(
                f"{self!r}: expected codes (n, {self.n_words}) of words, 0 where one "
                f"is absent and 1 where it is present, got an array of shape "
                f"{points.shape}"
            )
        return np.asarray(points == 1.0)


def without_each(document: TextDocument, kept: Mask | None = None) -> Iterator[str]:
    """The text with one word less, for each word that is there, in their order."""
    bits = np.ones(document.n_words, bool) if kept is None else kept.copy()
    for j in np.flatnonzero(bits):
        bits[j] = False
        yield document.without(bits)
        bits[j] = True


_LEVELS: Final = pd.Index([ABSENT, PRESENT], dtype=object)
_REFERENCE: Final = np.array([1.0, 0.0, 0.0])
"""Absent, present, and missing, which no word is."""
_REFERENCE.setflags(write=False)


CHARACTER_BYTES = 8
"""What a model may need for each, with what it makes of them."""

SHOWN = 60
"""Characters of a text in a message."""


def as_texts(texts: Any, _: Labels) -> list[str]:
    """The table that a model of texts is given: a list of its own."""
    return list(texts)


def shown(text: str) -> str:
    """A text as messages have it: its beginning, on one line."""
    beginning = printable(text[:SHOWN])
    return f"'{beginning}...'" if len(text) > SHOWN else f"'{beginning}'"


@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TextFunction(WrappedModel):
    """A function of documents; encoded, they are counts of words (N, D).

    The gradient of a word is its effect, f(x) less f of the document in which all its
    occurrences are deleted, and 0 for words that are not in the document: exact, of as
    many values as the document has words. A document without any word is a row of
    zeros, and its effects are 0.

    The model is given texts as they were written, in lists: a row of counts is the
    document of the schema that has these counts.

    Parameters
    ----------
    quantity : Quantity
        What f is.
    values_of : callable
        From texts, a list of n strings, to n numbers, such as a ``Readout`` of a model.
    text_schema : TextSchema
        The words.
    structure : TextStructure or Reason
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

    values_of: Callable[[list[str]], Any] | Readout | TorchModel
    text_schema: TextSchema
    structure: TextStructure | Reason
    vectorisers: tuple[Any, ...] = ()  # of scikit-learn
    # of a sum its parts, with their weights, and what is added to them
    terms: tuple[tuple[float, TextFunction], ...] = field(default=(), kw_only=True)
    base: float = field(default=0.0, kw_only=True)

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
        result = super().estimate_at(points, labels)
        return replace(result, units="output", effects=None)

    @cached_property
    def readout(self) -> Readout | TorchModel:
        """Its method and output; the method is given a list of texts."""
        own = self.values_of
        if isinstance(own, Readout | TorchModel):
            return own
        return Readout(own, as_texts, "value", None)

    @cached_property
    def trial(self) -> Trial:
        """What is known of it so far; the parts of a sum are tried themselves."""
        return Trial(done=bool(self.terms))

    @cached_property
    def calls(self) -> EvaluationCounter:
        """Texts that the model was given; each part of a sum counts its own."""
        return EvaluationCounter(parts=tuple(part.calls for _, part in self.terms))

    @property
    def as_sum(self) -> tuple[WeightedFunctions, float]:
        """What it adds up: sums of sums are flat."""
        return (self.terms, self.base) if self.terms else super().as_sum

    def _sum_of(self, terms: WeightedFunctions, base: float) -> TextFunction:
        """A function of the same documents, read where all parts are."""
        parts = [(w, part) for w, part in terms if isinstance(part, TextFunction)]
        if len(parts) < len(terms):
            raise InvalidInput(
                f"{self!r}: {NO_SUM}, and this is one of texts; functions of the same "
                "texts can be added to it"
            )
        for _, part in parts:
            differs = self.text_schema.difference(part.text_schema)
            if differs is not None:
                raise InvalidInput(
                    f"{self!r} and {part!r}: {NO_SUM}, and the {differs} of theirs "
                    "differ; give wrap one po.functions.TextSchema.of(texts, rule) for "
                    "both, as data"
                )
        vectorisers = [part.vectorisers for _, part in parts]
        return TextFunction(
            quantity=Quantity.sum_of([(w, part.quantity) for w, part in parts], base),
            values_of=partial(_added, parts, base),
            terms=tuple(parts),
            base=base,
            text_schema=self.text_schema,
            structure=_sum_of_structures(parts, base),
            vectorisers=sum(vectorisers, ()) if all(vectorisers) else (),
        )

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

    def texts_value(self, texts: Iterable[str], *, finite: bool = True) -> Values:
        """Values of texts, known or not, (n,): calls are counted.

        Parameters
        ----------
        texts : iterable of str
            They may be made one after the other: so many are taken as one call holds.
        finite : bool
            Whether values have to be finite.

        Raises
        ------
        InvalidInput
            If one is not; the first such text is named.
        """
        parts = []
        for batch in self._batches(texts):
            self.calls.add(len(batch))
            said = partial(self._asked, self.readout, batch)
            parts.append(self.calls.checkpointed(said, batch))
            if not self.trial.done:
                few = batch[: min(TRIAL_ROWS, self.batch_rows)]
                ask = partial(self._asked, self.readout.values_with_precision, few)
                self.trial.ask_twice(ask, len(few), self.calls, repr(self))
            good = np.isfinite(parts[-1])
            if finite and not good.all():
                n = int(good.argmin())
                raise InvalidInput(
                    self.nonfinite_message(float(parts[-1][n]), batch[n])
                )
        return np.concatenate(parts) if parts else np.empty(0)

    def _asked(self, ask: Callable[[Any, Labels], _Said], texts: list[str]) -> _Said:
        """What the model says; where it fails, for which texts."""
        try:
            return ask(texts, Labels())
        except Exception as error:
            error.add_note(
                f"{self!r} was given {len(texts)} texts, of which the first is "
                f"{shown(texts[0])}"
            )
            raise

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Lists of bounded size; a single text may be larger."""
        most, batch, size = min(MODEL_CALLS.n_rows, self.batch_rows), list[str](), 0
        for text in texts:
            more = CHARACTER_BYTES * len(text)
            if batch and (len(batch) >= most or size + more > MODEL_CALLS.n_bytes):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += more
        if batch:
            yield batch

    def nonfinite_message(self, value: float, text: str) -> str:
        """What is said where a value is not finite."""
        return (
            f"{self!r}: the value is {value} for the text {shown(text)}; texts in "
            "which words are deleted, and the empty one, need finite values too"
        )

    @property
    def has_structure(self) -> bool:
        """Whether the model was read: what it is made of is known."""
        return not isinstance(self.structure, Reason)

    def subsets(self, document: TextDocument) -> SetFunction | Reason:
        """The function of the words of a document that are kept, where it was read."""
        if isinstance(self.structure, Reason):
            return self.structure
        return self.structure.at(document)

    def of_document(self, document: TextDocument | str) -> DocumentFunction:
        """The function of which words of one document are kept: D = d columns.

        Parameters
        ----------
        document : TextDocument or str
            Any, of the schema or not.
        """
        if not isinstance(document, TextDocument):
            document = self.text_schema.document_of(document)
        return DocumentFunction(self, document)

    def documents_of(self, X: Any, what: str = "X") -> list[TextDocument]:
        """The documents of texts; all their words must be in the vocabulary.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            What errors call them.
        """
        texts, _ = read_texts(X, what)
        documents = [self.text_schema.document_of(text) for text in texts]
        self.text_schema.check_words(documents, what)
        return documents

    def documents_at(
        self, points: Points, labels: Labels | None = None
    ) -> list[TextDocument]:
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
            If no document has these counts, or several have.
        """
        rows = zip(
            self.text_schema.matching_documents(points, labels), points, strict=True
        )
        return [self._only(documents, point) for documents, point in rows]

    def _only(self, documents: list[TextDocument], point: Points) -> TextDocument:
        """The document with such counts; several may be the same text."""
        if len({document.text for document in documents}) == 1:
            return documents[0]
        alike = self.text_schema.documents_with_counts(point)
        reason = (
            f"documents {listed(alike)} of `data` have the same words, each as often; "
            "explain the texts themselves, or one at a time by of_document(text)"
            if alike
            else "no document of `data` has such counts of words; give wrap all "
            "documents that are to be explained, as data"
        )
        raise InvalidInput(f"{self!r}: {reason}")

    def _value(self, points: Points, labels: Labels, /) -> Values:
        texts = (document.text for document in self.documents_at(points, labels))
        return self.texts_value(texts, finite=False)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        documents = self.documents_at(points, labels)
        return self.text_schema.in_columns(documents, self.effects_in(documents))

    def effects_in(
        self, documents: Sequence[TextDocument], kept: Sequence[Mask] | None = None
    ) -> list[Values]:
        """F of each document less f of it without each of its words, (d,) each.

        Parameters
        ----------
        documents : sequence of TextDocument
            Known or not.
        kept : sequence of arrays (d,), optional
            Which of their words stand in them; all by default. Effects are of these.

        Raises
        ------
        InvalidInput
            If a value of f is not finite.
        """
        if kept is None:
            kept = [np.ones(document.n_words, bool) for document in documents]
        pairs = list(zip(documents, kept, strict=True))
        values = self.texts_value(document.without(bits) for document, bits in pairs)
        without = self.texts_value(
            text for pair in pairs for text in without_each(*pair)
        )
        ends = np.cumsum([bits.sum() for bits in kept], dtype=np.intp)
        parts = np.split(without, ends)[: len(pairs)]
        return [value - part for value, part in zip(values, parts, strict=True)]


def _added(
    terms: Sequence[tuple[float, TextFunction]], base: float, texts: list[str]
) -> Values:
    """Base + Σ_k weight_k f_k of texts, (n,): each part is asked once."""
    values = np.full(len(texts), base)
    for weight, part in terms:
        values += weight * part.texts_value(texts, finite=False)
    return values


def _sum_of_structures(
    parts: Sequence[tuple[float, TextFunction]], base: float
) -> AddedTexts | Reason:
    """What a sum is made of; why the first part is not read that is not."""
    read = []
    for weight, part in parts:
        if isinstance(part.structure, Reason):
            return part.structure
        read.append((weight, part.structure))
    return AddedTexts(tuple(read), base)
