"""Shapley interaction values of pairs of players of trees, exactly.

    I_uv = Σ_{S ∌ u, v} |S|! (P−|S|−2)!/(P−1)! (v(S∪u∪v) − v(S∪u) − v(S∪v) + v(S))

for the game of shapley.py (Grabisch and Roubens 1999). There u has one coalition fewer
to join, so the gains of a leaf are those of values with n − 1 in place of n, which is
where g(−1, q) = Σ_{i < q} (1 + 1/2 + … + 1/i) comes from. With Z_s[m] as there, and

    A[m], B[m], C[m] = v/M Σ_s g(p−s−1, |m|−t) Z_s[m]   for t = 0, 1, 2,

    I_uv = A[m] − B[m ∪ u] − B[m ∪ v] + C[m ∪ u ∪ v]   for all pairs of sets of a leaf.

So a leaf has three tables in place of two, and all else is as with values: what is
retained, what is streamed, and the same digits whichever way they are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from propopt.base.arrays import Array, Points
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.shapley import BoxShapley
from propopt.structures.products.sums import Game


@final
@dataclass(frozen=True, eq=False)
class BoxPairs:
    """Interaction values of pairs of players, of a sum of trees, exactly."""

    terms: BoxShapley  # of order 2

    @classmethod
    def of(cls, boxes: Boxes, game: Game) -> Self:
        """Prepare a game; paths of more than 62 sets are refused."""
        return cls(BoxShapley.of(boxes, game, order=2))

    def values(self, points: Points) -> Array:
        """I of points (N, D), symmetric with a diagonal of zeros, (N, P, P).

        It is exactly 0.0 for two players that no leaf has both of.
        """
        n_players = self.terms.game.n_players
        pairs = np.zeros((len(points), n_players, n_players))
        later, earlier = np.tril_indices(n_players, -1)
        pairs[:, later, earlier] = self.terms.values(points)
        pairs[:, earlier, later] = pairs[:, later, earlier]
        return pairs
