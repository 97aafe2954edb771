"""Means of sums of boxes under the data law: nothing is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from propopt._typing import Attributions, Points, Values
from propopt.errors import Refused
from propopt.estimates import Estimate
from propopt.functions.base import Function
from propopt.functions.calls import Calls
from propopt.functions.smoothing.checked import EXACT_BOXES, CheckedBoxes
from propopt.quantity import Quantity
from propopt.sampling.laws import BoxMeans, DataLaw
from propopt.structures.boxes import Boxes
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True, eq=False, repr=False)
class ExactMean(Function):
    """The mean of a sum of boxes under the data law, E f(V), and its contrasts.

    Its "gradient" at x is Σ_v r_j(v) E f(v, V_−j) with the contrast r_j of each column
    (:class:`~propopt.sampling.laws.DataLaw`): Cov(V_j, f(V)) / Var(V_j) of numbers,
    f(x) less its mean over all categories, or over observed numbers where x_j is
    missing. Make it by :func:`smoothed`.

    Parameters
    ----------
    function : Function
        f.
    law : DataLaw
        The law of the columns.
    sum_of_boxes : Boxes
        What f is.
    checked : CheckedBoxes
        The same, compared with f at the reference rows.
    """

    function: Function
    law: DataLaw
    sum_of_boxes: Boxes
    checked: CheckedBoxes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, {self.law!r})"

    @cached_property
    def quantity(self) -> Quantity:
        """That of the function, whose mean it is."""
        return self.function.quantity

    @property
    def gradient_method(self) -> str:
        """Exact, and the rows that the law is made of."""
        return f"{EXACT_BOXES}, data law of {self.law.reference.in_words()}"

    @property
    def schema(self) -> TableSchema | None:
        """That of the function."""
        return self.function.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        """Those of the function."""
        return self.function.features

    @cached_property
    def calls(self) -> Calls:
        """Those of the function, which is hardly called any more."""
        return self.function.calls

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return Estimate(
            values=self.gradient_at(points, labels),
            source=EXACT_BOXES,
            exact=True,
            labels=labels,
            effects=self.law.has_effects(points),
            notes=self.law.notes(points),
        )

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self._means_at(points, labels).of(points)[0]

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self._means_at(points, labels).of(points)[1]

    def _means_at(self, points: Points, labels: Labels) -> BoxMeans:
        if self.checked.at(points, labels) is None:
            raise Refused(
                f"{self.function!r}: where values are missing its trees were read "
                "otherwise than it answers; give a reference table with such rows, and "
                "it is sampled"
            )
        return self._means

    @cached_property
    def _means(self) -> BoxMeans:
        return BoxMeans(self.sum_of_boxes, self.law)
