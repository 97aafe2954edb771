"""Links of scores, and their Shapley values over all sets of columns.

Probabilities are h(m_1(x), ..., m_K(x)), where each score m is a sum of boxes, as that
of boosted trees is, or additive, as that of a logistic regression is. h is no sum. v(S)
is the mean of h over background rows b, with the columns S of x. The scores of all 2^d
mixtures of x and b are found at once. Take a box whose sets hold x alone in the columns
A, b alone in the columns B, and both elsewhere. It adds v to the score of each set S
with A ⊆ S and B ∩ S = ∅. With [B ∩ S = ∅] = Σ_{C ⊆ B} (−1)^|C| [C ⊆ S] these are sums
over subsets, which take d 2^d additions for all S together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.structures.scores import Link
from propopt.structures.subsets.sets import shapley_of_coalitions


# ---- Values that are a link of a few scores


@final
@dataclass(frozen=True, eq=False, repr=False)
class LinkedScores:
    """A link of scores that are sums of boxes, or additive: h of m_1(x) to m_K(x)."""

    scores: tuple[SumOfProducts, ...]
    link: Link

    def __repr__(self) -> str:
        count, link = len(self.scores), type(self.link).__name__
        return f"{type(self).__name__}({link} of {count} scores)"

    @property
    def tolerance(self) -> float:
        """How far values may be from the model, over their range."""
        return max(own.tolerance for own in self.scores)

    def value(self, points: Points) -> Values:
        """Values at points (N, D)."""
        return self.of_scores(np.stack([own.value(points) for own in self.scores]))

    def of_scores(self, scores: Array) -> Array:
        """Values (...) of scores (K, ...)."""
        values = self.link.value(scores.reshape(len(scores), -1).T)
        return values.reshape(scores.shape[1:])

    @cached_property
    def columns(self) -> Indices:
        """The columns that some score depends on, increasing."""
        return np.unique(np.concatenate([own.columns for own in self.scores]))

    def steps_of_row(self, n_background: int) -> float:
        """Operations for the Shapley values of a row, counted as they are made."""
        d, K = len(self.columns), len(self.scores)
        leaves = sum(own.paths.shape[0] for own in self.scores)
        return n_background * (2.0 ** min(d, 60) * K * (2.0 * d + 4.0) + 4.0 * leaves)


def score(read: SumOfProducts | Reason | None) -> SumOfProducts | None:
    """A score whose mixtures are known: boxes, or what is additive."""
    if not isinstance(read, SumOfProducts):
        return None
    known = isinstance(read, Boxes) or read.lengths.max(initial=0) <= 1
    return read if known else None


MOST_LINK_STEPS: Final = 5e7
"""Operations for each explained row: 13 columns with 100 rows and one score."""


# ---- Shapley values over all sets of the columns


@final
@dataclass(frozen=True, eq=False)
class LinkedShapley:
    """Shapley values of linked boxes: every set of columns, every background row."""

    linked: LinkedScores
    game: Game

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 where no box asks."""
        return np.asarray(self.of_blocks(points).mean(axis=1))

    def of_blocks(self, points: Points) -> Array:
        """Those against each block of the background by itself, (N, blocks, D)."""
        columns, game = self.linked.columns, self.game
        own = np.arange(points.shape[1]) if game.players is None else game.players
        phi = np.zeros((len(points), game.n_blocks, game.n_players))
        if len(columns) == 0:
            return phi
        playing, player = np.unique(own[columns], return_inverse=True)
        # the bits of the columns that each set of players has
        known = np.zeros(1 << len(playing), np.int64)
        for place in range(len(playing)):
            bits = int((1 << np.flatnonzero(player == place)).sum())
            known[1 << place : 2 << place] = known[: 1 << place] | bits
        for row, x in zip(phi, points, strict=True):
            scores = np.stack([one.scores_of(x) for one in self._mixtures])
            found = self.linked.of_scores(scores)  # (B, 2^d)
            if game.players is not None:
                found = found[:, known]
            found = found.reshape(game.n_blocks, -1, found.shape[1])
            apart = found - found[..., -1:]
            if game.weights is None:
                worths = apart.mean(axis=1)
            else:
                worths = np.einsum("b,kbs->ks", game.weights, apart)
            row[:, playing] = shapley_of_coalitions(worths)
        return phi

    @cached_property
    def _mixtures(self) -> list[_Mixtures | _AdditiveMixtures]:
        rest = self.game.background, self.linked.columns
        return [
            _Mixtures.of(own, *rest)
            if isinstance(own, Boxes)
            else _AdditiveMixtures.of(own, *rest)
            for own in self.linked.scores
        ]


@final
@dataclass(frozen=True, eq=False)
class _Mixtures:
    """A sum of boxes at all mixtures of a row with background rows."""

    boxes: Boxes
    bits: Indices  # (L, K): the bit of the column of each set, 0 where there is none
    full: Indices  # (L,): the bits of all sets of each box
    held: Indices  # (L, B): those of the sets that hold each background row
    n_columns: int  # d

    @classmethod
    def of(cls, boxes: Boxes, background: Points, columns: Indices) -> _Mixtures:
        """Bits stand for the places of columns among those that are used."""
        place = np.searchsorted(columns, boxes.column)
        bit = np.append(1 << place, 0).astype(np.int64)
        bits = bit[boxes.paths]
        start = cls(boxes, bits, bits.sum(axis=1), np.zeros(0, np.intp), len(columns))
        return replace(start, held=start.bits_holding(background))

    def bits_holding(self, points: Points) -> Indices:
        """The bits of the sets of each box that hold points, (L, N)."""
        inside = self.boxes.sets.contain(points)
        inside = np.concatenate([inside, np.zeros((1, len(points)), bool)])
        held = np.zeros((len(self.bits), len(points)), np.int64)
        for k in range(self.bits.shape[1]):
            held |= self.bits[:, k, None] * inside[self.boxes.paths[:, k]]
        return held

    def scores_of(self, x: Values) -> Array:
        """At all mixtures of x (D,), (B, 2^d): bit j is whether column j is of x."""
        own, size = self.bits_holding(x[None]), 1 << self.n_columns
        box, row = np.nonzero((own | self.held) == self.full[:, None])
        theirs = self.held[box, row]
        only_x, only_b = own[box, 0] & ~theirs, theirs & ~own[box, 0]
        fewer = np.bitwise_count(only_b) <= np.bitwise_count(only_x)
        values, start = self.boxes.values[box], row * size
        shape = self.held.shape[1], size
        inner = _expanded(start + only_x, only_b, values, fewer, shape)
        outer = _expanded(start + only_b, only_x, values, ~fewer, shape)
        # B ∩ S = ∅ where B is in the columns that S lacks
        total = _over_subsets(inner) + _over_subsets(outer)[:, ::-1]
        return np.asarray(total + self.boxes.base)


@final
@dataclass(frozen=True, eq=False)
class _AdditiveMixtures:
    """An additive function at all mixtures of a row with background rows."""

    structure: SumOfProducts
    columns: Indices  # (d,)
    at_background: Values  # (B,): its values there
    theirs: Array  # (d, B): what each column adds there

    @classmethod
    def of(
        cls, structure: SumOfProducts, background: Points, columns: Indices
    ) -> _AdditiveMixtures:
        values = structure.value(background)
        start = cls(structure, columns, values, np.zeros((0, 0)))
        return replace(start, theirs=start.terms(background))

    def terms(self, points: Points) -> Array:
        """What each column adds at points, (d, n)."""
        own, found = self.structure, np.zeros((len(self.columns), len(points)))
        alone = own.lengths == 1
        factor, values = own.paths[alone, 0], own.values[alone]
        place = np.searchsorted(self.columns, own.column[factor])
        for rows, G in own.factors_at(points):
            np.add.at(found[:, rows], place, values[:, None] * G[factor])
        return found

    def scores_of(self, x: Values) -> Array:
        """At all mixtures of x (D,), (B, 2^d): bit j is whether column j is of x."""
        total = self.at_background[:, None]
        for change in self.terms(x[None]) - self.theirs:
            total = np.concatenate([total, total + change[:, None]], axis=1)
        return total


def _expanded(
    place: Indices,
    rest: Indices,
    values: Array,
    some: Mask,
    shape: tuple[int, int],
) -> Array:
    """Σ v Σ_{C ⊆ rest} (−1)^|C| at place ∪ C, of some boxes, (B, 2^d)."""
    place, rest, values = place[some], rest[some], values[some]
    total = np.zeros(shape[0] * shape[1])
    while len(place) > 0:
        done = rest == 0
        total += np.bincount(place[done], values[done], len(total))
        place, rest, values = place[~done], rest[~done], values[~done]
        lowest = rest & -rest
        rest = np.tile(rest ^ lowest, 2)
        place = np.concatenate([place, place | lowest])
        values = np.concatenate([values, -values])
    return total.reshape(shape)


def _over_subsets(terms: Array) -> Array:
    """Sums over all subsets T ⊆ S of each S, in place, (B, 2^d)."""
    n_rows, size = terms.shape
    half = 1
    while half < size:
        pairs = terms.reshape(n_rows, -1, 2, half)
        pairs[:, :, 1] += pairs[:, :, 0]
        half *= 2
    return terms
