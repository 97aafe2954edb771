"""Documents of a problem file: their sizes, and what a model learns of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from propopt.problems.extent import Extent
from propopt.problems.sources.base import Source
from propopt.problems.subject.data import Data
from propopt.problems.subject.models.base import LearnedSection, ModelSection
from propopt.problems.subject.models.vectorizers import TFIDF, VectorizerSection
from propopt.tables.text import PatternWords


if TYPE_CHECKING:
    from propopt.problems.schema import ProblemSchema


def check_documents(schema: ProblemSchema, source: Source) -> None:
    """Refuse what explains no documents, and what is said of them where there are none.

    Raises
    ------
    ProblemFileError
        With the line of the setting.
    """
    spec = schema.model
    if schema.data.text is None:
        _refuse(spec, "vectorizer", "has no effect without data.text", source)
        return
    if spec is None or not spec.takes_texts:
        place, words = (
            ("function", "a formula") if spec is None else ("model", spec.words)
        )
        raise source.error(
            (place,), f"{words} takes numbers, and data.text are documents"
        )
    _refuse(spec, "smooth", "words are there or not; leave it out", source)


def _refuse(spec: ModelSection | None, name: str, message: str, source: Source) -> None:
    if spec is not None and name in spec.model_fields_set:
        raise source.error(("model", name), message)


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
