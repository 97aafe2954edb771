"""Standard errors, intervals and tests of scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats

from propopt.base.arrays import Array, Mask, Values, quotient
from propopt.base.checks import read_option


# ---- Corrections of p-values and levels for many sets


Adjustment: TypeAlias = Literal[
    "none", "bonferroni", "holm", "benjamini-hochberg", "benjamini-yekutieli"
]
"""How p-values and intervals are corrected for the number of sets.

Bonferroni and Holm give intervals that hold simultaneously at the level; Holm rejects
at least as many sets. Benjamini and Hochberg, and Benjamini and Yekutieli, bound the
false discovery rate.
"""


def adjusted_p_values(p: Values, adjust: Adjustment, n_candidates: int) -> Values:
    """Adjusted p-values (Q,), to be compared with α.

    The m candidates include sets without a p-value here; these and NaN count as p = 1.
    """
    adjust = read_option(adjust, Adjustment, "adjust")
    candidates = np.ones(n_candidates)
    candidates[: len(p)] = np.where(np.isnan(p), 1.0, p)
    match adjust:
        case "bonferroni":
            candidates *= n_candidates
        case "holm":
            order = np.argsort(candidates, kind="stable")
            raised = candidates[order] * np.arange(n_candidates, 0, -1)
            candidates[order] = np.maximum.accumulate(raised)
        case "benjamini-hochberg":
            candidates = stats.false_discovery_control(candidates, method="bh")
        case "benjamini-yekutieli":
            candidates = stats.false_discovery_control(candidates, method="by")
    return np.where(np.isnan(p), np.nan, np.minimum(candidates[: len(p)], 1.0))


def interval_alpha(
    p: Values, adjust: Adjustment, n_candidates: int, alpha: float
) -> float:
    """1 − level of each interval, such that all of them together have 1 − α.

    With p-values of the same side, an interval excludes zero if the adjusted p-value is
    at most α. Holm is the exception: it may reject a set although its interval, which
    is that of Bonferroni, contains zero.
    """
    adjusted = adjusted_p_values(p, adjust, n_candidates)
    if adjust == "none":
        return alpha
    if adjust in ("bonferroni", "holm"):
        return alpha * (1.0 / n_candidates)
    # intervals of the rejected sets: Benjamini and Yekutieli (2005)
    n_results = max(int((adjusted <= alpha).sum()), 1)
    price = 1.0
    if adjust == "benjamini-yekutieli":  # for dependent p-values
        price = float((1.0 / np.arange(1, n_candidates + 1)).sum())
    return alpha * (n_results / n_candidates / price)


# ---- Bounds of a mean if all rows have the same score


ROUNDING_OF_ERRORS: Final = 1e-12
"""Spreads below this share of the errors themselves are rounding."""


@final
@dataclass(frozen=True)
class ErrorRange:
    """The range of the error of one row."""

    low: float  # the ends
    high: float
    proved: bool  # whether no error can lie outside, as for probabilities

    def of_score(self, order: int) -> float:
        """The largest possible |score| of r features: 2^(r − 1) (high − low)."""
        return 2.0 ** (order - 1) * (self.high - self.low)

    def rounding(self, order: int) -> float:
        """The spread of scores of sets of ``order`` features due to rounding."""
        return float(
            ROUNDING_OF_ERRORS * 2.0**order * max(abs(self.low), abs(self.high))
        )


# ---- Intervals and p-values of single scores


Side: TypeAlias = Literal["both", "lower", "upper"]
"""The finite ends of intervals: both, or one for a one-sided interval."""

ErrorKind: TypeAlias = Literal["total", "rows"]
"""Errors due to rows and patches together, or due to rows alone as in the paper."""

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""The alternative hypothesis: different from, above or below zero."""

ALTERNATIVES: Final[Mapping[Side, Alternative]] = {
    "both": "two-sided",
    "lower": "greater",
    "upper": "less",
}


@final
@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Student's law of Q scores about their targets; normal for infinite degrees.

    If all N rows have the same score, no spread can be estimated. If a share p of the
    population had another score, that would happen with probability (1 − p)^(N − 1) at
    most. So p ≤ 1 − α^(1/(N − 1)) at the level 1 − α, and the mean moves at most this
    share of the way to the end of the range. The wider of this and Student's interval
    is used.
    """

    estimates: Values  # (Q,): scores, z̄
    errors: Values  # (Q,): their standard errors
    degrees: Values  # (Q,): degrees of freedom of the errors
    equal: Mask  # (Q,): where all rows are equal
    half_range: float  # scores lie between −half_range and half_range
    n_rows: int  # N, at least 2

    @property
    def statistics(self) -> Values:
        """Test statistics estimate/error; 0 where both are zero."""
        with np.errstate(divide="ignore", over="ignore"):
            result = quotient(self.estimates, self.errors, where=self.estimates != 0.0)
        return np.where(np.isnan(self.errors), np.nan, result)

    def intervals(self, alpha: float, side: Side) -> Array:
        """Ends (Q, 2) of intervals at the level 1 − α; infinite on an open side."""
        tail = alpha / 2 if side == "both" else alpha
        reach = np.where(
            self.errors > 0.0, stats.t.isf(tail, self.degrees) * self.errors, 0.0
        )
        reach = np.where(np.isnan(self.errors), np.nan, reach)
        share = float(-np.expm1(np.log(alpha) / (self.n_rows - 1)))
        below, above = (
            np.where(self.equal, np.maximum(reach, share * room), reach)
            for room in self._room
        )
        ends = np.stack([self.estimates - below, self.estimates + above], axis=1)
        if side != "both":
            ends[:, int(side == "lower")] = np.inf if side == "lower" else -np.inf
        return ends

    def p_values(self, alternative: Alternative) -> Values:
        """p-values without correction, shape (Q,)."""
        T = self.statistics
        below, above = self._room
        greater = self._of_equal_rows(self.estimates, below)
        less = self._of_equal_rows(-self.estimates, above)
        of_law, of_equal_rows = {
            "greater": (stats.t.sf(T, self.degrees), greater),
            "less": (stats.t.cdf(T, self.degrees), less),
            "two-sided": (
                2.0 * stats.t.sf(np.abs(T), self.degrees),
                np.minimum(greater, less),
            ),
        }[alternative]
        of_law = np.where((self.errors == 0.0) & (T == 0.0), 1.0, of_law)
        weaker = np.maximum(of_law, of_equal_rows)
        return np.where(self.equal, weaker, of_law)

    @property
    def _room(self) -> tuple[Values, Values]:
        """How far the mean can be below and above the score."""
        below = self.half_range + self.estimates
        above = self.half_range - self.estimates
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _of_equal_rows(self, distance: Values, room: Values) -> Values:
        """(1 − distance/room)^(N − 1); 1 where the mean is on the side of zero."""
        wanted = np.clip(distance, 0.0, None)
        share = quotient(wanted, room, 1.0 * (wanted > 0.0))
        return (1.0 - np.minimum(share, 1.0)) ** (self.n_rows - 1)


# ---- Means over rows, their standard errors and effective numbers of rows


FEW_ROWS: Final = 10
"""With fewer effective rows, a normal law is not reliable."""


def moments(
    scores: Array, weights: Values, groups: NDArray[np.intp] | None = None
) -> tuple[Values, Values, Values]:
    """Means, standard errors and effective rows of q columns of scores (N, q).

    z̄ = Σ w z/N, with weights (N,) that sum to N; √(Σ d²/(N (N − 1))), d = w (z − z̄);
    (Σ d²)³/(Σ |d|³)², the effective number of rows.

    If rows belong to C groups (N,) and only groups are independent, d_c = Σ_{i ∈ c} d_i
    replaces d, and the standard error is √(C/(C − 1) Σ d_c²)/N (Liang and Zeger 1986;
    the factor is that of C independent sums).
    """
    counted = weights > 0.0
    n_rows = n_sums = int(counted.sum())
    weights = weights * (n_rows / weights.sum())
    means = weights @ scores / n_rows
    deviations = weights[:, None] * (scores - means)
    if groups is not None:
        n_sums = len(np.unique(groups[counted]))
        rows = np.arange(len(scores))
        deviations = sp.csr_array((np.ones(len(rows)), (groups, rows))) @ deviations
    sizes = np.abs(deviations).max(axis=0)
    unit = np.abs(quotient(deviations, sizes))  # no cube underflows
    square = unit * unit
    second = square.sum(axis=0)
    third = (square * unit).sum(axis=0)
    errors = sizes * np.sqrt(second / (n_sums - 1) / n_sums) * (n_sums / n_rows)
    with np.errstate(invalid="ignore"):  # 0/0 where all rows are equal
        return means, errors, second**3 / third**2
