"""What n samples make of limits on texts."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from scipy.special import gammaln, logsumexp

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.lime.moments import ExchangeableBits
from propopt.lime.single_runs import (
    RUN_DRAWS,
    RUNS_AT_ONCE,
    FiniteFit,
    Selection,
    SingleRun,
    named_selection,
    read_run,
    run_of,
    second_moments,
)
from propopt.lime.text.text_reading import TextLaw, WordCoefficients, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import SetFunction, SizeMeans, all_sets


# ---- Sets of words with values, and how much each counts in means over all samples


WordDraws: TypeAlias = tuple[Truths, Values]
"""Sets of words (S, d), which are kept, and values of f there (S,)."""


def _even_sets(log_shares: Values, n_draws: int, rng: np.random.Generator) -> Truths:
    """Uniform sets, evenly of the sizes that count; log_shares (d + 1,)."""
    shares = np.exp(log_shares - log_shares.max())
    ends = np.cumsum(shares) / shares.sum()
    even = (np.arange(read_count(n_draws, "n_draws")) + rng.random()) / n_draws
    sizes = np.minimum(np.searchsorted(ends, even), np.flatnonzero(shares).max())
    ranks = rng.random((n_draws, len(shares) - 1)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < sizes[:, None])


def _counts(bits: Truths, log_shares: Values) -> Values:
    """What each set stands for of all of its size, by shares of sizes (S,), in all 1.

    log_shares (d + 1,).
    """
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
    n_kept: int | None = None,
) -> Values:
    """Log weights that samples have in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z moves the fit to itself, and counts as π̃ =
    π / (1 + π q), A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D: found by fixed-point steps.
    """
    fitted = 1 + (n_words if n_kept is None else n_kept)
    read_run(n_samples, ridge, first_row)
    if ridge == 0.0 and n_samples <= fitted:
        raise InvalidInput(
            f"n_samples: without ridge expected more than {fitted} for as many "
            f"coefficients, got {n_samples}"
        )
    logs, ratio = law.log_weights(n_words), np.ones(n_words + 1)
    for _ in range(_MOST_STEPS):
        before = ratio
        system = _whole_run(logs + np.log(ratio), n_samples, ridge, first_row)
        ratio = 1.0 / (1.0 + _pulls(*system, logs, n_kept))
        if np.abs(ratio - before).max() < _SETTLED:
            break
    return np.asarray(logs + np.log(ratio))


def _whole_run(
    log_weights: Values, n_samples: int, ridge: float, first_row: bool
) -> tuple[ExchangeableBits, float]:
    """Bits of all samples of a run, and what ridge is over their weight T.

    The document itself is one sample more, whose size is d: T S is what the normal
    equations have of bits.
    """
    logs = log_weights + np.log((n_samples - first_row) / (len(log_weights) - 1.0))
    if first_row:
        logs[-1] = min(0.0, logs.max() + _HEAVIEST)
    bits = ExchangeableBits(logs[None])
    with np.errstate(divide="ignore"):
        log_penalty = float(np.log(ridge) - bits.log_weight[0])
    return bits, float(np.exp(min(log_penalty, _HEAVIEST)))


def _pulls(
    bits: ExchangeableBits, penalty: float, log_weights: Values, n_kept: int | None
) -> Values:
    """π E_m[Zᵀ A⁻¹ Z] of samples with weights π, of a fit to all words or k, (d + 1,).

    Zᵀ A⁻¹ Z = (1 + (m − m̄)² / (d (L + ρ)) + m (d − m) / (d (P + ρ))) / T with the
    eigenvalues L and P of the covariance of bits, along (1, ..., 1) and apart from it.
    """
    weights = np.exp(log_weights - bits.log_weight[0])
    d, k = bits.n_words, bits.n_words if n_kept is None else n_kept
    if k == 0:
        return weights
    along, apart = bits.along[0] + penalty, bits.apart[0] + penalty
    # of k words m k / d are kept in the mean, and vary by the hypergeometric law
    part = k / d
    varies = part * (d - k) / (d - 1.0) * bits.spread
    level = (1.0 - part) * apart + part * along
    of_level = (varies + (part * bits.off_mean[0]) ** 2) / (k * level)
    of_rest = (k - 1.0) / (d - 1.0) * bits.spread / apart
    return np.asarray(weights * (1.0 + of_level + of_rest))


# ---- What LIME on a text gives with n samples, in the mean of runs


def expected_run(
    function: SizeMeans | WordCoefficients,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,  # shape (d,)
    *,
    leverage: bool = True,
) -> FiniteFit:
    """What the package ``lime`` gives with n samples, in the mean of runs.

    The solution of ((n − 1) Σ̃ + v vᵀ + λ D) b = (n − 1) Γ̃ + v f(ξ), v = (1, ..., 1),
    D = diag(0, 1, ..., 1). Without ``leverage`` it holds for n much larger than d only.
    """
    if isinstance(function, WordCoefficients):
        own, logs = function, law.log_weights(function.coefficients.shape[1])
    else:
        value = float(function.mean_by_size()[-1]) if value is None else value
        logs = law.log_weights(function.n_words)
        if leverage:
            n_kept = None if kept is None else int(kept.sum())
            logs = effective_log_weights(
                law, function.n_words, n_samples, ridge, first_row, n_kept
            )
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
        None if kept is None else kept[None],
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

    The sandwich of :func:`~propopt.lime.single_runs.single_run`, with effective weights
    and, in r², the scatter of the fit itself, so that it is right for few samples too.
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


def used_words(function: SetFunction) -> Positions:
    """The words that f tells apart, (u,): all where that is not known."""
    if not isinstance(function, Conjunctions):
        return np.arange(function.n_words)
    told = np.union1d(function.present, function.absent)
    return told[told >= 0]  # −1 is none


def _summed(
    fit: FiniteFit,
    function: SetFunction,
    used: Positions,
    log_shares: Values,  # of sizes, (d + 1,)
) -> Array:
    """E r² ψ ψᵀ over all sets of used words, each with 0, ..., R of the R others.

    ψ = N A⁻¹ Z is linear in Z.
    """
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


def _log_choose(n: int, k: int | Positions) -> Values:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _scatter_of_fit(
    bits: ExchangeableBits, penalty: float, counts: Values, covariance: Array
) -> Array:
    """What the scatter of a fit adds to that of fits to a few samples.

    A sample is off the fit to the others by r and by what that fit is off its mean,
    s_m = E_m[Zᵀ Cov Z]. So Cov = C + Σ_m W_m s_m E_m[A⁻¹ Z Zᵀ A⁻¹] for a scatter C
    of residuals alone, and s is known from four sums over sizes.

    counts (d + 1,), covariance (d + 1, d + 1), gives (d + 1, d + 1).
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


# ---- Which words LIME keeps where it is to keep a few


_RIDGE = 0.01
"""The package's, of the fit whose weights are compared."""

_ALIKE = 1e-12


def kept_words(
    function: SizeMeans | WordCoefficients,
    law: TextLaw,
    value: float | None,
    n_kept: int,
    how: Selection = "auto",
    *,
    n_samples: int = 5000,
    first_row: bool = True,
) -> Truths:
    """The words that runs of n samples keep, by their mean normal equations, (d,).

    Bits are not independent, so that a word that is left out changes the coefficients
    of those that are kept. Of words that are alike the first are kept.
    """
    chosen = named_selection(how, read_count(n_kept, "n_kept"))
    ridge = _RIDGE if chosen == "highest_weights" else 0.0
    fit = expected_run(
        function, law, value, n_samples, ridge, first_row, leverage=ridge > 0.0
    )
    d = fit.beta.shape[1]
    if chosen == "highest_weights":
        order = _largest_first(np.abs(fit.coefficients[0]))[:n_kept]
    else:
        order = _forward(fit, min(n_kept, d))
    return np.isin(np.arange(d), order)


def _forward(fit: FiniteFit, n_kept: int) -> Positions:
    """Words in the order in which they explain most of what is left.

    The covariance of k bits has two eigenvalues, so that k of them explain
    Σ (c_j − c̄)² / P + k c̄² / L_k for their covariances c with f: of each candidate by
    its c, Σ c and Σ c² of those that are in.
    """
    bits, d = fit.bits, fit.beta.shape[1]
    assert isinstance(bits, ExchangeableBits)
    # Cov(z, f) and the eigenvalues of Cov(z), with the document as a sample
    c, along, apart = bits.covariances(fit.beta)[0], bits.along[0], bits.apart[0]
    if fit.values is not None:
        lost, weight = 1.0 - bits.share[0], fit.total[0] + 1.0
        c = c + lost / weight * float(fit.values[0] - fit.mean[0])
        along += d * lost**2 / weight
    order: list[int] = []
    for k in range(1, n_kept + 1):
        total = c[order].sum() + c
        squares = (c[order] ** 2).sum() + c**2
        level = (1.0 - k / d) * apart + k / d * along
        explained = (squares - total**2 / k) / apart + total**2 / k / level
        explained[order] = -np.inf
        order.append(int(_largest_first(explained)[0]))
    return np.array(order)


def _largest_first(sizes: Values) -> Positions:
    """Places by size, where rounding is no difference: then the first comes first."""
    finite = sizes[np.isfinite(sizes)]
    unit = _ALIKE * float(np.abs(finite).max(initial=0.0)) or 1.0
    return np.argsort(-np.round(sizes / unit), kind="stable")
