"""Leaves of trees of features, as functions of the words of one document."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Positions, Truths
from propopt.structures.boxes import Sets, TreeSum
from propopt.structures.subsets import Conjunctions, NoSetFunction
from propopt.structures.tfidf.cubes import Cube, CubeTable, attained, cubes_of
from propopt.structures.tfidf.features import DocumentFeatures
from propopt.structures.tfidf.literals import Literals
from propopt.structures.tfidf.vectorisers import Vectoriser


MOST_CONJUNCTIONS: Final = 2**20
"""So many a document may have."""


class _Asked(NamedTuple):
    """What leaves ask of words."""

    entry: Positions
    """Which sets, (E,)."""

    place: Positions
    """The literal, or the set of cubes, that each is, (E,)."""


@final
@dataclass(frozen=True, eq=False)
class LeavesOnWords:
    """Σ_l v_l Π 1[feature v in its set], of the features of a vectoriser.

    Each set is of one feature, and so of the words that feed it: it always holds, never
    does, or is a sum of conjunctions. Words that are not in a document are always
    absent, so that most leaves are never reached; for these nothing is done.

    Parameters
    ----------
    vectoriser : Vectoriser
        What the features are; without norm.
    base : float
        What is added.
    values : array (L,)
        v.
    leaf : array (E,)
        The leaf of each set.
    sets : Sets (E)
        By the V features, in their order.
    absent : float
        What the model sees of a feature that does not come: 0, or NaN where a sparse
        table has nothing and nothing is missing.
    """

    vectoriser: Vectoriser
    base: float
    values: Array
    leaf: Positions
    sets: Sets
    absent: float

    @classmethod
    def of(
        cls, vectoriser: Vectoriser, trees: TreeSum, absent: float = 0.0
    ) -> LeavesOnWords:
        """The leaves of trees by the features of a vectoriser."""
        parts = trees.leaves()
        nothing = Sets.of_numbers([], [], [], [])
        sets = Sets.concatenate([nothing, *(part.sets for part in parts)])
        starts = np.cumsum([0, *(len(part.values) for part in parts)])
        pairs = zip(parts, starts, strict=False)
        leaf = [part.leaf + start for part, start in pairs]
        order = np.argsort(sets.column, kind="stable")
        return cls(
            vectoriser,
            trees.base,
            np.concatenate([np.zeros(0), *(part.values for part in parts)]),
            np.concatenate([np.zeros(0, np.intp), *leaf])[order],
            sets.take(order),
            absent,
        )

    def at(self, found: DocumentFeatures) -> Conjunctions | NoSetFunction:
        """The function of the words of a document.

        Parameters
        ----------
        found : DocumentFeatures
            Which features its words feed.
        """
        d = found.n_words
        groups: list[list[Cube]] = []
        parts = [self._alone(found)]
        for feature in found.shared.tolist():
            part = self._shared(feature, found, groups)
            if part is None:
                return self._too_many(found)
            parts.append(part)
        entry = np.concatenate([part.entry for part in parts])
        place = np.concatenate([part.place for part in parts])
        literals = self._reached(entry, place, 2 * d + len(groups))
        if groups:
            words = [[Cube(1.0, (k,))] for k in range(2 * d)]
            table = CubeTable.of([*words, *groups])
            if literals.n_products(table) > MOST_CONJUNCTIONS:
                return self._too_many(found)
            literals = literals.multiplied_out(table)
        literals = literals.consistent().merged()
        return literals.conjunctions(self.base, d)

    def _reached(self, entry: Positions, place: Positions, n_places: int) -> Literals:
        """The products of leaves that some set of words reaches, each once."""
        revived = self.leaf[entry[~self._without[entry]]]
        never = self._n_never - np.bincount(revived, minlength=len(self.values))
        alive = never == 0
        kept = alive[self.leaf[entry]]
        row = (np.cumsum(alive) - 1)[self.leaf[entry[kept]]]
        values = self.values[alive]
        return Literals.of(values, row, place[kept], n_places).merged()

    def _alone(self, found: DocumentFeatures) -> _Asked:
        """What sets of features are that one word feeds."""
        own = ~np.isin(found.feature, found.shared)
        feature, word = found.feature[own], found.word[own]
        seen = self._seen(feature, found.count[own])
        start, end = self._between(feature)
        which = np.repeat(np.arange(len(feature)), end - start)
        entry = np.arange(len(which)) + (start - _before(end - start))[which]
        inside = _hold(self.sets.take(entry), seen[which])
        differs = inside != self._without[entry]
        place = 2 * word[which] + inside
        return _Asked(entry[differs], place[differs])

    def _shared(
        self, feature: int, found: DocumentFeatures, groups: list[list[Cube]]
    ) -> _Asked | None:
        """What sets of a feature are that several words feed; cubes go to ``groups``.

        None where there are too many.
        """
        start, end = self._between(np.array([feature]))
        entry = np.arange(start[0], end[0])
        words, counts = found.words_of(feature)
        totals = attained(counts)
        seen = self._seen(np.full(len(totals), feature), totals)
        sets, which = self.sets.take(entry).unique()
        place = np.full(len(sets), -1)
        for u in range(len(sets)):
            holds = _hold(sets.take(np.full(len(totals), u)), seen)
            if holds.all() or not holds.any():
                continue
            cubes = cubes_of(words, counts, holds)
            if cubes is None:
                return None
            place[u] = 2 * found.n_words + len(groups)
            groups.append(cubes)
        asked = place[which] >= 0
        return _Asked(entry[asked], place[which][asked])

    def _seen(self, features: Positions, counts: Array) -> Array:
        """What the model sees of features that have these counts, (E,)."""
        n = len(features)
        entries = (counts, features, np.arange(n + 1))
        table = sp.csr_array(entries, shape=(n, self.vectoriser.n_features))
        values = self.vectoriser.values(table)
        seen = np.full(n, self.absent)
        seen[np.diff(values.indptr) > 0] = values.data
        return seen

    def _between(self, features: Positions) -> tuple[Positions, Positions]:
        """Where sets of features begin and end."""
        column = self.sets.column
        return np.searchsorted(column, features), np.searchsorted(column, features + 1)

    def _too_many(self, found: DocumentFeatures) -> NoSetFunction:
        shared = found.shared[:3].tolist()
        names = ", ".join(repr(self.vectoriser.name_of(v)) for v in shared)
        return NoSetFunction(
            f"several words of the document feed one feature ({names}, ...), and what "
            f"the model asks of them makes more than {MOST_CONJUNCTIONS:,} conjunctions"
        )

    @cached_property
    def _without(self) -> Truths:
        """Which sets hold a feature that does not come."""
        return _hold(self.sets, np.full(len(self.sets), self.absent))

    @cached_property
    def _n_never(self) -> Positions:
        """How many sets of each leaf do not hold a feature that does not come."""
        return np.bincount(self.leaf[~self._without], minlength=len(self.values))


def _hold(sets: Sets, values: Array) -> Truths:
    """Whether each set of numbers holds its own value."""
    inside = (sets.low < values) & (values <= sets.high)
    return np.asarray(inside | (sets.missing & np.isnan(values)))


def _before(sizes: Positions) -> Positions:
    """How many there are before each."""
    return np.cumsum(sizes) - sizes
