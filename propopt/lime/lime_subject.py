"""What LIME is asked about: a function, a law and rows of a table.

- :class:`~propopt.lime.lime_subject.LimeSubject`: the model and the law behind an
  explanation, kept so that more can be asked; they are not saved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from propopt.base.arrays import Array, Points, Positions, Values
from propopt.base.errors import Refused
from propopt.base.resources import AT_ONCE, DrawPlan
from propopt.base.text import Reason
from propopt.functions import Function
from propopt.functions.means import Checked
from propopt.lime.expectations import ExactLimits, Limits, bin_profiles, profile_means
from propopt.lime.fidelity import PAIRS_AT_MOST, exact_variance, n_pairs
from propopt.lime.laws.binned_columns import binned_columns
from propopt.lime.laws.lime_law import LimeLaw, draws_at
from propopt.lime.single_runs import RUN_DRAWS
from propopt.lime.surrogates import (
    CommonDraws,
    estimate_limits,
    evaluated,
    stratified_uniforms,
)
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


# ---- What a function is read as, believed once it is what the function answers


def checked_products(
    function: Function, reference: Points, points: Points, labels: Labels
) -> SumOfProducts | Reason:
    """The sum of products that a function is, if it is one at rows of both tables.

    reference (R, D), points (R, D).
    """
    rows = np.concatenate([points, reference])
    return Checked.of(function, rows.shape[1]).at(rows, labels.of_columns())


# ---- What LIME is asked about: a function, a law, rows; kept so that more can be asked


@final
@dataclass(frozen=True, eq=False)
class LimeSubject:
    """A function, a law and rows; not saved with what was found about them."""

    function: Function  # f
    law: LimeLaw  # of the samples
    # what f was read as, and found to be at the rows at hand
    products: SumOfProducts | Reason
    points: Points  # (N, D): the rows, encoded
    labels: Labels
    reference: Points  # (R, D): rows of the table that the law was made of, encoded
    draws: DrawPlan  # for each row of limits that are estimated
    has_table: bool = True  # whether a table is known, and reference is not X
    # what depends on the function and the law alone, made once for all rows
    known: dict[str, Any] = field(default_factory=dict, repr=False)

    def of_rows(self, rows: Positions) -> LimeSubject:
        """The same, about some of the rows."""
        return self.at(self.points[rows], self.labels.of_positions(rows))

    def at(self, points: Points, labels: Labels) -> LimeSubject:
        """The same, about other rows."""
        return replace(self, points=points, labels=labels)

    @property
    def reason(self) -> str:
        """Why limits are estimated; empty where they are exact."""
        read = self.products
        return read.reason if isinstance(read, Reason) else ""

    @cached_property
    def exact(self) -> ExactLimits | None:
        """The limits of a sum of products; None of other functions."""
        read = self.products
        if isinstance(read, Reason):
            return None
        first = self.known.get("exact")
        if first is None or first.function is not read:
            self.known["exact"] = own = ExactLimits(read, self.law)
            return own
        known: ExactLimits = first
        return known if known.law is self.law else known.with_law(self.law)

    @cached_property
    def common(self) -> CommonDraws | None:
        """Samples that all rows share; None of laws whose columns are not in bins."""
        law, draws = self.known.get("common", (None, None))
        if law is not self.law:
            draws = CommonDraws.of(self.law, self.evaluate)
            self.known["common"] = self.law, draws
        return draws

    @property
    def evaluate(self) -> Callable[[Points], Values]:
        """F at encoded points: the model, which is faster than its sum of products."""
        names = self.labels.of_columns()
        return lambda points: self.function.value_at(points, names)

    def limits(
        self,
        points: Points | None = None,  # shape (n, D)
        widths: Values | None = None,  # shape (n,)
        *,
        progress: bool | None = False,
    ) -> Limits:
        """The limits at these rows, or at others, with widths of their own."""
        draws = self.draws if points is None else self.draws.alone
        points = self.points if points is None else points
        if self.exact is not None:
            return self.exact.of(points, widths)
        if widths is None:
            return self._estimated(self.law, points, progress, draws)
        several = np.unique(widths)
        parts = [
            self._estimated(
                self.law.with_width(float(w)),
                points[widths == w],
                False,
                self.draws.alone,
            )
            for w in several
        ]
        order = np.concatenate([np.flatnonzero(widths == w) for w in several])
        return Limits.joined(parts).at(np.argsort(order))

    def profiles(self, points: Points) -> tuple[Array, ...]:
        """For each column h_j(b) = E_Q[f | b_j = b] at rows (n, D), (n, B_j) each.

        NaN for bins in which there is nothing. Of exact limits by bits all bins come
        from one pass; else rows are moved to each bin in turn.
        """
        if self.exact is not None and None not in binned_columns(self.law):
            return bin_profiles(self.exact, points)
        columns = range(points.shape[1])
        return tuple(profile_means(self.limits, self.law, points, j) for j in columns)

    def _estimated(
        self, law: LimeLaw, points: Points, progress: bool | None, draws: DrawPlan
    ) -> Limits:
        return estimate_limits(self.function, law, points, self.labels, draws, progress)

    def variance(self) -> Values:
        """Var_Q f at the rows, (N,): by pairs of products, or drawn if too many."""
        read, law, points = self.products, self.law, self.points
        if (
            isinstance(read, SumOfProducts)
            and n_pairs(read, len(points)) <= PAIRS_AT_MOST
        ):
            result = exact_variance(read, law, points, law.widths(points))
            if result is not None:
                return result
        # from draws that rows share; where too few count, from even ones at rows
        widths, common = law.widths(points), self.common
        shared, variance = np.zeros(len(points), bool), np.empty(len(points))
        if common is not None:
            shared = common.enough(points, widths)
            if shared.any():
                variance[shared] = common.variances(points[shared], widths[shared])
        if shared.all():
            return variance
        alone, rng = np.flatnonzero(~shared), np.random.default_rng(self.draws.seed)
        uniforms = stratified_uniforms(1, RUN_DRAWS, points.shape[1], rng)
        for some in AT_ONCE.blocks(len(alone), 3 * uniforms.nbytes):
            rows = alone[some]
            copies = np.broadcast_to(uniforms[0], (len(rows), *uniforms.shape[1:]))
            draws = draws_at(law.columns, points[rows], widths[rows], copies)
            variance[rows] = evaluated(self.evaluate, draws.samples).var(axis=1)
        return variance


def limits_or_estimates(
    subject: LimeSubject, progress: bool | None = False
) -> tuple[LimeSubject, Limits]:
    """The limits at the rows of a subject, estimated where exact ones are refused.

    A function may be a sum of products whose factors have means that quadrature does
    not find; then the subject is one of a function that can only be called, and says
    so.
    """
    try:
        return subject, subject.limits(progress=progress)
    except Refused as refused:
        if subject.exact is None:
            raise
        estimated = replace(subject, products=Reason(str(refused)))
        return estimated, estimated.limits(progress=progress)
