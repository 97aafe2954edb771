"""Standard errors, intervals and tests of scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats

from propopt.base.arrays import Array, Mask, Values
from propopt.base.checks import read_option


# ---- Many sets are looked at: p-values and levels that count them


Adjustment: TypeAlias = Literal[
    "none", "bonferroni", "holm", "benjamini-hochberg", "benjamini-yekutieli"
]
"""How p-values and intervals count the sets among which one looks.

With Bonferroni, all intervals hold together at the level; so they do with Holm, which
rejects at least as much. Those of Benjamini and Hochberg, and of Benjamini and
Yekutieli, bound the share of false ones among the sets that are found.
"""


def _price(adjust: Adjustment, n_candidates: int) -> float:
    """By what false discoveries are dearer where p-values depend on each other."""
    if adjust == "benjamini-hochberg":
        return 1.0
    return float((1.0 / np.arange(1, n_candidates + 1)).sum())


def adjusted_p_values(p: Values, adjust: Adjustment, n_candidates: int) -> Values:
    """p-values (Q,) that may be compared with α.

    Sets of the m candidates that are not among these count as p = 1, as do NaN.
    """
    adjust, m = read_option(adjust, Adjustment, "adjust"), n_candidates
    order, ranks = np.argsort(p, kind="stable"), np.arange(1, len(p) + 1)
    raised = p[order]  # NaN come last
    match adjust:
        case "bonferroni":
            raised = raised * m
        case "holm":
            raised = raised * (m - ranks + 1.0)
        case "benjamini-hochberg" | "benjamini-yekutieli":
            raised = raised * (_price(adjust, m) * m / ranks)
    if adjust.startswith("benjamini"):  # steps up: one that is rejected rejects all
        raised = np.fmin.accumulate(raised[::-1])[::-1]
    else:
        raised = np.fmax.accumulate(raised)
    result = np.empty_like(p)
    result[order] = np.minimum(raised, 1.0)
    return np.where(np.isnan(p), np.nan, result)


def interval_alpha(
    p: Values, adjust: Adjustment, n_candidates: int, alpha: float
) -> float:
    """1 − level of each interval, so that all of them together keep α.

    With p of the same side, an interval excludes zero where its adjusted p-value is at
    most α; by Holm's a set may be found whose interval, Bonferroni's, holds zero.
    """
    adjusted = adjusted_p_values(p, adjust, n_candidates)
    if adjust == "none":
        return alpha
    if adjust in ("bonferroni", "holm"):
        return alpha * (1.0 / n_candidates)
    # intervals of the sets found: Benjamini and Yekutieli (2005)
    n_results = max(int((adjusted <= alpha).sum()), 1)
    return alpha * (n_results / n_candidates / _price(adjust, n_candidates))


# ---- What is known of a mean where all rows are equal, and no spread can be estimated


ROUNDING_OF_ERRORS: Final = 1e-12
"""A spread below this share of the errors themselves is one of rounding."""


@final
@dataclass(frozen=True)
class ErrorRange:
    """Between what an error of one row lies."""

    low: float  # the ends
    high: float
    proved: bool  # whether no error can be outside, as of probabilities

    def of_score(self, order: int) -> float:
        """The largest |Σ_T ± Err| of a set of r features: 2^(r − 1) (high − low)."""
        return 2.0 ** (order - 1) * (self.high - self.low)

    def rounding(self, order: int) -> float:
        """Spreads of scores of so many features that rounding makes."""
        return float(
            ROUNDING_OF_ERRORS * 2.0**order * max(abs(self.low), abs(self.high))
        )


# ---- How far scores lie from their targets: intervals and p-values of each by itself


Side: TypeAlias = Literal["both", "lower", "upper"]
"""Which ends an interval has: the lower one alone tells what is above zero."""

ErrorKind: TypeAlias = Literal["total", "rows"]
"""Of other rows and other patches together, or of other rows alone as in the paper."""

Null: TypeAlias = Literal["zero", "leak"]
"""What is tested: that a score is zero, or what a model without interactions shows."""

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""Other than the null, above it, below it."""

ALTERNATIVES: Final[Mapping[Side, Alternative]] = {
    "both": "two-sided",
    "lower": "greater",
    "upper": "less",
}


@final
@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Of Q scores: Student's about their targets, normal with infinite degrees.

    Where all N rows are equal, no spread can be estimated. If a share p of the
    population has another score, they are so with a probability of (1 − p)^(N − 1) at
    most: so p ≤ 1 − α^(1/(N − 1)) at the level 1 − α, and the mean is within that share
    of the way to the end of the range. The weaker of this and Student's law holds.
    """

    estimates: Values  # (Q,): scores, z̄
    errors: Values  # (Q,): their standard errors
    degrees: Values  # (Q,): of freedom, with which the errors are known
    null: Values  # (Q,): what is tested
    equal: Mask  # (Q,): where all rows are equal
    half_range: float  # scores lie between −half_range and half_range
    n_rows: int  # N, at least 2

    @property
    def statistics(self) -> Values:
        """(estimate − null)/error; 0 where both are zero."""
        apart = self.estimates - self.null
        with np.errstate(divide="ignore", over="ignore"):
            result = np.divide(
                apart, self.errors, out=np.zeros_like(apart), where=apart != 0.0
            )
        return np.where(np.isnan(self.errors), np.nan, result)

    def intervals(self, alpha: float, side: Side) -> Array:
        """Ends (Q, 2) at the level 1 − α; infinite where a side has none."""
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
        """Each by itself, shape (Q,)."""
        T, (below, above) = self.statistics, self._room
        greater = self._of_equal_rows(self.estimates - self.null, below)
        less = self._of_equal_rows(self.null - self.estimates, above)
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
        return np.asarray(np.where(self.equal, weaker, of_law))

    @property
    def _room(self) -> tuple[Values, Values]:
        """How far a mean can be below and above the score."""
        below, above = (
            self.half_range + self.estimates,
            self.half_range - self.estimates,
        )
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _of_equal_rows(self, distance: Values, room: Values) -> Values:
        """(1 − distance/room)^(N − 1); 1 where the mean is on the side of the null."""
        wanted = np.clip(distance, 0.0, None)
        share = np.divide(
            wanted, room, out=(wanted > 0.0).astype(np.float64), where=room > 0.0
        )
        return np.asarray((1.0 - np.minimum(share, 1.0)) ** (self.n_rows - 1))


# ---- What rows say of a mean: its standard error, and how many of them carry it


FEW_ROWS: Final = 10
"""Where fewer rows carry a variance, no interval of a normal law can be relied on."""


def moments(
    scores: Array, weights: Values, groups: NDArray[np.intp] | None = None
) -> tuple[Values, Values, Values]:
    """Means, standard errors and effective rows of q columns of scores (N, q).

    z̄ = Σ w z/N, with weights (N,) that sum to N; √(Σ d²/(N (N − 1))), d = w (z − z̄);
    (Σ d²)³/(Σ |d|³)², the number of rows that carry the standard error.

    Of rows in C groups (N,), of which only groups are independent, d_c = Σ_{i ∈ c} d_i
    stands for d, and the standard error is √(C/(C − 1) Σ d_c²)/N (Liang and Zeger 1986;
    the factor is that of C independent sums).
    """
    counted = weights > 0.0
    if not counted.all():
        own = weights[counted]
        codes = None
        if groups is not None:
            codes = np.unique(groups[counted], return_inverse=True)[1]
        return moments(scores[counted], own * (len(own) / own.sum()), codes)
    n_rows = len(scores)
    means = weights @ scores / n_rows
    apart = weights[:, None] * (scores - means)
    if groups is not None:
        apart = sp.csr_array((np.ones(n_rows), (groups, np.arange(n_rows)))) @ apart
    n_sums = len(apart)
    sizes = np.abs(apart).max(axis=0)
    unit = np.abs(apart / np.where(sizes > 0.0, sizes, 1.0))  # so that no cube is lost
    square = unit * unit
    second, third = square.sum(axis=0), (square * unit).sum(axis=0)
    errors = sizes * np.sqrt(second / (n_sums - 1) / n_sums) * (n_sums / n_rows)
    with np.errstate(invalid="ignore"):  # 0/0 where all rows are equal
        return means, errors, second**3 / third**2
