"""Exact limits of LIME: their profiles over bins, their locality and fidelity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values, quotient
from propopt.base.errors import Refused
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.lime.laws.binned_columns import (
    BinnedColumn,
    binned_columns,
)
from propopt.lime.laws.lime_law import (
    BinMeans,
    FactorMeans,
    LimeLaw,
    Tilt,
    draws_at,
)
from propopt.structures.products.sums import ROWS_AT_ONCE, SumOfProducts


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
        return self.mean - np.einsum("nd,nd->n", self.alpha, self.coefficients)

    @property
    def at_row(self) -> Values:
        """The surrogate at the row itself, with all bits 1: Σ β, (n,)."""
        return self.intercept + self.coefficients.sum(axis=1)

    def r2(self, variance: Values) -> Values:
        """The share of Var_Q f that the surrogate explains, (n,); 1 for constant f."""
        # Σ_j α_j (1 − α_j) β_j²: the variance of the surrogate under Q
        parts = self.variances * self.coefficients**2
        explained = parts.sum(axis=1)
        return quotient(explained, np.maximum(variance, explained), 1.0)

    # ---- moments of independent bits: Cov_Q(z) = diag(α_j (1 − α_j))

    @property
    def variances(self) -> Array:
        """The variances of bits, α_j (1 − α_j), (n, D)."""
        return self.alpha * (1.0 - self.alpha)

    def covariances(self, coefficients: Attributions, /) -> Array:
        """The covariances Cov_Q(z_j, bᵀz) = α_j (1 − α_j) b_j, (n, D)."""
        return self.variances * coefficients

    def solved(self, vectors: Array, penalty: Values, /) -> Array:
        """The solutions x_j / (α_j (1 − α_j) + ρ) for vectors x, (n, S, D)."""
        return self._steepness(penalty)[:, None] * vectors

    def shrinkage(self, penalty: Values, /) -> Array:
        """The part that ρ retains, α_j (1 − α_j) / (α_j (1 − α_j) + ρ), (n, D)."""
        return self._steepness(penalty) * self.variances

    def _steepness(self, penalty: Values) -> Array:
        with np.errstate(over="ignore"):
            return 1.0 / (self.variances + penalty[:, None])


@final
@dataclass(frozen=True, eq=False)
class ExactLimits:
    """The limits of a sum of products under a law; bins are tabulated once."""

    function: SumOfProducts  # f
    law: LimeLaw  # of the samples, bits and weights

    def of(self, points: Points, widths: Values | None = None) -> Limits:
        """The limits at rows (n, D), with the width of the law or one for each (n,)."""
        widths = self.law.widths(points, widths)
        parts = [self._block(points[k], widths[k]) for k in self.blocks(len(points))]
        arrays: Any = map(np.concatenate, zip(*parts, strict=True))
        return Limits(*arrays)

    def blocks(self, n: int) -> list[slice]:
        """The blocks of situations with tables that are computed together."""
        of_means = 8 * 8 * (self.function.n_factors + 1)
        row_bytes = of_means + self.function.row_bytes
        most = max(ROWS_AT_ONCE.n_rows, _IN_CACHE.rows(of_means))
        return replace(ROWS_AT_ONCE, n_rows=most).blocks(n, row_bytes)

    def _block(self, points: Points, widths: Values) -> tuple[Array, ...]:
        """The limits at so few rows that the means of all factors fit in memory."""
        means = self.factor_means(points, widths)
        mean, slopes = self.function.contrasts(*means.measures)
        return slopes, mean, means.alpha.T, means.log_weight

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
    return quotient((shares * means).sum(axis=0), shares.sum(axis=0), np.nan)


# ---- Means of a function by the bin of one column, and coefficients along its bins


NO_PROFILE: Final = "weights depend on distances, so that bins have no profile"


def bin_profiles(exact: ExactLimits, points: Points) -> tuple[Array, ...]:
    """The profiles h_j(b) = E_Q[f | V_j in b], (n, B_j) each; NaN in empty bins."""
    columns = binned_columns(exact.law)
    if columns is None:
        raise Refused(NO_PROFILE)
    row_widths = exact.law.widths(points)
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


# ---- How many samples count


def effective_share(law: LimeLaw, points: Points, log_weight: Values) -> Values:
    """The effective sample size over n, (E π)² / E π² = C(ν)² / C(ν / √2), (n,).

    ``log_weight`` is log C(ν). At 1 all samples have the same weight at any distance;
    close to 0 few samples count.
    """
    squared = law.squared_widths(law.widths(points))
    return np.exp(2.0 * log_weight - law.log_weights(points, squared))


# ---- The distance from the row at which coefficients arise


def split_by_columns(exact: ExactLimits, points: Points) -> Array:
    """The parts of coefficients by the number of other columns outside the row's bins.

    β_j = Σ_m β_j^(m), the coefficients of t^m in
    (a_j − b_j) Π_k (a_k + t (1 − α_k) (b_k − a_k)), a and b the means of factors in the
    row's bins and outside. The result is (n, M, D). Part 0 is β_j for ν → 0, and all of
    β_j for an additive function.
    """
    products = exact.function
    n_parts = int(products.lengths.max(initial=1))
    all_widths = exact.law.widths(points)
    parts = np.empty((len(points), n_parts, products.n_columns))
    for block in exact.blocks(len(points)):
        means = exact.factor_means(points[block], all_widths[block])

        def leaving(t: complex, means: FactorMeans = means) -> Array:
            # other columns outside the row's bins t times, (n, D)
            moved = means.one + cast("Array", t * (means.zero - means.one))
            one = means.mixed(means.one, moved)
            return products.contrasts(one, means.contrast(means.one, means.zero))[1]

        parts[block] = powers_in(leaving, n_parts)
    parts[:, :, ~np.isin(np.arange(products.n_columns), products.columns)] = 0.0
    return parts


def powers_in(function: Callable[[complex], Array], n_powers: int) -> Array:
    """The coefficients of t^m of polynomials (n, D), from values at roots of unity."""
    # half of the roots: the others have conjugate values
    roots = np.exp(2j * np.pi * np.arange(n_powers // 2 + 1) / n_powers)
    spectrum = np.conj(np.stack([function(t) for t in roots], axis=1))
    return np.fft.irfft(spectrum, n=n_powers, axis=1)


def share_outside(parts: Array) -> Array:
    """The share Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)|, (n, D); 0 if all parts are 0."""
    sizes = np.abs(parts)
    return quotient(sizes[:, 1:].sum(axis=1), sizes.sum(axis=1))


# ---- The variance of single columns under the weighted law


_NODES: Final = 128
"""Nodes of the law of a column: variances of steps have an error of 1 %."""


def additive_variance(exact: ExactLimits, points: Points, widths: Values) -> Values:
    """Σ_j Var_Q E_Q[f | V_j], (n,), over the midpoints of 128 parts of equal weight.

    E_Q[f | V_j] = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (g_u(V_j) − E g_u), u of column j.
    """
    columns = exact.law.columns
    function = exact.function
    uniforms = ((np.arange(_NODES) + 0.5) / _NODES)[None, :, None]
    total = np.zeros(len(points))
    row_bytes = 16 * _NODES * (function.n_factors + 1)
    for block in BATCH_BUDGET.blocks(len(points), row_bytes):
        x = points[block]
        row_widths = widths[block]
        _, slopes = function.slopes(exact.factor_means(x, row_widths).mean)
        for j in function.columns.tolist():
            grid = np.broadcast_to(uniforms, (len(x), _NODES, 1))
            nodes = draws_at(columns[j : j + 1], x[:, j : j + 1], row_widths, grid)
            values = nodes.samples[:, :, 0]
            moved = np.zeros(values.shape)
            for numbers, factors in function.of_column[j]:
                at = factors.at(values.ravel()).reshape(-1, *values.shape)
                moved += np.einsum("un,unq->nq", slopes[numbers], at)
            total[block] += moved.var(axis=1)
    return total
