"""What n samples make of limits, of rows or texts: mean, scatter, rank, selection."""

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
from propopt.lime.text.word_limits import TextLaw, WordCoefficients, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import (
    SetFunction,
    SizeMeans,
    all_sets,
    random_sets,
)


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
        squares = np.diagonal(self.covariance, axis1=1, axis2=2)[:, 1:]
        return np.sqrt(np.maximum(squares, 0.0))


def required_samples(n_samples: int, deviations: Array, wanted: float) -> Array:
    """N (SE(n) / s)² rounded up, of the deviations' shape: errors fall with 1 / √n."""
    with np.errstate(over="ignore"):
        needed = n_samples * (deviations / wanted) ** 2
        return np.asarray(np.ceil(np.maximum(1.0, needed)))


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


# ---- The fit to n samples in their mean, solved by hand, for many rows at once


_LEAST: Final = 1e-300
"""Of λ / N: columns that nothing else tells apart have equal parts."""


@final
@dataclass(frozen=True, eq=False)
class FiniteFit:
    """Normal equations of n samples, each sum in them replaced by its mean.

    ((n − 1) Σ + v vᵀ + λ D) b = (n − 1) Γ + v f(ξ),  v = 1, D = diag(0, 1, ..., 1)

    With N = (n − 1) C, S = Cov_Q(z), R = (S + λ/N)⁻¹, u = 1 − α and the weight ω of
    the row, 1 or 0, this gives

    b = R S β + q t ω / (N + ω),  b_0 = E_Q f − αᵀ b + t ω / (N + ω),  q = R u,
    t = (f(ξ) − E_Q f − uᵀ R S β) / (1 + h),  h = uᵀ q ω / (N + ω).

    R S β is what ridge leaves of the coefficients, and t is what the row itself is off
    the fit. Bits of tables are independent and those of texts exchangeable, so that R
    is known by hand. Nothing is divided by N, so that weights may underflow.
    """

    beta: Attributions  # (n, D): β, of infinitely many
    mean: Values  # (n,): E_Q f
    bits: Limits | ExchangeableBits  # their moments: α, S and log C
    values: Values | None  # (n,): f(ξ); None where the row itself is no sample
    n_samples: int  # samples, the row itself included where it is one
    ridge: float = 1.0  # λ ≥ 0, on all coefficients but the intercept

    def __post_init__(self) -> None:
        read_run(self.n_samples, self.ridge, self.values is not None)

    @property
    def n_drawn(self) -> int:
        """Samples that are drawn."""
        return self.n_samples - (self.values is not None)

    @property
    def row(self) -> float:
        """ω, the weight of the row itself: 1, or 0 where it is no sample."""
        return float(self.values is not None)

    @cached_property
    def total(self) -> Values:
        """N, the mean weight of all that is drawn, (n,), never quite 0."""
        total = np.exp(np.log(self.n_drawn) + self.bits.log_weight)
        return np.maximum(total, _LEAST)

    @cached_property
    def penalty(self) -> Values:
        """λ / N, (n,), never quite 0."""
        log_total = np.log(self.n_drawn) + self.bits.log_weight
        with np.errstate(over="ignore", divide="ignore"):
            per_weight = np.exp(np.log(self.ridge) - log_total)
        return np.maximum(per_weight, _LEAST)

    @cached_property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""
        # sums are the same to the last digit, however limits lie in memory
        return np.ascontiguousarray(self.bits.alpha)

    @cached_property
    def pull(self) -> Array:
        """q, (n, D)."""
        return self._solved(1.0 - self.alpha)

    @property
    def shrinkage(self) -> Array:
        """What ridge leaves of a coefficient, (n, D): the diagonal of R S."""
        return self.bits.shrinkage(self.penalty)

    @cached_property
    def left_by_ridge(self) -> Array:
        """R S β, (n, D)."""
        return self._solved(self.bits.covariances(self.beta))

    def _solved(self, vectors: Array) -> Array:
        """R x of vectors (n, D)."""
        result = self.bits.solved(vectors[:, None], self.penalty)
        return np.ascontiguousarray(result[:, 0])

    @property
    def _whole(self) -> Values:
        """N + ω, (n,)."""
        return self.total + self.row

    @cached_property
    def leverage(self) -> Values:
        """h, (n,)."""
        loads = (self.pull * (1.0 - self.alpha)).sum(axis=1)
        return np.asarray(self.row * (loads / self._whole))

    @cached_property
    def left_at_row(self) -> Values:
        """ω t, what the fit leaves of f(ξ), (n,)."""
        values = self.mean if self.values is None else self.values
        rises = (1.0 - self.alpha) * self.left_by_ridge
        off = values - self.mean - rises.sum(axis=1)
        return np.asarray(self.row * (off / (1.0 + self.leverage)))

    @cached_property
    def coefficients(self) -> Array:
        """b_1, ..., b_D, (n, D)."""
        raised = self.pull * (self.left_at_row / self._whole)[:, None]
        return np.asarray(self.left_by_ridge + raised)

    @cached_property
    def intercept(self) -> Values:
        """b_0, (n,)."""
        pulls = (self.alpha * self.coefficients).sum(axis=1)
        return np.asarray(self.mean - pulls + self.left_at_row / self._whole)

    def influences(self, rows: slice | Indices, bits: Array) -> Array:
        """N A⁻¹ Z of samples with bits (m, S, D) around some rows, (m, S, 1 + D).

        A sample with weight π and residual r moves (b_0, ..., b_D) by π r A⁻¹ Z, with

        ψ = R (z − α) − q τ,  τ = ω (1 + qᵀ (z − α)) / ((N + ω) (1 + h)),
        ψ_0 = (N − Σ (N α_j + ω) ψ_j) / (N + ω).
        """
        centred = bits - self.alpha[rows, None]
        q = self.pull[rows]
        loads = (centred @ q[..., None])[..., 0]
        tau = (1.0 + loads) * self._load[rows, None]
        own = self.bits.at(rows).solved(centred, self.penalty[rows])
        psi = own - q[:, None] * tau[..., None]
        weight, ends = self._shares
        first = weight[rows, None] - (psi @ ends[rows, :, None])[..., 0]
        return np.concatenate([first[..., None], psi], axis=-1)

    @property
    def mean_influence(self) -> Array:
        """E r ψ for samples of the weighted law, (n, 1 + D); 0 without ridge and row.

        E r = −t ω / (N + ω) and E r (z − α) = S (β − b).
        """
        level = -self.left_at_row / self._whole
        off = self.beta - self.coefficients
        slopes = self.bits.covariances(off)
        tau = (level + (self.pull * slopes).sum(axis=1)) * self._load
        psi = self._solved(slopes) - self.pull * tau[:, None]
        weight, ends = self._shares
        first = weight * level - (ends * psi).sum(axis=1)
        return np.concatenate([first[:, None], psi], axis=1)

    @property
    def _load(self) -> Values:
        """ω / ((N + ω)(1 + h)), (n,)."""
        return np.asarray(self.row * (1.0 / (self._whole * (1.0 + self.leverage))))

    @property
    def _shares(self) -> tuple[Values, Array]:
        """What the draws have of all weight, and the mean of bits over all samples."""
        weighted = self.total[:, None] * self.alpha + self.row
        means = weighted / self._whole[:, None]
        return np.asarray(self.total / self._whole), np.asarray(means)


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
    *,
    n_draws: int = RUN_DRAWS,
    rng: np.random.Generator | None = None,
    common: CommonDraws | None = None,
) -> SingleRun:
    """Mean and covariance of the coefficients of one run of LIME with n samples.

    Cov b = (n − 1) A⁻¹ Cov(π r Z) A⁻¹ (the sandwich), r = f − b_0 − bᵀz; the row does
    not scatter. E π² h = C(ν/√2) E h under the law of the width ν/√2, which is drawn.
    """
    fit = expected(limits, values, n_samples, ridge, first_row)
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
        for some in RUNS_AT_ONCE.blocks(len(indices), 24 * common.samples.size):
            rows = indices[some]
            bits = common.bits(points[rows])
            f = np.broadcast_to(common.values, bits.shape[:2])
            weights = common.weights(points[rows], of_squares[rows]).T
            second[rows] = second_moments(fit, rows, bits, f, weights)
    alone, even = np.flatnonzero(~shared), np.full(1, 1.0 / len(uniforms))
    around = law, points[alone], of_squares[alone], uniforms
    for some, draws, f in values_around(evaluate, *around, RUNS_AT_ONCE):
        second[alone[some]] = second_moments(fit, alone[some], draws.bits, f, even)
    return run_of(fit, second, law.log_weights(points, of_squares))


def second_moments(
    fit: FiniteFit,
    rows: Indices,  # shape (m,)
    bits: Array,  # shape (m, S, D)
    f: Array,  # shape (m, S)
    weights: Array,  # shape (m, S)
) -> Array:
    """E r² ψ ψᵀ (m, D + 1, D + 1) from draws of the law that is weighted by π²."""
    b_0, b = fit.intercept[rows], fit.coefficients[rows]
    r = f - b_0[:, None] - (bits @ b[..., None])[..., 0]
    moved = fit.influences(rows, bits) * r[..., None]
    return np.asarray(np.swapaxes(moved * weights[..., None], 1, 2) @ moved)


def run_of(fit: FiniteFit, second: Array, log_squares: Values) -> SingleRun:
    """A run, from E r² ψ ψᵀ (n, D + 1, D + 1) under the law of π², and log E π²."""
    # E π² / (E π)²
    factor = np.exp(log_squares - 2.0 * fit.bits.log_weight)
    means = fit.mean_influence
    products = means[:, :, None] * means[:, None, :]
    covariance = (factor[:, None, None] * second - products) / fit.n_drawn
    return SingleRun(fit.n_samples, fit.coefficients, fit.intercept, covariance)


# ---- What LIME gives with n samples, in its mean: ridge, and the row as a sample


def read_run(n_samples: int, ridge: float, first_row: bool) -> None:
    """Refuse runs without a sample that is drawn, and a ridge below 0."""
    read_nonnegative(ridge, "ridge")
    if read_count(n_samples, "n_samples") < 1 + first_row:
        raise InvalidInput(
            "n_samples: expected at least 2, the row itself and one more"
        )


def expected(
    limits: Limits,
    values: Values | None,  # shape (n,)
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> FiniteFit:
    """What ``lime`` gives with n samples, to the first order in 1 / n.

    This was within noise of the package down to a total weight n C of about 1e-3.
    """
    if first_row and values is None:
        raise InvalidInput(
            "values: where the row itself is a sample, give f at the rows"
        )
    own = values if first_row else None
    return FiniteFit(limits.coefficients, limits.mean, limits, own, n_samples, ridge)


def first_row_shift(limits: Limits, values: Values, n_samples: int) -> Array:
    """δβ_j = (f(ξ) − g(ξ)) / (n C α_j), g(ξ) = Σ β: what the row as a sample moves."""
    per_weight = (values - limits.at_row) * np.exp(-limits.log_weight) / n_samples
    alpha = limits.alpha
    moves = (alpha > 0.0) & (alpha < 1.0)
    shifts = np.zeros(alpha.shape)
    return np.divide(per_weight[:, None], alpha, out=shifts, where=moves)


# ---- Which columns a run names


def ranking_chances(
    run: SingleRun,
    coefficients: Attributions,  # shape (n, D)
    top: int = 3,
    n_draws: int = 4000,
) -> Values:
    """How probable a run of n samples names the columns of the largest β, (n,).

    By draws of their normal limit law: 4000 tell it to 0.8 % or better.
    """
    shape = n_draws, coefficients.shape[1]
    normal = np.random.default_rng(0).standard_normal(shape)
    chances = []
    for beta, mean, covariance in zip(
        coefficients, run.coefficients, run.covariance[:, 1:, 1:], strict=True
    ):
        # Rᵀ R is the covariance, whatever directions do not scatter
        squares, directions = np.linalg.eigh(covariance)
        root = (directions * np.sqrt(np.maximum(squares, 0.0))).T
        n_told = min(top, int(np.count_nonzero(beta)))
        sizes = np.abs(np.vstack([beta, mean + normal @ root]))
        largest = np.argsort(-sizes, axis=1, kind="stable")[:, :n_told]
        largest.sort(axis=1)
        chances.append((largest[1:] == largest[0]).all(axis=1).mean())
    return np.array(chances)


# ---- Sets of words with values, and how much each counts in means over all samples


WordDraws: TypeAlias = tuple[Mask, Values]
"""Sets of words (S, d), which are kept, and values of f there (S,)."""


def _even_sets(log_shares: Values, n_draws: int, rng: np.random.Generator) -> Mask:
    """Uniform sets, evenly of the sizes that count; log_shares (d + 1,)."""
    shares = np.exp(log_shares - log_shares.max())
    ends = np.cumsum(shares) / shares.sum()
    even = (np.arange(read_count(n_draws, "n_draws")) + rng.random()) / n_draws
    sizes = np.minimum(np.searchsorted(ends, even), np.flatnonzero(shares).max())
    d = len(shares) - 1
    return ~random_sets(d, d - sizes, rng)


def _counts(bits: Mask, log_shares: Values) -> Values:
    """What each set stands for, by the shares of all of its size, (S,), in all 1."""
    sizes = bits.sum(axis=1)
    there = np.bincount(sizes, minlength=len(log_shares))
    logs = np.where(there > 0, log_shares, -np.inf)
    if not np.isfinite(logs).any():
        raise InvalidInput("draws: none keeps as many words as samples with weight")
    each = np.exp(logs - logs.max()) / np.maximum(there, 1)
    return np.asarray(each[sizes] / each[sizes].sum())


# ---- How much samples count in the mean of runs: less where they pull the fit


_MOST_STEPS: Final = 20_000
_SETTLED: Final = 1e-13

_HEAVIEST: Final = float(np.log(1e140))
"""Of the document's weight over the largest: the square of more is no number."""


def effective_log_weights(
    law: TextLaw,
    n_words: int,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
) -> Values:
    """Log weights that samples have in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z moves the fit to itself, and counts as π̃ =
    π / (1 + π q), A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D: found by fixed-point steps.
    """
    read_run(n_samples, ridge, first_row)
    if ridge == 0.0 and n_samples <= n_words + 1:
        raise InvalidInput(
            f"n_samples: without ridge expected more than {n_words + 1} for as many "
            f"coefficients, got {n_samples}"
        )
    logs, ratio = law.log_weights(n_words), np.ones(n_words + 1)
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
    """Bits of all samples of a run, and what ridge is over their weight T."""
    logs = log_weights + np.log((n_samples - first_row) / (len(log_weights) - 1.0))
    if first_row:
        logs[-1] = min(0.0, logs.max() + _HEAVIEST)
    bits = ExchangeableBits(logs[None])
    with np.errstate(divide="ignore"):
        log_penalty = float(np.log(ridge) - bits.log_weight[0])
    return bits, float(np.exp(min(log_penalty, _HEAVIEST)))


def _pulls(bits: ExchangeableBits, penalty: float, log_weights: Values) -> Values:
    """π E_m[Zᵀ A⁻¹ Z] of samples with weights π, (d + 1,).

    Zᵀ A⁻¹ Z = (1 + (m − m̄)² / (d (L + ρ)) + m (d − m) / (d (P + ρ))) / T with the
    eigenvalues L and P of the covariance of bits, along (1, ..., 1) and apart from it.
    """
    weights = np.exp(log_weights - bits.log_weight[0])
    along, apart = bits.along[0] + penalty, bits.apart[0] + penalty
    of_level = bits.off_mean[0] ** 2 / (bits.n_words * along)
    return np.asarray(weights * (1.0 + of_level + bits.spread / apart))


def expected_run(
    function: SizeMeans | WordCoefficients,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    *,
    leverage: bool = True,
) -> FiniteFit:
    """What the package ``lime`` gives with n samples, in the mean of runs.

    The normal equations of :class:`FiniteFit` with effective weights; without
    ``leverage`` it holds for n much larger than d only.
    """
    if isinstance(function, WordCoefficients):
        own, logs = function, law.log_weights(function.coefficients.shape[1])
    else:
        value = float(function.mean_by_size()[-1]) if value is None else value
        logs = law.log_weights(function.n_words)
        if leverage:
            d = function.n_words
            logs = effective_log_weights(law, d, n_samples, ridge, first_row)
        own = WordRegression(function).weighed(np.exp(logs - logs.max())[None])
    if first_row and value is None:
        raise InvalidInput("values: where the text itself is a sample, give f of it")
    bits = ExchangeableBits(logs[None] - np.log(len(logs) - 1.0))
    return FiniteFit(
        own.coefficients,
        own.intercept + bits.share * own.coefficients.sum(axis=1),
        bits,
        np.array([value]) if first_row else None,
        n_samples,
        ridge,
    )


# ---- How far one run of LIME on a text is off what such runs give in their mean


_MOST_USED: Final = 12
"""Words that f or the fit tells apart, up to which the scatter is summed, not drawn."""

_ONE: Final = np.zeros(1, np.intp)


def single_text_run(
    function: SetFunction,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    *,
    draws: WordDraws | None = None,
    n_draws: int = RUN_DRAWS,
) -> SingleRun:
    """Mean and covariance of the coefficients of one run of LIME on a text.

    As :func:`single_run`, with effective weights and, in r², the scatter of the fit
    itself, so that it is right for few samples too.
    """
    d = function.n_words
    fit = expected_run(function, law, value, n_samples, ridge, first_row)
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
        shares = _counts(sets, 2.0 * logs)
        second = np.zeros((d + 1, d + 1))
        for some in RUNS_AT_ONCE.blocks(len(shares), 24 * (d + 1)):
            z, f = sets[None, some].astype(float), values[None, some]
            second += second_moments(fit, _ONE, z, f, shares[None, some])[0]
    run = run_of(fit, second[None], np.array([log_squares]))
    whole, penalty = _whole_run(logs, n_samples, ridge, first_row)
    counts = fit.n_drawn / d * np.exp(2.0 * (logs - whole.log_weight[0]))
    run.covariance[0] += _scatter_of_fit(whole, penalty, counts, run.covariance[0])
    return run


def used_words(function: SetFunction) -> Indices:
    """The words that f tells apart, (u,): all where that is not known."""
    if not isinstance(function, Conjunctions):
        return np.arange(function.n_words)
    return function.columns


def _summed(
    fit: FiniteFit,
    function: SetFunction,
    used: Indices,
    log_shares: Values,  # of sizes, (d + 1,)
) -> Array:
    """E r² ψ ψᵀ over all sets of used words, each with 0, ..., R of the R others."""
    d, rest = function.n_words, np.setdiff1d(np.arange(function.n_words), used)
    ends = np.concatenate([np.zeros((1, d)), np.eye(d)])
    psi = fit.influences(_ONE, ends[None])[0]
    psi[1:] -= psi[0]
    b, R = fit.coefficients[0], len(rest)
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
    own, others = np.concatenate([[0], 1 + used]), 1 + rest
    second[np.ix_(own, own)] = (Z * moments[0][:, None]).T @ Z
    second[np.ix_(own, others)] = (moments[1] @ Z)[:, None]
    second[np.ix_(others, own)] = moments[1] @ Z
    second[np.ix_(others, others)] = moments[2].sum()
    second[others, others] = moments[1].sum()
    return np.asarray(psi.T @ second @ psi)


def _log_choose(n: int, k: int | Indices) -> Values:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _scatter_of_fit(
    bits: ExchangeableBits, penalty: float, counts: Values, covariance: Array
) -> Array:
    """What the scatter of a fit adds to that of fits to a few samples.

    A sample is off the fit to the others by r and by what that fit is off its mean,
    s_m = E_m[Zᵀ Cov Z]. So Cov = C + Σ_m W_m s_m E_m[A⁻¹ Z Zᵀ A⁻¹] for a scatter C
    of residuals alone, and s is known from four sums over sizes.
    """
    d, share, off = bits.n_words, bits.share[0], bits.off_mean[0]
    along, apart = bits.along[0] + penalty, bits.apart[0] + penalty
    m = np.arange(d + 1.0)
    words = float(np.trace(covariance)) - covariance[0, 0]
    pairs = float(covariance[1:, 1:].sum()) - words
    # E_m[Zᵀ C Z]
    own = covariance[0, 0] + m / d * (2.0 * covariance[0, 1:].sum() + words)
    own += m / d * (m - 1.0) / (d - 1.0) * pairs
    # E_m E_m' (Zᵀ A⁻¹ Z')² = (1 + x_m x_m')² + y_m y_m', over T²
    x, y = off / np.sqrt(d * along), bits.spread / (np.sqrt(d - 1.0) * apart)
    F = np.stack([np.ones(d + 1), np.sqrt(2.0) * x, x**2, y], axis=1)
    system = np.eye(4) - F.T @ (counts[:, None] * F)
    c = counts * (own + F @ np.linalg.solve(system, F.T @ (counts * own)))
    # A⁻¹ Z: its intercept, along (1, ..., 1), and what is apart from that
    first, level = 1.0 - share * off / along, off / (np.sqrt(d) * along)
    rest = float(c @ bits.spread) / ((d - 1.0) * apart**2)
    other = (float(c @ level**2) - rest) / d
    across = float(c @ (first * level)) / np.sqrt(d)
    return exchangeable_matrix(d, float(c @ first**2), across, other + rest, other)


def exchangeable_matrix(
    n_words: int, zero: float, one: float, two: float, three: float
) -> Array:
    """The matrix (d + 1, d + 1) of an intercept and words that are all alike."""
    result = np.full((n_words + 1, n_words + 1), three)
    np.fill_diagonal(result, two)
    result[0], result[:, 0] = one, one
    result[0, 0] = zero
    return result
