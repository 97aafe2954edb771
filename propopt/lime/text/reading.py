"""What a model of texts is read as, believed once it is what the model answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Truths, Values
from propopt.errors import InvalidInput
from propopt.functions.answers import allowed_difference, precision_of
from propopt.functions.text import TextFunction
from propopt.structures.subsets import Enumerated, NoSetFunction, SetFunction
from propopt.structures.subsets.sets import random_sets
from propopt.tables.text import Document


_N_COMPARED: Final = 16
"""Random sets of words, beside all words, none, and some words alone left out."""

_TOLERANCE: Final = 1e-5
"""Of the range of f over sets of words, by which what was read may differ."""


@final
@dataclass(frozen=True, eq=False)
class DocumentReading:
    """What is known of a function at a document before more of it is asked.

    Parameters
    ----------
    value : float
        f of the document; NaN where it is not finite.
    words : SetFunction or NoSetFunction
        What f is there, as a function of which words are kept, or why that is not
        known.
    refusal : str
        The text for which f has no finite value; empty if there is none.
    """

    value: float
    words: SetFunction | NoSetFunction
    refusal: str = ""

    def refuse(self) -> None:
        """Raise what is wrong, if anything is."""
        if self.refusal:
            raise InvalidInput(self.refusal)


def checked_subsets(
    function: TextFunction, document: Document
) -> SetFunction | NoSetFunction:
    """The function of the words of a document, if it is what the model answers there.

    It is compared with the model at the document, at the text without words, with some
    words left out, and at random sets of words.

    Parameters
    ----------
    function : TextFunction
        f.
    document : Document
        Any.

    Returns
    -------
    SetFunction or NoSetFunction
        The reason names the largest difference, where there is one.

    Raises
    ------
    InvalidInput
        If the model has no finite value there.
    """
    (found,) = read_documents(function, [document])
    found.refuse()
    return found.words


def read_documents(
    function: TextFunction,
    documents: Sequence[Document],
    told: Callable[[int], object] = lambda _: None,
) -> list[DocumentReading]:
    """The same of many documents, for which the model is called together.

    A model that is read is given 34 texts for each document, and any other the document
    itself.

    Parameters
    ----------
    function : TextFunction
        f.
    documents : sequence of Document
        Any.
    told : callable, optional
        Told how many were read, each time.
    """
    words = []
    for document in documents:
        words.append(_words(function, document))
        told(1)
    values = function.asked.values(
        text
        for document, found in zip(documents, words, strict=True)
        for text in document.each(_asked(document, found))
    )
    parts = _parted(values, documents, words)
    return [
        _believed(function, *own) for own in zip(documents, words, parts, strict=True)
    ]


def _words(function: TextFunction, document: Document) -> SetFunction | NoSetFunction:
    if document.n_words == 0:
        return NoSetFunction("there is no word in it")
    return function.subsets(document)


def _asked(document: Document, words: SetFunction | NoSetFunction) -> Truths:
    """What the model is asked: the document itself comes first."""
    if isinstance(words, NoSetFunction):
        return np.ones((1, document.n_words), bool)
    return compared_sets(document.n_words)


def _parted(
    values: Values,
    documents: Sequence[Document],
    words: Sequence[SetFunction | NoSetFunction],
) -> Iterator[Values]:
    """The values that belong to each document."""
    start = 0
    for document, found in zip(documents, words, strict=True):
        end = start + len(_asked(document, found))
        yield values[start:end]
        start = end


def _believed(
    function: TextFunction,
    document: Document,
    words: SetFunction | NoSetFunction,
    values: Values,
) -> DocumentReading:
    """What was read, if it is what the model answered."""
    bits = _asked(document, words)
    value = float(values[0]) if np.isfinite(values[0]) else np.nan
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong) > 0:
        text = document.without(bits[wrong[0]])
        return DocumentReading(
            value, words, function.asked.no_value(values[wrong[0]], text)
        )
    if isinstance(words, NoSetFunction):
        return DocumentReading(value, words)
    errors = np.abs(words.value(bits) - values)
    allowed = allowed_difference(values, _TOLERANCE, precision_of(values))
    worst = int(np.argmax(errors - allowed))
    if errors[worst] <= allowed[worst]:
        return DocumentReading(value, words)
    reason = (
        f"what the model was read as, {words!r}, differs from its answer by "
        f"{errors[worst]:.2g}, where answers range over {np.ptp(values):.2g}, with "
        f"{int(bits[worst].sum())} of {document.n_words} words kept"
    )
    return DocumentReading(value, NoSetFunction(reason))


def enumerated_words(function: TextFunction, document: Document) -> Enumerated:
    """The function of the words of a document, by asking for all its 2^d texts.

    Parameters
    ----------
    function : TextFunction
        f.
    document : Document
        Of at most 16 words.

    Raises
    ------
    InvalidInput
        If there are more, or the model has no finite value somewhere.
    """
    return Enumerated.of(
        lambda bits: function.texts_value(document.each(bits)), document.n_words
    )


def compared_sets(n_words: int) -> Truths:
    """Sets of words at which what was read is compared with the model, as bits.

    Parameters
    ----------
    n_words : int
        d.
    """
    rng = np.random.default_rng(0)
    alone = ~np.eye(n_words, dtype=bool)[rng.permutation(n_words)[:_N_COMPARED]]
    sizes = rng.integers(0, n_words + 1, _N_COMPARED)
    ends = np.array([[True], [False]]).repeat(n_words, axis=1)
    return np.concatenate([ends, alone, random_sets(n_words, sizes, rng)])
