"""Linear models after a vectoriser, and sums of text models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast, final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from propopt.base.arrays import Indices, Sparse, Values
from propopt.base.text import Reason
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import Blocks, SetFunction, TextStructure, all_sets
from propopt.structures.subsets.sums import AddedSets, NormalisedSum
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import TextDocument
from propopt.tables.frames import listed


# ---- The words of a document as blocks that share features


MOST_SHARED: Final = 12
"""The most words that may share features: their 2^12 sets are enumerated."""


def word_blocks(
    vectoriser: Vectoriser, weights: Values, features: DocumentFeatures
) -> tuple[Blocks, ...] | Reason:
    """Blocks of words that share features, with their values and norms."""
    entries = (features.count, (features.word, features.feature))
    counts = sp.csr_array(entries, shape=(features.n_words, features.n_features))
    # words that share features, directly or through others
    n_groups, group = connected_components(counts @ counts.T, directed=False)
    ends = np.cumsum(np.bincount(group, minlength=n_groups))[:-1]
    groups = np.split(np.argsort(group, kind="stable"), ends)
    largest = max(groups, key=len)
    if len(largest) > MOST_SHARED:
        block_features = features.feature[np.isin(features.word, largest)]
        several = np.intersect1d(features.shared, block_features).tolist()
        names = [*map(vectoriser.name_of, several)]
        return Reason(
            f"{len(largest)} words of the document share features "
            f"({listed(names, 3)}), more than the supported {MOST_SHARED}"
        )
    by_size = sorted({len(group) for group in groups})
    return tuple(
        _blocks(
            vectoriser, weights, counts, np.array([g for g in groups if len(g) == b])
        )
        for b in by_size
    )


def _blocks(
    vectoriser: Vectoriser, weights: Values, counts: Sparse, words: Indices
) -> Blocks:
    """Blocks (G, b) of words, with the value and the norm of each set of words."""
    shape = (len(words), 2 ** words.shape[1])
    retained = all_sets(shape[1].bit_length() - 1)
    every_block = np.broadcast_to(retained, (len(words), *retained.shape))
    block, state, position = np.nonzero(every_block)
    ones = np.ones(len(block))
    entries = (block * shape[1] + state, words[block, position])
    sets = sp.csr_array((ones, entries), shape=(shape[0] * shape[1], counts.shape[0]))
    features = vectoriser.values(sp.csr_array(sets @ counts)).astype(np.float64)
    values = np.asarray(features @ weights)  # λᵀ x
    power = 2.0 if vectoriser.norm == "l2" else 1.0
    sizes = np.asarray(abs(features).power(power).sum(axis=1), np.float64)
    return Blocks(words, values.reshape(shape), sizes.reshape(shape))


# ---- Sums of text models


@final
@dataclass(frozen=True, eq=False)
class AddedTexts:
    """A weighted sum of functions of documents, base + Σ_k weight_k f_k."""

    parts: tuple[tuple[float, TextStructure], ...]  # weights and functions, one or more
    base: float  # the constant

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        parts = []
        for weight, structure in self.parts:
            result = structure.at(document)
            if isinstance(result, Reason):
                return result
            parts.append((weight, result))
        scaled = [f.scaled(w) for w, f in parts if isinstance(f, Conjunctions)]
        if len(scaled) == len(parts):
            return cast("Conjunctions", Conjunctions.sum_of(scaled).plus(self.base))
        return AddedSets(parts, self.base)


# ---- Linear models after a vectoriser


_LONGEST: Final = 4e9
"""Operations for a document: 5,000 words take at most 3.4e8, and 2 to 4 s."""


@final
@dataclass(frozen=True, eq=False)
class TextLinear:
    """A linear output of the features of a vectoriser, for any document."""

    vectoriser: Vectoriser  # fitted
    coefficients: Values  # (V,): of the normalised features
    intercept: float

    @classmethod
    def of(cls, vectoriser: Vectoriser, function: SumOfProducts) -> TextLinear | Reason:
        """A function of the features that has no product; the reason if it is none."""
        powers = [f for f in function.factors if isinstance(f, Powers)]
        is_linear = all((family.degree == 1).all() for family in powers)
        is_sum = function.lengths.max(initial=0) <= 1
        if not (is_linear and is_sum and len(powers) == len(function.factors)):
            return Reason("its scores are not linear in the features")
        alone = function.lengths == 1
        factor = function.paths[alone, 0]
        values = function.values[alone]
        if not (np.isfinite(function.values).all() and np.isfinite(function.base)):
            return Reason("a weight of a feature is missing or not finite")
        coefficients = np.zeros(function.n_columns)
        np.add.at(coefficients, function.column[factor], values)
        # Σ v (x − center)
        centers = np.concatenate([np.zeros(0), *(f.center for f in powers)])
        constants = function.values[~alone].sum() - values @ centers[factor]
        return cls(vectoriser, coefficients, float(function.base + constants))

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        if document.n_words == 0:
            return Reason("the document has no word")
        result = document_features(self.vectoriser, document)
        if isinstance(result, Reason):
            return result
        blocks = word_blocks(self.vectoriser, self.coefficients, result)
        if isinstance(blocks, Reason):
            return blocks
        if self.vectoriser.norm is None:
            return Conjunctions.of_blocks(self.intercept, blocks, document.n_words)
        power = 0.5 if self.vectoriser.norm == "l2" else 1.0
        function = NormalisedSum(self.intercept, blocks, power)
        if function.n_steps > _LONGEST:
            return Reason(
                f"the norm of {document.n_words:,} words takes more than 40 s to treat "
                "exactly; with norm=None it takes no time"
            )
        return function
