"""What a function is read as, believed once checked, and its exact means."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeVar, final

import numpy as np

from propopt.base.arrays import Attributions, Points, Positions, Truths, Values
from propopt.base.errors import InexactBoxesWarning, Refused
from propopt.base.text import Reason
from propopt.functions.function import Function, OfFunction
from propopt.functions.jumps import DOUBLE, SINGLE, allowed_difference
from propopt.laws.data_law import BoxMeans, DataLaw, ProductMeans
from propopt.losses.faithfulness import Estimate
from propopt.structures.boxes.boxes import SINGLE_TOLERANCE, Boxes
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels


# ---- What a function is read as, believed once it is what the function answers


EXACT_BOXES: Final = "exact (boxes)"
"""The source of what is computed of boxes."""

EXACT_PRODUCTS: Final = "exact (products)"
"""The source of what is computed of other sums of products."""

MOST_CHECKED: Final = 1000
"""Rows at which boxes are compared with the function."""

EACH_MISSING: Final = 20
"""More of them for each column that is missing nowhere else."""

DIFFERS: Final = (
    "{function!r}: {read} differs from its answer by {error:.2g} of {scale} in row "
    "{row!r} of those compared, where {allowed:.0e} is allowed"
)


ReadAs = TypeVar("ReadAs", bound=Boxes | SumOfProducts)


@final
@dataclass
class Checked(Generic[ReadAs]):
    """What a function was read as, compared with it at the first rows that are at hand.

    Among them are some of the first rows in which a column is missing that was there
    before: what a function makes of missing values is its own, and may be an error.
    """

    function: Function  # f
    read: ReadAs | None  # what it was read as; None if it was not, or if that was wrong
    # (D,): columns that were missing in rows that were compared; None before any was
    known_missing: Truths | None = None

    @classmethod
    def boxes_of(cls, function: Function) -> Checked[Boxes]:
        """The boxes that the function says it is."""
        return Checked(function, function.boxes)

    @classmethod
    def of(
        cls, function: Function, n_columns: int
    ) -> Checked[Boxes] | Checked[SumOfProducts]:
        """Its boxes, whose means are found faster, or else its sum of products."""
        if function.boxes is not None:
            return cls.boxes_of(function)
        products = function.products_in(n_columns)
        return Checked(function, None if isinstance(products, Reason) else products)

    def at(self, points: Points, labels: Labels) -> ReadAs | None:
        """What it is, if that is right; compared at up to 1000 of these rows at first.

        Where it is not, a warning names the row of the largest difference.
        """
        if self.read is None:
            return None
        rows, known = _not_compared(points, self.known_missing), self.known_missing
        if len(rows) == 0:
            return self.read
        here = np.isnan(points[rows]).any(axis=0)
        difference = _difference(self.read, self.function, points, rows, labels)
        self.known_missing = np.asarray(here if known is None else known | here)
        if difference is not None:
            self.read = None
            _warn(difference)
        return self.read


def believed_products(
    function: Function, points: Points, labels: Labels
) -> SumOfProducts | Reason:
    """The sum of products that a function is, compared with it as boxes are.

    Where it is not, a warning names the row of the largest difference, and so does the
    reason that is returned.
    """
    products = function.products_in(points.shape[1])
    if isinstance(products, Reason):
        return products
    boxes = function.boxes  # whose values are found faster
    read, rows = products if boxes is None else boxes, _not_compared(points, None)
    difference = _difference(read, function, points, rows, labels)
    if difference is None:
        return products
    _warn(difference)
    return Reason(difference)


def _not_compared(points: Points, known_missing: Truths | None) -> Positions:
    """Positions of rows (N, D) that would tell something new."""
    absent = np.isnan(points)
    if known_missing is None:
        every = -(-len(points) // MOST_CHECKED)
        first = np.arange(0, len(points), every)
        absent &= ~absent[first].any(axis=0)
    else:
        first = np.zeros(0, np.intp)
        absent &= ~known_missing
    columns = np.flatnonzero(absent.any(axis=0))
    new = [np.flatnonzero(absent[:, j])[:EACH_MISSING] for j in columns]
    return np.unique(np.concatenate([first, *new]))


def _difference(
    read: Boxes | SumOfProducts,
    function: Function,
    points: Points,
    rows: Positions,
    labels: Labels,
) -> str | None:
    """The largest difference at some of the rows, if it is more than is allowed."""
    points, labels = points[rows], labels.of_positions(rows)
    with function.calls.trying_out():
        values = function.value_at(points, labels)
    epsilon = SINGLE if read.tolerance >= SINGLE_TOLERANCE else DOUBLE
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(read.value(points) - values)
        if (errors <= allowed_difference(values, read.tolerance, epsilon)).all():
            return None
        terms = read.terms(points)
        allowed = allowed_difference(values, read.tolerance, epsilon, terms)
    if (errors <= allowed).all():
        return None
    worst, span = int((errors - allowed).argmax()), float(np.ptp(values))
    size = span or float(np.abs(values).max()) or 1.0
    return DIFFERS.format(
        function=function,
        read=(
            "its trees were read, and their sum"
            if isinstance(read, Boxes)
            else "it was read as a sum of products, which"
        ),
        error=errors[worst] / size,
        scale="the range of f" if span > 0.0 else "f, which is constant,",
        row=worst if labels.points is None else labels.points[worst],
        allowed=allowed[worst] / size,
    )


def _warn(difference: str) -> None:
    warnings.warn(
        f"{difference}; it is sampled instead", InexactBoxesWarning, stacklevel=3
    )


# ---- Means of sums of products under the data law: nothing is sampled


@final
@dataclass(frozen=True, eq=False, repr=False)
class ExactMean(OfFunction):
    """The mean of a sum of products under the data law, E f(V), and its contrasts.

    Boxes are such sums, and so are kernels, polynomials and additive functions.

    Its "gradient" at x is Σ_v r_j(v) E f(v, V_−j) with the contrast r_j of each column
    (:class:`~propopt.laws.data_law.DataLaw`): Cov(V_j, f(V)) / Var(V_j) of numbers,
    f(x) less its mean over all categories, or over observed numbers where x_j is
    missing. Make it by :func:`smoothed`.
    """

    function: Function  # f
    law: DataLaw
    structure: Boxes | SumOfProducts  # what f is
    # the same, compared with f at the reference rows
    checked: Checked[Boxes] | Checked[SumOfProducts]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.law!r})"

    @property
    def gradient_method(self) -> str:
        """Exact, and the rows that the law is made of."""
        return f"{self.source}, data law of {self.law.reference.in_words()}"

    @property
    def source(self) -> str:
        """That it is exact, and of what."""
        return EXACT_BOXES if isinstance(self.structure, Boxes) else EXACT_PRODUCTS

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return Estimate(
            values=self.gradient_at(points, labels),
            source=self.source,
            exact=True,
            labels=labels,
            effects=self.law.has_effects(points),
            notes=self.law.notes(points),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self._means_at(points, labels).of(points)[0]

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self._means_at(points, labels).of(points)[1]

    def _means_at(self, points: Points, labels: Labels) -> BoxMeans | ProductMeans:
        if self.checked.at(points, labels) is None:
            raise Refused(
                f"{self.function!r}: where values are missing it was read "
                "otherwise than it answers; give a reference table with such rows, and "
                "it is sampled"
            )
        return self._means

    @cached_property
    def _means(self) -> BoxMeans | ProductMeans:
        if isinstance(self.structure, Boxes):
            return BoxMeans(self.structure, self.law)
        return ProductMeans(self.structure, self.law)
