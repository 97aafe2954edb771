"""What LIME is asked about: a function, a law, rows; kept so that more can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.errors import Refused
from propopt.functions import Function
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.laws import LimeLaw
from propopt.lime.paths import bin_profiles, binned_columns
from propopt.lime.surrogates import EstimatedLimits, estimate_limits
from propopt.lime.surrogates.common import CommonDraws
from propopt.lime.views.profile import profile_means
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class LimeSubject:
    """A function, a law and rows; not saved with what was found about them.

    Parameters
    ----------
    function : Function
        f.
    law : LimeLaw
        Of the samples.
    products : SumOfProducts or NoProducts
        What f was read as, and found to be at the rows at hand.
    points : array (N, D)
        The rows, encoded.
    labels : Labels
        Their names.
    reference : array (R, D)
        Rows of the table that the law was made of, encoded; those of X where no table
        is known.
    n_draws : int
        Samples for each row of limits that are estimated.
    seed : int
        Of these samples.
    has_table : bool
        Whether a table is known, and ``reference`` is not X.
    known : dict
        What depends on the function and the law alone, made once for all rows.
    """

    function: Function
    law: LimeLaw
    products: SumOfProducts | NoProducts
    points: Points
    labels: Labels
    reference: Points
    n_draws: int
    seed: int
    has_table: bool = True
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
        return read.reason if isinstance(read, NoProducts) else ""

    @cached_property
    def exact(self) -> ExactLimits | None:
        """The limits of a sum of products; None of other functions."""
        read = self.products
        if isinstance(read, NoProducts):
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
        points: Points | None = None,
        widths: Values | None = None,
        *,
        progress: bool | None = False,
    ) -> Limits | EstimatedLimits:
        """The limits at these rows, or at others, with widths of their own.

        Parameters
        ----------
        points : array (n, D), optional
            Encoded rows.
        widths : array (n,), optional
            A kernel width for each.
        progress : bool, optional
            Show a bar while rows are estimated; None for only on a terminal.
        """
        points = self.points if points is None else points
        if self.exact is not None:
            return self.exact.of(points, widths)
        if widths is None:
            return self._estimated(self.law, points, progress)
        several = np.unique(widths)
        parts = [
            self._estimated(self.law.with_width(float(w)), points[widths == w], False)
            for w in several
        ]
        order = np.concatenate([np.flatnonzero(widths == w) for w in several])
        return _in_order(parts, np.argsort(order))

    def profiles(self, points: Points) -> tuple[Array, ...]:
        """For each column h_j(b) = E_Q[f | b_j = b] at rows (n, D), (n, B_j) each.

        NaN for bins in which there is nothing. Of exact limits by bits all bins come
        from one pass; else rows are moved to each bin in turn.
        """
        if self.exact is not None and None not in binned_columns(self.law):
            found = bin_profiles(self.exact, points)
            return tuple(np.where(p.shares > 0.0, p.means, np.nan) for p in found)
        columns = range(points.shape[1])
        return tuple(profile_means(self.limits, self.law, points, j) for j in columns)

    def _estimated(
        self, law: LimeLaw, points: Points, progress: bool | None
    ) -> EstimatedLimits:
        rng = np.random.default_rng(self.seed)
        return estimate_limits(
            self.function, law, points, self.labels, self.n_draws, rng, progress
        )


def limits_or_estimates(
    subject: LimeSubject, progress: bool | None = False
) -> tuple[LimeSubject, Limits | EstimatedLimits]:
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
        estimated = replace(subject, products=NoProducts(str(refused)))
        return estimated, estimated.limits(progress=progress)


def _in_order(parts: list[EstimatedLimits], places: Positions) -> EstimatedLimits:
    """All rows of several estimates, put where they were."""

    def joined(name: str) -> Array:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate(arrays)[places]

    names = ("coefficients", "mean", "alpha", "log_weight")
    return replace(
        parts[0],
        limits=Limits(*map(joined, names)),
        standard_errors=joined("standard_errors"),
        intercept_error=joined("intercept_error"),
        evaluations=sum(part.evaluations for part in parts),
    )
