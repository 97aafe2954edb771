"""What n samples make of the limits: mean, scatter, ranking, selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias, final, get_args

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Truths, Values
from propopt.base.checks import read_count, read_nonnegative, read_positive
from propopt.base.declared import stored
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.lime.expectations import Limits
from propopt.lime.laws.lime_law import LimeLaw, draws_at
from propopt.lime.moments import WeighedWords
from propopt.lime.surrogates import CommonDraws, evaluated, stratified_uniforms


# ---- What one run of LIME gives, and how many samples a precision takes


@final
@dataclass(frozen=True, eq=False)
class SingleRun:
    """What one run of n samples gives, in its mean and its scatter, in n situations."""

    n_samples: int  # of the run
    coefficients: Attributions  # (n, D): in the mean of runs
    intercept: Values  # (n,): likewise
    # (n, D + 1, D + 1): of the intercept and the coefficients of a run
    covariance: Array

    @property
    def standard_deviations(self) -> Attributions:
        """Of the coefficients of one run, (n, D)."""
        return self._deviations[:, 1:]

    @property
    def _deviations(self) -> Array:
        squares = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.sqrt(np.maximum(squares, 0.0))

    def samples_for(
        self, standard_error: float | None = None, *, z: float | None = None
    ) -> Array:
        """The samples that a run needs for a precision, for each coefficient (n, D).

        n (SE(n) / s)², rounded up, as errors fall with 1 / √n. For all coefficients of
        a row it takes their maximum.
        """
        wanted = self._wanted(standard_error, z)
        return required_samples(self.n_samples, self.standard_deviations, wanted)

    def _wanted(self, standard_error: float | None, z: float | None) -> Array:
        if (standard_error is None) == (z is None):
            raise InvalidInput("samples_for: give either standard_error or z")
        if standard_error is not None:
            s = read_positive(standard_error, "standard_error")
            return np.full(self.coefficients.shape, s)
        return np.abs(self.coefficients) / read_positive(z, "z")


def required_samples(n_samples: int, deviations: Array, wanted: Array | float) -> Array:
    """N (SE(n) / s)² rounded up, of the deviations' shape; 1 where these are 0."""
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.divide(
            deviations, wanted, out=np.zeros_like(deviations), where=deviations != 0.0
        )
        return np.asarray(np.ceil(np.maximum(1.0, n_samples * ratio**2)))


RUN_DRAWS: Final = 4096
"""Of each row, for deviations that are known to 2 %."""


@final
@dataclass(frozen=True, eq=False)
class RunScatter:
    """What samples tell of runs, for each of N rows."""

    # (N, D): the standard deviations of the coefficients of one run
    deviations: Array = stored("N D", low=0.0)
    # (N,): Var_Q f; exact for sums of products that are not too many
    variance: Values = stored("N", low=0.0)
    n_samples: int = stored(low=1)  # of the run
    # samples of each row that deviations, and other variances, were estimated from
    n_draws: int = stored(default=RUN_DRAWS, low=0)

    def of_rows(self, rows: Positions) -> RunScatter:
        """The same of some rows."""
        return replace(
            self, deviations=self.deviations[rows], variance=self.variance[rows]
        )


# ---- The fit to n samples in their mean, solved by hand, for many rows at once


_LEAST: Final = 1e-300
"""Of λ / N: columns that nothing else tells apart have equal parts."""


@final
@dataclass(frozen=True, eq=False)
class FiniteFit:
    """Normal equations of n samples, each sum in them replaced by its mean.

    ((n − 1) Σ + v vᵀ + λ D) b = (n − 1) Γ + v f(ξ),  v = 1, D = diag(0, 1, ..., 1)

    With N = (n − 1) C, S = Cov_Q(z), R = (S + λ/N)⁻¹ and u = 1 − α this gives

    b = R S β + q t / (N + 1),  b_0 = E_Q f − αᵀ b + t / (N + 1),  q = R u,
    t = (f(ξ) − E_Q f − uᵀ R S β) / (1 + h),  h = uᵀ q / (N + 1).

    R S β is what ridge leaves of the coefficients, and t is what the row itself is off
    the fit. Bits of tables are independent and those of texts exchangeable, so that R
    is known by hand. Nothing is divided by N, so that weights may underflow.
    """

    # β, E_Q f, and the moments of bits, α, S and log C, in n situations
    limits: Limits | WeighedWords
    values: Values | None  # (n,): f(ξ); None where the row itself is no sample
    n_samples: int  # samples, the row itself included where it is one
    ridge: float = 1.0  # λ ≥ 0, on all coefficients but the intercept
    kept: Truths | None = None  # (n, D): the columns that are fitted; by default all

    def __post_init__(self) -> None:
        read_count(self.n_samples, "n_samples")
        read_nonnegative(self.ridge, "ridge")
        if self.values is not None and self.n_samples < 2:
            raise InvalidInput(
                "n_samples: expected at least 2, the row itself and one more"
            )

    @property
    def n_drawn(self) -> int:
        """Samples that are drawn."""
        return self.n_samples - (self.values is not None)

    @cached_property
    def total(self) -> Values:
        """N, the mean weight of all that is drawn, (n,)."""
        return np.asarray(np.exp(self._log_total))

    @property
    def _log_total(self) -> Values:
        return np.asarray(np.log(self.n_drawn) + self.limits.bits.log_weight)

    @cached_property
    def penalty(self) -> Values:
        """λ / N, (n,), never quite 0."""
        with np.errstate(over="ignore", divide="ignore"):
            per_weight = np.exp(np.log(self.ridge) - self._log_total)
        return np.maximum(per_weight, _LEAST)

    @cached_property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""
        # sums are the same to the last digit, however limits lie in memory
        return np.ascontiguousarray(self.limits.bits.alpha)

    @cached_property
    def pull(self) -> Array:
        """q, (n, D): 0 for what is not fitted."""
        return self._solved(1.0 - self.alpha)

    @property
    def share_left(self) -> Array:
        """What ridge leaves of a coefficient, (n, D): the diagonal of R S."""
        return self.limits.bits.share_left(self.penalty, self.kept)

    @cached_property
    def left_by_ridge(self) -> Array:
        """R S β, (n, D)."""
        return self._solved(self.limits.bits.covariances(self.limits.coefficients))

    def _solved(self, vectors: Array) -> Array:
        """R x of vectors (n, D)."""
        result = self.limits.bits.solved(vectors[:, None], self.penalty, self.kept)
        return np.ascontiguousarray(result[:, 0])

    @cached_property
    def leverage(self) -> Values:
        """h, (n,): 0 where the row itself is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        loads = (self.pull * (1.0 - self.alpha)).sum(axis=1)
        return np.asarray(loads / (self.total + 1.0))

    @cached_property
    def left_at_row(self) -> Values:
        """t, what the fit leaves of f(ξ), (n,): 0 where the row is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        rises = (1.0 - self.alpha) * self.left_by_ridge
        off = self.values - self.limits.mean - rises.sum(axis=1)
        return np.asarray(off / (1.0 + self.leverage))

    @cached_property
    def coefficients(self) -> Array:
        """b_1, ..., b_D, (n, D)."""
        raised = self.pull * (self.left_at_row / (self.total + 1.0))[:, None]
        return np.asarray(self.left_by_ridge + raised)

    @cached_property
    def intercept(self) -> Values:
        """b_0, (n,)."""
        pulls = (self.alpha * self.coefficients).sum(axis=1)
        return np.asarray(
            self.limits.mean - pulls + self.left_at_row / (self.total + 1.0)
        )

    def influences(self, rows: slice | Positions, bits: Array) -> Array:
        """N A⁻¹ Z of samples with bits (m, S, D) around some rows, (m, S, 1 + D).

        A is the matrix of the normal equations: a sample with weight π and residual r
        moves (b_0, ..., b_D) by π r A⁻¹ Z, with

        ψ = R (z − α) − q τ,  τ = (1 + qᵀ (z − α)) / ((N + 1) (1 + h)),
        ψ_0 = (N − Σ (N α_j + 1) ψ_j) / (N + 1)

        where the row is a sample; else τ = 0 and ψ_0 = 1 − Σ α_j ψ_j.
        """
        centred = bits - self.alpha[rows, None]
        q, kept = self.pull[rows], None if self.kept is None else self.kept[rows]
        loads = (centred @ q[..., None])[..., 0]
        tau = (1.0 + loads) * self._row_share[rows, None]
        own = self.limits.bits.at(rows).solved(centred, self.penalty[rows], kept)
        psi = own - q[:, None] * tau[..., None]
        first = self._of_intercept(psi, rows)
        return np.concatenate([first[..., None], psi], axis=-1)

    @property
    def mean_influence(self) -> Array:
        """E r ψ for samples of the weighted law, (n, 1 + D); 0 without ridge and row.

        E r = −t / (N + 1) and E r (z − α) = S (β − b).
        """
        level = -self.left_at_row / (self.total + 1.0)
        off = self.limits.coefficients - self.coefficients
        slopes = self.limits.bits.covariances(off)
        tau = (level + (self.pull * slopes).sum(axis=1)) * self._row_share
        psi = self._solved(slopes) - self.pull * tau[:, None]
        weight, ends = self._shares
        first = weight * level - (ends * psi).sum(axis=1)
        return np.concatenate([first[:, None], psi], axis=1)

    @property
    def _row_share(self) -> Values:
        """1 / ((N + 1)(1 + h)), (n,): 0 where the row is no sample."""
        if self.values is None:
            return np.zeros(len(self.total))
        return np.asarray(1.0 / ((self.total + 1.0) * (1.0 + self.leverage)))

    @property
    def _shares(self) -> tuple[Values, Array]:
        """What the draws have of all weight, and the mean of bits over all samples."""
        if self.values is None:
            return np.ones(len(self.total)), self.alpha
        all_weight = self.total + 1.0
        weighted = self.total[:, None] * self.alpha + 1.0
        return self.total / all_weight, np.asarray(weighted / all_weight[:, None])

    def _of_intercept(self, psi: Array, rows: slice | Positions) -> Array:
        weight, ends = self._shares
        pulls = (psi @ ends[rows, :, None])[..., 0]
        return np.asarray(weight[rows, None] - pulls)


# ---- How far one run of LIME is off what such runs give in their mean


RUNS_AT_ONCE: Final = Budget(2**26)
"""Of its own: products of matrices are rounded by how many rows are together."""


def single_run(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,  # shape (n, D)
    limits: Limits,
    values: Values | None,  # shape (n,)
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,
    *,
    widths: Values | None = None,  # shape (n,)
    n_draws: int = RUN_DRAWS,
    rng: np.random.Generator | None = None,
    common: CommonDraws | None = None,
) -> SingleRun:
    """Mean and covariance of the coefficients of one run of LIME with n samples.

    Cov b = (n − 1) A⁻¹ Cov(π r Z) A⁻¹ (the sandwich), r = f − b_0 − bᵀz; the row does
    not scatter. E π² h = C(ν/√2) E h under the law of the width ν/√2, which is drawn.
    """
    fit = expected(limits, values, n_samples, ridge, first_row, kept)
    generator = np.random.default_rng(0) if rng is None else rng
    n_columns = points.shape[1]
    uniforms = stratified_uniforms(
        1, read_count(n_draws, "n_draws"), n_columns, generator
    )
    of_squares = law.squared_widths(law.widths(points, widths))
    covariance = np.empty((len(points), n_columns + 1, n_columns + 1))
    log_squares = law.log_weights(points, of_squares)
    shared = np.zeros(len(points), bool)
    if common is not None:
        shared = common.enough(points, of_squares)
        indices = np.flatnonzero(shared)
        for some in RUNS_AT_ONCE.blocks(len(indices), 24 * common.samples.size):
            rows = indices[some]
            bits = common.bits(points[rows])
            f = np.broadcast_to(common.values, bits.shape[:2])
            weights = common.weights(points[rows], of_squares[rows]).T
            covariance[rows] = run_covariances(fit, rows, bits, f, weights, log_squares)
    indices, even = np.flatnonzero(~shared), np.full(1, 1.0 / uniforms.shape[1])
    for some in RUNS_AT_ONCE.blocks(len(indices), 3 * uniforms.nbytes):
        rows = indices[some]
        copies = np.broadcast_to(uniforms, (len(rows), *uniforms.shape[1:]))
        draws = draws_at(law.columns, points[rows], of_squares[rows], copies)
        f = evaluated(evaluate, draws.samples)
        covariance[rows] = run_covariances(fit, rows, draws.bits, f, even, log_squares)
    return SingleRun(n_samples, fit.coefficients, fit.intercept, covariance)


def run_covariances(
    fit: FiniteFit,
    rows: Positions,  # shape (m,)
    bits: Array,  # shape (m, S, D)
    f: Array,  # shape (m, S)
    weights: Array,  # shape (m, S)
    log_squares: Values,  # shape (n,)
) -> Array:
    """Of a run, (m, D + 1, D + 1), from draws of the law that is weighted by π²."""
    b_0, b = fit.intercept[rows], fit.coefficients[rows]
    r = f - b_0[:, None] - (bits @ b[..., None])[..., 0]
    moved = fit.influences(rows, bits) * r[..., None]
    second = np.swapaxes(moved * weights[..., None], 1, 2) @ moved
    return covariances_of(fit, rows, second, log_squares)


def covariances_of(
    fit: FiniteFit, rows: Positions, second: Array, log_squares: Values
) -> Array:
    """Of a run, from E r² ψ ψᵀ (m, D + 1, D + 1) under the law of π²."""
    # E π² / (E π)²
    factor = np.exp(log_squares[rows] - 2.0 * fit.limits.bits.log_weight[rows])
    means = fit.mean_influence[rows]
    products = means[:, :, None] * means[:, None, :]
    return np.asarray((factor[:, None, None] * second - products) / fit.n_drawn)


# ---- What LIME gives with n samples, in its mean: ridge, and the row as a sample


def expected(
    limits: Limits | WeighedWords,
    values: Values | None,  # shape (n,)
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,  # shape (n, D)
) -> FiniteFit:
    """What ``lime`` gives with n samples, to the first order in 1 / n.

    It draws n − 1 samples, adds the row itself with weight 1, whose ``values`` count
    then alone, and penalises all coefficients but the intercept by λ = 1. This was
    within noise of the package down to a total weight n C of about 1e-3.
    """
    if first_row and values is None:
        raise InvalidInput(
            "values: where the row itself is a sample, give f at the rows"
        )
    return FiniteFit(limits, values if first_row else None, n_samples, ridge, kept)


def first_row_shift(limits: Limits, values: Values, n_samples: int) -> Array:
    """How far the row itself as a sample moves the fit, to the first order, (n, D).

    δβ_j = (f(ξ) − g(ξ)) / (n C α_j), with g(ξ) = Σ β the fit at the row; 0 for a column
    that is always in the bin of the row.
    """
    per_weight = (values - limits.at_row) * np.exp(-limits.log_weight) / n_samples
    alpha = limits.alpha
    moves = (alpha > 0.0) & (alpha < 1.0)
    shifts = np.zeros(alpha.shape)
    return np.divide(per_weight[:, None], alpha, out=shifts, where=moves)


# ---- Which columns LIME keeps where it is to keep a few


Selection: TypeAlias = Literal["auto", "forward_selection", "highest_weights"]
"""The package's names."""

_FEW = 6
"""Up to so many, ``auto`` adds columns one after the other."""


def kept_columns(limits: Limits, n_kept: int, how: Selection = "auto") -> Truths:
    """The columns that many samples keep, (n, D).

    As bits are independent, the best columns one after the other are those with the
    largest |β_j| √(α_j (1 − α_j)); the highest weights have the largest |β_j|.
    """
    read_count(n_kept, "n_kept")
    sizes = np.abs(limits.coefficients)
    if named_selection(how, n_kept) != "highest_weights":
        sizes = sizes * np.sqrt(limits.alpha * (1.0 - limits.alpha))
    order = np.argsort(-sizes, axis=1, kind="stable")
    kept = np.zeros(sizes.shape, dtype=bool)
    np.put_along_axis(kept, order[:, :n_kept], True, axis=1)
    return kept


def named_selection(how: Selection, n_kept: int) -> Selection:
    """The way that a name means; auto depends on how many are kept."""
    if how not in get_args(Selection):
        names = ", ".join(get_args(Selection))
        raise InvalidInput(f"how: expected one of {names}, got {how!r}")
    if how != "auto":
        return how
    return "forward_selection" if n_kept <= _FEW else "highest_weights"


# ---- Whether one run says what the limit says: its columns, their order, their signs


def ranking_chances(
    run: SingleRun,
    coefficients: Attributions,  # shape (n, D)
    top: int = 3,
    n_draws: int = 4000,
    rng: np.random.Generator | None = None,
) -> Values:
    """How probable a run of n samples names the columns of the largest coefficients.

    (n,), by draws of their normal limit law: 4000 tell it to 0.8 % or better.
    """
    read_count(top, "top")
    read_count(n_draws, "n_draws")
    generator = np.random.default_rng(0) if rng is None else rng
    normal = generator.standard_normal((n_draws, coefficients.shape[1]))
    chances = []
    for beta, mean, covariance in zip(
        coefficients, run.coefficients, run.covariance[:, 1:, 1:], strict=True
    ):
        n_told = min(top, int(np.count_nonzero(beta)))
        told = np.sort(_largest(beta[None], n_told))
        named = np.sort(_largest(mean + normal @ _root(covariance), n_told), axis=1)
        chances.append((named == told).all(axis=1).mean())
    return np.array(chances)


def _root(covariance: Array) -> Array:
    """R with Rᵀ R the covariance, whatever directions do not scatter."""
    squares, directions = np.linalg.eigh(covariance)
    return np.asarray((directions * np.sqrt(np.maximum(squares, 0.0))).T)


def _largest(coefficients: Array, n: int) -> Positions:
    return np.argsort(-np.abs(coefficients), axis=1, kind="stable")[:, :n]
