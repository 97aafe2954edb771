"""LIME with n samples, on rows or texts: mean coefficients, their noise, ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np
from scipy.special import gammaln, logsumexp

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.checks import read_count, read_nonnegative
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, require_memory
from propopt.lime.exact_limits import ExchangeableBits, Limits
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.sampled_limits import (
    RUN_DRAWS,
    CommonDraws,
    stratified_uniforms,
    values_around,
)
from propopt.lime.text.word_limits import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import (
    SetFunction,
    SizeMeans,
    all_sets,
    random_sets,
)


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
        count = n_samples * (deviations / target) ** 2
        return np.asarray(np.ceil(np.maximum(1.0, count)))


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
        read_run(self.n_samples, self.ridge, self.values is not None)

    @property
    def n_drawn(self) -> int:
        """The number of random samples, without the row itself."""
        return self.n_samples - (self.values is not None)

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
        return np.asarray(self.row * (loads / self._whole))

    @cached_property
    def row_residual(self) -> Values:
        """The residual ω t of the fit at the row itself, (n,)."""
        values = self.mean if self.values is None else self.values
        rises = (1.0 - self.alpha) * self.shrunk
        off = values - self.mean - rises.sum(axis=1)
        return np.asarray(self.row * (off / (1.0 + self.leverage)))

    @cached_property
    def coefficients(self) -> Array:
        """The mean coefficients b_1, ..., b_D of runs, (n, D)."""
        raised = self.pull * (self.row_residual / self._whole)[:, None]
        return np.asarray(self.shrunk + raised)

    @cached_property
    def intercept(self) -> Values:
        """The mean intercept b_0 of runs, (n,)."""
        pulls = (self.alpha * self.coefficients).sum(axis=1)
        return np.asarray(self.mean - pulls + self.row_residual / self._whole)

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
        return np.asarray(self.row * (1.0 / (self._whole * (1.0 + self.leverage))))

    @property
    def _shares(self) -> tuple[Values, Array]:
        """The weight share of random samples, and the mean bits of all samples."""
        weighted = self.total[:, None] * self.alpha + self.row
        means = weighted / self._whole[:, None]
        return np.asarray(self.total / self._whole), np.asarray(means)


# ---- The deviation of one run of LIME from the mean of such runs


RUNS_AT_ONCE: Final = Budget(2**26)
"""A separate budget: rounding of matrix products depends on the rows in a block."""


def single_run(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,  # shape (n, D)
    fit: FiniteFit,
    *,
    n_draws: int = RUN_DRAWS,
    rng: np.random.Generator | None = None,
    common: CommonDraws | None = None,
) -> SingleRun:
    """The mean and covariance of the coefficients of one run around each row.

    Cov b = (n − 1) A⁻¹ Cov(π r Z) A⁻¹ (the sandwich), r = f − b_0 − bᵀz; the row itself
    has no variance. E π² h = C(ν/√2) E h, sampled under the law of the width ν/√2.
    """
    generator = np.random.default_rng(0) if rng is None else rng
    n_columns = points.shape[1]
    size = read_count(n_draws, "n_draws")
    (uniforms,) = stratified_uniforms(1, size, n_columns, generator)
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
    neighbourhood = law, points[alone], of_squares[alone], uniforms
    for block, draws, f in values_around(evaluate, *neighbourhood, RUNS_AT_ONCE):
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
    return np.asarray(np.swapaxes(moved * weights[..., None], 1, 2) @ moved)


def run_of(fit: FiniteFit, second: Array, log_squares: Values) -> SingleRun:
    """The run with second moments E r² ψ ψᵀ under the law of π², and log E π²."""
    # E π² / (E π)²
    factor = np.exp(log_squares - 2.0 * fit.bits.log_weight)
    means = fit.mean_influence
    products = means[:, :, None] * means[:, None, :]
    covariance = (factor[:, None, None] * second - products) / fit.n_drawn
    return SingleRun(fit.n_samples, fit.coefficients, fit.intercept, covariance)


# ---- The mean of LIME with n samples: the ridge, and the row itself as a sample


def read_run(n_samples: int, ridge: float, first_row: bool) -> None:
    """Refuse runs without a random sample, and a ridge below 0."""
    read_nonnegative(ridge, "ridge")
    if read_count(n_samples, "n_samples") < 1 + first_row:
        raise InvalidInput(
            "n_samples: expected at least 2, the row itself and a random one"
        )


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
    if first_row and values is None:
        raise InvalidInput(
            "values: expected f at each row, which is LIME's first sample, got None"
        )
    row_values = values if first_row else None
    return FiniteFit(
        limits.coefficients, limits.mean, limits, row_values, n_samples, ridge
    )


def first_row_shift(limits: Limits, values: Values, n_samples: int) -> Array:
    """The shift (f(ξ) − g(ξ)) / (n C α_j) of β_j by the row itself as a sample."""
    per_weight = (values - limits.at_row) * np.exp(-limits.log_weight) / n_samples
    alpha = limits.alpha
    moves = (alpha > 0.0) & (alpha < 1.0)
    shifts = np.zeros(alpha.shape)
    return np.divide(per_weight[:, None], alpha, out=shifts, where=moves)


# ---- The columns that a run names


def ranking_chances(
    run: SingleRun,
    coefficients: Attributions,  # shape (n, D)
    top: int = 3,
    n_draws: int = 4000,
) -> Values:
    """The probability that a run of n samples names the largest coefficients, (n,).

    From draws of their normal limit law: 4000 give an error of at most 0.8 %.
    """
    shape = n_draws, coefficients.shape[1]
    normal = np.random.default_rng(0).standard_normal(shape)
    chances = []
    for beta, mean, covariance in zip(
        coefficients, run.coefficients, run.covariance[:, 1:, 1:], strict=True
    ):
        # Rᵀ R is the covariance, which may be singular
        squares, directions = np.linalg.eigh(covariance)
        root = (directions * np.sqrt(np.maximum(squares, 0.0))).T
        count = min(top, int(np.count_nonzero(beta)))
        sizes = np.abs(np.vstack([beta, mean + normal @ root]))
        largest = np.argsort(-sizes, axis=1, kind="stable")[:, :count]
        largest.sort(axis=1)
        chances.append((largest[1:] == largest[0]).all(axis=1).mean())
    return np.array(chances)


# ---- Sets of words with values, and their weights in means over all samples


WordDraws: TypeAlias = tuple[Mask, Values]
"""Sets of remaining words (S, d), and values of f there (S,)."""


def _even_sets(log_shares: Values, n_draws: int, rng: np.random.Generator) -> Mask:
    """Uniform random sets with sizes stratified by their shares (d + 1,)."""
    shares = np.exp(log_shares - log_shares.max())
    ends = np.cumsum(shares) / shares.sum()
    even = (np.arange(read_count(n_draws, "n_draws")) + rng.random()) / n_draws
    sizes = np.minimum(np.searchsorted(ends, even), np.flatnonzero(shares).max())
    d = len(shares) - 1
    return ~random_sets(d, d - sizes, rng)


def _set_weights(bits: Mask, log_shares: Values) -> Values:
    """The weight of each set, by the share of its size, (S,), with the sum 1."""
    sizes = bits.sum(axis=1)
    counts = np.bincount(sizes, minlength=len(log_shares))
    logs = np.where(counts > 0, log_shares, -np.inf)
    if not np.isfinite(logs).any():
        raise InvalidInput(
            "draws: all draws have numbers of words with a weight of zero"
        )
    each = np.exp(logs - logs.max()) / np.maximum(counts, 1)
    return np.asarray(each[sizes] / each[sizes].sum())


# ---- Effective weights of samples in the mean of runs: less for high leverage


_MOST_STEPS: Final = 20_000
_SETTLED: Final = 1e-13

_HEAVIEST: Final = float(np.log(1e140))
"""The largest log ratio of the document's weight to others with a finite square."""


def effective_log_weights(
    law: TextLaw,
    n_words: int,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> Values:
    """The log weights of samples in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z pulls the fit to itself, so that its weight
    is π̃ = π / (1 + π q), A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D, by fixed-point steps.
    """
    read_run(n_samples, ridge, first_row)
    if ridge == 0.0 and n_samples <= n_words + 1:
        raise InvalidInput(
            f"n_samples: expected more than {n_words + 1}, the number of coefficients, "
            f"as there is no ridge, got {n_samples}"
        )
    logs = law.log_weights(n_words)
    ratio = np.ones(n_words + 1)
    for _ in range(_MOST_STEPS):
        before = ratio
        system = _whole_run(logs + np.log(ratio), n_samples, ridge, first_row)
        ratio = 1.0 / (1.0 + _pulls(*system, logs))
        if np.abs(ratio - before).max() < _SETTLED:
            break
    return np.asarray(logs + np.log(ratio))


def _whole_run(
    log_weights: Values, n_samples: int, ridge: float, first_row: bool
) -> tuple[ExchangeableBits, float]:
    """The bits of all samples of a run, and the ridge over their weight T."""
    logs = log_weights + np.log((n_samples - first_row) / (len(log_weights) - 1.0))
    if first_row:
        logs[-1] = min(0.0, logs.max() + _HEAVIEST)
    bits = ExchangeableBits(logs[None])
    with np.errstate(divide="ignore"):
        log_penalty = float(np.log(ridge) - bits.log_weight[0])
    return bits, float(np.exp(min(log_penalty, _HEAVIEST)))


def _pulls(bits: ExchangeableBits, penalty: float, log_weights: Values) -> Values:
    """The leverage π E_m[Zᵀ A⁻¹ Z] of samples with weights π, (d + 1,).

    Zᵀ A⁻¹ Z = (1 + (m − m̄)² / (d (L + ρ)) + m (d − m) / (d (P + ρ))) / T with the
    eigenvalues L and P of the covariance of bits, along (1, ..., 1) and orthogonal.
    """
    weights = np.exp(log_weights - bits.log_weight[0])
    along = bits.along[0] + penalty
    apart = bits.apart[0] + penalty
    of_level = bits.off_mean[0] ** 2 / (bits.n_words * along)
    return np.asarray(weights * (1.0 + of_level + bits.spread / apart))


def expected_run(
    function: SizeMeans,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> FiniteFit:
    """The mean of runs of the package ``lime`` on a text, with n samples.

    It solves the normal equations of :class:`FiniteFit` with effective weights.
    """
    value = float(function.mean_by_size()[-1]) if value is None else value
    logs = effective_log_weights(law, function.n_words, n_samples, ridge, first_row)
    limits = WordRegression(function).weighed(np.exp(logs - logs.max())[None])
    bits = ExchangeableBits(logs[None] - np.log(len(logs) - 1.0))
    return FiniteFit(
        limits.coefficients,
        limits.intercept + bits.share * limits.coefficients.sum(axis=1),
        bits,
        np.array([value]) if first_row else None,
        n_samples,
        ridge,
    )


# ---- The deviation of one run of LIME on a text from the mean of such runs


_MOST_USED: Final = 12
"""With at most so many used words the covariance is a sum, and not sampled."""

_ONE: Final = np.zeros(1, np.intp)


def single_text_run(
    function: SetFunction,
    fit: FiniteFit,
    *,
    draws: WordDraws | None = None,
    n_draws: int = RUN_DRAWS,
) -> SingleRun:
    """The mean and covariance of the coefficients of one run of LIME on a text.

    Like :func:`single_run`, with effective weights and, in r², the variance of the fit
    itself, so that it holds for few samples too.
    """
    d = function.n_words
    label = f"covariances of {d + 1} coefficients"
    require_memory(6 * 8 * (d + 1) ** 2, label, "explain a shorter text")
    assert isinstance(fit.bits, ExchangeableBits)
    # of sizes under π², and E π²
    logs = fit.bits.log_sizes[0] + np.log(d)
    log_squares = logsumexp(2.0 * logs) - np.log(d)
    used = used_words(function)
    if draws is None and len(used) <= _MOST_USED:
        second = _summed(fit, function, used, 2.0 * logs - np.log(d) - log_squares)
    else:
        if draws is None:
            bits = _even_sets(2.0 * logs, n_draws, np.random.default_rng(0))
            draws = bits, function.value(bits)
        sets, values = draws
        shares = _set_weights(sets, 2.0 * logs)
        second = np.zeros((d + 1, d + 1))
        for block in RUNS_AT_ONCE.blocks(len(shares), 24 * (d + 1)):
            z = sets[None, block].astype(float)
            f = values[None, block]
            second += second_moments(fit, _ONE, z, f, shares[None, block])[0]
    run = run_of(fit, second[None], np.array([log_squares]))
    whole, penalty = _whole_run(logs, fit.n_samples, fit.ridge, bool(fit.row))
    counts = fit.n_drawn / d * np.exp(2.0 * (logs - whole.log_weight[0]))
    run.covariance[0] += _scatter_of_fit(whole, penalty, counts, run.covariance[0])
    return run


def used_words(function: SetFunction) -> Indices:
    """The words that f depends on, (u,): all words if that is unknown."""
    if not isinstance(function, Conjunctions):
        return np.arange(function.n_words)
    return function.columns


def _summed(
    fit: FiniteFit,
    function: SetFunction,
    used: Indices,
    log_shares: Values,  # of sizes, (d + 1,)
) -> Array:
    """E r² ψ ψᵀ over all sets of used words, with 0, ..., R of the R other words."""
    d = function.n_words
    rest = np.setdiff1d(np.arange(function.n_words), used)
    ends = np.concatenate([np.zeros((1, d)), np.eye(d)])
    psi = fit.influences(_ONE, ends[None])[0]
    psi[1:] -= psi[0]
    b = fit.coefficients[0]
    R = len(rest)
    sets = np.zeros((2 ** len(used), d), bool)
    sets[:, used] = all_sets(len(used))
    bits = sets[:, used] * 1.0
    off = function.value(sets) - (fit.intercept[0] + bits @ b[used])
    slope = float(b[rest].mean()) if R else 0.0
    # Σ over k of the others, w r² of each set, times 1, E z and E z z'
    moments = np.zeros((3, len(sets)))
    for k in range(R + 1):
        sizes = sets.sum(axis=1) + k
        chances = log_shares[sizes] + _log_choose(R, k) - _log_choose(d, sizes)
        each = np.exp(chances) * (off - slope * k) ** 2
        one = k / max(R, 1)
        moments += np.outer([1.0, one, one * (k - 1.0) / max(R - 1, 1)], each)
    Z = np.column_stack([np.ones(len(bits)), bits])
    second = np.empty((1 + d, 1 + d))
    used_indices = np.concatenate([[0], 1 + used])
    others = 1 + rest
    second[np.ix_(used_indices, used_indices)] = (Z * moments[0][:, None]).T @ Z
    second[np.ix_(used_indices, others)] = (moments[1] @ Z)[:, None]
    second[np.ix_(others, used_indices)] = moments[1] @ Z
    second[np.ix_(others, others)] = moments[2].sum()
    second[others, others] = moments[1].sum()
    return np.asarray(psi.T @ second @ psi)


def _log_choose(n: int, k: int | Indices) -> Values:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _scatter_of_fit(
    bits: ExchangeableBits, penalty: float, counts: Values, covariance: Array
) -> Array:
    """The variance that the scatter of the fit itself adds, with few samples.

    The residual of a sample is r plus the deviation of the fit from its mean, with the
    variance s_m = E_m[Zᵀ Cov Z]. So Cov = C + Σ_m W_m s_m E_m[A⁻¹ Z Zᵀ A⁻¹] for the
    covariance C from residuals alone, and s follows from four sums over sizes.
    """
    d = bits.n_words
    share = bits.share[0]
    off = bits.off_mean[0]
    along = bits.along[0] + penalty
    apart = bits.apart[0] + penalty
    m = np.arange(d + 1.0)
    words = float(np.trace(covariance)) - covariance[0, 0]
    pairs = float(covariance[1:, 1:].sum()) - words
    # E_m[Zᵀ C Z]
    squares = covariance[0, 0] + m / d * (2.0 * covariance[0, 1:].sum() + words)
    squares += m / d * (m - 1.0) / (d - 1.0) * pairs
    # E_m E_m' (Zᵀ A⁻¹ Z')² = (1 + x_m x_m')² + y_m y_m', over T²
    x = off / np.sqrt(d * along)
    y = bits.spread / (np.sqrt(d - 1.0) * apart)
    F = np.stack([np.ones(d + 1), np.sqrt(2.0) * x, x**2, y], axis=1)
    system = np.eye(4) - F.T @ (counts[:, None] * F)
    c = counts * (squares + F @ np.linalg.solve(system, F.T @ (counts * squares)))
    # A⁻¹ Z: its intercept, its part along (1, ..., 1), and the orthogonal part
    first = 1.0 - share * off / along
    level = off / (np.sqrt(d) * along)
    rest = float(c @ bits.spread) / ((d - 1.0) * apart**2)
    other = (float(c @ level**2) - rest) / d
    across = float(c @ (first * level)) / np.sqrt(d)
    return exchangeable_matrix(d, float(c @ first**2), across, other + rest, other)


def exchangeable_matrix(
    n_words: int, zero: float, one: float, two: float, three: float
) -> Array:
    """The matrix (d + 1, d + 1) of an intercept and exchangeable words."""
    result = np.full((n_words + 1, n_words + 1), three)
    np.fill_diagonal(result, two)
    result[0] = one
    result[:, 0] = one
    result[0, 0] = zero
    return result
