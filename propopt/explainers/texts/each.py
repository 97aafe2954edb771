"""Any baseline on documents: each by itself, as a function of its words.

A document is a row of d words, each present or absent
(:class:`propopt.functions.text.DocumentFunction`), and the background of methods that
have one is the document without any word. What they say of its words is put into a
table of all words, in which words that are not in a document have 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from propopt._typing import Array
from propopt.explainers.request import Request
from propopt.functions.text import TextFunction
from propopt.tables.names import Labels
from propopt.tables.text import Document


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WordsFound:
    """What a method says of one document.

    Parameters
    ----------
    attributions : array (d,)
        One for each word.
    standard_errors : array (d,) or None
        Where it knows them.
    details : dict
        Numbers of the document, such as an intercept.
    """

    attributions: Array
    standard_errors: Array | None = None
    details: dict[str, float] = field(default_factory=dict)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentTable:
    """Texts that are explained, and where their words stand.

    Parameters
    ----------
    function : TextFunction
        f.
    documents : sequence of Document (N,)
        The texts.
    labels : Labels
        Names of documents and words.
    """

    function: TextFunction
    documents: Sequence[Document]
    labels: Labels

    @classmethod
    def of(cls, function: TextFunction, X: Any) -> DocumentTable:
        """Those of texts, all of whose words are in the vocabulary."""
        _, labels = function.read(X)
        documents = function.documents_of(X)
        return cls(function=function, documents=documents, labels=labels)

    def attributions(self, found: Sequence[WordsFound]) -> Array:
        """Of all words, (N, V)."""
        return self._placed([words.attributions for words in found])

    def standard_errors(self, found: Sequence[WordsFound]) -> Array | None:
        """Of all words, (N, V); None where none are known."""
        if all(words.standard_errors is None for words in found):
            return None
        return self._placed([_errors(words) for words in found])

    def details(self, found: Sequence[WordsFound]) -> dict[str, Array]:
        """Numbers of each document, (N,); NaN for a document that has none."""
        names = dict.fromkeys(name for words in found for name in words.details)
        return {
            name: np.array([words.details.get(name, np.nan) for words in found])
            for name in names
        }

    def _placed(self, of_words: Sequence[Array]) -> Array:
        return self.function.text_schema.placed(self.documents, of_words)


def request_of_document(
    function: TextFunction, document: Document, rng: np.random.Generator
) -> Request:
    """What a method is asked of one document: a row of ones, and draws of its own."""
    at = function.of_document(document)
    return Request(
        function=at,
        points=np.ones((1, at.n_words)),
        labels=Labels(features=at.features),
        rng=np.random.default_rng(rng.integers(2**63)),
    )


def _errors(words: WordsFound) -> Array:
    if words.standard_errors is None:
        return np.zeros(len(words.attributions))
    return words.standard_errors


def effect_of_the_word(request: Request) -> WordsFound | None:
    """What LIME says of a document of one word: its effect; None of other documents.

    The word is deleted in all samples but the first, which is the document itself, so
    that the fit has f without it as intercept, and its effect as slope.
    """
    if request.points.shape[1] != 1:
        return None
    effect = request.gradient(request.points)[0]
    without = request.value(np.zeros((1, 1)))[0]
    return WordsFound(attributions=effect, details={"intercept": float(without)})
