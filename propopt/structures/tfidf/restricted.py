"""Sums of boxes of features, as functions of the words of one document."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Positions, Truths
from propopt.structures.boxes import Boxes, Sets
from propopt.structures.products import Products
from propopt.structures.subsets import Conjunctions, NoSetFunction
from propopt.structures.tfidf.cubes import Cube, CubeTable, attained, cubes_of
from propopt.structures.tfidf.features import DocumentFeatures
from propopt.structures.tfidf.vectorisers import Vectoriser


MOST_CONJUNCTIONS: Final = 2**20
"""So many a document may have."""


@final
@dataclass(frozen=True, eq=False)
class BoxesOnWords:
    """A sum of boxes of the features of a vectoriser, which has no norm.

    Each set of a box is of one feature, and so of the words that feed it: it always
    holds, never does, or is a sum of conjunctions. Words that are not in the document
    are always absent.

    Parameters
    ----------
    vectoriser : Vectoriser
        What the features are.
    boxes : Boxes
        By its V features.
    absent : float
        What the model sees of a feature that does not come: 0, or NaN where a sparse
        table has nothing and nothing is missing.
    """

    vectoriser: Vectoriser
    boxes: Boxes
    absent: float = 0.0

    def at(self, found: DocumentFeatures) -> Conjunctions | NoSetFunction:
        """The function of the words of a document.

        Parameters
        ----------
        found : DocumentFeatures
            Which features its words feed.
        """
        places, holds_always, groups = self._places(found)
        if groups is None:
            return _too_many(self.vectoriser, found)
        d = found.n_words
        dropped = (places < 0) & ~holds_always
        column = np.zeros(2 * d + len(groups), np.intp)
        products = self.boxes.products.with_factors(places, dropped, column).collected()
        if groups:
            literals = [[Cube(1.0, (k,))] for k in range(2 * d)]
            table = CubeTable.of([*literals, *groups])
            if table.n_products(products.paths) > MOST_CONJUNCTIONS:
                return _too_many(self.vectoriser, found)
            products = _multiplied_out(products, table)
        return _conjunctions(products, d)

    def _places(
        self, found: DocumentFeatures
    ) -> tuple[Positions, Truths, list[list[Cube]] | None]:
        """What each set is: a literal, a group of cubes, or −1 where it is constant.

        Also whether it always holds, where it is constant; and the cubes of groups.
        """
        sets, always = self.boxes.sets, self._without.copy()
        places = np.full(len(sets), -1)
        own = np.flatnonzero(np.isin(sets.column, found.features))
        alone = own[~np.isin(sets.column[own], found.shared)]
        value = np.zeros(found.n_features)
        value[found.features] = self._values(found.features, self._whole(found))
        word = np.zeros(found.n_features, np.intp)
        word[found.feature] = found.word
        inside = _hold(sets.take(alone), value[sets.column[alone]])
        differs = inside != always[alone]
        places[alone[differs]] = (2 * word[sets.column[alone]] + inside)[differs]
        groups: list[list[Cube]] = []
        for feature in np.intersect1d(found.shared, sets.column).tolist():
            if not self._place_shared(feature, found, places, always, groups):
                return places, always, None
        return places, always, groups

    def _place_shared(
        self,
        feature: int,
        found: DocumentFeatures,
        places: Positions,
        always: Truths,
        groups: list[list[Cube]],
    ) -> bool:
        """Write down what sets of a feature are that several words feed."""
        start, end = np.searchsorted(self.boxes.sets.column, [feature, feature + 1])
        words, counts = found.words_of(feature)
        totals = attained(counts)
        values = self._values(np.full(len(totals), feature), totals)
        known: dict[bytes, int] = {}
        for u in range(start, end):
            one = self.boxes.sets.take(np.full(len(totals), u))
            holds = _hold(one, values)
            if holds.all() or not holds.any():
                always[u] = holds.all()
                continue
            if holds.tobytes() not in known:
                cubes = cubes_of(words, counts, holds)
                if cubes is None:
                    return False
                known[holds.tobytes()] = 2 * found.n_words + len(groups)
                groups.append(cubes)
            places[u] = known[holds.tobytes()]
        return True

    def _whole(self, found: DocumentFeatures) -> Array:
        """The counts of features where all words are kept."""
        counts = np.bincount(found.feature, found.count, found.n_features)
        return np.asarray(counts[found.features], np.float64)

    def _values(self, features: Positions, counts: Array) -> Array:
        """What the model sees of features that have these counts, (E,)."""
        n = len(features)
        entries = (counts, features, np.arange(n + 1))
        table = sp.csr_array(entries, shape=(n, self.vectoriser.n_features))
        values = self.vectoriser.values(table)
        seen = np.full(n, self.absent)
        seen[np.diff(values.indptr) > 0] = values.data
        return seen

    @cached_property
    def _without(self) -> Truths:
        """Which sets hold a feature that does not come."""
        sets = self.boxes.sets
        return _hold(sets, np.full(len(sets), self.absent))


def _hold(sets: Sets, values: Array) -> Truths:
    """Whether each set of numbers holds its own value."""
    inside = (sets.low < values) & (values <= sets.high)
    return np.asarray(inside | (sets.missing & np.isnan(values)))


def _multiplied_out(products: Products, table: CubeTable) -> Products:
    values, literals = table.multiplied_out(products.values, products.paths)
    n = len(table.size)
    plain = Products(products.base, values, literals, products.column, 1)
    return plain.with_factors(np.arange(n), np.zeros(n, bool), products.column)


def _conjunctions(products: Products, n_words: int) -> Conjunctions:
    """The sum of products of literals, each word once in each."""
    paths, values = products.paths, products.values
    if paths.shape[1] > 1:
        same_word = (paths[:, 1:] // 2 == paths[:, :-1] // 2) & (paths[:, 1:] >= 0)
        never = (same_word & (paths[:, 1:] != paths[:, :-1])).any(axis=1)
        paths = paths.copy()
        paths[:, 1:][same_word] = -1
        paths, values = paths[~never], values[~never]
    whole = Products(products.base, values, paths, products.column, 1)
    n = len(products.column)
    packed = whole.with_factors(np.arange(n), np.zeros(n, bool), whole.column)
    packed = packed.collected()
    some = (packed.values != 0.0) & (packed.lengths > 0)
    base = packed.base + packed.values[packed.lengths == 0].sum()
    literals = packed.paths[some]
    present = np.where(literals % 2 == 1, literals // 2, -1)
    absent = np.where((literals % 2 == 0) & (literals >= 0), literals // 2, -1)
    return Conjunctions(
        float(base), packed.values[some], _packed(present), _packed(absent), n_words
    )


def _packed(places: Positions) -> Positions:
    """The places of each row first, and −1 behind."""
    ordered = -np.sort(-places, axis=1)
    return ordered[:, : int((ordered >= 0).sum(axis=1).max(initial=0))]


def _too_many(vectoriser: Vectoriser, found: DocumentFeatures) -> NoSetFunction:
    names = ", ".join(repr(vectoriser.name_of(v)) for v in found.shared[:3].tolist())
    return NoSetFunction(
        f"several words of the document feed one feature ({names}, ...), and what "
        f"the model asks of them makes more than {MOST_CONJUNCTIONS:,} conjunctions"
    )
