"""The exact trade-off between distance to given values and roughness.

Among attributions with the row sums of E,

    nearest     min ‖W − E‖²   subject to  R(W) ≤ r
    smoothest   min R(W)       subject to  ‖W − E‖² ≤ d

with the roughness R = Σ S_nn' ‖(w_n − g_n) − (w_n' − g_n')‖² over similar rows, which
leaves out main effects g. Each is one constrained solve with a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Mask
from propopt.losses import Completeness, GradientMatching, PairwiseRobustness
from propopt.losses.completeness import Constraint
from propopt.results.explanation import Explanation
from propopt.solvers import solve


@final
@dataclass(frozen=True, eq=False)
class FidelityRoughnessFront:
    """Attributions with the row sums of E on the curve of distance against roughness.

    Columns that the model does not use stay zero and do not count in sums: E and g are
    zero in them. E alone does not show it, as zero is not optimal beside main effects.
    """

    aim: Attributions  # E (N, D)
    robust: PairwiseRobustness  # R
    used: Mask | bool = False  # (D,): the columns that the model uses, if it is read

    @cached_property
    def _used(self) -> Array:
        offset = self.robust.offset
        G = np.zeros((1, 1)) if offset is None else offset
        used = self.used | self.aim.any(axis=0) | G.any(axis=0)
        return np.where(used | ~used.any(), 1.0, 0.0)

    @cached_property
    def totals(self) -> Completeness:
        return Completeness(self.aim @ self._used, self._used)

    @cached_property
    def _matching(self) -> GradientMatching:
        return GradientMatching(self.aim)

    def completed(self, W: Attributions) -> Attributions:
        """W completed to the row sums of E, evenly over the columns that are used."""
        missed = self.aim.sum(axis=1) - W.sum(axis=1)
        return W + missed[:, None] * self._used / self._used.sum()

    @cached_property
    def least(self) -> float:
        """The least roughness of attributions with these row sums."""
        return self.robust.value(self.smoothest)

    @cached_property
    def smoothest(self) -> Attributions:
        """Main effects, completed to the row sums of E evenly over used columns."""
        offset = self.robust.offset
        return self.completed(np.zeros(self.aim.shape) if offset is None else offset)

    @cached_property
    def roughness(self) -> float:
        """R(E), the roughness of the given values."""
        return self.robust.value(self.aim)

    @cached_property
    def plain(self) -> float:
        """The roughness of E with main effects included."""
        return self.robust.map.energy(self.aim)

    @property
    def removable(self) -> float:
        """R(E) minus the least roughness of attributions with these row sums."""
        return max(self.roughness - self.least, 0.0)

    @property
    def is_rough(self) -> bool:
        """Whether the removable roughness is more than rounding error."""
        return self.removable > _NOTHING * self.plain

    def nearest(self, roughness: float) -> Attributions:
        """The attributions W of least ‖W − E‖² with R(W) ≤ r."""
        if roughness >= self.roughness:
            return self.aim
        return self._below(roughness).attributions

    def _below(self, roughness: float) -> Explanation:
        # at the least roughness itself the multiplier of R would be infinite
        lowest = self.least + _FINE * self.removable
        limit = self.robust <= max(roughness, lowest)
        bounds: list[Constraint] = [self.totals, limit]
        return solve(self._matching, subject_to=bounds, tolerance=_FINE)

    def smoothest_within(self, distance: float) -> Attributions:
        """The attributions W of least R(W) with ‖W − E‖² ≤ d."""
        if distance == 0.0:
            return self.aim
        bounds: list[Constraint] = [self.totals, self._matching <= distance]
        best = solve(1.0 * self.robust, subject_to=bounds, tolerance=_FINE)
        return best.attributions

    def without(self, share: float) -> Attributions:
        """The nearest to E with a share of the removable roughness taken away."""
        return self.nearest(self.roughness - share * self.removable)

    @cached_property
    def half_weight(self) -> float:
        """The weight c in ‖W − E‖² + c R(W) that halves the removable roughness."""
        best = self._below(0.5 * (self.roughness + self.least))
        return best.multipliers[self.robust.name]


_NOTHING: Final = 1e-9
"""Removable roughness below this share of the whole is rounding error."""

_FINE: Final = 1e-8
"""The relative gap of constrained solves."""
