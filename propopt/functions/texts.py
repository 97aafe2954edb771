"""Models of texts as functions of documents, and of the words of one document."""

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
from propopt.structures.subsets.sets import SetFunction, TextStructure
from propopt.structures.tfidf.text_sums import AddedTexts
from propopt.tables.columns import Categorical
from propopt.tables.documents import TextDocument, TextSchema, read_texts
from propopt.tables.frames import Labels
from propopt.tables.schema import TableSchema


_Result = TypeVar("_Result")


ABSENT: Final = "absent"
PRESENT: Final = "present"


@final
@dataclass(frozen=True, eq=False, repr=False)
class DocumentFunction(DerivedFunction):
    """A model as a function of the words of one document, each absent or present.

    Absence has frequency 1, so that the gradient of a word is f(x) minus f without the
    word.
    """

    function: TextFunction  # f
    document: TextDocument  # x, with d words

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.quantity}, {self.n_words} words)"

    @property
    def n_words(self) -> int:
        """The number d of words of the document."""
        return self.document.n_words

    @cached_property
    def schema(self) -> TableSchema:
        """A schema with each word as a category, absent or present."""
        words = self.document.words
        kind = np.dtype(object)
        return TableSchema(
            pd.Index(words, dtype=object),
            tuple(Categorical(word, kind, _LEVELS, None, _REFERENCE) for word in words),
        )

    @property
    def features(self) -> tuple[str, ...]:
        return self.document.words

    @property
    def gradient_method(self) -> str:
        """The method of gradients: exact differences of values."""
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
            documents = [self.document] * len(bits)
            word_effects = self.function.effects_in(documents, list(bits))
            effects[bits] = np.concatenate(word_effects)
        return effects

    def _bits(self, points: Points) -> Mask:
        """Codes as bits; other numbers than 0 and 1 are refused."""
        coded = ((points == 0.0) | (points == 1.0)).all()
        if points.shape[1:] != (self.n_words,) or not coded:
            raise InvalidInput(
                f"{self!r}: expected codes (n, {self.n_words}) of words, 0 where one "
                f"is absent and 1 where it is present, got an array of shape "
                f"{points.shape}"
            )
        return points == 1.0


def without_each(document: TextDocument, present: Mask) -> Iterator[str]:
    """The text of the present words without one of them, for each in order."""
    bits = present.copy()
    for j in np.flatnonzero(bits):
        bits[j] = False
        yield document.without(bits)
        bits[j] = True


_LEVELS: Final = pd.Index([ABSENT, PRESENT], dtype=object)
_REFERENCE: Final = np.array([1.0, 0.0, 0.0])
"""Frequencies of absent, present and missing, which never occurs."""
_REFERENCE.setflags(write=False)


CHARACTER_BYTES = 8
"""The memory of a model for each character, in bytes."""

SHOWN = 60
"""Characters of a text in a message."""


def as_texts(texts: Any, _: Labels) -> list[str]:
    """The input of a model of texts: a new list."""
    return list(texts)


def shown(text: str) -> str:
    """The beginning of a text for messages, on one line."""
    beginning = printable(text[:SHOWN])
    return f"'{beginning}...'" if len(text) > SHOWN else f"'{beginning}'"


@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TextFunction(WrappedModel):
    """A function of documents; encoded, they are counts of words (N, D).

    The gradient of a word is its effect, f(x) minus f of the document without any of
    its occurrences, and 0 for words outside the document. It is exact, and takes one
    evaluation for each word. A document without words is a row of zeros, with effects
    0.

    The model receives the original texts, in lists: the labels of rows of counts have
    them.

    Parameters
    ----------
    quantity : Quantity
        The name and kind of the output.
    values_of : callable
        From texts, a list of n strings, to n numbers, such as a ``Readout`` of a model.
    text_schema : TextSchema
        The vocabulary and the rule for words.
    structure : TextStructure or Reason
        The exact structure of the model, or the reason why it has none.
    vectorisers : tuple of CountVectorizer or HashingVectorizer
        All vectorisers of the model; empty if it uses texts in another way, too.
    batch_rows : int
        The most texts in one call of the model.

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
    # the weighted parts and the constant of a sum
    terms: tuple[tuple[float, TextFunction], ...] = field(default=(), kw_only=True)
    base: float = field(default=0.0, kw_only=True)

    @property
    def encoding(self) -> TextSchema:
        """The vocabulary and the rule for words."""
        return self.text_schema

    @property
    def gradient_method(self) -> str:
        """The method of gradients: exact differences of values."""
        return EXACT

    def effects_at(self, points: Points) -> NDArray[np.bool_]:
        """A mask (N, D), all true: gradients of texts are effects of deleting words."""
        return np.ones(points.shape, bool)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        """Estimate the effects of words as a target, in units of the output.

        Parameters
        ----------
        points : array (N, D)
            The count of each word in each document.
        labels : Labels
            The labels that :meth:`read` returned, which have the texts.

        Returns
        -------
        Estimate
            Its values (N, D) are exact: f minus f without the word.

        Raises
        ------
        InvalidInput
            If the labels have no such texts, or a value of f is not finite.
        """
        result = super().estimate_at(points, labels)
        return replace(result, units="output", effects=None)

    @cached_property
    def readout(self) -> Readout | TorchModel:
        """Callable that gives a list of texts to the model and selects the output."""
        values_of = self.values_of
        if isinstance(values_of, Readout | TorchModel):
            return values_of
        return Readout(values_of, as_texts, "value", None)

    @cached_property
    def trial(self) -> Trial:
        """Results of test calls of the model; each part of a sum is tested itself."""
        return Trial(done=bool(self.terms))

    @cached_property
    def calls(self) -> EvaluationCounter:
        """Count of texts given to the model; each part of a sum counts its texts."""
        return EvaluationCounter(parts=tuple(part.calls for _, part in self.terms))

    @property
    def as_sum(self) -> tuple[WeightedFunctions, float]:
        """The function as a flat weighted sum of functions, and a constant."""
        return (self.terms, self.base) if self.terms else super().as_sum

    def _sum_of(self, terms: WeightedFunctions, base: float) -> TextFunction:
        """A weighted sum of functions of the same documents."""
        parts = [(w, part) for w, part in terms if isinstance(part, TextFunction)]
        if len(parts) < len(terms):
            raise InvalidInput(
                f"{self!r}: {NO_SUM}; this is a function of texts, and functions of "
                "the same texts can be added to it"
            )
        for _, part in parts:
            differs = self.text_schema.difference(part.text_schema)
            if differs is not None:
                raise InvalidInput(
                    f"{self!r} and {part!r}: {NO_SUM}; their {differs} differ; use "
                    "one po.functions.TextSchema.of(texts, rule) as data= of both wraps"
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
        """Values f(x_n) of any texts, shape (N,); their words may be new.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.

        Raises
        ------
        InvalidInput
            If X is no sequence of texts, or a value of f is not finite.
        """
        texts, _ = read_texts(X, "X")
        return self.texts_value(texts)

    def texts_value(self, texts: Iterable[str], *, finite: bool = True) -> Values:
        """Values of any texts, shape (n,); calls are counted.

        Parameters
        ----------
        texts : iterable of str
            The texts; they may be generated lazily, and are consumed in batches.
        finite : bool
            Whether values must be finite.

        Returns
        -------
        array (n,)
            The value of each text, in units of the output.

        Raises
        ------
        InvalidInput
            If a value is not finite; the message names the first such text.
        """
        parts = []
        for batch in self._batches(texts):
            call = partial(self._call_model, self.readout, batch)
            parts.append(self.calls.counted(call, batch))
            if not self.trial.done:
                few = batch[: min(TRIAL_ROWS, self.batch_rows)]
                call_few = partial(
                    self._call_model, self.readout.values_with_precision, few
                )
                self.trial.call_twice(call_few, len(few), self.calls, self)
            good = np.isfinite(parts[-1])
            if finite and not good.all():
                n = int(good.argmin())
                raise InvalidInput(
                    self.nonfinite_message(float(parts[-1][n]), batch[n])
                )
        return np.concatenate(parts) if parts else np.empty(0)

    def _call_model(
        self, call: Callable[[Any, Labels], _Result], texts: list[str]
    ) -> _Result:
        """The result of the model; an error gets a note on its texts."""
        try:
            return call(texts, Labels())
        except Exception as error:
            error.add_note(
                f"{self!r} was given {len(texts)} texts, of which the first is "
                f"{shown(texts[0])}"
            )
            raise

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Lists of bounded size; a single text may exceed the bound."""
        most = min(MODEL_CALLS.n_rows, self.batch_rows)
        batch = list[str]()
        size = 0
        for text in texts:
            more = CHARACTER_BYTES * len(text)
            if batch and (len(batch) >= most or size + more > MODEL_CALLS.n_bytes):
                yield batch
                batch = []
                size = 0
            batch.append(text)
            size += more
        if batch:
            yield batch

    def nonfinite_message(self, value: float, text: str) -> str:
        """The error message for a value that is not finite.

        Parameters
        ----------
        value : float
            The value: NaN or infinite.
        text : str
            The text that has it; the message shows its beginning.

        Returns
        -------
        str
            The message, with advice.
        """
        return (
            f"{self!r}: the value is {value} for the text {shown(text)}; texts in "
            "which words are deleted, and the empty one, need finite values too"
        )

    @property
    def has_structure(self) -> bool:
        """Whether f is known in closed form for all deletions of words."""
        return not isinstance(self.structure, Reason)

    def subsets(self, document: TextDocument) -> SetFunction | Reason:
        """The output as an exact function of retained words, or the reason why not."""
        if isinstance(self.structure, Reason):
            return self.structure
        return self.structure.at(document)

    def of_document(self, document: TextDocument | str) -> DocumentFunction:
        """The output for one document, as a function of which of its d words remain.

        Parameters
        ----------
        document : TextDocument or str
            Any document, not only those of the schema.
        """
        if not isinstance(document, TextDocument):
            document = self.text_schema.document_of(document)
        return DocumentFunction(self, document)

    def documents_of(self, X: Any) -> list[TextDocument]:
        """Convert strings to documents; unknown words raise an error.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.

        Returns
        -------
        list of TextDocument
            The N documents.

        Raises
        ------
        InvalidInput
            If an item is no text, or has a word that is not in the vocabulary.
        """
        return self.text_schema.read(X)[0]

    def documents_at(self, points: Points, labels: Labels) -> list[TextDocument]:
        """The documents of rows of counts, from the texts of their labels.

        Parameters
        ----------
        points : array (n, D)
            The count of each word.
        labels : Labels
            The labels that :meth:`read` returned, which have the texts.

        Returns
        -------
        list of TextDocument
            The n documents.

        Raises
        ------
        InvalidInput
            If the labels have no texts, or texts with other counts.
        """
        schema = self.text_schema
        documents = [schema.document_of(text) for text in labels.texts or ()]
        same = len(documents) == len(points)
        if not same or not all(map(schema.has_counts, documents, points)):
            raise InvalidInput(
                f"{self!r}: rows of word counts need the labels that read(texts) "
                "returns with them; explain the texts themselves"
            )
        return documents

    def _value(self, points: Points, labels: Labels, /) -> Values:
        texts = (document.text for document in self.documents_at(points, labels))
        return self.texts_value(texts, finite=False)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        documents = self.documents_at(points, labels)
        return self.text_schema.in_columns(documents, self.effects_in(documents))

    def effects_in(
        self, documents: Sequence[TextDocument], retained: Sequence[Mask] | None = None
    ) -> list[Values]:
        """The effect of each word, f minus f without it, as an array (d,) per document.

        Parameters
        ----------
        documents : sequence of TextDocument
            Any documents, not only those of the schema.
        retained : sequence of arrays (d,), optional
            The words that the documents retain; all by default. Effects are for these.

        Returns
        -------
        list of arrays
            For each document the effects of its retained words, in units of the output.

        Raises
        ------
        InvalidInput
            If a value of f is not finite.
        """
        if retained is None:
            retained = [np.ones(document.n_words, bool) for document in documents]
        pairs = list(zip(documents, retained, strict=True))
        values = self.texts_value(document.without(bits) for document, bits in pairs)
        without = self.texts_value(
            text for pair in pairs for text in without_each(*pair)
        )
        ends = np.cumsum([bits.sum() for bits in retained], dtype=np.intp)
        parts = np.split(without, ends)[: len(pairs)]
        return [value - part for value, part in zip(values, parts, strict=True)]


def _added(
    terms: Sequence[tuple[float, TextFunction]], base: float, texts: list[str]
) -> Values:
    """The sum base + Σ_k weight_k f_k of texts, (n,); each part is called once."""
    values = np.full(len(texts), base)
    for weight, part in terms:
        values += weight * part.texts_value(texts, finite=False)
    return values


def _sum_of_structures(
    parts: Sequence[tuple[float, TextFunction]], base: float
) -> AddedTexts | Reason:
    """The structure of a sum; the reason of the first part without one."""
    structures = []
    for weight, part in parts:
        if isinstance(part.structure, Reason):
            return part.structure
        structures.append((weight, part.structure))
    return AddedTexts(tuple(structures), base)
