"""LIME with n samples, on rows or texts: mean coefficients, their noise, ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np
from scipy.special import logsumexp, softmax

from propopt.base.arrays import (
    Array,
    Attributions,
    Indices,
    Mask,
    Points,
    Values,
    quotient,
)
from propopt.base.checks import read_count, read_nonnegative
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, require_memory
from propopt.lime.exact_limits import Limits
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.sampled_limits import (
    RUN_DRAWS,
    CommonDraws,
    stratified_uniforms,
    values_around,
)
from propopt.lime.text.word_limits import ExchangeableBits, TextLaw, WordRegression
from propopt.structures.subsets.sets import SetFunction, SizeMeans, random_sets


# ---- One run of LIME, and the samples that a precision needs


@final
@dataclass(frozen=True, eq=False)
class SingleRun:
    """The mean and the covariance of the coefficients of one run, in n situations."""

    n_samples: int  # of the run
    coefficients: Attributions  # (n, D): mean over runs
    intercept: Values  # (n,): mean over runs
    covariance: Array  # (n, D + 1, D + 1): of the intercept and the coefficients

    @property
    def standard_deviations(self) -> Attributions:
        """The standard deviations of the coefficients of one run, (n, D)."""
        squares = np.diagonal(self.covariance, axis1=1, axis2=2)[:, 1:]
        return np.sqrt(np.maximum(squares, 0.0))


def required_samples(n_samples: int, deviations: Array, target: float) -> Array:
    """The samples n (SE(n) / s)², rounded up: standard errors fall with 1 / √n."""
    with np.errstate(over="ignore"):
        return np.ceil(np.maximum(1.0, n_samples * (deviations / target) ** 2))


@final
@dataclass(frozen=True, eq=False)
class RunScatter:
    """The noise of single runs of LIME, for each feature of N rows or documents."""

    # (M,): standard deviations of the coefficients of one run, row by row
    deviations: Array = field("M", low=0.0, missing=True)
    # (N,): Var_Q f, exact for few products; NaN for documents
    variance: Values = field("N", low=0.0, missing=True)
    n_samples: int = field(low=1)  # of the run
    # (M,): mean coefficients of runs on documents; None for tables, where they follow
    # from the limits
    means: Array | None = field("M", missing=True, default=None)
    # samples of each row from which deviations, and other variances, were estimated
    n_draws: int = field(default=RUN_DRAWS, low=0)

    def of_rows(self, rows: Indices, features: Indices) -> RunScatter:
        """The noise at some rows, with these features among all of them."""
        means = self.means
        return replace(
            self,
            deviations=self.deviations[features],
            variance=self.variance[rows],
            means=None if means is None else means[features],
        )


# ---- The mean fit to n samples in closed form, for many rows together


_LEAST: Final = 1e-300
"""The smallest λ / N: indistinguishable columns then have equal parts."""


@final
@dataclass(frozen=True, eq=False)
class FiniteFit:
    """The normal equations of n samples, with each sum replaced by its mean.

    ((n − 1) Σ + v vᵀ + λ D) b = (n − 1) Γ + v f(ξ),  v = 1, D = diag(0, 1, ..., 1)

    With N = (n − 1) C, S = Cov_Q(z), R = (S + λ/N)⁻¹, u = 1 − α and the weight ω of
    the row, 1 or 0, this gives

    b = R S β + q t ω / (N + ω),  b_0 = E_Q f − αᵀ b + t ω / (N + ω),  q = R u,
    t = (f(ξ) − E_Q f − uᵀ R S β) / (1 + h),  h = uᵀ q ω / (N + ω).

    R S β are the coefficients after shrinkage by the ridge, and t is the residual of
    the fit at the row itself. Bits of tables are independent and those of texts
    exchangeable, so that R has a closed form. Nothing is divided by N, so that weights
    may underflow.
    """

    beta: Attributions  # (n, D): limits of the coefficients
    mean: Values  # (n,): E_Q f
    bits: Limits | ExchangeableBits  # the moments of bits: α, S and log C
    values: Values | None  # (n,): f(ξ); None if the row itself is not a sample
    n_samples: int  # samples, including the row itself if it is one
    ridge: float = 1.0  # λ ≥ 0, on all coefficients except the intercept

    def __post_init__(self) -> None:
        read_nonnegative(self.ridge, "ridge")
        if read_count(self.n_samples, "n_samples") < 1 + self.row:
            raise InvalidInput(
                "n_samples: expected at least 2, the row itself and a random one"
            )

    @property
    def n_drawn(self) -> float:
        """The number of random samples, without the row itself."""
        return self.n_samples - self.row

    @property
    def row(self) -> float:
        """The weight ω of the row itself: 1, or 0 if it is not a sample."""
        return float(self.values is not None)

    @cached_property
    def total(self) -> Values:
        """The mean total weight N of the random samples, (n,), always positive."""
        total = np.exp(np.log(self.n_drawn) + self.bits.log_weight)
        return np.maximum(total, _LEAST)

    @cached_property
    def penalty(self) -> Values:
        """The ridge relative to the total weight, λ / N, (n,), always positive."""
        log_total = np.log(self.n_drawn) + self.bits.log_weight
        with np.errstate(over="ignore", divide="ignore"):
            per_weight = np.exp(np.log(self.ridge) - log_total)
        return np.maximum(per_weight, _LEAST)

    @cached_property
    def alpha(self) -> Array:
        """The probability Q(z_j = 1) of each bit, (n, D)."""
        # sums are the same to the last digit for any memory layout of limits
        return np.ascontiguousarray(self.bits.alpha)

    @cached_property
    def pull(self) -> Array:
        """The vectors q = R u, (n, D)."""
        return self._solved(1.0 - self.alpha)

    @property
    def shrinkage(self) -> Array:
        """The part of a coefficient that the ridge retains, diag(R S), (n, D)."""
        return self.bits.shrinkage(self.penalty)

    @cached_property
    def shrunk(self) -> Array:
        """The coefficients after shrinkage by the ridge, R S β, (n, D)."""
        return self._solved(self.bits.covariances(self.beta))

    def _solved(self, vectors: Array) -> Array:
        """The products R x for vectors x (n, D)."""
        result = self.bits.solved(vectors[:, None], self.penalty)
        return np.ascontiguousarray(result[:, 0])

    @property
    def _whole(self) -> Values:
        """The weight of all samples, N + ω, (n,)."""
        return self.total + self.row

    @cached_property
    def leverage(self) -> Values:
        """The leverage h of the row itself, (n,)."""
        loads = (self.pull * (1.0 - self.alpha)).sum(axis=1)
        return self.row * (loads / self._whole)

    @cached_property
    def row_residual(self) -> Values:
        """The residual ω t of the fit at the row itself, (n,)."""
        values = self.mean if self.values is None else self.values
        rises = (1.0 - self.alpha) * self.shrunk
        off = values - self.mean - rises.sum(axis=1)
        return self.row * (off / (1.0 + self.leverage))

    @cached_property
    def coefficients(self) -> Array:
        """The mean coefficients b_1, ..., b_D of runs, (n, D)."""
        raised = self.pull * (self.row_residual / self._whole)[:, None]
        return self.shrunk + raised

    @cached_property
    def intercept(self) -> Values:
        """The mean intercept b_0 of runs, (n,)."""
        pulls = (self.alpha * self.coefficients).sum(axis=1)
        return self.mean - pulls + self.row_residual / self._whole

    def influences(self, rows: slice | Indices, bits: Array) -> Array:
        """The influence N A⁻¹ Z of samples with bits (m, S, D), (m, S, 1 + D).

        A sample with weight π and residual r moves (b_0, ..., b_D) by π r A⁻¹ Z, with

        ψ = R (z − α) − q τ,  τ = ω (1 + qᵀ (z − α)) / ((N + ω) (1 + h)),
        ψ_0 = (N − Σ (N α_j + ω) ψ_j) / (N + ω).
        """
        centred = bits - self.alpha[rows, None]
        q = self.pull[rows]
        loads = (centred @ q[..., None])[..., 0]
        tau = (1.0 + loads) * self._load[rows, None]
        solved = self.bits.at(rows).solved(centred, self.penalty[rows])
        psi = solved - q[:, None] * tau[..., None]
        weight, ends = self._shares
        first = weight[rows, None] - (psi @ ends[rows, :, None])[..., 0]
        return np.concatenate([first[..., None], psi], axis=-1)

    @property
    def mean_influence(self) -> Array:
        """The mean E r ψ of samples of the weighted law, (n, 1 + D).

        It is 0 without ridge and without the row itself:

        E r = −t ω / (N + ω) and E r (z − α) = S (β − b).
        """
        level = -self.row_residual / self._whole
        off = self.beta - self.coefficients
        slopes = self.bits.covariances(off)
        tau = (level + (self.pull * slopes).sum(axis=1)) * self._load
        psi = self._solved(slopes) - self.pull * tau[:, None]
        weight, ends = self._shares
        first = weight * level - (ends * psi).sum(axis=1)
        return np.concatenate([first[:, None], psi], axis=1)

    @property
    def _load(self) -> Values:
        """The factor ω / ((N + ω)(1 + h)), (n,)."""
        return self.row * (1.0 / (self._whole * (1.0 + self.leverage)))

    @property
    def _shares(self) -> tuple[Values, Array]:
        """The weight share of random samples, and the mean bits of all samples."""
        weighted = self.total[:, None] * self.alpha + self.row
        return self.total / self._whole, weighted / self._whole[:, None]


# ---- The deviation of one run of LIME from the mean of such runs


RUNS_AT_ONCE: Final = Budget(2**26)
"""A separate budget: rounding of matrix products depends on the rows in a block."""


def single_run(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,  # shape (n, D)
    fit: FiniteFit,
    *,
    rng: np.random.Generator,
    common: CommonDraws | None,
) -> SingleRun:
    """The mean and covariance of the coefficients of one run around each row.

    Cov b = (n − 1) A⁻¹ Cov(π r Z) A⁻¹ (the sandwich), r = f − b_0 − bᵀz; the row itself
    has no variance. E π² h = C(ν/√2) E h, sampled under the law of the width ν/√2.
    """
    n_columns = points.shape[1]
    (uniforms,) = stratified_uniforms(1, RUN_DRAWS, n_columns, rng)
    of_squares = law.squared_widths(law.widths(points))
    second = np.empty((len(points), n_columns + 1, n_columns + 1))
    shared = np.zeros(len(points), bool)
    if common is not None:
        shared = common.enough(points, of_squares)
        indices = np.flatnonzero(shared)
        for block in RUNS_AT_ONCE.blocks(len(indices), 24 * common.samples.size):
            rows = indices[block]
            bits = common.bits(points[rows])
            f = np.broadcast_to(common.values, bits.shape[:2])
            weights = common.weights(points[rows], of_squares[rows]).T
            second[rows] = second_moments(fit, rows, bits, f, weights)
    alone = np.flatnonzero(~shared)
    even = np.full(1, 1.0 / len(uniforms))
    for block, draws, f in values_around(
        evaluate, law, points[alone], of_squares[alone], uniforms, RUNS_AT_ONCE
    ):
        second[alone[block]] = second_moments(fit, alone[block], draws.bits, f, even)
    return run_of(fit, second, law.log_weights(points, of_squares))


def second_moments(
    fit: FiniteFit,
    rows: Indices,  # shape (m,)
    bits: Array,  # shape (m, S, D)
    f: Array,  # shape (m, S)
    weights: Array,  # shape (m, S)
) -> Array:
    """E r² ψ ψᵀ (m, D + 1, D + 1) from draws of the law with weights π²."""
    b_0 = fit.intercept[rows]
    b = fit.coefficients[rows]
    r = f - b_0[:, None] - (bits @ b[..., None])[..., 0]
    moved = fit.influences(rows, bits) * r[..., None]
    return np.swapaxes(moved * weights[..., None], 1, 2) @ moved


def run_of(fit: FiniteFit, second: Array, log_squares: Values) -> SingleRun:
    """The run with second moments E r² ψ ψᵀ under the law of π², and log E π²."""
    # E π² / (E π)²
    factor = np.exp(log_squares - 2.0 * fit.bits.log_weight)
    means = fit.mean_influence
    products = means[:, :, None] * means[:, None, :]
    covariance = (factor[:, None, None] * second - products) / fit.n_drawn
    return SingleRun(fit.n_samples, fit.coefficients, fit.intercept, covariance)


# ---- The mean of LIME with n samples: the ridge, and the row itself as a sample


def expected(
    limits: Limits,
    values: Values | None,  # shape (n,)
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> FiniteFit:
    """The mean of runs of ``lime`` with n samples, to the first order in 1 / n.

    It matched the package within noise down to a total weight n C of about 1e-3.
    """
    row_values = values if first_row else None
    return FiniteFit(
        limits.coefficients, limits.mean, limits, row_values, n_samples, ridge
    )


def first_row_shift(limits: Limits, values: Values, n_samples: int) -> Array:
    """The shift (f(ξ) − g(ξ)) / (n C α_j) of β_j by the row itself as a sample."""
    per_weight = (values - limits.at_row) * np.exp(-limits.log_weight) / n_samples
    alpha = limits.alpha
    moves = (alpha > 0.0) & (alpha < 1.0)
    return quotient(per_weight[:, None], alpha, where=moves)


# ---- LIME on texts: the same equations, with exchangeable bits


WordDraws: TypeAlias = tuple[Mask, Values]
"""Sets of remaining words (S, d), and values of f there (S,)."""

_ONE: Final = np.zeros(1, np.intp)


def expected_run(
    function: SizeMeans,
    law: TextLaw,
    value: float,  # f of the document
    n_samples: int,
) -> FiniteFit:
    """The mean of runs of ``lime`` on a text, to the first order in d / n."""
    limits = WordRegression(function).at(np.array([law.bandwidth]))
    bits = law.bits(function.n_words)
    mean = limits.intercept + bits.share * limits.coefficients.sum(axis=1)
    values = np.array([value])
    return FiniteFit(limits.coefficients, mean, bits, values, n_samples)


def single_text_run(
    function: SetFunction,
    law: TextLaw,
    fit: FiniteFit,
    *,
    draws: WordDraws | None = None,
    n_draws: int = RUN_DRAWS,
) -> SingleRun:
    """The mean and covariance of the coefficients of one run of LIME on a text.

    As :func:`single_run`, from random sets of words or given ones.
    """
    d = function.n_words
    label = f"covariances of {d + 1} coefficients"
    require_memory(6 * 8 * (d + 1) ** 2, label, "explain a shorter text")
    log_squares = 2.0 * law.log_weights(d)
    if draws is None:
        rng = np.random.default_rng(0)
        sizes = stratified_sizes(softmax(log_squares), n_draws, rng)
        bits = ~random_sets(d, d - sizes, rng)
        draws = bits, function.value(bits)
    sets, values = draws
    shares = _set_weights(sets, log_squares)
    second = np.zeros((1, d + 1, d + 1))
    for block in RUNS_AT_ONCE.blocks(len(shares), 24 * (d + 1)):
        z = sets[None, block].astype(float)
        second += second_moments(fit, _ONE, z, values[None, block], shares[None, block])
    log_mean = logsumexp(log_squares, keepdims=True) - np.log(d)
    return run_of(fit, second, log_mean)


def stratified_sizes(shares: Values, n_draws: int, rng: np.random.Generator) -> Indices:
    """Random sizes of sets, stratified by their shares."""
    even = (np.arange(n_draws) + rng.random()) / n_draws
    sizes = np.searchsorted(shares.cumsum(), even, side="right")
    # the last number may be beyond the sum by rounding
    return np.minimum(sizes, np.flatnonzero(shares)[-1])


def _set_weights(bits: Mask, log_shares: Values) -> Values:
    """The weight of each set, by the share of its size, (S,), with the sum 1."""
    sizes = bits.sum(axis=1)
    return softmax(log_shares[sizes] - np.log(np.bincount(sizes)[sizes]))
