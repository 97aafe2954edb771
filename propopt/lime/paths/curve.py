"""Coefficients of one row at any widths, with what rounding leaves uncertain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, Protocol, final

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.lime.expectations import ExactLimits, FactorMeans
from propopt.lime.paths.variables import WidthVariable, width_variable
from propopt.structures.products import Products, SetMeasures


ROUNDING: Final = 64.0 * np.finfo(np.float64).eps
"""How far a sum may be off, over the sum of the sizes of its terms."""


class CurveValues(NamedTuple):
    """β at n widths, times the positive factors of the variable."""

    values: Array
    """(n, D)."""

    rounding: Array
    """Below this a value is zero as far as can be told, (n, D)."""


class CoefficientCurve(Protocol):
    """Coefficients of D columns as functions of a variable u in (0, 1) of the width."""

    @property
    def variable(self) -> WidthVariable:
        """U."""

    def at(self, u: Values, rest: Values, /) -> CurveValues:
        """Values at u (n,), where 1 − u is ``rest``, and what rounding may be."""

    def values(self, u: Values, rest: Values, /) -> Array:
        """Values alone, (n, D)."""


@final
@dataclass(frozen=True, eq=False)
class WidthCurve:
    """β_j of one row as functions of a variable u in (0, 1) of the width.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    point : array (D,)
        The row.
    """

    exact: ExactLimits
    point: Array

    @cached_property
    def variable(self) -> WidthVariable:
        """U."""
        return width_variable(self.exact, self.point)

    def at(self, u: Values, rest: Values) -> CurveValues:
        """Values at u (n,), where 1 − u is ``rest``, and what rounding may be."""
        widths = self.variable.widths(u, rest)
        parts = [self._values(widths[some]) for some in self.exact.blocks(len(widths))]
        factors = self.variable.factors(widths)
        return CurveValues(
            np.concatenate([part.values for part in parts]) * factors,
            np.concatenate([part.rounding for part in parts]) * factors,
        )

    def values(self, u: Values, rest: Values) -> Array:
        """Values alone, (n, D)."""
        widths = self.variable.widths(u, rest)
        limits = self.exact.of(repeated(self.point, len(widths)), widths)
        return limits.coefficients * self.variable.factors(widths)

    def _values(self, widths: Values) -> CurveValues:
        means = self.exact.factor_means(repeated(self.point, len(widths)), widths)
        _, values = self.exact.function.products.contrasts(means.measures)
        _, sizes = self._sizes.contrasts(_sizes(means))
        return CurveValues(values, ROUNDING * sizes)

    @cached_property
    def _sizes(self) -> Products:
        products = self.exact.function.products
        return replace(products, values=np.abs(products.values))


def _sizes(means: FactorMeans) -> SetMeasures:
    """Sizes of the terms that means and contrasts are made of."""
    one, zero = np.abs(means.one), np.abs(means.zero)
    return SetMeasures(means.mixed(one, zero), means.contrast(one, -zero))


def repeated(point: Array, n: int) -> Points:
    """The row n times, (n, D)."""
    return np.broadcast_to(point, (n, len(point)))
