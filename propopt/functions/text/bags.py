"""Models that count the words of a text, and see nothing else of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from propopt.structures.tfidf.entries import CountsWords
from propopt.structures.tfidf.vectorisers import VECTORISERS
from propopt.tables.text import TextSchema


def bag_refusal(vectorisers: Sequence[CountsWords], schema: TextSchema) -> str | None:
    """Why counts of words do not tell what a model says; None if they do.

    Vectorisers that count single words do, where they find the same in each document of
    the schema and in the bag of its words.

    Parameters
    ----------
    vectorisers : sequence of vectorisers
        All that the model sees of texts; none if it sees more.
    schema : TextSchema
        The words, and documents to try.
    """
    if not vectorisers:
        return "the order of words may matter to the model"
    reasons = (_refusal(vectoriser, schema) for vectoriser in vectorisers)
    return next((reason for reason in reasons if reason is not None), None)


def _refusal(vectoriser: CountsWords, schema: TextSchema) -> str | None:
    if type(vectoriser) not in VECTORISERS:
        return f"{type(vectoriser).__name__} may count more than words"
    if vectoriser.analyzer != "word" or tuple(vectoriser.ngram_range) != (1, 1):
        return "the model counts more than single words"
    analyse = vectoriser.build_analyzer()
    for n, document in enumerate(schema.documents):
        bag = schema.bag(schema.counts([document])[0])
        if Counter(analyse(document.text)) != Counter(analyse(bag)):
            return f"the model reads other words in document {n} than the rule finds"
    return None
