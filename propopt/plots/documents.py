"""Texts with their words highlighted in shades of their attributions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.html import HighlightedText, MarkedText, highlighted
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.functions.texts import TextFunction
from propopt.lime.documents import LimeDocuments
from propopt.results.explanation import Explanation, explanation_of
from propopt.tables.documents import (
    MarkedWords,
    PatternWords,
    TextDocument,
    TextSchema,
    VectoriserWords,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike


_RULES: Final[tuple[WordRule, ...]] = (
    PatternWords(),
    MarkedWords(),
    VectoriserWords(),
)
"""The default rules that split a text into words; the better match is used."""


@suggests_arguments
def highlight(
    explanation: LimeDocuments | AttributionsLike,
    documents: Any = None,
    rows: Sequence[Hashable] | Hashable | None = None,
    *,
    words: WordRule | TextSchema | TextFunction | None = None,
    n_words: int = 10,
    max_rows: int = 10,
) -> HighlightedText:
    """Show texts with their words highlighted in shades of their attributions.

    Words that raise the output are orange and underlined; words that lower it are blue
    and dotted. Larger attributions have stronger shades, on one scale for all texts,
    with a legend. Words below a twentieth of the largest attribution are plain, and so
    are words within two standard errors of zero. A table below each text lists the
    largest attributions. Notebooks show the result; ``to_html`` writes it as a page.

    Texts are escaped and keep their writing direction. Invisible characters, and
    characters that change the writing direction, appear as escapes.

    Parameters
    ----------
    explanation : LimeDocuments, Explanation, DataFrame or array (N, D)
        A result of :func:`propopt.lime.text_limits`; or attributions of the words of
        documents, such as those of :func:`propopt.explain`, with words as column names.
    documents : sequence of str or Series (N,), optional
        The texts, in the order of the rows; not needed with ``LimeDocuments``.
    rows : label, int or sequence of them, optional
        The documents to show; by default the first ``max_rows``.
    words : WordRule, TextSchema or TextFunction, optional
        The rule that splits a text into words. By default that of the package ``lime``,
        with marks or without, or that of vectorisers (lower case), whichever matches
        more attributions. Each
        text reports attributions without a matching word.
    n_words : int
        The number of attributions listed below each text, the largest.
    max_rows : int
        The number of texts shown if ``rows`` is not given.

    Returns
    -------
    HighlightedText
        The texts as HTML, shown by notebooks.

    Raises
    ------
    InvalidInput
        If a row does not exist, or if the documents do not match the attributions.

    Examples
    --------
    >>> import propopt as po
    >>> lime = po.lime.text_limits(
    ...     lambda texts: [1.0 * ("good" in text) for text in texts], ["a <good> day"]
    ... )
    >>> shown = po.plots.highlight(lime)
    >>> "&lt;<span style=" in shown.html
    True
    """
    count = read_count(n_words, "n_words")
    most = read_count(max_rows, "max_rows")
    if isinstance(explanation, LimeDocuments):
        indices = _row_numbers(rows, explanation.labels, len(explanation.records), most)
        return highlighted(
            [explanation.marked_text(n) for n in indices],
            f"LIME, infinite samples: {plural(len(explanation.records), 'document')}",
            explanation.units,
            [explanation.law_in_words],
            count,
        )
    result = explanation_of(explanation, "given")
    texts = _texts(result, documents)
    indices = _row_numbers(rows, result.labels, len(texts), most)
    names = result.labels.feature_names(result.shape[1])
    columns = {str(name): j for j, name in enumerate(names)}
    shown = _documents(words, texts, result, columns, indices)
    return highlighted(
        [_marked(result, columns, n, shown[n]) for n in indices],
        f"{result.method}: {len(texts)} documents",
        result.units_in_words.replace("each feature", "each word"),
        (),
        count,
    )


def _texts(result: Explanation, documents: Any) -> list[str]:
    if documents is None:
        raise InvalidInput(
            "documents: expected the texts of the attributions, got none"
        )
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


def _row_numbers(
    rows: Sequence[Hashable] | Hashable | None, labels: Labels, n: int, most: int
) -> list[int]:
    if rows is None:
        return list(range(min(n, most)))
    if isinstance(rows, str | int | np.integer) or not isinstance(rows, Sequence):
        return [labels.position(rows, n)]
    return [labels.position(row, n) for row in rows]


def _documents(
    words: WordRule | TextSchema | TextFunction | None,
    texts: list[str],
    result: Explanation,
    columns: Mapping[str, int],
    indices: list[int],
) -> dict[int, TextDocument]:
    """The texts split by the given rule, or by the one that matches best."""
    if isinstance(words, TextFunction):
        words = words.text_schema
    rule = words.rule if isinstance(words, TextSchema) else words

    def unmatched(documents: dict[int, TextDocument]) -> float:
        absent = (_absent(result, columns, n, text) for n, text in documents.items())
        return sum(float(np.abs(values).sum()) for values in absent)

    candidates = [
        {n: TextDocument.of(texts[n], candidate) for n in indices}
        for candidate in (_RULES if rule is None else (rule,))
    ]
    return min(candidates, key=unmatched)


def _absent(
    result: Explanation, columns: Mapping[str, int], n: int, document: TextDocument
) -> Array:
    """Non-zero attributions of words that are not in a document."""
    values = np.array(result.attributions[n])
    values[[columns[word] for word in document.words if word in columns]] = 0.0
    return values[values != 0.0]


def _marked(
    result: Explanation, columns: Mapping[str, int], n: int, document: TextDocument
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
