"""Where documents lie, for distances between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from propopt._typing import Array, Points
from propopt.tables.text.schema import TextSchema


def word_counts(texts: Any) -> Points:
    """How often each word comes in each text, (N, V), words as the package has them.

    Parameters
    ----------
    texts : sequence of str or Series (N,)
        The documents.
    """
    return TextSchema.of(texts).encode(texts)[0]


def document_coordinates(counts: Array) -> Points:
    """Documents as directions, (N, V): near are those that share their rarer words.

    Counts of words, each times log((1 + N) / (1 + N_v)) + 1 of the N_v documents that
    have it, at length one. The squared distance of two documents is 2 − 2 cos: 0 of the
    same words, 2 of documents that share none; a document without words is at 0.

    Parameters
    ----------
    counts : array (N, V)
        How often each word comes in each document.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.tables.text.coordinates import document_coordinates
    >>> X = document_coordinates(np.array([[1, 1, 0], [2, 2, 0], [0, 0, 3]]))
    >>> ((X[0] - X[1]) ** 2).sum().round(12), ((X[0] - X[2]) ** 2).sum().round(12)
    (np.float64(0.0), np.float64(2.0))
    """
    counts = np.asarray(counts, float)
    with_word = (counts > 0.0).sum(axis=0)
    weighed = counts * (1.0 + np.log((1.0 + len(counts)) / (1.0 + with_word)))
    lengths = np.linalg.norm(weighed, axis=1, keepdims=True)
    return weighed / np.where(lengths > 0.0, lengths, 1.0)
