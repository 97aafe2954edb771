"""Links of scores, and their Shapley values over all sets of columns.

Probabilities are h(m_1(x), ..., m_K(x)), where each score m is a sum of boxes (boosted
trees) or additive (logistic regression), and h is a nonlinear link. v(S) is the mean of
h over background rows b, with the columns S of x. The scores of all 2^d mixtures of x
and b are computed together. Take a box whose sets contain only x in the columns A, only
b in the columns B, and both elsewhere. It adds v to the score of each set S with A ⊆ S
and B ∩ S = ∅. With [B ∩ S = ∅] = Σ_{C ⊆ B} (−1)^|C| [C ⊆ S] these are sums over
subsets, which take d 2^d additions for all S.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.products.sums import Game, SumOfProducts
from propopt.structures.scores import Link
from propopt.structures.subsets.sets import shapley_of_coalitions


# ---- Links of a few scores


@final
@dataclass(frozen=True, eq=False, repr=False)
class LinkedScores:
    """A link h(m_1(x), …, m_K(x)) of scores that are sums of boxes, or additive."""

    scores: tuple[SumOfProducts, ...]
    link: Link

    def __repr__(self) -> str:
        count = len(self.scores)
        link = type(self.link).__name__
        return f"{type(self).__name__}({link} of {count} scores)"

    @property
    def tolerance(self) -> float:
        """Allowed difference from the model, relative to the range of its values."""
        return max(part.tolerance for part in self.scores)

    def value(self, points: Points) -> Values:
        """Values at points (N, D), shape (N,)."""
        return self.of_scores(np.stack([part.value(points) for part in self.scores]))

    def of_scores(self, scores: Array) -> Array:
        """Values (...) of given scores (K, ...)."""
        values = self.link.value(scores.reshape(len(scores), -1).T)
        return values.reshape(scores.shape[1:])

    @cached_property
    def columns(self) -> Indices:
        """The columns that any score depends on, increasing."""
        return np.unique(np.concatenate([part.columns for part in self.scores]))

    def steps_of_row(self, n_background: int) -> float:
        """The operation count for the Shapley values of one row."""
        d = len(self.columns)
        K = len(self.scores)
        leaves = sum(part.paths.shape[0] for part in self.scores)
        return n_background * (2.0 ** min(d, 60) * K * (2.0 * d + 4.0) + 4.0 * leaves)


def exact_score(structure: SumOfProducts | Reason | None) -> SumOfProducts | None:
    """Score, if it is a sum of boxes or additive, with exact mixtures; else None."""
    if not isinstance(structure, SumOfProducts):
        return None
    has_mixtures = isinstance(structure, Boxes) or structure.lengths.max(initial=0) <= 1
    return structure if has_mixtures else None


MOST_LINK_STEPS: Final = 5e7
"""Operations for each explained row: 13 columns with 100 rows and one score."""


# ---- Shapley values over all sets of the columns


@final
@dataclass(frozen=True, eq=False)
class LinkedShapley:
    """Shapley values of linked scores: every set of columns, every background row."""

    linked: LinkedScores
    game: Game

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 for columns without a box."""
        return self.of_blocks(points).mean(axis=1)

    def of_blocks(self, points: Points) -> Array:
        """Shapley values against each background block separately, (N, blocks, D)."""
        columns = self.linked.columns
        game = self.game
        players = np.arange(points.shape[1]) if game.players is None else game.players
        phi = np.zeros((len(points), game.n_blocks, game.n_players))
        if len(columns) == 0:
            return phi
        playing, player = np.unique(players[columns], return_inverse=True)
        # the bits of the columns that each set of players has
        column_bits = np.zeros(1 << len(playing), np.int64)
        for index in range(len(playing)):
            bits = int((1 << np.flatnonzero(player == index)).sum())
            column_bits[1 << index : 2 << index] = column_bits[: 1 << index] | bits
        for row, x in zip(phi, points, strict=True):
            scores = np.stack([mixtures.scores_of(x) for mixtures in self._mixtures])
            values = self.linked.of_scores(scores)  # (B, 2^d)
            if game.players is not None:
                values = values[:, column_bits]
            values = values.reshape(game.n_blocks, -1, values.shape[1])
            apart = values - values[..., -1:]
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
            _Mixtures(part, *rest)
            if isinstance(part, Boxes)
            else _AdditiveMixtures(part, *rest)
            for part in self.linked.scores
        ]


@final
@dataclass(frozen=True, eq=False)
class _Mixtures:
    """A sum of boxes at all mixtures of a row with background rows."""

    boxes: Boxes
    background: Points  # (B, D)
    columns: Indices  # (d,): those that are used

    @cached_property
    def bits(self) -> Indices:
        """The bit of the column of each set, by its position, or 0, (L, K)."""
        position = np.searchsorted(self.columns, self.boxes.column)
        return np.append(1 << position, 0).astype(np.int64)[self.boxes.paths]

    @cached_property
    def background_bits(self) -> Indices:
        """The bits of the sets that contain each background row, (L, B)."""
        return self.bits_holding(self.background)

    def bits_holding(self, points: Points) -> Indices:
        """The bits of the sets of each box that contain points, (L, N)."""
        inside = self.boxes.sets.contain(points)
        inside = np.concatenate([inside, np.zeros((1, len(points)), bool)])
        bits = np.zeros((len(self.bits), len(points)), np.int64)
        for k in range(self.bits.shape[1]):
            bits |= self.bits[:, k, None] * inside[self.boxes.paths[:, k]]
        return bits

    def scores_of(self, x: Values) -> Array:
        """Scores of all mixtures of x (D,), (B, 2^d); bit j is for column j of x."""
        of_x = self.bits_holding(x[None])
        size = 1 << len(self.columns)
        full = self.bits.sum(axis=1, keepdims=True)  # all sets of each box
        box, row = np.nonzero((of_x | self.background_bits) == full)
        of_b = self.background_bits[box, row]
        only_x = of_x[box, 0] & ~of_b
        only_b = of_b & ~of_x[box, 0]
        fewer = np.bitwise_count(only_b) <= np.bitwise_count(only_x)
        values = self.boxes.values[box]
        start = row * size
        shape = self.background_bits.shape[1], size
        inner = _expanded(start + only_x, only_b, values, fewer, shape)
        outer = _expanded(start + only_b, only_x, values, ~fewer, shape)
        # B ∩ S = ∅ where B is in the columns that S lacks
        total = _over_subsets(inner) + _over_subsets(outer)[:, ::-1]
        return total + self.boxes.base


@final
@dataclass(frozen=True, eq=False)
class _AdditiveMixtures:
    """An additive function at all mixtures of a row with background rows."""

    structure: SumOfProducts
    background: Points  # (B, D)
    columns: Indices  # (d,)

    @cached_property
    def at_background(self) -> tuple[Values, Array]:
        """The values at the background rows (B,), and the term of each column there."""
        return self.structure.value(self.background), self.terms(self.background)

    def terms(self, points: Points) -> Array:
        """The term of each column at points, (d, n)."""
        structure = self.structure
        terms = np.zeros((len(self.columns), len(points)))
        alone = structure.lengths == 1
        factor = structure.paths[alone, 0]
        values = structure.values[alone]
        position = np.searchsorted(self.columns, structure.column[factor])
        for rows, G in structure.factors_at(points):
            np.add.at(terms[:, rows], position, values[:, None] * G[factor])
        return terms

    def scores_of(self, x: Values) -> Array:
        """Scores of all mixtures of x (D,), (B, 2^d); bit j is for column j of x."""
        values, terms = self.at_background
        total = values[:, None]
        for change in self.terms(x[None]) - terms:
            total = np.concatenate([total, total + change[:, None]], axis=1)
        return total


def _expanded(
    index: Indices, rest: Indices, values: Array, chosen: Mask, shape: tuple[int, int]
) -> Array:
    """The sum of v Σ_{C ⊆ rest} (−1)^|C| at index ∪ C, over some boxes, (B, 2^d)."""
    index = index[chosen]
    rest = rest[chosen]
    values = values[chosen]
    total = np.zeros(shape[0] * shape[1])
    while len(index) > 0:
        done = rest == 0
        total += np.bincount(index[done], values[done], len(total))
        index = index[~done]
        rest = rest[~done]
        values = values[~done]
        lowest = rest & -rest
        rest = np.tile(rest ^ lowest, 2)
        index = np.concatenate([index, index | lowest])
        values = np.concatenate([values, -values])
    return total.reshape(shape)


def _over_subsets(terms: Array) -> Array:
    """Sums over all subsets T ⊆ S of each S, computed in place, (B, 2^d)."""
    n_rows, size = terms.shape
    half = 1
    while half < size:
        pairs = terms.reshape(n_rows, -1, 2, half)
        pairs[:, :, 1] += pairs[:, :, 0]
        half *= 2
    return terms
