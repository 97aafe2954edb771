"""Sums of trees behind a vectoriser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Final, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from propopt.base.arrays import Array, Points, Positions, Truths
from propopt.base.text import Reason
from propopt.structures.boosters import UNREADABLE, last_step, unreadable
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.algebra import padded_paths
from propopt.structures.readers.pipelines import View
from propopt.structures.registry import exact_products, exact_trees
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.tfidf.vectorisers import (
    DocumentFeatures,
    Vectoriser,
    document_features,
)
from propopt.tables.documents import Document


# ---- What a set of values of one feature asks of the words that feed it


MOST_CUBES: Final = 4_096
"""So many conjunctions one set may become."""


Cube: TypeAlias = tuple[float, tuple[int, ...]]
"""± the indicator that some words are kept and some are deleted.

Its literals are 2 j + 1 where word j is kept, 2 j where it is deleted.
"""


def cubes_of(words: Positions, counts: Array, holds: Truths) -> list[Cube] | None:
    """Conjunctions whose sum is 1 where a set holds a count, and 0 elsewhere.

    The words are asked one after the other, the most frequent first, until the set
    holds all or none of the counts that are left. Where its complement needs fewer, it
    is 1 less that: of k words "at least one is kept" is 1 − Π (1 − z).

    words (k,), counts (k,), holds (T,).
    """
    order = np.argsort(-np.abs(counts), kind="stable")
    own, left = (words[order].tolist(), counts[order].tolist()), _left(counts[order])
    totals = left[0].tolist()
    direct = _cubes(*own, left, dict(zip(totals, holds.tolist(), strict=True)))
    others = _cubes(*own, left, dict(zip(totals, (~holds).tolist(), strict=True)))
    if others is not None and (direct is None or len(others) + 1 < len(direct)):
        return [(1.0, ()), *((-1.0, literals) for _, literals in others)]
    return direct


def attained(counts: Array) -> Array:
    """The counts that sets of words have, increasing."""
    return _left(counts)[0]


def _left(counts: Array) -> list[Array]:
    """What words from each on can add, increasing."""
    sums = [np.zeros(1)]
    for own in counts[::-1]:
        sums.append(np.unique(np.concatenate([sums[-1], sums[-1] + own])))
    return sums[::-1]


def _cubes(
    words: list[int], counts: list[float], left: list[Array], holds: dict[float, bool]
) -> list[Cube] | None:
    """Those of words in the order in which they are asked; None of too many."""
    results: list[Cube] = []
    open_: list[tuple[int, float, tuple[int, ...]]] = [(0, 0.0, ())]
    while open_:
        i, total, literals = open_.pop()
        inside = [holds[total + more] for more in left[i].tolist()]
        if all(inside):
            results.append((1.0, literals))
        elif any(inside):
            word = 2 * words[i]
            open_.append((i + 1, total + counts[i], (*literals, word + 1)))
            open_.append((i + 1, total, (*literals, word)))
        if len(results) + len(open_) > MOST_CUBES:
            return None
    return results


@final
@dataclass(frozen=True, eq=False)
class CubeTable:
    """The cubes of many sets, one after the other."""

    start: Positions  # (G,): where those of each set begin, and how many there are
    size: Positions  # shape (G,)
    sign: Array  # (C,): of each cube
    literals: Positions  # (C, K): padded with −1

    @classmethod
    def of(cls, groups: Sequence[Sequence[Cube]]) -> CubeTable:
        """The table of lists of cubes."""
        size = np.array([len(cubes) for cubes in groups], np.intp)
        flat = [cube for cubes in groups for cube in cubes]
        width = max((len(own) for _, own in flat), default=0)
        literals = np.full((len(flat), width), -1, np.intp)
        for row, (_, own) in zip(literals, flat, strict=True):
            row[: len(own)] = own
        sign = np.array([sign for sign, _ in flat], np.float64)
        return cls(np.cumsum(size) - size, size, sign, literals)


# ---- Products of literals, a few of very many: rows of entries, not a padded table


@final
@dataclass(frozen=True, eq=False)
class Literals:
    """Σ_r v_r Π_e of row r: literals, or sets that are sums of cubes.

    Place 2 j + 1 is word j where it is kept, 2 j where it is deleted; places from 2 d
    on are sets.
    """

    values: Array  # (R,): v
    row: Positions  # (E,): the row and the place of each entry, increasing
    place: Positions  # shape (E,)
    n_places: int  # 2 d, and how many sets there are

    @classmethod
    def of(
        cls, values: Array, row: Positions, place: Positions, n_places: int
    ) -> Literals:
        """The same of entries in any order, some of which may be there twice."""
        keys = np.sort(row * n_places + place)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return cls(values, keys // n_places, keys % n_places, n_places)

    @cached_property
    def lengths(self) -> Positions:
        """How many entries each row has, (R,)."""
        return np.bincount(self.row, minlength=len(self.values))

    @cached_property
    def starts(self) -> Positions:
        """Where each row begins, (R,)."""
        return np.cumsum(self.lengths) - self.lengths

    def taken(self, rows: Truths) -> Literals:
        """Those rows alone."""
        kept = rows[self.row]
        number = np.cumsum(rows) - 1
        place, row = self.place[kept], number[self.row[kept]]
        return Literals(self.values[rows], row, place, self.n_places)

    def consistent(self) -> Literals:
        """Without rows in which a word is both kept and deleted, which are 0."""
        same = (np.diff(self.place // 2) == 0) & (np.diff(self.row) == 0)
        fine = np.ones(len(self.values), bool)
        fine[self.row[1:][same]] = False
        return self.taken(fine)

    def merged(self) -> Literals:
        """With each product once.

        Equal rows have equal sums of random numbers of 64 bits; that rows of equal sums
        are equal is then seen.
        """
        for seed in count():
            _, first, where = np.unique(
                self._sums(seed), return_index=True, return_inverse=True
            )
            if self._equal(first[where]):
                break
        chosen = np.zeros(len(self.values), bool)
        chosen[first] = True
        total = np.bincount(where, self.values, len(first))[np.argsort(first)]
        kept = self.taken(chosen)
        whole = Literals(
            np.asarray(total, np.float64), kept.row, kept.place, self.n_places
        )
        return whole.taken(total != 0.0)

    def _sums(self, seed: int) -> NDArray[np.uint64]:
        rng = np.random.default_rng(seed)
        numbers = rng.integers(0, 2**64, self.n_places, np.uint64, endpoint=False)
        added = np.concatenate([np.zeros(1, np.uint64), numbers[self.place].cumsum()])
        return added[self.starts + self.lengths] - added[self.starts]  # modulo 2^64

    def _equal(self, other: Positions) -> bool:
        """Whether each row is that at ``other``."""
        if (self.lengths != self.lengths[other]).any():
            return False
        inside = np.arange(len(self.place)) - self.starts[self.row]
        beside = self.starts[other[self.row]] + inside
        return bool((self.place == self.place[beside]).all())

    def n_products(self, table: CubeTable) -> float:
        """How many products there are when sums of cubes are multiplied out."""
        sizes = np.log(np.maximum(table.size[self.place], 1).astype(np.float64))
        logs = np.bincount(self.row, sizes, len(self.values))
        return float(np.exp(np.minimum(logs, 700.0)).sum())

    def multiplied_out(self, table: CubeTable) -> Literals:
        """With one cube of each set in each row, of words alone."""
        paths = padded_paths(self.row, self.place, len(self.values))
        nothing = np.full((1, table.literals.shape[1]), -1, np.intp)
        literals = np.concatenate([table.literals, nothing])
        size, start = np.append(table.size, 1), np.append(table.start, len(table.sign))
        sign = np.append(table.sign, 1.0)
        row = np.arange(len(paths))
        parts = np.zeros((len(paths), 0), np.intp)  # a cube of each set
        for k in range(paths.shape[1]):
            sets = paths[row, k]
            repeats = size[sets]
            before = np.cumsum(repeats) - repeats
            each = np.repeat(np.arange(len(row)), repeats)
            cube = np.arange(len(each)) - before[each] + start[sets][each]
            row, parts = row[each], np.column_stack([parts[each], cube])
        values = self.values[row] * sign[parts].prod(axis=1)
        words = literals[parts].reshape(len(row), -1)
        product, column = np.nonzero(words >= 0)
        return Literals.of(values, product, words[product, column], self.n_places)

    def conjunctions(self, base: float, n_words: int) -> Conjunctions:
        """``base`` + the sum, of words alone."""
        constant = float(self.values[self.lengths == 0].sum())
        own = self.taken(self.lengths > 0)
        kept, word = own.place % 2 == 1, own.place // 2
        n = len(own.values)
        present = padded_paths(own.row[kept], word[kept], n)
        absent = padded_paths(own.row[~kept], word[~kept], n)
        return Conjunctions(base + constant, own.values, present, absent, n_words)


# ---- Leaves of trees of features, as functions of the words of one document


MOST_CONJUNCTIONS: Final = 2**20
"""So many a document may have."""


_Asked: TypeAlias = tuple[Positions, Positions]
"""Sets of leaves, and the literal, or the set of cubes, that each is, (E,) each."""


@final
@dataclass(frozen=True, eq=False)
class TextTrees:
    """Σ_l v_l Π 1[feature v in its set], of the features of a vectoriser, on any text.

    Each set is of one feature, and so of the words that feed it: it always holds, never
    does, or is a sum of conjunctions. Words that are not in a document are always
    absent, so that most leaves are never reached; for these nothing is done.
    """

    vectoriser: Vectoriser  # what the features are; without norm
    base: float  # what is added
    values: Array  # (L,): v
    leaf: Positions  # (E,): the leaf of each set
    sets: Sets  # by the V features, in their order
    absent: float  # what the model sees of a feature that does not come

    @classmethod
    def of(
        cls, vectoriser: Vectoriser, trees: TreeSum, absent: float = 0.0
    ) -> TextTrees:
        """The leaves of trees by the features of a vectoriser."""
        leaf, sets, values = trees.leaves()
        order = np.argsort(sets.column, kind="stable")
        return cls(
            vectoriser,
            trees.base,
            values,
            leaf[order],
            sets.take(order),
            absent,
        )

    def at(self, document: Document, /) -> Conjunctions | Reason:
        """The function of which words of a document are kept."""
        features = document_features(self.vectoriser, document)
        if isinstance(features, Reason):
            return features
        d = features.n_words
        groups: list[list[Cube]] = []
        parts = [self._alone(features)]
        for feature in features.shared.tolist():
            part = self._shared(feature, features, groups)
            if part is None:
                return self._too_many(features)
            parts.append(part)
        entry, place = map(np.concatenate, zip(*parts, strict=True))
        literals = self._reached(entry, place, 2 * d + len(groups))
        if groups:
            words: list[list[Cube]] = [[(1.0, (k,))] for k in range(2 * d)]
            table = CubeTable.of([*words, *groups])
            if literals.n_products(table) > MOST_CONJUNCTIONS:
                return self._too_many(features)
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

    def _alone(self, features: DocumentFeatures) -> _Asked:
        """What sets of features are that one word feeds."""
        own = ~np.isin(features.feature, features.shared)
        feature, word = features.feature[own], features.word[own]
        seen = self._seen(feature, features.count[own])
        start, end = self._between(feature)
        which = np.repeat(np.arange(len(feature)), end - start)
        entry = np.arange(len(which)) + (start - _before(end - start))[which]
        inside = _hold(self.sets.take(entry), seen[which])
        differs = inside != self._without[entry]
        place = 2 * word[which] + inside
        return entry[differs], place[differs]

    def _shared(
        self, feature: int, features: DocumentFeatures, groups: list[list[Cube]]
    ) -> _Asked | None:
        """What sets of a feature are that several words feed; cubes go to ``groups``.

        None where there are too many.
        """
        start, end = self._between(np.array([feature]))
        entry = np.arange(start[0], end[0])
        words, counts = features.words_of(feature)
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
            place[u] = 2 * features.n_words + len(groups)
            groups.append(cubes)
        asked = place[which] >= 0
        return entry[asked], place[which][asked]

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

    def _too_many(self, features: DocumentFeatures) -> Reason:
        shared = features.shared[:3].tolist()
        names = ", ".join(repr(self.vectoriser.name_of(v)) for v in shared)
        return Reason(
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


def read_text_trees(model: Any, output: str, index: int | None) -> TextTrees | Reason:
    """Trees, forests and boosting on counts, presence or tf-idf that has no norm."""
    vectoriser = Vectoriser.of(model)
    if isinstance(vectoriser, Reason):
        return vectoriser
    if vectoriser.rest is None:
        return Reason("a vectoriser alone gives no number")
    view = View.of_numbers(vectoriser.n_features, sp.csr_array)
    try:
        trees = exact_trees(vectoriser.rest, output, index, view)
    except UNREADABLE as error:
        return Reason(unreadable(model, error))
    if trees is None:
        return _no_boxes(vectoriser, output, index, view)
    if vectoriser.norm is not None:
        return Reason(
            f"trees ask for values that norm={vectoriser.norm!r} divides by a sum over "
            "all words at once; with norm=None they are exact"
        )
    absent = _absent(vectoriser.rest)
    if absent is None:
        return Reason(
            "a word that is absent is missing for some members and 0 for others"
        )
    return TextTrees.of(vectoriser, trees, absent)


def _no_boxes(
    vectoriser: Vectoriser, output: str, index: int | None, view: View
) -> Reason:
    """Why the model behind a vectoriser is no sum of trees."""
    try:
        result = exact_products(vectoriser.rest, output, index, view)
    except UNREADABLE as error:
        return Reason(unreadable(vectoriser.rest, error))
    name = type(last_step(vectoriser.rest)).__name__
    if isinstance(result, Reason):
        return Reason(f"{name}: {result.reason}")
    return Reason(f"{name} is no sum of trees")


def _absent(rest: Any) -> float | None:
    """What is seen of a feature that does not come; None where members differ.

    What a sparse table does not hold is missing for XGBoost, and 0 for all others.
    """
    packages = {type(model).__module__.partition(".")[0] for model in _members(rest)}
    if "xgboost" not in packages or not sp.issparse(_given(rest)):
        return 0.0
    return np.nan if packages == {"xgboost"} else None


def _members(model: Any) -> Iterator[Any]:
    """The models that a model is made of; itself, where it is made of none."""
    last = last_step(model)
    parts = getattr(last, "estimators_", None)
    if hasattr(last, "best_estimator_"):
        yield from _members(last.best_estimator_)
    elif isinstance(parts, list):
        for part in parts:
            yield from _members(part)
    else:
        yield last


def _given(rest: Any) -> Any:
    """An empty document as the last step is given it."""
    if type(rest) is not Pipeline:
        return sp.csr_array((1, 1))
    n_features = rest.n_features_in_
    table: Points | Any = sp.csr_array((1, n_features), dtype=np.float64)
    return rest[:-1].transform(table)
