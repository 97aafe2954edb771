"""Shapley values of the words of documents: exact where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.functions.text import TextFunction
from propopt.lime.text.reading import enumerated_words, read_documents
from propopt.sampling.drawn.uniforms import N_BLOCKS
from propopt.sampling.orders import Orders
from propopt.structures.subsets import (
    MOST_ENUMERATED,
    NoSetFunction,
    SetFunction,
    WordShapley,
)
from propopt.tables.text import Document


N_PAIRS: Final = 100
"""Orders of the words of a document that is not read, each walked both ways."""


@final
@dataclass(frozen=True, eq=False)
class DocumentShapley:
    """What each word of a document adds to f, and how that is known.

    Parameters
    ----------
    values : array (d,)
        φ, which add up to f(text) − f(empty text).
    source : str
        In words.
    blocks : array (10, d) or None
        Of draws, whose mean φ is; None where it is exact.
    reason : str
        Why f was not read; empty where it was.
    """

    values: Values
    source: str
    blocks: Array | None = None
    reason: str = ""

    @classmethod
    def all_of(
        cls,
        function: TextFunction,
        documents: Sequence[Document],
        rng: np.random.Generator,
        n_pairs: int = N_PAIRS,
    ) -> list[DocumentShapley]:
        """Exactly where f is read, and where all sets cost no more than draws do.

        Parameters
        ----------
        function : TextFunction
            f.
        documents : sequence of Document
            The texts, which are read and compared with the model together.
        rng : numpy.random.Generator
            Where orders are drawn from, if they are.
        n_pairs : int
            How many.

        Raises
        ------
        InvalidInput
            If the model has no finite value somewhere.
        """
        found = read_documents(function, documents)
        for reading in found:
            reading.refuse()
        return [
            cls._of(function, document, reading.words, rng, n_pairs)
            for document, reading in zip(documents, found, strict=True)
        ]

    @classmethod
    def _of(
        cls,
        function: TextFunction,
        document: Document,
        read: SetFunction | NoSetFunction,
        rng: np.random.Generator,
        n_pairs: int,
    ) -> DocumentShapley:
        d = document.n_words
        if d == 0:
            return cls(np.zeros(0), READ)
        if not isinstance(read, NoSetFunction):
            return cls(WordShapley(read).values, READ)
        if d <= MOST_ENUMERATED and 2**d <= n_draws(d, n_pairs):
            every = enumerated_words(function, document)
            return cls(WordShapley(every).values, ALL_SETS, reason=read.reason)
        at = function.of_document(document)
        orders = Orders(value=at.value_at, background=np.zeros((1, d)), n_pairs=n_pairs)
        blocks = orders.blocks(np.ones((1, d)), rng)[:, 0]
        return cls(blocks.mean(axis=0), ORDERS, blocks, read.reason)


READ: Final = "exact"
ALL_SETS: Final = "exact (all sets of words)"
ORDERS: Final = "orders of the words"


def n_draws(n_words: int, n_pairs: int = N_PAIRS) -> int:
    """Texts that orders of so many words ask for."""
    pairs = N_BLOCKS * -(-n_pairs // N_BLOCKS)
    return 2 * pairs * max(n_words - 1, 0) + 2
