"""The words of a document as blocks, by the features that they feed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from propopt._typing import Positions, Sparse, Values
from propopt.structures.subsets import Blocks, NoSetFunction, all_sets
from propopt.structures.tfidf.features import DocumentFeatures
from propopt.structures.tfidf.linear.rows import LinearRow
from propopt.structures.tfidf.vectorisers import Vectoriser


MOST_SHARED: Final = 12
"""So many words may share features: their 2^12 sets are enumerated."""


def word_blocks(
    vectoriser: Vectoriser, row: LinearRow, found: DocumentFeatures
) -> tuple[Blocks, ...] | NoSetFunction:
    """What sets of words add to a linear output, and to the power of the norm.

    Words that share a feature, such as ``Food`` and ``food`` where case is lowered, are
    in one block.

    Parameters
    ----------
    vectoriser : Vectoriser
        Fitted.
    row : LinearRow
        The output, of its features before the norm.
    found : DocumentFeatures
        Which features the words of a document feed.
    """
    entries = (found.count, (found.word, found.feature))
    counts = sp.csr_array(entries, shape=(found.n_words, found.n_features))
    groups = _groups(counts)
    largest = max(groups, key=len)
    if len(largest) > MOST_SHARED:
        return NoSetFunction(_too_many(vectoriser, found, largest))
    by_size = sorted({len(group) for group in groups})
    return tuple(
        _blocks(vectoriser, row, counts, np.array([g for g in groups if len(g) == b]))
        for b in by_size
    )


def _groups(counts: Sparse) -> list[Positions]:
    """Words that share features, directly or through others."""
    together = counts @ counts.T
    n_groups, group = connected_components(together, directed=False)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=n_groups)
    return np.split(order, np.cumsum(sizes)[:-1])


def _blocks(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse, words: Positions
) -> Blocks:
    """Blocks (G, b) of words, with what each set of them has."""
    shape = (len(words), 2 ** words.shape[1])
    kept = all_sets(shape[1].bit_length() - 1)
    block, state, place = np.nonzero(np.broadcast_to(kept, (len(words), *kept.shape)))
    ones = np.ones(len(block))
    which = (block * shape[1] + state, words[block, place])
    sets = sp.csr_array((ones, which), shape=(shape[0] * shape[1], counts.shape[0]))
    values, sizes = _of_sets(vectoriser, row, sp.csr_array(sets @ counts))
    return Blocks(words, values.reshape(shape), sizes.reshape(shape))


def _of_sets(
    vectoriser: Vectoriser, row: LinearRow, counts: Sparse
) -> tuple[Values, Values]:
    """λᵀ of features that have these counts (n, V), and what they add to the norm."""
    features: Any = vectoriser.values(counts).astype(np.float64)
    if row.thresholds is not None:
        features.data = (features.data > row.thresholds[features.indices]).astype(float)
    power = 2.0 if vectoriser.norm == "l2" else 1.0
    sizes = abs(features).power(power).sum(axis=1)
    return np.asarray(features @ row.coefficients), np.asarray(sizes, np.float64)


def _too_many(vectoriser: Vectoriser, found: DocumentFeatures, words: Positions) -> str:
    shared = np.intersect1d(found.shared, found.feature[np.isin(found.word, words)])
    names = ", ".join(repr(vectoriser.name_of(v)) for v in shared[:3].tolist())
    return (
        f"{len(words)} words of the document share features ({names}, ...), more than "
        f"the {MOST_SHARED} whose sets are enumerated"
    )
