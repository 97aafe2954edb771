"""Texts with their words in shades of what is said of them."""

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
from propopt.lime.text.text_explanation import TextLimeExplanation, marked
from propopt.results.explanation import Explanation, explanation_of
from propopt.tables.documents import (
    PatternWords,
    TextDocument,
    TextSchema,
    VectoriserWords,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels
from propopt.tables.imported import AttributionsLike


_RULES: Final[tuple[WordRule, ...]] = (PatternWords(), VectoriserWords())
"""What words are where nothing is said."""


@suggests_arguments
def highlight(
    explanation: TextLimeExplanation | AttributionsLike,
    documents: Any = None,
    rows: Sequence[Hashable] | Hashable | None = None,
    *,
    words: WordRule | TextSchema | TextFunction | None = None,
    n_words: int = 10,
    max_rows: int = 10,
) -> HighlightedText:
    """Show texts with their words in shades of their attributions.

    Positive words are orange and underlined, negative ones blue with dots below; the
    larger an attribution, the darker its shade, and darker pages have lighter words.
    All texts share one scale, which a legend gives in numbers. Words below a twentieth
    of the largest number are plain, and so are those whose sign is not known, within
    two standard errors of zero. Below each text stands a table of the largest numbers.
    A notebook shows the result; ``to_html`` writes it as a page.

    Texts are escaped, right to left where they are written so, and characters that are
    not seen or turn the direction of writing are shown as escapes.

    Parameters
    ----------
    explanation : TextLimeExplanation, Explanation, DataFrame or array (N, D)
        Of :func:`propopt.lime.text_limits`; or attributions of the words of documents,
        such as those of :func:`propopt.explain`, with words as names of columns.
    documents : sequence of str or Series (N,), optional
        The texts, in the order of the rows; not needed with a ``TextLimeExplanation``.
    rows : label, int or sequence of them, optional
        Which documents; by default the first ``max_rows``.
    words : WordRule, TextSchema or TextFunction, optional
        What a word is; by default as in the package ``lime``, or in lower case as
        vectorisers have it, whichever finds the words that have attributions. A text
        says how many of these it does not have.
    n_words : int
        How many numbers are listed below each text, the largest.
    max_rows : int
        How many texts are shown where ``rows`` does not say.

    Returns
    -------
    HighlightedText

    Raises
    ------
    InvalidInput
        If there is no such row, or documents do not fit the attributions.

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
    if isinstance(explanation, TextLimeExplanation):
        indices = _places(rows, explanation.labels, len(explanation.rows), most)
        return highlighted(
            [marked(explanation, n) for n in indices],
            f"LIME on texts, its limits: {explanation.size_in_words}",
            explanation.units,
            list(explanation.claims()),
            count,
        )
    result = explanation_of(explanation, "given")
    texts = _texts(result, documents)
    indices = _places(rows, result.labels, len(texts), most)
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
        raise InvalidInput("documents: attributions do not know the texts; give them")
    texts, names = read_texts(documents, "documents")
    if len(texts) != result.shape[0]:
        raise InvalidInput(
            f"documents: expected {result.shape[0]}, as many as rows of attributions, "
            f"got {len(texts)}"
        )
    own = result.labels.points
    if names is not None and own is not None and tuple(names) != tuple(own):
        raise InvalidInput(
            "documents: their names are not those of the rows, in their order"
        )
    return texts


def _places(
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
    """The texts by the rule that is given, or by that which loses least."""
    if isinstance(words, TextFunction):
        words = words.text_schema
    rule = words.rule if isinstance(words, TextSchema) else words

    def lost(documents: dict[int, TextDocument]) -> float:
        absent = (_absent(result, columns, n, own) for n, own in documents.items())
        return sum(float(np.abs(values).sum()) for values in absent)

    each = [
        {n: TextDocument.of(texts[n], one) for n in indices}
        for one in (_RULES if rule is None else (rule,))
    ]
    return min(each, key=lost)


def _absent(
    result: Explanation, columns: Mapping[str, int], n: int, document: TextDocument
) -> Array:
    """Attributions of words that are not in a document, as far as they are not zero."""
    values = np.array(result.attributions[n])
    values[[columns[word] for word in document.words if word in columns]] = 0.0
    return values[values != 0.0]


def _marked(
    result: Explanation, columns: Mapping[str, int], n: int, document: TextDocument
) -> MarkedText:
    """A document with the attributions of its words; one that has none is plain."""
    unknown = [word for word in document.words if word not in columns]
    known = np.array([columns.get(word, -1) for word in document.words], np.intp)
    weights = np.append(result.attributions[n], np.nan)[known]
    errors = result.standard_errors
    own_errors = None if errors is None else np.append(errors[n], np.nan)[known]
    name = result.labels.row(n)
    absent = _absent(result, columns, n, document)
    facts = []
    if unknown:
        facts.append(f"{plural(len(unknown), 'word')} without an attribution")
    if len(absent):
        words = plural(len(absent), "attribution")
        largest = np.abs(absent).max()
        facts.append(f"{words} of words that are not in the text, up to {largest:.3g}")
    return MarkedText(
        name=f"document {name}",
        facts=tuple(facts),
        text=document.text,
        spans=document.spans,
        words=document.words,
        weights=weights,
        errors=own_errors,
    )
