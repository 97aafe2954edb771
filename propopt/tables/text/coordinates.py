"""Where documents lie, for distances and angles between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Points, Sparse
from propopt.tables.directions import directions
from propopt.tables.text.schema import TextSchema


def word_counts(texts: Any) -> Points:
    """How often each word comes in each text, (N, V), words as the package has them.

    Parameters
    ----------
    texts : sequence of str or Series (N,)
        The documents.
    """
    return TextSchema.of(texts).encode(texts)[0]


def document_directions(counts: Sparse) -> Sparse:
    """Documents as directions, (N, V): near are those that share their rarer words.

    Counts of words, each times log((1 + N) / (1 + N_v)) + 1 of the N_v documents that
    have it, at length one; a document without words is at 0.

    Parameters
    ----------
    counts : sparse matrix (N, V)
        How often each word comes in each document.
    """
    n_documents, n_words = counts.shape
    with_word = np.bincount(counts.indices, minlength=n_words)
    idf = 1.0 + np.log((1.0 + n_documents) / (1.0 + with_word))
    return directions(counts * idf)


def document_coordinates(counts: Array) -> Points:
    """Where documents lie, (N, V): :func:`document_directions`, as a table.

    The squared distance of two is 2 − 2 cos: 0 of the same words, 2 of documents that
    share none.

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
    found = document_directions(sp.csr_array(np.asarray(counts, float)))
    return np.asarray(found.toarray())
