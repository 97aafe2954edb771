"""Models that count the words of a text, and see nothing else of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from propopt.tables.text import TextSchema


def bag_refusal(vectoriser: Any, schema: TextSchema) -> str | None:
    """Why counts of words do not tell what a model says; None if they do.

    A vectoriser that counts single words does, where it finds the same in each document
    of the schema and in the bag of its words.

    Parameters
    ----------
    vectoriser : estimator or None
        What the model sees of texts.
    schema : TextSchema
        The words, and documents to try.
    """
    if not isinstance(vectoriser, CountVectorizer | HashingVectorizer):
        return "the order of words may matter to the model"
    if vectoriser.analyzer != "word" or tuple(vectoriser.ngram_range) != (1, 1):
        return "the order of words matters to the model, which counts more than words"
    analyse = vectoriser.build_analyzer()
    for n, point in enumerate(map(schema.counts, ([d] for d in schema.documents))):
        text = schema.documents[n].text
        if Counter(analyse(text)) != Counter(analyse(schema.bag(point[0]))):
            return f"the model reads other words in document {n} than the rule finds"
    return None
