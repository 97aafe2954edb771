"""Documents as rows of a table: how often each word of a vocabulary comes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pandas as pd

from propopt._typing import Points
from propopt.errors import InvalidInput
from propopt.tables.names import Labels
from propopt.tables.text.document import Document
from propopt.tables.text.words import PatternWords, WordRule


@final
@dataclass(frozen=True, eq=False, repr=False)
class TextSchema:
    """The words of documents as D columns: what :class:`TableSchema` is of tables.

    The documents that it was made of are known by their counts, so that ``decode``
    gives them back as they were written.

    Parameters
    ----------
    rule : WordRule
        What a word is.
    vocabulary : tuple of str (D,)
        All words, in the order in which they first come.
    documents : tuple of Document
        Those that the schema was made of.
    names : tuple or None
        Their names, such as the index of a Series.

    Examples
    --------
    >>> import propopt as po
    >>> schema = po.TextSchema.of(["good food", "no good"])
    >>> points, labels = schema.encode(["good good food"])
    >>> points, labels.features
    (array([[2., 1., 0.]]), ('good', 'food', 'no'))
    """

    rule: WordRule
    vocabulary: tuple[str, ...]
    documents: tuple[Document, ...]
    names: tuple[Hashable, ...] | None = None

    @classmethod
    def of(cls, documents: Any, rule: WordRule | None = None) -> TextSchema:
        """The schema of documents.

        Parameters
        ----------
        documents : sequence of str, Series or array (N,)
            The texts.
        rule : WordRule, optional
            What a word is; by default that of the package ``lime``.

        Raises
        ------
        InvalidInput
            If they are no texts.
        """
        own = PatternWords() if rule is None else rule
        texts, names = read_texts(documents, "documents")
        found = tuple(Document.of(text, own) for text in texts)
        words = dict.fromkeys(word for document in found for word in document.words)
        return cls(own, tuple(words), found, names)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each word stands in the vocabulary."""
        return {word: j for j, word in enumerate(self.vocabulary)}

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Counts of the words (N, D), with the names of rows and words.

        Raises
        ------
        InvalidInput
            If X are no texts, or one has a word that is not in the vocabulary.
        """
        texts, names = read_texts(X, what)
        points = np.zeros((len(texts), len(self.vocabulary)))
        for n, text in enumerate(texts):
            document = Document.of(text, self.rule)
            unknown = [w for w in document.words if w not in self.places]
            if unknown:
                raise InvalidInput(
                    f"{what}: document {n} has words that are not in `data`: "
                    f"{', '.join(map(repr, unknown[:5]))}"
                )
            points[n, [self.places[w] for w in document.words]] = document.counts
        return points, Labels(names, self.vocabulary)


def is_documents(X: object) -> bool:
    """Whether X are documents: strings in a sequence, a Series or an array."""
    if isinstance(X, pd.Series):
        return bool(len(X)) and isinstance(X.iloc[0], str)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and bool(len(X)) and isinstance(X[0], str)
    return isinstance(X, list | tuple) and bool(X) and isinstance(X[0], str)


def read_texts(X: object, what: str) -> tuple[list[str], tuple[Hashable, ...] | None]:
    """The texts, and their names where they are a Series.

    Raises
    ------
    InvalidInput
        If they are no texts; the first that is none is named.
    """
    if isinstance(X, str) or not isinstance(X, Sequence | np.ndarray | pd.Series):
        raise InvalidInput(
            f"{what}: expected a list or Series of texts, got {type(X).__name__}"
        )
    texts = list(X)
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput(
                f"{what}: expected texts, and number {n} is {type(text).__name__}"
            )
    if not texts:
        raise InvalidInput(f"{what}: there is no document")
    return texts, tuple(X.index) if isinstance(X, pd.Series) else None
