"""How far scores lie from their targets: intervals and p-values of each by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
from scipy import stats

from propopt._typing import Array, Truths, Values
from propopt.interactions.inference.equal_rows import EqualRows


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

    Where all rows are equal, what holds is the weaker of this law and of
    :class:`EqualRows`.

    Parameters
    ----------
    estimates, errors : array (Q,)
        Scores and their standard errors.
    degrees : array (Q,)
        Of freedom, with which the errors are known.
    null : array (Q,)
        What is tested.
    equal : array of bool (Q,)
        Where all rows are equal.
    equal_rows : EqualRows
        Of the Q scores, read where they are.
    """

    estimates: Values
    errors: Values
    degrees: Values
    null: Values
    equal: Truths
    equal_rows: EqualRows

    @property
    def statistics(self) -> Values:
        """(estimate − null)/error; 0 where both are zero."""
        apart = self.estimates - self.null
        with np.errstate(divide="ignore"):
            found = np.divide(
                apart, self.errors, out=np.zeros_like(apart), where=apart != 0.0
            )
        return np.where(np.isnan(self.errors), np.nan, found)

    def intervals(self, alpha: float, side: Side) -> Array:
        """Ends (Q, 2) at the level 1 − α; infinite where a side has none."""
        tail = alpha / 2 if side == "both" else alpha
        reach = np.where(
            self.errors > 0.0, stats.t.isf(tail, self.degrees) * self.errors, 0.0
        )
        reach = np.where(np.isnan(self.errors), np.nan, reach)
        low, high = self.estimates - reach, self.estimates + reach
        low = np.where(self.equal, np.minimum(low, self.equal_rows.low(alpha)), low)
        high = np.where(self.equal, np.maximum(high, self.equal_rows.high(alpha)), high)
        infinite = np.full_like(low, np.inf)
        ends = {
            "both": (low, high),
            "lower": (low, infinite),
            "upper": (-infinite, high),
        }
        return np.stack(ends[side], axis=1)

    def p_values(self, alternative: Alternative) -> Values:
        """Each by itself, shape (Q,)."""
        T, rows = self.statistics, self.equal_rows
        above, below = rows.p_greater(self.null), rows.p_less(self.null)
        of_law, of_equal_rows = {
            "greater": (stats.t.sf(T, self.degrees), above),
            "less": (stats.t.cdf(T, self.degrees), below),
            "two-sided": (
                2.0 * stats.t.sf(np.abs(T), self.degrees),
                np.minimum(above, below),
            ),
        }[alternative]
        of_law = np.where((self.errors == 0.0) & (T == 0.0), 1.0, of_law)
        weaker = np.maximum(of_law, of_equal_rows)
        return np.asarray(np.where(self.equal, weaker, of_law))
