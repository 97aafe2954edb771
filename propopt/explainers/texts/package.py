"""The package ``lime`` on one document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from propopt._typing import Values
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound
from propopt.functions.text import DocumentFunction
from propopt.lime.text.package import TEXT_WIDTH, package_run
from propopt.tables.text import PatternWords


def package_on_text(
    request: Request, kernel_width: float | None, n_samples: int
) -> WordsFound:
    """A run of ``LimeTextExplainer`` that keeps all words.

    The package finds words by itself, as ``PatternWords()`` does. Where those of the
    function are others, it is given a text of as many words that stand for them, and of
    the document those are deleted that it deletes: the law of its samples is the same.

    Parameters
    ----------
    request : Request
        Of a document.
    kernel_width : float or None
        Of the package, in hundredths of a bandwidth; None is its 25.
    n_samples : int
        Texts, of which the first is the document.

    Raises
    ------
    MissingExtra
        If ``lime`` is not installed.
    """
    at = request.function
    assert isinstance(at, DocumentFunction), "see Baseline"
    given = _given(at)
    fit = package_run(
        given.values,
        given.text,
        given.words,
        n_samples,
        TEXT_WIDTH if kernel_width is None else kernel_width,
        int(request.rng.integers(2**32)),
    )
    return WordsFound(
        attributions=fit.coefficients,
        details={"intercept": fit.intercept, "r2": fit.score},
    )


class _Given(NamedTuple):
    """What the package is given: a text, its words, and what f is of such texts."""

    text: str
    words: Sequence[str]
    values: Callable[[list[str]], Values]


def _given(at: DocumentFunction) -> _Given:
    function, document = at.function, at.document
    if function.text_schema.rule == PatternWords():
        return _Given(document.text, document.words, function.texts_value)
    tokens = [f"word{place}" for place in range(at.n_words)]

    def values(texts: list[str]) -> Values:
        kept = (set(text.split()) for text in texts)
        bits = np.array([[token in words for token in tokens] for words in kept])
        return function.texts_value(document.each(bits))

    return _Given(" ".join(tokens), tokens, values)
