"""What a function is read as, believed once checked; means, exact or drawn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Attributions, Indices, Mask, Points, Values
from propopt.base.errors import InexactBoxesWarning, Refused
from propopt.base.text import Reason
from propopt.functions.function import DerivedFunction, Function
from propopt.functions.jumps import DOUBLE, SINGLE, allowed_difference
from propopt.laws.data_law import DataLaw, Means
from propopt.laws.draws import N_BLOCKS, Control, Design, Sample
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import SINGLE_TOLERANCE, Boxes
from propopt.structures.boxes.links import LinkedScores
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


MOST_CHECKED: Final = 1000
"""Rows at which it is compared with the function."""

EACH_MISSING: Final = 20
"""More of them for each column that is missing nowhere else."""


_NEAR: Final = "values near each row from"
"""How the data law is told; its table follows."""

READ: Final = "exact (read from the model)"
"""The source of what is computed of boxes, and of other sums of products."""


@final
@dataclass
class CheckedStructure:
    """What a function was read as, compared with it at the first rows that are at hand.

    Rows in which a column is missing that was there before are compared, too.
    """

    function: Function  # f
    # what it was read as; the reason if it was not, or if that was wrong
    structure: SumOfProducts | Reason
    # (D,): columns that were missing in rows that were compared; None before any was
    expected_missing: Mask | None = None

    @classmethod
    def of(cls, function: Function, n_columns: int) -> CheckedStructure:
        """The sum of products that it says it is, of a table of so many columns."""
        return cls(function, function.products_in(n_columns))

    def is_confirmed(self, values: Values, own: Values, terms: Values) -> bool:
        """Whether sums of what it was read as, made of such terms, are its values."""
        if isinstance(self.structure, Reason):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.abs(own - values)
            allowed = _allowed(self.structure, values, terms)
        return bool((errors <= allowed).all())

    def at(self, points: Points, labels: Labels) -> SumOfProducts | Reason:
        """What it is, if that is right; else a reason, which a warning says, too."""
        if isinstance(self.structure, Reason):
            return self.structure
        gaps, known = _gaps(self.function, points), self.expected_missing
        if known is not None and not gaps.any():
            return self.structure
        rows = _not_compared(gaps, known)
        if len(rows) == 0:
            return self.structure
        here = gaps[rows].any(axis=0)
        difference = _difference(self.structure, self.function, points, rows, labels)
        self.expected_missing = np.asarray(here if known is None else known | here)
        if difference is not None:
            self.structure = Reason(difference)
            warnings.warn(
                f"{difference}; it is sampled instead",
                InexactBoxesWarning,
                stacklevel=2,
            )
        return self.structure


def _gaps(function: Function, points: Points) -> Mask:
    """Where a number is missing, or a category is one that data has not, (N, D)."""
    gaps, schema = np.isnan(points), function.schema
    return gaps if schema is None else np.asarray(gaps | schema.unseen(points))


def _not_compared(gaps: Mask, expected_missing: Mask | None) -> Indices:
    """Positions of rows (N, D) that would tell something new."""
    absent = gaps.copy()
    if expected_missing is None:
        every = -(-len(gaps) // MOST_CHECKED)
        first = np.arange(0, len(gaps), every)
        absent &= ~absent[first].any(axis=0)
    else:
        first = np.zeros(0, np.intp)
        absent &= ~expected_missing
        if not absent.any():
            return first
    columns = np.flatnonzero(absent.any(axis=0))
    new = [np.flatnonzero(absent[:, j])[:EACH_MISSING] for j in columns]
    return np.unique(np.concatenate([first, *new]))


@final
@dataclass(frozen=True, eq=False)
class CheckedLink:
    """A link of sums of boxes that a function was found to be at reference rows."""

    linked: LinkedScores
    spread: float  # the range of f there

    @classmethod
    def of(
        cls, function: Function, points: Points, labels: Labels
    ) -> CheckedLink | None:
        """The first of its possible links that gives its answers at rows (N, D)."""
        if not function.links:
            return None
        rows = _not_compared(_gaps(function, points), None)
        with function.calls.as_trial():
            values = function.value_at(points[rows], labels.of_positions(rows))
        found = (cls(linked, float(np.ptp(values))) for linked in function.links)
        return next((own for own in found if own.holds(points[rows], values)), None)

    def holds(self, points: Points, values: Values) -> bool:
        """Whether it gives these answers at points (n, D)."""
        tolerance = self.linked.tolerance
        epsilon = SINGLE if tolerance >= SINGLE_TOLERANCE else DOUBLE
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            errors = np.abs(self.linked.value(points) - values)
        allowed = allowed_difference(values, 0.0, epsilon) + tolerance * self.spread
        return bool((errors <= allowed).all())


def _allowed(
    read: SumOfProducts, values: Values, terms: Values | None = None
) -> Values:
    """How far it may be from values of the function, (n,)."""
    epsilon = SINGLE if read.tolerance >= SINGLE_TOLERANCE else DOUBLE
    return allowed_difference(values, read.tolerance, epsilon, terms)


def _difference(
    read: SumOfProducts,
    function: Function,
    points: Points,
    rows: Indices,
    labels: Labels,
) -> str | None:
    """The largest difference at some of the rows, if it is more than is allowed."""
    points, labels = points[rows], labels.of_positions(rows)
    with function.calls.as_trial():
        values = function.value_at(points, labels)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(read.value(points) - values)
        if (errors <= _allowed(read, values)).all():
            return None
        allowed = _allowed(read, values, read.terms(points))
    if (errors <= allowed).all():
        return None
    worst, span = int((errors - allowed).argmax()), float(np.ptp(values))
    size = span or float(np.abs(values).max()) or 1.0
    what = (
        "its trees were read, and their sum"
        if isinstance(read, Boxes)
        else "it was read as a sum of products, which"
    )
    scale = "the range of f" if span > 0.0 else "f, which is constant,"
    return (
        f"{function!r}: {what} differs from its answer by {errors[worst] / size:.2g} "
        f"of {scale} in row {labels.row(worst)!r} of those compared, where "
        f"{allowed[worst] / size:.0e} is allowed"
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class ExactMean(DerivedFunction):
    """The mean of a sum of products under the data law, E f(V), and its contrasts.

    Boxes are such sums, and so are kernels, polynomials and additive functions.

    Its "gradient" at x is Σ_v r_j(v) E f(v, V_−j) with the contrast r_j of each column
    (of the data law): Cov(V_j, f(V)) / Var(V_j) of numbers,
    f(x) less its mean over all categories, or over observed numbers where x_j is
    missing. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    structure: SumOfProducts  # what f is
    checked: CheckedStructure  # the same, compared with f at the reference rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.law!r})"

    @property
    def gradient_method(self) -> str:
        """Exact, and the rows that the law is made of."""
        rows = self.law.reference.in_words()
        return f"{READ}, {_NEAR} {rows}"

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return Estimate(
            values=self.gradient_at(points, labels),
            source=READ,
            exact=True,
            labels=labels,
            effects=self.law.has_effects(points),
            notes=self.law.notes(points),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self._means_at(points, labels).of(points)[0]

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self._means_at(points, labels).of(points)[1]

    def _means_at(self, points: Points, labels: Labels) -> Means:
        if isinstance(self.checked.at(points, labels), Reason):
            raise Refused(
                f"{self.function!r}: where values are missing it was read "
                "otherwise than it answers; give a reference table with such rows, and "
                "it is sampled"
            )
        return self._means

    @cached_property
    def _means(self) -> Means:
        return Means(self.structure, self.law)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMean(DerivedFunction):
    """The mean of any function under the data law, E f(V), by draws of V.

    Its "gradient" is that of :class:`ExactMean`, estimated: of numbers by least squares
    slopes, cross-fitted between 10 blocks of draws so that each block is unbiased; of
    columns of two values, of categories and of missing numbers by pairs of draws that
    differ in nothing else, so that those that f does not use have exactly 0. Draws are
    the same for all rows and in all calls. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    n_samples: int  # draws around each row, a multiple of 10
    seed: int  # that of the draws
    control: Boxes | None = None  # a score that f is nearly a multiple of

    def __repr__(self) -> str:
        draws = f"n_samples={self.n_samples}"
        return f"{type(self).__name__}({self.function!r}, {self.law!r}, {draws})"

    @property
    def gradient_method(self) -> str:
        """The number of draws, what is made of them, and the rows of the law."""
        return f"{self.n_samples} draws, {self._source}"

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.growing_at(points, labels).estimate

    def growing(
        self,
        X: ArrayLike | pd.DataFrame,  # shape (N, D)
        n_draws: int | None = None,  # to begin with; n_samples by default
        # begin with fewer draws where those would take more
        max_evaluations: int | None = None,
    ) -> Sample:
        """The draws at some rows, which can be drawn on, with their estimate."""
        return self.growing_at(*self.read(X), n_draws, max_evaluations)

    def growing_at(
        self,
        points: Points,  # shape (N, D)
        labels: Labels,
        n_draws: int | None = None,
        max_evaluations: int | None = None,
    ) -> Sample:
        """:meth:`growing` at points that are read."""
        first = self.n_samples if n_draws is None else n_draws
        design = self._design(points)
        if max_evaluations is not None:
            first = min(first, design.cost.affordable(max_evaluations))
        evaluate = self._asked_at("drawn points", labels)
        return Sample.of(design, evaluate, first, self._source, labels)

    def per_draw_at(self, points: Points) -> int:
        """Rows that the model is given for one draw around each of points (N, D)."""
        return Design(self.law, points, self.seed).per_draw

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.growing_at(points, labels).fit.means.mean(axis=0)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.growing_at(points, labels).estimate.values

    def _design(self, points: Points) -> Design:
        design = Design(self.law, points, self.seed)
        if self.control is None:
            return design
        means, attributions = Means(self.control, self.law).of(points)
        return replace(design, control=Control(self.control.value, means, attributions))

    @property
    def _source(self) -> str:
        known = "" if self.control is None else " with the exact margin as control"
        return f"{N_BLOCKS} blocks{known}, {_NEAR} {self.law.reference.in_words()}"
