"""Factors of lines, as multiples of factors of the numbers themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions
from propopt.structures.products.factors import Factors
from propopt.structures.products.families.bumps import Bumps
from propopt.structures.products.families.exponentials import Exponentials
from propopt.structures.products.families.imputed import Imputed
from propopt.structures.products.families.powers import Powers
from propopt.structures.products.seen.columns import Line, SeenColumn


@final
@dataclass(frozen=True, eq=False)
class SeenLines:
    """Lines s (x − c), and what is seen of missing numbers, (M,); NaN of no line.

    Parameters
    ----------
    column : array (M,)
        Columns of the table.
    slope, center, missing : array (M,)
        As of :class:`~propopt.structures.products.seen.columns.Line`.
    """

    column: Positions
    slope: Array
    center: Array
    missing: Array

    @classmethod
    def of(cls, seen: Sequence[SeenColumn]) -> SeenLines:
        """Those among what is seen."""
        no_line = Line(-1, np.nan, np.nan)
        lines = [each if isinstance(each, Line) else no_line for each in seen]
        return cls(
            np.array([line.column for line in lines], np.intp),
            np.array([line.slope for line in lines]),
            np.array([line.center for line in lines]),
            np.array([line.missing for line in lines]),
        )

    def take(self, chosen: Positions) -> SeenLines:
        """Those that are chosen."""
        return SeenLines(
            self.column[chosen],
            self.slope[chosen],
            self.center[chosen],
            self.missing[chosen],
        )

    def before(self, factors: Factors) -> tuple[Factors, Array]:
        """Factors of x, and multiples, for one factor of each line."""
        moved, multiple = _of_x(factors, self.column, self.slope, self.center)
        if np.isnan(self.missing).all():
            return moved, multiple
        return Imputed(moved, _each_at(factors, self.missing) / multiple), multiple


def _of_x(
    factors: Factors, column: Positions, slope: Array, center: Array
) -> tuple[Factors, Array]:
    """g(s (x − c)) as a multiple of a function of x of the same family."""
    ones = np.ones(len(column))
    match factors:
        case Bumps(_, middle, width):
            return Bumps(column, center + middle / slope, width / np.abs(slope)), ones
        case Powers(_, degree, root):
            return Powers(column, degree, center + root / slope), slope**degree
        case Exponentials(_, rate, root):
            return Exponentials(column, rate * slope, center + root / slope), ones
        case _:
            raise TypeError(type(factors))


def _each_at(factors: Factors, values: Array) -> Array:
    """g_u(values_u), (U,)."""
    result = np.empty(len(values))
    for value in np.unique(values):
        own = np.flatnonzero((values == value) | (np.isnan(values) & np.isnan(value)))
        result[own] = factors.take(own).at(np.array([value]))[:, 0]
    return result
