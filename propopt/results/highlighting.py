"""Texts with their words highlighted in shades of their attributions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.html import HighlightedText, MarkedText, highlighted
from propopt.base.text import plural
from propopt.proofs.optimum import Optimum
from propopt.tables.documents import (
    MarkedWords,
    PatternWords,
    TextDocument,
    VectoriserWords,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels


_RULES: Final[tuple[WordRule, ...]] = (
    PatternWords(),
    MarkedWords(),
    VectoriserWords(),
)
"""The default rules that split a text into words; the better match is used."""


def highlighted_words(
    explanation: Optimum,
    documents: Any,
    rows: Sequence[Hashable] | Hashable | None,
    words: WordRule | None,
    n_words: int,
    max_rows: int,
) -> HighlightedText:
    """Some documents with the attributions of their words."""
    texts = _texts(explanation, documents)
    indices = positions_of(rows, explanation.labels, len(texts), max_rows)
    names = explanation.labels.feature_names(explanation.shape[1])
    columns = {name: j for j, name in enumerate(names)}
    shown = _documents(words, texts, explanation, columns, indices)
    return highlighted(
        [_marked(explanation, columns, n, shown[n]) for n in indices],
        f"{explanation.method}: {len(texts)} documents",
        explanation.units_in_words.replace("each feature", "each word"),
        (),
        n_words,
    )


def _texts(result: Optimum, documents: Any) -> list[str]:
    texts, names = read_texts(documents, "documents")
    if len(texts) != result.shape[0]:
        raise InvalidInput(
            f"documents: expected {result.shape[0]}, one for each row of attributions, "
            f"got {len(texts)}"
        )
    labels = result.labels.points
    if names is not None and labels is not None and tuple(names) != tuple(labels):
        raise InvalidInput(
            "documents: expected the index of the attributions, got other labels or "
            "another order"
        )
    return texts


def positions_of(
    rows: Sequence[Hashable] | Hashable | None, labels: Labels, n: int, most: int
) -> list[int]:
    """Positions of the named rows, or of the first ones."""
    if rows is None:
        return list(range(min(n, most)))
    if isinstance(rows, str | int | np.integer) or not isinstance(rows, Sequence):
        return [labels.position(rows, n)]
    return [labels.position(row, n) for row in rows]


def _documents(
    words: WordRule | None,
    texts: list[str],
    result: Optimum,
    columns: Mapping[str, int],
    indices: list[int],
) -> dict[int, TextDocument]:
    """The texts split by the given rule, or by the one that matches best."""

    def unmatched(documents: dict[int, TextDocument]) -> float:
        absent = (_absent(result, columns, n, text) for n, text in documents.items())
        return sum(float(np.abs(values).sum()) for values in absent)

    candidates = [
        {n: TextDocument.of(texts[n], candidate) for n in indices}
        for candidate in (_RULES if words is None else (words,))
    ]
    return min(candidates, key=unmatched)


def _absent(
    result: Optimum, columns: Mapping[str, int], n: int, document: TextDocument
) -> Array:
    """Non-zero attributions of words that are not in a document."""
    values = np.array(result.attributions[n])
    values[[columns[word] for word in document.words if word in columns]] = 0.0
    return values[values != 0.0]


def _marked(
    result: Optimum, columns: Mapping[str, int], n: int, document: TextDocument
) -> MarkedText:
    """A document with the attributions of its words, NaN for words without one."""
    missing = [word for word in document.words if word not in columns]
    indices = np.array([columns.get(word, -1) for word in document.words], np.intp)
    weights = np.append(result.attributions[n], np.nan)[indices]
    errors = result.standard_errors
    word_errors = None if errors is None else np.append(errors[n], np.nan)[indices]
    name = result.labels.row(n)
    absent = _absent(result, columns, n, document)
    facts = []
    if missing:
        facts.append(f"{plural(len(missing), 'word')} without an attribution")
    if len(absent):
        count = plural(len(absent), "attribution")
        largest = np.abs(absent).max()
        facts.append(f"{count} of words that are not in the text, up to {largest:.3g}")
    return MarkedText(
        name=f"document {name}",
        facts=tuple(facts),
        text=document.text,
        spans=document.spans,
        words=document.words,
        weights=weights,
        errors=word_errors,
    )
