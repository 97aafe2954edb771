"""Exact structures of functions, compared with their values.

Exact and sampled means.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np

from propopt.base.arrays import Attributions, Indices, Mask, Points, Values
from propopt.base.checks import largest_entry
from propopt.base.errors import InexactBoxesWarning, Refused
from propopt.base.text import Reason
from propopt.functions.function import DerivedFunction, Function
from propopt.functions.jumps import allowed_difference
from propopt.functions.outputs import DOUBLE, SINGLE
from propopt.laws.data_law import DataLaw, Means
from propopt.laws.draws import N_BLOCKS, Design, Sample
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import SINGLE_TOLERANCE, Boxes
from propopt.structures.boxes.links import LinkedScores
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


MOST_CHECKED: Final = 1000
"""The most rows at which a structure is compared with the function."""

EACH_MISSING: Final = 20
"""Additional rows for each column that is missing in no compared row."""


_DATA_LAW: Final = "values near each row from"
"""The description of the data law, followed by its table."""

EXACT_SOURCE: Final = "exact (computed from the model)"
"""The source of results computed from boxes and other sums of products."""


@final
@dataclass
class CheckedStructure:
    """Structure of a function, compared with its values at the first available rows.

    Rows with a missing value in a column that had none before are compared, too.
    """

    function: Function  # f
    # the reason if it has none, or if the comparison failed
    structure: SumOfProducts | Reason
    # (D,): columns with missing values in compared rows; None before a comparison
    compared_missing: Mask | None = None

    @classmethod
    def of(cls, function: Function, n_columns: int) -> CheckedStructure:
        """Sum of products of a function, for a table of a given number of columns."""
        return cls(function, function.products_in(n_columns))

    def is_confirmed(self, points: Points, values: Values) -> bool:
        """Whether the structure has these values of f at points (N, D)."""
        structure = self.structure
        if isinstance(structure, Reason):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            errors = np.abs(structure.value(points) - values)
        return bool((errors <= allowed_errors(structure, values)).all())

    def at(self, points: Points, labels: Labels) -> SumOfProducts | Reason:
        """The structure, if it agrees with f at the points; else a reason (warned)."""
        if isinstance(self.structure, Reason):
            return self.structure
        gaps = _gaps(self.function, points)
        compared = self.compared_missing
        rows = _not_compared(gaps, compared)
        if len(rows) == 0:
            return self.structure
        new_missing = gaps[rows].any(axis=0)
        difference = _difference(self.structure, self.function, points, rows, labels)
        self.compared_missing = np.asarray(
            new_missing if compared is None else compared | new_missing
        )
        if difference is not None:
            self.structure = Reason(difference)
            warnings.warn(
                f"{difference}; the model is sampled instead",
                InexactBoxesWarning,
                stacklevel=2,
            )
        return self.structure


def _gaps(function: Function, points: Points) -> Mask:
    """Where a number is missing, or a category is absent from the data, (N, D)."""
    gaps = np.isnan(points)
    schema = function.schema
    return gaps if schema is None else gaps | schema.unseen(points)


def _not_compared(gaps: Mask, compared_missing: Mask | None) -> Indices:
    """Indices of rows (N, D) that a comparison should include."""
    absent = gaps.copy()
    if compared_missing is None:
        every = -(-len(gaps) // MOST_CHECKED)
        first = np.arange(0, len(gaps), every)
        absent &= ~absent[first].any(axis=0)
    else:
        first = np.zeros(0, np.intp)
        absent &= ~compared_missing
    columns = np.flatnonzero(absent.any(axis=0))
    new = [np.flatnonzero(absent[:, j])[:EACH_MISSING] for j in columns]
    return np.unique(np.concatenate([first, *new]))


CheckedLink: TypeAlias = tuple[LinkedScores, float]
"""A link of scores that agrees with f at reference rows, and the range of f there."""


def checked_link(
    function: Function, points: Points, labels: Labels
) -> CheckedLink | None:
    """The first of f's candidate links that agrees at rows (N, D), or None."""
    if not function.links:
        return None
    rows = _not_compared(_gaps(function, points), None)
    with function.calls.as_trial():
        values = function.value_at(points[rows], labels.of_positions(rows))
    spread = float(np.ptp(values))
    links = ((linked, spread) for linked in function.links)
    return next((x for x in links if link_holds(*x, points[rows], values)), None)


def link_holds(
    linked: LinkedScores, spread: float, points: Points, values: Values
) -> bool:
    """True if a link gives these values at points (n, D), up to a share of a range."""
    tolerance = linked.tolerance
    epsilon = SINGLE if tolerance >= SINGLE_TOLERANCE else DOUBLE
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        errors = np.abs(linked.value(points) - values)
    allowed = allowed_difference(values, 0.0, epsilon) + tolerance * spread
    return bool((errors <= allowed).all())


def allowed_errors(
    structure: SumOfProducts, values: Values, terms: Values | None = None
) -> Values:
    """The allowed difference between the structure and values of the function, (n,)."""
    epsilon = SINGLE if structure.tolerance >= SINGLE_TOLERANCE else DOUBLE
    return allowed_difference(values, structure.tolerance, epsilon, terms)


def _difference(
    structure: SumOfProducts,
    function: Function,
    points: Points,
    rows: Indices,
    labels: Labels,
) -> str | None:
    """A message on the largest difference at some rows; None if all are allowed."""
    points = points[rows]
    labels = labels.of_positions(rows)
    with function.calls.as_trial():
        values = function.value_at(points, labels)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(structure.value(points) - values)
        if (errors <= allowed_errors(structure, values)).all():
            return None
        allowed = allowed_errors(structure, values, structure.terms(points))
    if (errors <= allowed).all():
        return None
    worst = int((errors - allowed).argmax())
    span = float(np.ptp(values))
    size = span or largest_entry(values) or 1.0
    form = "the sum of its trees" if isinstance(structure, Boxes) else "its exact form"
    scale = "the range of f" if span > 0.0 else "f, which is constant,"
    return (
        f"{function!r}: {form} differs from its values by {errors[worst] / size:.2g} "
        f"of {scale} in row {labels.row(worst)!r} of those compared; allowed are "
        f"{allowed[worst] / size:.0e}"
    )


@final
@dataclass(frozen=True, eq=False, repr=False)
class ExactMean(DerivedFunction):
    """Exact mean of a sum of products under the data law, E f(V), and its contrasts.

    Boxes are such sums, and so are kernels, polynomials and additive functions.

    Its "gradient" at x is Σ_v r_j(v) E f(v, V_−j) with the contrast r_j of each column:
    Cov(V_j, f(V)) / Var(V_j) for numbers, and f(x) minus its mean over all categories,
    or over observed numbers if x_j is missing. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    structure: SumOfProducts  # the sum of products
    checked: CheckedStructure  # compared with f at the reference rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.law!r})"

    @property
    def gradient_method(self) -> str:
        """Exact, with the rows of the data law."""
        return f"{EXACT_SOURCE}, {_DATA_LAW} {self.law.reference.in_words()}"

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return Estimate(
            values=self.gradient_at(points, labels),
            source=EXACT_SOURCE,
            exact=True,
            labels=labels,
            effects=self.law.has_effects(points),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self._means_at(points, labels).of(points)[0]

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self._means_at(points, labels).of(points)[1]

    def _means_at(self, points: Points, labels: Labels) -> Means:
        if isinstance(self.checked.at(points, labels), Reason):
            raise Refused(
                f"{self.function!r}: the exact form is wrong for missing values; "
                "give reference rows with missing values, and values are sampled"
            )
        return self._means

    @cached_property
    def _means(self) -> Means:
        return Means(self.structure, self.law)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SampledMean(DerivedFunction):
    """The mean of any function under the data law, E f(V), estimated from draws of V.

    Its "gradient" estimates that of :class:`ExactMean`: for numbers by least squares
    slopes, cross-fitted between 10 blocks of draws so that each block is unbiased; for
    binary columns, categories and missing numbers by pairs of draws that differ only in
    that column, so that unused columns get exactly 0. Draws are the same for all rows
    and in all calls. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    n_samples: int  # draws around each row, a multiple of 10
    seed: int  # the seed of the draws
    control: Boxes | None = None  # a score that f is nearly proportional to

    def __repr__(self) -> str:
        draws = f"n_samples={self.n_samples}"
        return f"{type(self).__name__}({self.function!r}, {self.law!r}, {draws})"

    @property
    def gradient_method(self) -> str:
        """The number of draws, their use, and the rows of the law."""
        return f"{self.n_samples} draws, {self._source}"

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.growing_at(points, labels).estimate

    def growing_at(
        self, points: Points, labels: Labels, max_evaluations: int | None = None
    ) -> Sample:
        """The draws at some rows with their estimate, to which more can be added.

        Parameters
        ----------
        points : array (N, D)
            Numbers and codes, as :meth:`read` returns them; not checked.
        labels : Labels
            The names of their rows and columns.
        max_evaluations : int, optional
            Start with fewer draws than ``n_samples`` if those would take more
            evaluations of the model.

        Returns
        -------
        Sample
        """
        first = self.n_samples
        design = Design(self.law, points, self.seed)
        if self.control is not None:
            exact = Means(self.control, self.law).of(points)
            design = replace(design, control=(self.control.value, *exact))
        if max_evaluations is not None:
            first = min(first, design.cost.affordable(max_evaluations))
        evaluate = self._evaluator("drawn points", labels)
        return Sample.of(design, evaluate, first, self._source, labels)

    def per_draw_at(self, points: Points) -> int:
        """Model rows for one draw around each of points (N, D)."""
        return Design(self.law, points, self.seed).per_draw

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.growing_at(points, labels).means.mean(axis=0)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.growing_at(points, labels).estimate.values

    @property
    def _source(self) -> str:
        control = "" if self.control is None else " with the exact margin as control"
        return (
            f"{N_BLOCKS} blocks{control}, {_DATA_LAW} {self.law.reference.in_words()}"
        )
