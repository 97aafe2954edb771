"""Exact limits of LIME: moments of bits, means of factors, and means in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.resources import Budget
from propopt.lime.laws.binned_columns import (
    BinnedColumn,
    binned_columns,
)
from propopt.lime.laws.lime_law import BinMeans, FactorMeans, LimeLaw, Tilt
from propopt.structures.products.sums import ROWS_AT_ONCE, SumOfProducts


# ---- Exchangeable bits: only the number of ones matters


@final
@dataclass(frozen=True, eq=False)
class ExchangeableBits:
    """Bits of the words of a text: all sets of m remaining words are equally likely.

    Cov_Q(z) has two eigenvalues: Var_Q(m) / d along (1, ..., 1), and
    (α_1 − α_2) / α_0 = E_Q[m (d − m)] / (d (d − 1)) on all that sums to 0.
    """

    log_sizes: Array  # (n, d + 1): log E[π; m words remain] of m = 0, ..., d; d ≥ 2

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.log_sizes.shape[1] - 1

    def at(self, rows: slice | Indices, /) -> ExchangeableBits:
        """The bits of some situations."""
        return ExchangeableBits(self.log_sizes[rows])

    @cached_property
    def log_weight(self) -> Values:
        """Log E π, (n,)."""
        most = self.log_sizes.max(axis=1)
        total = np.exp(self.log_sizes - most[:, None]).sum(axis=1)
        return np.asarray(most + np.log(total))

    @cached_property
    def _shares(self) -> Array:
        """The probabilities of sizes, (n, d + 1)."""
        weights = np.exp(self.log_sizes - self.log_sizes.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _lost(self) -> Values:
        """D − 1 − m for sizes m, so that sums over the heaviest size stay small."""
        return np.asarray(self.n_words - 1.0 - np.arange(self.n_words + 1))

    @cached_property
    def off_mean(self) -> Array:
        """The deviations m − E_Q m of sizes from their mean, (n, d + 1)."""
        return np.asarray((self._shares @ self._lost)[:, None] - self._lost)

    @cached_property
    def spread(self) -> Values:
        """The squared length m (d − m) / d of z orthogonal to (1, ..., 1), (d + 1,)."""
        sizes = self.n_words - 1.0 - self._lost
        return np.asarray(sizes * (self._lost + 1.0) / self.n_words)

    @cached_property
    def share(self) -> Values:
        """The probability Q(z_j = 1) of any word, (n,)."""
        return np.asarray(
            (self.n_words - 1.0 - self._shares @ self._lost) / self.n_words
        )

    @cached_property
    def along(self) -> Values:
        """The eigenvalue of the covariance along (1, ..., 1), (n,)."""
        return np.asarray((self._shares * self.off_mean**2).sum(axis=1) / self.n_words)

    @cached_property
    def apart(self) -> Values:
        """The eigenvalue of the covariance on vectors with the sum 0, (n,)."""
        return np.asarray(self._shares @ self.spread / (self.n_words - 1.0))

    @property
    def alpha(self) -> Array:
        """The probability Q(z_j = 1) of each word, (n, D)."""
        return np.repeat(self.share[:, None], self.n_words, axis=1)

    def covariances(self, coefficients: Attributions, /) -> Array:
        """The covariances Cov_Q(z, bᵀz), (n, D)."""
        level = coefficients.mean(axis=1, keepdims=True)
        rest = coefficients - level
        return np.asarray(self.along[:, None] * level + self.apart[:, None] * rest)

    def solved(self, vectors: Array, penalty: Values, /) -> Array:
        """The solutions (Cov_Q(z) + ρ I)⁻¹ x for vectors x (n, S, D)."""
        level = vectors.mean(axis=2, keepdims=True)
        ends = level / (self.along + penalty)[:, None, None]
        rest = (vectors - level) / (self.apart + penalty)[:, None, None]
        return np.asarray(ends + rest)

    def shrinkage(self, penalty: Values, /) -> Array:
        """The part of a coefficient that the ridge ρ retains, (n, D)."""
        one = 1.0 / self.n_words
        left = one * self.along / (self.along + penalty)
        left += (1.0 - one) * self.apart / (self.apart + penalty)
        return np.repeat(left[:, None], self.n_words, axis=1)


# ---- The exact limits of LIME for a sum of products


_IN_CACHE: Final = Budget(2**21)
"""Means of few factors stay in the cache for more rows."""


@final
@dataclass(frozen=True, eq=False)
class Limits:
    """The coefficients of LIME with infinitely many samples, in n situations."""

    # (n, D): β_j; exactly 0.0 where f does not depend on column j
    coefficients: Attributions
    mean: Values  # (n,): E_Q f
    alpha: Array  # (n, D): Q(z_j = 1)
    log_weight: Values  # (n,): log C, C = E π: the mean weight of a sample
    standard_errors: Attributions | None = None
    n_draws: int = 0  # around each row, for estimates
    evaluations: int = 0  # of the function

    @classmethod
    def joined(cls, parts: Sequence[Limits]) -> Limits:
        """The limits in all situations of several parts, concatenated."""
        names = parts[0].arrays
        arrays = {k: np.concatenate([vars(part)[k] for part in parts]) for k in names}
        return replace(
            parts[0],
            **arrays,
            n_draws=max([part.n_draws for part in parts]),
            evaluations=sum([part.evaluations for part in parts]),
        )

    def at(self, rows: slice | Indices, /) -> Limits:
        """The limits in some situations."""
        return replace(self, **{k: values[rows] for k, values in self.arrays.items()})

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays with one entry for each situation, by name."""
        return {k: x for k, x in vars(self).items() if isinstance(x, np.ndarray)}

    @property
    def intercept(self) -> Values:
        """The intercept β_0 = E_Q f − Σ_j α_j β_j, (n,)."""
        pulls = np.einsum("nd,nd->n", self.alpha, self.coefficients)
        return np.asarray(self.mean - pulls)

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, with all bits 1: Σ β, (n,)."""
        return np.asarray(self.intercept + self.coefficients.sum(axis=1))

    def r2(self, variance: Values) -> Values:
        """The share of Var_Q f that the surrogate explains, (n,); 1 for constant f."""
        # Σ_j α_j (1 − α_j) β_j²: the variance of the surrogate under Q
        parts = self.variances * self.coefficients**2
        explained = parts.sum(axis=1)
        total = np.maximum(variance, explained)
        return np.divide(explained, total, out=np.ones(len(total)), where=total > 0)

    # ---- moments of independent bits: Cov_Q(z) = diag(α_j (1 − α_j))

    @property
    def variances(self) -> Array:
        """The variances of bits, α_j (1 − α_j), (n, D)."""
        return np.asarray(self.alpha * (1.0 - self.alpha))

    def covariances(self, coefficients: Attributions, /) -> Array:
        """The covariances Cov_Q(z_j, bᵀz) = α_j (1 − α_j) b_j, (n, D)."""
        return np.asarray(self.variances * coefficients)

    def solved(self, vectors: Array, penalty: Values, /) -> Array:
        """The solutions x_j / (α_j (1 − α_j) + ρ) for vectors x, (n, S, D)."""
        return np.asarray(self._steepness(penalty)[:, None] * vectors)

    def shrinkage(self, penalty: Values, /) -> Array:
        """The part that ρ retains, α_j (1 − α_j) / (α_j (1 − α_j) + ρ), (n, D)."""
        return np.asarray(self._steepness(penalty) * self.variances)

    def _steepness(self, penalty: Values) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (self.variances + penalty[:, None]))


@final
@dataclass(frozen=True, eq=False)
class ExactLimits:
    """The limits of a sum of products under a law; bins are tabulated once."""

    function: SumOfProducts  # f
    law: LimeLaw  # of the samples, bits and weights

    def of(self, points: Points, widths: Values | None = None) -> Limits:
        """The limits at rows (n, D), with the width of the law or one for each (n,)."""
        widths = self.law.widths(points, widths)
        first, which = self._distinct(points, widths)
        x = points[first]
        row_widths = widths[first]
        result = Limits.joined(
            [self._block(x[k], row_widths[k]) for k in self.blocks(len(x))]
        )
        if len(first) == len(points):
            return result
        tilts = self.law.tilts(points, widths)
        alpha = np.stack([tilt.alpha for tilt in tilts], axis=1)
        log_weight = np.sum([tilt.log_weight for tilt in tilts], axis=0)
        return Limits(result.coefficients[which], result.mean[which], alpha, log_weight)

    def _distinct(self, points: Points, widths: Values) -> tuple[Indices, Indices]:
        """The distinct situations, and for each situation the index of its equal."""
        cells = self.law.cells(points)
        every = np.arange(len(points))
        if cells is points:
            return every, every
        keys = np.column_stack([cells[:, self.function.columns], widths])
        _, first, which = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        return (first, which.ravel()) if len(first) < len(points) else (every, every)

    def blocks(self, n: int) -> list[slice]:
        """The blocks of situations whose tables are computed together."""
        of_means = 8 * 8 * (self.function.n_factors + 1)
        most = max(ROWS_AT_ONCE.n_rows, _IN_CACHE.rows(of_means))
        budget = replace(ROWS_AT_ONCE, n_rows=most)
        return budget.blocks(n, of_means + self.function.row_bytes)

    def _block(self, points: Points, widths: Values) -> Limits:
        """The limits at so few rows that the means of all factors fit in memory."""
        means = self.factor_means(points, widths)
        mean, slopes = self.function.contrasts(*means.measures)
        return Limits(slopes, mean, means.alpha.T, means.log_weight)

    def factor_means(self, points: Points, widths: Values) -> FactorMeans:
        """The means of the factors given the bits of their columns, n situations."""
        tilts = self.law.tilts(points, widths)
        means = self.function.mixed(self.in_bins, tilts, len(points))
        return FactorMeans(tilts, self.function.column, *means)

    @cached_property
    def in_bins(self) -> list[BinMeans]:
        """The factors of each column by family, with cached means in bins."""
        return [BinMeans(factors) for _, _, factors in self.function.by_column]


# ---- The step of a column when its bit changes: the unit of coefficients


def bit_steps(law: LimeLaw, points: Points) -> tuple[Array, Array]:
    """The steps v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0], and the span of bins.

    Both are (n, D). The coefficient of a linear function is its slope times v_j.
    Missing values are left out; NaN for columns with only missing values.
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
    present = ~np.isnan(means)
    low = np.where(present, means, np.inf).min(axis=0)
    high = np.where(present, means, -np.inf).max(axis=0)
    span = np.where(present.any(axis=0), high, np.nan) - low
    means = np.where(present, means, 0.0)
    step = _mean(tilt.inside * present, means) - _mean(tilt.outside * present, means)
    return step, np.broadcast_to(span, step.shape)


def _mean(shares: Array, means: Array) -> Values:
    """The mean over pieces by shares (B, n) of any sum; NaN if all shares are 0."""
    total = shares.sum(axis=0)
    mean: Values = np.full(total.shape, np.nan)
    np.divide((shares * means).sum(axis=0), total, out=mean, where=total > 0.0)
    return mean


# ---- Means of a function by the bin of one column, and coefficients along its bins


def bin_profiles(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> tuple[Array, ...]:
    """The profiles h_j(b) = E_Q[f | V_j in b], (n, B_j) each; NaN in empty bins."""
    binned = binned_columns(exact.law)
    columns = tuple(column for column in binned if column is not None)
    row_widths = exact.law.widths(points, widths)
    parts = [
        _means(exact, columns, points[block], row_widths[block])
        for block in exact.blocks(len(points))
    ]
    return tuple(
        np.where(
            column.shares > 0.0, np.concatenate([part[j] for part in parts]), np.nan
        )
        for j, column in enumerate(columns)
    )


def _means(
    exact: ExactLimits,
    columns: tuple[BinnedColumn, ...],
    points: Points,
    widths: Values,
) -> list[Array]:
    """h_j(b) = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (E[g_u | b] − E_Q g_u), (n, B_j)."""
    means = exact.factor_means(points, widths)
    total, slopes = exact.function.slopes(means.mean)
    profiles = [np.repeat(total[:, None], len(c.shares), axis=1) for c in columns]
    parts = zip(exact.function.by_column, exact.in_bins, strict=True)
    for (j, numbers, _), factors in parts:
        gradients = slopes[numbers]
        profiles[j] += gradients.T @ factors.of(means.tilts[j].pieces)
        profiles[j] -= np.einsum("un,un->n", gradients, means.mean[numbers])[:, None]
    return profiles
