"""The data law: observed values near those of a row, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.sampling.laws.coded import CodedLaw
from propopt.sampling.laws.known import KnownCells
from propopt.sampling.laws.numeric import NumericLaw
from propopt.sampling.laws.reference import Reference
from propopt.structures.boxes import Sets


ColumnLaw: TypeAlias = NumericLaw | CodedLaw


@final
@dataclass(frozen=True, eq=False, repr=False)
class DataLaw:
    """Independent columns around each row, V_j ~ q_j, on observed values alone.

    attribution_j(x) = Σ_v r_j(v) E f(v, V_−j) with a contrast r_j in each column, see
    :class:`~propopt.sampling.laws.numeric.NumericLaw` and
    :class:`~propopt.sampling.laws.coded.CodedLaw`. For numbers it is
    Cov(V_j, f(V)) / Var(V_j), the least squares slope of f on V_j. A function that does
    not depend on a column gets 0 in it, one that is linear its coefficients, and what a
    function does between observed values makes no difference.

    Parameters
    ----------
    reference : Reference
        The rows whose values the law lives on.
    """

    reference: Reference

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reference!r})"

    @cached_property
    def columns(self) -> tuple[ColumnLaw, ...]:
        """The law of each column, (D,)."""
        return tuple(
            NumericLaw.of(values, repr(name))
            if n_codes is None
            else CodedLaw.of(values, n_codes)
            for values, name, n_codes in zip(
                self.reference.points.T,
                self.reference.names,
                self.reference.n_codes,
                strict=True,
            )
        )

    @cached_property
    def spreads(self) -> Array:
        """Standard deviations s of numbers, 1 for categories, (D,)."""
        return np.array([column.spread for column in self.columns])

    def has_slopes(self, points: Points) -> Truths:
        """Where contrasts are slopes over three values or more, (N, D).

        Elsewhere they are differences between a few values, or zero.
        """
        parts = zip(self.columns, points.T, strict=True)
        return np.stack([column.has_slope(x) for column, x in parts], axis=1)

    def has_effects(self, points: Points) -> Truths:
        """Where contrasts are in units of the output, not per unit, (N, D).

        They are for categories, and for numbers that are missing.
        """
        coded = [isinstance(column, CodedLaw) for column in self.columns]
        return np.isnan(points) | np.array(coded)

    def moments(self, points: Points) -> tuple[Array, Array]:
        """Means and variances of V_j at each row, exactly, (N, D) each."""
        parts = zip(self.columns, points.T, strict=True)
        means, variances = zip(*(column.moments(x) for column, x in parts), strict=True)
        return np.stack(means, axis=1), np.stack(variances, axis=1)

    def draws(self, points: Points, uniforms: Array) -> Array:
        """V at each row by the inverse of its cdf, at uniforms common to all rows.

        Parameters
        ----------
        points : array (N, D)
            The rows.
        uniforms : array (S, D)
            In [0, 1).

        Returns
        -------
        array (N, S, D)
        """
        drawn = np.empty((len(points), *uniforms.shape))
        for j, column in enumerate(self.columns):
            drawn[:, :, j] = column.quantiles(points[:, j], uniforms[:, j])
        return drawn

    def notes(self, points: Points) -> tuple[str, ...]:
        """What a reader of attributions at these rows has to know, a sentence each."""
        present = ~np.isnan(self.reference.points)
        return tuple(
            note
            for j, (name, column) in enumerate(
                zip(self.reference.names, self.columns, strict=True)
            )
            if isinstance(column, NumericLaw)
            for note in _notes(name, column, points[:, j], bool(present[:, j].all()))
        )

    def knows(self, sets: Sets) -> KnownCells:
        """Sets as runs of observed values and as codes, each once."""
        return KnownCells.of(sets, lambda j, of_j: self.columns[j].cells(of_j))


def constant_in_words(name: str) -> str:
    """That a column has no slope per standard deviation, and why."""
    return f"column {name!r} is constant in the reference rows: 0"


def _notes(name: str, law: NumericLaw, x: Array, complete: bool) -> list[str]:
    """Of a column of numbers; ``complete``: no reference row lacks it."""
    absent = np.isnan(x)
    if len(law.values) == 0:
        return [f"column {name!r} is missing in all reference rows: 0"]
    notes = []
    if len(law.values) == 1 and not absent.all():
        notes.append(constant_in_words(name))
    if absent.any() and complete:
        notes.append(
            f"column {name!r} is missing in rows, and never in the reference rows"
        )
    return notes
