"""Documents of a problem file: their sizes, and what a model learns of them."""

from __future__ import annotations

import pandas as pd

from propopt.problems.extent import Extent
from propopt.problems.sources.base import Source
from propopt.problems.subject.data import Data
from propopt.problems.subject.models.base import LearnedSection, ModelSection
from propopt.problems.subject.models.vectorizers import TFIDF, VectorizerSection
from propopt.tables.text import PatternWords


def extent_of_documents(data: Data, texts: pd.Series[str]) -> Extent:
    """Sizes of documents, of which the first in this order are explained.

    Words are those of the package ``lime``; a model may know fewer.
    """
    rule = PatternWords()
    explained = texts.iloc[: data.explain]
    words = {found.word for text in explained for found in rule.find(text)}
    return Extent.of(data, len(texts), max(len(words), 1))


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """What makes numbers of documents for a model of a file; None where nothing does.

    An imported model makes them itself.
    """
    if data.text is None or not isinstance(spec, LearnedSection):
        return None
    return spec.vectorizer or TFIDF


def learned_words(
    data: Data, spec: ModelSection | None, texts: pd.Series[str], source: Source
) -> list[str]:
    """The columns that a model learns: words that are counted in these documents.

    Raises
    ------
    ProblemFileError
        If there is none.
    """
    vectorizer = vectorizer_of(data, spec)
    if vectorizer is None:
        return []
    with source.blaming("model", "vectorizer"):
        return vectorizer.vocabulary(texts.tolist())
