"""Documents as rows of a table: how often each word of a vocabulary comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Points, Positions
from propopt.errors import InvalidInput
from propopt.memory import require_memory
from propopt.tables.names import Labels, listed
from propopt.tables.text.document import Document
from propopt.tables.text.lookup import Lookup
from propopt.tables.text.reading import read_texts
from propopt.tables.text.words import PatternWords, WordRule


@final
@dataclass(frozen=True, eq=False, repr=False)
class TextSchema:
    """The words of documents as D columns: what :class:`TableSchema` is of tables.

    A row of the encoded table says how often each word comes. The documents that the
    schema was made of are known by their counts, so that ``decode`` gives them back as
    they were written.

    Parameters
    ----------
    rule : WordRule
        What a word is.
    vocabulary : tuple of str (D,)
        All words, in the order in which they first come.
    documents : tuple of Document
        Those that the schema was made of.

    Examples
    --------
    >>> import propopt as po
    >>> schema = po.TextSchema.of(["Good food!", "no good"])
    >>> schema
    TextSchema(2 documents, 4 words)
    >>> points, labels = schema.encode(["Good food!"])
    >>> points, labels.features
    (array([[1., 1., 0., 0.]]), ('Good', 'food', 'no', 'good'))
    >>> schema.decode(points), schema.decode(2 * points)
    (['Good food!'], ['Good Good food food'])
    """

    rule: WordRule
    vocabulary: tuple[str, ...]
    documents: tuple[Document, ...]

    @classmethod
    def of(
        cls, documents: Any, rule: WordRule | None = None, what: str = "documents"
    ) -> TextSchema:
        """The schema of documents.

        Parameters
        ----------
        documents : sequence of str, Series or array (N,)
            The texts; they may be alike, and have no word at all.
        rule : WordRule, optional
            What a word is; by default that of the package ``lime``.
        what : str
            What errors call them.

        Raises
        ------
        InvalidInput
            If they are no texts; the first that is none is named.
        """
        own = PatternWords() if rule is None else rule
        texts, _ = read_texts(documents, what)
        found = tuple(Document.of(text, own) for text in texts)
        words = dict.fromkeys(word for document in found for word in document.words)
        return cls(own, tuple(words), found)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.documents)} documents, "
            f"{len(self.vocabulary)} words)"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The labels of the D columns: the words."""
        return self.vocabulary

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each word stands in the vocabulary."""
        return {word: j for j, word in enumerate(self.vocabulary)}

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Counts of the words (N, D), with the names of rows and words.

        Parameters
        ----------
        X : sequence of str, Series or array (N,)
            The texts.
        what : str
            What errors call them.

        Returns
        -------
        array (N, D), Labels

        Raises
        ------
        InvalidInput
            If X are no texts, or one has a word that is not in the vocabulary.
        Refused
            If so large a table does not fit into memory.
        """
        texts, names = read_texts(X, what)
        found = [self.document_of(text) for text in texts]
        self.check_words(found, what)
        points = self.counts(found)
        points.setflags(write=False)
        return points, Labels(
            names, self.vocabulary, self.vocabulary, texts=tuple(texts)
        )

    def document_of(self, text: str) -> Document:
        """The words of a text, by the rule of the schema."""
        return Document.of(text, self.rule)

    def columns_of(self, document: Document) -> Any:
        """Which column each word of a document is, (d,)."""
        return np.array([self.places[word] for word in document.words], np.intp)

    def counts(self, documents: Sequence[Document]) -> Points:
        """How often each word comes in documents, (n, D).

        Raises
        ------
        Refused
            If so large a table does not fit into memory.
        """
        n, d = len(documents), len(self.vocabulary)
        require_memory(
            8.0 * n * d,
            f"a table of {n:,} documents and {d:,} words",
            "give fewer documents at once, or a rule that finds fewer words",
        )
        return self.placed(documents, [document.counts for document in documents])

    def placed(
        self, documents: Sequence[Document], of_words: Sequence[Array | Positions]
    ) -> Array:
        """Numbers of the words of each document, in a table of all words (n, D).

        Parameters
        ----------
        documents : sequence of Document (n,)
            Whose words are in the vocabulary.
        of_words : sequence of arrays (d,)
            For each document; words that it does not have are 0.
        """
        table = np.zeros((len(documents), len(self.vocabulary)))
        for row, document, values in zip(table, documents, of_words, strict=True):
            row[self.columns_of(document)] = values
        return table

    def check_words(self, documents: Sequence[Document], what: str) -> None:
        """Refuse documents with words that are not in the vocabulary."""
        for n, document in enumerate(documents):
            unknown = [word for word in document.words if word not in self.places]
            if unknown:
                raise InvalidInput(
                    f"{what}: document {n} has words that are not in `data`: "
                    f"{listed(unknown)}; give wrap all documents that are to be "
                    "explained, as data"
                )

    def decode(self, points: Points, labels: Labels | None = None) -> list[str]:
        """Texts with such counts of words: a known document as it was written.

        Other rows become a bag of words: each as often as it counts, in the order of
        the vocabulary, as it is first written in the documents, with blanks between.

        Parameters
        ----------
        points : array (n, D)
            Counts.
        labels : Labels, optional
            Those that came with the rows: they tell documents apart that have the same
            counts, of which the first is given else.

        Raises
        ------
        InvalidInput
            If a row holds anything but counts.
        """
        return [
            found[0].text if found else self.bag(point)
            for found, point in zip(self.known(points, labels), points, strict=True)
        ]

    def known(
        self, points: Points, labels: Labels | None = None
    ) -> Iterator[list[Document]]:
        """The documents that each row of counts may be.

        Parameters
        ----------
        points : array (n, D)
            Counts.
        labels : Labels, optional
            Those that came with the rows. Of a row that still is what it was read as,
            they tell which document it is.
        """
        texts = None if labels is None else labels.texts
        told = texts if texts is not None and len(texts) == len(points) else None
        for n, point in enumerate(points):
            own = None if told is None else self.document_of(told[n])
            if own is not None and self.lookup.is_of(point, own):
                yield [own]
            else:
                yield [self.documents[m] for m in self.lookup.alike(point)]

    @cached_property
    def lookup(self) -> Lookup:
        """The documents by their counts."""
        return Lookup(self.documents, self.places)

    def bag(self, point: Points) -> str:
        """Words as often as they count, with blanks between.

        Raises
        ------
        InvalidInput
            If the row holds anything but counts.
        """
        values = np.asarray(point, float)
        bad = ~((values >= 0.0) & (values == np.floor(values)) & np.isfinite(values))
        if bad.any():
            j = int(bad.argmax())
            raise InvalidInput(
                f"points: expected counts of words, 0, 1, 2, ..., got {values[j]} of "
                f"{self.vocabulary[j]!r}"
            )
        repeated = np.repeat(np.arange(len(values)), values.astype(np.intp))
        return " ".join(self._forms[j] for j in repeated)

    def frame(self, values: Array, index: pd.Index) -> pd.DataFrame:
        """``values`` (n, D), such as gradients, under the words."""
        columns = pd.Index(self.vocabulary, dtype=object)
        return pd.DataFrame(values, index=index, columns=columns)

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """Each word as it is first written."""
        forms: dict[str, str] = {}
        for document in self.documents:
            for start, end, word in document.occurrences:
                forms.setdefault(word, document.text[start:end])
        return tuple(forms.get(word, word) for word in self.vocabulary)
