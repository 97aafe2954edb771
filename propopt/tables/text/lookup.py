"""Documents found again by how often their words come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Points, Positions
from propopt.tables.text.document import Document


Key: TypeAlias = bytes
"""The columns of the words that come, and how often."""


@final
@dataclass(frozen=True, eq=False)
class Lookup:
    """Documents by their counts, of which several may be alike.

    Parameters
    ----------
    documents : sequence of Document
        All of them.
    places : mapping of str to int
        The column of each word.
    """

    documents: Sequence[Document]
    places: Mapping[str, int]

    def alike(self, point: Points) -> list[int]:
        """The positions of the documents that have such counts (D,)."""
        columns = np.flatnonzero(point)
        return self._positions.get(_key(columns, point[columns]), [])

    def is_of(self, point: Points, document: Document) -> bool:
        """Whether these are the counts of a document, known or not."""
        columns = np.flatnonzero(point)
        return self._key_of(document) == _key(columns, point[columns])

    @cached_property
    def _positions(self) -> dict[Key | None, list[int]]:
        found: dict[Key | None, list[int]] = {}
        for n, document in enumerate(self.documents):
            found.setdefault(self._key_of(document), []).append(n)
        return found

    def _key_of(self, document: Document) -> Key | None:
        """None if it has words that are not known."""
        if any(word not in self.places for word in document.words):
            return None
        columns = np.array([self.places[word] for word in document.words], np.intp)
        order = np.argsort(columns)
        return _key(columns[order], document.counts[order])


def _key(columns: Positions, counts: Points | Positions) -> Key:
    return columns.astype(np.int64).tobytes() + counts.astype(np.float64).tobytes()
