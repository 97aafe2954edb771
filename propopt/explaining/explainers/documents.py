"""Baselines on documents: limits, samples, the package, Shapley values."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Points, Values
from propopt.base.errors import EstimatedWarning
from propopt.base.text import Reason
from propopt.explaining.explainers.baseline import (
    Request,
    WordsFound,
    effect_of_the_word,
)
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.laws.draws import N_BLOCKS
from propopt.laws.perturbations import shapley_blocks
from propopt.laws.regressions import Neighbourhood
from propopt.lime.package_runs import TEXT_WIDTH, package_run
from propopt.lime.text.explaining_texts import explanation_of_texts
from propopt.lime.text.text_explanation import TextSubject
from propopt.lime.text.text_reading import TextLaw, enumerated_words, read_documents
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
from propopt.structures.subsets.sets import SetFunction
from propopt.structures.subsets.words import word_shapley
from propopt.tables.documents import Document, PatternWords


# ---- What LIME on texts tends to, for one document of a baseline


def limits_of_words(request: Request, law: TextLaw, n_samples: int) -> WordsFound:
    """The coefficients of infinitely many samples; estimated where f is not read.

    Of one word they are its effect: there the document itself is a sample too.
    """
    at = request.function
    assert isinstance(at, DocumentFunction), "see Baseline"
    short = effect_of_the_word(request)
    if short is not None:
        return short
    subject = TextSubject(
        function=at.function,
        law=law,
        documents=(at.document,),
        n_samples=n_samples,
        seed=int(request.rng.integers(2**32)),
    )
    row = explanation_of_texts(subject, progress=False).rows[0]
    if not row.is_exact:
        warnings.warn(
            f"exact_lime: coefficients are estimated: {row.reason}",
            EstimatedWarning,
            stacklevel=2,
        )
    return WordsFound(
        attributions=np.asarray(row.coefficients),
        standard_errors=np.asarray(row.errors),
        details={"intercept": row.intercept, "local_gap": row.value - row.at_row},
    )


# ---- Samples of a text: words are deleted by a law, and f is regressed on the others


@final
@dataclass(frozen=True, eq=False)
class TextNeighbourhoods:
    """Samples of a law of words, with their bits as regressors."""

    law: TextLaw  # how words are deleted, and the weights
    n_samples: int  # S
    first_row: bool  # whether the text itself is the first of them, with weight one

    def around(
        self, points: Points, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples of the same text for each row of ones (n, d)."""
        for n, row in enumerate(points):
            bits, weights = self.law.draw(len(row), self.n_samples, rng)
            if self.first_row:
                bits[0], weights[0] = True, 1.0
            kept = bits.astype(np.float64)[None]
            zeros, ones = np.zeros((1, len(row))), np.ones((1, len(row)))
            near = Neighbourhood(kept, kept, weights[None], zeros, ones, ones)
            yield slice(n, n + 1), near


# ---- The package ``lime`` on one document


def package_on_text(
    request: Request, kernel_width: float | None, n_samples: int
) -> WordsFound:
    """A run of ``LimeTextExplainer`` that keeps all words.

    The package finds words by itself, as ``PatternWords()`` does. Where those of the
    function are others, it is given a text of as many words that stand for them, and of
    the document those are deleted that it deletes: the law of its samples is the same.
    """
    at = request.function
    assert isinstance(at, DocumentFunction), "see Baseline"
    function, document = at.function, at.document
    text, words, values = document.text, document.words, function.texts_value
    if function.text_schema.rule != PatternWords():
        words = tuple(f"word{place}" for place in range(at.n_words))
        text = " ".join(words)

        def values(texts: Iterable[str]) -> Values:
            kept = (set(text.split()) for text in texts)
            bits = np.array([[word in own for word in words] for own in kept])
            return function.texts_value(document.each(bits))

    fit = package_run(
        values,
        text,
        len(words),
        n_samples,
        TEXT_WIDTH if kernel_width is None else kernel_width,
        int(request.rng.integers(2**32)),
    )
    return WordsFound(
        attributions=fit.coefficients,
        details={"intercept": fit.intercept, "r2": fit.score},
    )


# ---- Shapley values of the words of documents: exact where that is possible


N_PAIRS: Final = 100
"""Orders of the words of a document that is not read, each walked both ways."""


@final
@dataclass(frozen=True, eq=False)
class DocumentShapley:
    """What each word of a document adds to f, and how that is known."""

    values: Values  # (d,): φ, which add up to f(text) − f(empty text)
    source: str  # in words
    # (10, d): of draws, whose mean φ is; None where it is exact
    blocks: Array | None = None
    reason: str = ""  # why f was not read; empty where it was

    @classmethod
    def all_of(
        cls,
        function: TextFunction,
        documents: Sequence[Document],
        rng: np.random.Generator,
        n_pairs: int = N_PAIRS,
    ) -> list[DocumentShapley]:
        """Exactly where f is read, and where all sets cost no more than draws do."""
        result = read_documents(function, documents)
        for reading in result:
            reading.refuse()
        return [
            cls._of(function, document, reading.words, rng, n_pairs)
            for document, reading in zip(documents, result, strict=True)
        ]

    @classmethod
    def _of(
        cls,
        function: TextFunction,
        document: Document,
        read: SetFunction | Reason,
        rng: np.random.Generator,
        n_pairs: int,
    ) -> DocumentShapley:
        d = document.n_words
        if d == 0:
            return cls(np.zeros(0), READ)
        if not isinstance(read, Reason):
            return cls(word_shapley(read), READ)
        if d <= MOST_ENUMERATED and 2**d <= n_draws(d, n_pairs):
            every = enumerated_words(function, document)
            return cls(word_shapley(every), ALL_SETS, reason=read.reason)
        at = function.of_document(document)
        nothing, text = np.zeros((1, d)), np.ones((1, d))
        blocks = shapley_blocks(at.value_at, nothing, text, rng, n_pairs)[:, 0]
        return cls(blocks.mean(axis=0), ORDERS, blocks, read.reason)


READ: Final = "exact"
ALL_SETS: Final = "exact (all sets of words)"
ORDERS: Final = "orders of the words"


def n_draws(n_words: int, n_pairs: int = N_PAIRS) -> int:
    """Texts that orders of so many words ask for."""
    pairs = N_BLOCKS * -(-n_pairs // N_BLOCKS)
    return 2 * pairs * max(n_words - 1, 0) + 2
