"""Where coefficients change their sign as the kernel width goes from 0 to infinity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import elementwise

from propopt._typing import Array, Positions, Truths, Values
from propopt.lime.expectations import ExactLimits
from propopt.lime.paths.chebyshev import LARGEST_DEGREE, Piece, adaptive, of_degree
from propopt.lime.paths.curve import CoefficientCurve, WidthCurve
from propopt.lime.paths.signs import SignRun, sign_runs


@final
@dataclass(frozen=True, eq=False)
class ColumnRoots:
    """The kernel widths at which one coefficient is zero.

    Parameters
    ----------
    column : int
        j.
    widths : array (R,)
        ν > 0 with β_j(ν) = 0, increasing.
    crosses : array (R,)
        Whether the sign changes there; where not, β_j touches zero: it is nearer to
        zero than rounding tells, and has the same sign on both sides.
    signs : array (C + 1,)
        −1 or 1 between the C crossings, from ν → 0 to ν → ∞. Empty where β_j is zero at
        all widths.
    """

    column: int
    widths: Values
    crosses: Truths
    signs: Positions

    @property
    def zero(self) -> bool:
        """Whether β_j is zero at all widths, as far as rounding tells."""
        return len(self.signs) == 0

    @property
    def crossings(self) -> Values:
        """The widths at which the sign changes, (C,)."""
        return self.widths[self.crosses]

    def sign_at(self, width: float) -> int:
        """The sign of β_j at a width, away from roots; 0 if it is zero at all."""
        if self.zero:
            return 0
        return int(self.signs[np.searchsorted(self.crossings, width)])

    def nearest(self, width: float) -> float | None:
        """The crossing with the smallest ratio to a width; None if there is none."""
        crossings = self.crossings
        if len(crossings) == 0:
            return None
        return float(crossings[np.argmin(np.abs(np.log(crossings / width)))])


@final
@dataclass(frozen=True, eq=False)
class SignChanges:
    """All widths at which coefficients of one row are zero.

    Parameters
    ----------
    columns : tuple of ColumnRoots (D,)
        Those of each column.
    complete : bool
        Whether these are known to be all roots, up to rounding, because coefficients
        are polynomials of a known degree.
    statement : str
        Why they are all, or how they were sought.
    """

    columns: tuple[ColumnRoots, ...]
    complete: bool
    statement: str

    def __getitem__(self, column: int) -> ColumnRoots:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.columns)


def sign_changes(exact: ExactLimits, point: Array) -> SignChanges:
    """All kernel widths in (0, ∞) at which coefficients of a row are zero.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    point : array (D,)
        The row, encoded.

    Returns
    -------
    SignChanges
    """
    return roots_of(WidthCurve(exact, point), len(point))


def roots_of(curve: CoefficientCurve, n_columns: int) -> SignChanges:
    """All widths at which the coefficients of a curve are zero.

    Coefficients are interpolated by Chebyshev polynomials in a bounded variable of the
    width. Between two places where such a polynomial may turn it has one root at most,
    so the signs at these places tell how many there are; then each is found on exact
    values.

    Parameters
    ----------
    curve : CoefficientCurve
        Coefficients of all columns.
    n_columns : int
        D.
    """
    degree = curve.variable.degree
    known = degree is not None and degree <= LARGEST_DEGREE
    pieces: Sequence[Piece]
    if degree is not None and degree <= LARGEST_DEGREE:
        pieces = [of_degree(curve.at, degree)]
    else:
        pieces = list(adaptive(curve.at, curve.variable.start))
    complete = known and pieces[0].resolved
    runs = [sign_runs(curve, pieces, j) for j in range(n_columns)]
    return SignChanges(
        _columns(curve, runs), complete, _statement(curve, pieces, complete)
    )


def _statement(curve: CoefficientCurve, pieces: Sequence[Piece], complete: bool) -> str:
    if complete:
        n = len(pieces[0].nodes)
        return (
            "all roots: times positive factors coefficients are polynomials of degree "
            f"{curve.variable.degree} at most in the share of samples in the row's bin,"
            f" known by {n} widths"
        )
    start = np.array([pieces[0].low])
    low = float(curve.variable.widths(start, 1.0 - start)[0])
    missed = sum(not piece.resolved for piece in pieces)
    rest = f", but for {missed} of them" if missed else ""
    return (
        f"roots of interpolants on {len(pieces)} pieces between the widths {low:.3g} "
        f"and infinity, which are as near as rounding lets{rest}"
    )


def _columns(
    curve: CoefficientCurve, runs: Sequence[SignRun]
) -> tuple[ColumnRoots, ...]:
    """Roots of all columns, those of all brackets at once."""
    columns = np.repeat(np.arange(len(runs)), [len(run.low) for run in runs])
    low, high = (
        np.concatenate(parts)
        for parts in zip(*((run.low, run.high) for run in runs), strict=True)
    )
    roots = _polished(curve, low, high, columns)
    found = []
    for j, run in enumerate(runs):
        u = np.concatenate([roots[columns == j], run.touches])
        crosses = np.arange(len(u)) < len(run.low)
        order = np.argsort(u, kind="stable")
        widths = curve.variable.widths(u, 1.0 - u)
        found.append(ColumnRoots(j, widths[order], crosses[order], run.signs))
    return tuple(found)


def _polished(
    curve: CoefficientCurve, low: Values, high: Values, columns: Positions
) -> Values:
    """The place of the change of sign of each bracket, on exact values."""
    if len(low) == 0:
        return low

    def value(u: Array, j: Array) -> Array:
        values = curve.values(u, 1.0 - u)
        return values[np.arange(len(u)), j.astype(np.intp)]

    result = elementwise.find_root(value, (low, high), args=(columns,))
    return np.asarray(np.where(result.success, result.x, 0.5 * (low + high)))
