"""Baselines on documents: samples, the package, Shapley values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Points, Values
from propopt.base.resources import DrawPlan
from propopt.base.text import Reason
from propopt.explaining.explainers.baseline import Findings, Request
from propopt.functions.texts import DocumentFunction, TextFunction
from propopt.laws.perturbations import shapley_orders
from propopt.laws.regressions import Neighbourhood
from propopt.lime.package_runs import TEXT_WIDTH, package_run
from propopt.lime.text.text_reading import TextLaw, enumerated_words, read_documents
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
from propopt.structures.subsets.words import word_shapley
from propopt.tables.documents import Document, PatternWords


# ---- Samples of a text: words are deleted by a law, and f is regressed on the others


def around_texts(
    law: TextLaw,
    n_samples: int,  # S
    first_row: bool,  # whether the text itself is the first of them, with weight one
    points: Points,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Neighbourhood]]:
    """Samples of a text for each row of ones (n, d), with their bits as regressors."""
    for n, row in enumerate(points):
        bits, weights = law.draw(len(row), n_samples, rng)
        if first_row:
            bits[0], weights[0] = True, 1.0
        kept = bits.astype(np.float64)[None]
        zeros, ones = np.zeros((1, len(row))), np.ones((1, len(row)))
        near = Neighbourhood(kept, kept, weights[None], zeros, ones, ones)
        yield slice(n, n + 1), near


# ---- The package ``lime`` on one document


def package_on_text(
    request: Request, kernel_width: float | None, n_samples: int
) -> Findings:
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

    coefficients, intercept, score = package_run(
        values,
        text,
        len(words),
        n_samples,
        TEXT_WIDTH if kernel_width is None else kernel_width,
        int(request.rng.integers(2**32)),
    )
    return Findings(
        attributions=coefficients[None],
        details={"intercept": np.array([intercept]), "r2": np.array([score])},
    )


# ---- Shapley values of the words of documents: exact where that is possible


DRAWS: Final = DrawPlan(100)
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
    ) -> list[DocumentShapley]:
        """Exactly where f is read, and where all sets cost no more than draws do."""
        readings = read_documents(function, documents)
        for reading in readings:
            reading.refuse()
        result = []
        for document, reading in zip(documents, readings, strict=True):
            d, read = document.n_words, reading.words
            # orders ask for each text on their way, and share both ends
            n_draws = 2 * DRAWS.n_samples * (d - 1) + 2
            if d == 0:
                own = cls(np.zeros(0), "exact")
            elif not isinstance(read, Reason):
                own = cls(word_shapley(read), "exact")
            elif d <= MOST_ENUMERATED and 2**d <= n_draws:
                values = word_shapley(enumerated_words(function, document))
                own = cls(values, "exact (all sets of words)", reason=read.reason)
            else:
                at = function.of_document(document)
                nothing, text = np.zeros((1, d)), np.ones((1, d))
                drawn = shapley_orders(at.value_at, nothing, text, rng, DRAWS)
                blocks = drawn.blocks[0][:, 0]
                source = "orders of the words"
                own = cls(blocks.mean(axis=0), source, blocks, read.reason)
            result.append(own)
        return result
