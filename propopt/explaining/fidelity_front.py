"""The exact front without main effects: what is nearest, and what is most alike.

Among attributions whose rows have the same sums as E,

    nearest      min ‖W − E‖²   subject to  R(W) ≤ r
    most alike   min R(W)       subject to  ‖W − E‖² ≤ d

with the roughness R = Σ S_nn' ‖(w_n − g_n) − (w_n' − g_n')‖² over similar rows, beside
what their main effects contribute. Each is one constrained solve, with its certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.losses import Completeness, GradientMatching, PairwiseRobustness
from propopt.losses.completeness import Constraint
from propopt.results.explanation import Explanation
from propopt.solvers import solve


@final
@dataclass(frozen=True, eq=False)
class FidelityRoughnessFront:
    """Attributions with the row sums of E, the nearest to E for each roughness.

    Columns in which E is zero in all rows are not used, and do not count in sums.
    """

    aim: Attributions  # E (N, D)
    robust: PairwiseRobustness  # R

    @cached_property
    def _used(self) -> Array:
        used = self.aim.any(axis=0)
        return np.where(used | ~used.any(), 1.0, 0.0)

    @cached_property
    def totals(self) -> Completeness:
        return Completeness(self.aim @ self._used, self._used)

    @cached_property
    def _matching(self) -> GradientMatching:
        return GradientMatching(self.aim)

    def completed(self, W: Attributions) -> Attributions:
        """W with the row sums of E: what a row misses is spread over used columns."""
        missed = self.aim.sum(axis=1) - W.sum(axis=1)
        return np.asarray(W + missed[:, None] * self._used / self._used.sum())

    @cached_property
    def least(self) -> float:
        """The roughness that no attributions with these sums are below."""
        return self.robust.value(self.smoothest)

    @cached_property
    def smoothest(self) -> Attributions:
        """Main effects, and of what rows lack the same for each used column."""
        own = self.robust.offset
        return self.completed(np.zeros(self.aim.shape) if own is None else own)

    @cached_property
    def roughness(self) -> float:
        """R(E)."""
        return self.robust.value(self.aim)

    @cached_property
    def plain(self) -> float:
        """The roughness with that of main effects."""
        return self.robust.map.energy(self.aim)

    @property
    def could_go(self) -> float:
        """R(E) less what no attributions with these sums are below."""
        return max(self.roughness - self.least, 0.0)

    @property
    def is_rough(self) -> bool:
        """Whether something could go but rounding."""
        return self.could_go > _NOTHING * self.plain

    def nearest(self, roughness: float) -> Attributions:
        """W of the least ‖W − E‖² with R(W) ≤ r."""
        if roughness >= self.roughness:
            return self.aim
        return self._below(roughness).attributions

    def _below(self, roughness: float) -> Explanation:
        # at the least itself the weight of R is infinite
        lowest = self.least + _FINE * self.could_go
        limit = self.robust <= max(roughness, lowest)
        bounds: list[Constraint] = [self.totals, limit]
        return solve(self._matching, subject_to=bounds, tolerance=_FINE)

    def smoothest_within(self, distance: float) -> Attributions:
        """W of the least R(W) with ‖W − E‖² ≤ d."""
        if distance == 0.0:
            return self.aim
        bounds: list[Constraint] = [self.totals, self._matching <= distance]
        best = solve(1.0 * self.robust, subject_to=bounds, tolerance=_FINE)
        return best.attributions

    def without(self, share: float) -> Attributions:
        """The nearest to E without a share of the roughness that could go."""
        return self.nearest(self.roughness - share * self.could_go)

    @cached_property
    def half_weight(self) -> float:
        """The weight c in ‖W − E‖² + c R(W) that removes half of what could go."""
        best = self._below(0.5 * (self.roughness + self.least))
        return best.multipliers[self.robust.name]


_NOTHING: Final = 1e-9
"""Of the roughness: less than that could go is nothing."""

_FINE: Final = 1e-8
"""The relative gap of constrained solves."""
