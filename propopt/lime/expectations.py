"""Exact limits of LIME, from means of factors in each bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.lime.laws.lime_law import FactorMeans, InBins, LimeLaw, Tilt
from propopt.lime.moments import IndependentBits
from propopt.structures.products.sums import ROWS_AT_ONCE, FactorNumbers, SumOfProducts


# ---- What LIME tends to for a sum of products, exactly


_OF_SITUATIONS: Final = (
    "coefficients",
    "mean",
    "alpha",
    "log_weight",
    "standard_errors",
    "intercept_error",
)


@final
@dataclass(frozen=True, eq=False)
class Limits:
    """Coefficients of infinitely many samples, in n situations."""

    # (n, D): β_j; exactly 0.0 where f does not depend on column j
    coefficients: Attributions
    mean: Values  # (n,): E_Q f
    alpha: Array  # (n, D): Q(z_j = 1)
    log_weight: Values  # (n,): log C, C = E π: the mean weight of a sample
    standard_errors: Attributions | None = None
    intercept_error: Values | None = None  # shape (n,)
    n_draws: int = 0  # around each row, where they are estimated
    evaluations: int = 0  # of the function

    @classmethod
    def joined(cls, parts: Sequence[Limits]) -> Limits:
        """Those of all situations of some parts, one part behind the other."""

        def joined(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            return None if arrays[0] is None else np.concatenate(arrays)

        return cls(
            **{name: joined(name) for name in _OF_SITUATIONS},
            n_draws=max(part.n_draws for part in parts),
            evaluations=sum(part.evaluations for part in parts),
        )

    def at(self, rows: slice | Positions) -> Limits:
        """Those of some situations."""
        return replace(
            self,
            **{
                name: getattr(self, name)[rows]
                for name in _OF_SITUATIONS
                if getattr(self, name) is not None
            },
        )

    @property
    def bits(self) -> IndependentBits:
        """The moments of bits."""
        return IndependentBits(self.alpha, self.log_weight)

    @property
    def intercept(self) -> Values:
        """β_0 = E_Q f − Σ_j α_j β_j, (n,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.mean - pulls)

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, where all bits are 1: Σ β, (n,)."""
        return np.asarray(self.intercept + self.coefficients.sum(axis=1))


@final
@dataclass(frozen=True, eq=False)
class ExactLimits:
    """Limits of a sum of products under a law; tables of fixed bins are made once."""

    function: SumOfProducts  # f
    law: LimeLaw  # of the samples, bits and weights

    def with_law(self, law: LimeLaw) -> ExactLimits:
        """The limits under another law; tables of columns that stay are shared."""
        other = replace(self, law=law)
        vars(other)["_in_bins"] = self._in_bins
        return other

    def of(self, points: Points, widths: Values | None = None) -> Limits:
        """The limits at rows (n, D), each with the law's kernel width or its own (n,).

        points (n, D), widths (n,).
        """
        widths = self.law.widths(points, widths)
        first, which = self._distinct(points, widths)
        x, own = points[first], widths[first]
        result = Limits.joined([self._block(x[k], own[k]) for k in self.blocks(len(x))])
        if len(first) == len(points):
            return result
        tilts = self.law.tilts(points, widths)
        alpha = np.stack([tilt.alpha for tilt in tilts], axis=1)
        log_weight = np.sum([tilt.log_weight for tilt in tilts], axis=0)
        return Limits(result.coefficients[which], result.mean[which], alpha, log_weight)

    def _distinct(self, points: Points, widths: Values) -> tuple[Positions, Positions]:
        """Situations of which all others repeat one, and which one each repeats.

        Limits of tabular laws depend on bins alone, of the columns that f reads.
        """
        cells, every = self.law.cells(points), np.arange(len(points))
        if cells is points:
            return every, every
        keys = np.column_stack([cells[:, self.function.columns], widths])
        _, first, which = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        return (first, which.ravel()) if len(first) < len(points) else (every, every)

    def blocks(self, n: int) -> Iterator[slice]:
        """Situations of which tables are made at once."""
        row_bytes = 8 * 8 * self.function.n_factors + self.function.row_bytes
        return ROWS_AT_ONCE.blocks(n, row_bytes)

    def _block(self, points: Points, widths: Values) -> Limits:
        means = self.factor_means(points, widths)
        mean, coefficients = self.function.contrasts(*means.measures)
        return Limits(coefficients, mean, means.alpha.T, means.log_weight)

    def factor_means(self, points: Points, widths: Values) -> FactorMeans:
        """Means of the factors by the bits of their columns, in n situations.

        points (n, D), widths (n,).
        """
        tilts = self.law.tilts(points, widths)
        means = self.function.mixed(self._in_bins, tilts, len(points))
        return FactorMeans(tilts, self.function.column, *means)

    def piece_means(self, j: int, tilt: Tilt) -> Iterator[tuple[FactorNumbers, Array]]:
        """The factors of a column by their numbers, and their means in each piece."""
        for (k, numbers, _), own in zip(
            self.function.by_column, self._in_bins, strict=True
        ):
            if k == j:
                yield numbers, own.of(tilt.pieces)

    @cached_property
    def _in_bins(self) -> list[InBins]:
        """The factors of each column, by families."""
        return [InBins(factors) for _, _, factors in self.function.by_column]


# ---- How far a column moves where its bit turns on: what coefficients are per


def bit_steps(law: LimeLaw, points: Points) -> tuple[Array, Array]:
    """How far each column moves where its bit turns on, (n, D), and its span.

    v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0]: the coefficient of a linear function
    is its slope times that. The span is the distance between the largest and the
    smallest mean of a bin. Missing values have no part in either; NaN where a column
    has nothing else.
    """
    result = [_of_column(tilt) for tilt in law.tilts(points, law.widths(points))]
    steps, spans = (np.stack(part, axis=1) for part in zip(*result, strict=True))
    return steps, spans


def _of_column(tilt: Tilt) -> tuple[Values, Values]:
    """Step and span of one column, (n,) each."""
    pieces = tilt.pieces
    means = pieces.mean.astype(float)
    means[~pieces.single] = pieces.normals.means
    means = means.reshape(len(means), -1)  # (B, 1) or (B, n)
    known = ~np.isnan(means)
    low = np.where(known, means, np.inf).min(axis=0)
    high = np.where(known, means, -np.inf).max(axis=0)
    span = np.where(known.any(axis=0), high, np.nan) - low
    means = np.where(known, means, 0.0)
    step = _mean(tilt.inside * known, means) - _mean(tilt.outside * known, means)
    return step, np.broadcast_to(span, step.shape)


def _mean(shares: Array, means: Array) -> Values:
    """The mean over pieces by shares (B, n) that need not sum to 1; NaN of none."""
    total = shares.sum(axis=0)
    mean: Values = np.full(total.shape, np.nan)
    np.divide((shares * means).sum(axis=0), total, out=mean, where=total > 0.0)
    return mean
